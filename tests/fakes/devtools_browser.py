"""An environment for a real browser: Chromium shows a page on loopback that reports its own state.

Run it as a program in its own network namespace (tests.lab.namespaces), so that the browser can
reach nothing else: `python -m tests.fakes.devtools_browser CHROMIUM`. It prints one JSON object:
the collector's facts, the page's own reports just before and just after the collection, the
collector's facts for each state of the page that `play` creates, and the page faults that the
recorder reads, first while the browser runs and then after the browser has ended.
"""

import asyncio
import contextlib
import json
import queue
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from agent.adapters.connectivity.kiosk_page import read_page_fault
from collectors.application.collector import take_snapshot
from collectors.application.deadline import Deadline
from collectors.application.kiosk.kiosk import read_page_ids
from collectors.application.kiosk.session import PageSession
from collectors.application.kiosk.source import read_kiosk_browser, read_kiosk_page
from collectors.contract import ApplicationFacts
from collectors.shared.devtools import parse_debug_url
from tests.unit.collectors.application.fixtures import RecordingRun

FLAGS: Final = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-port=0",
)

WITHIN_S: Final = 60.0

PAGE: Final = """<!doctype html>
<title>title-secret</title>
<p>content-secret</p>
<script>
const known = Object.getOwnPropertyNames(window).length;
let clicks = 0, changes = 0;
addEventListener("click", () => clicks++);
new MutationObserver(() => changes++).observe(document, { subtree: true, childList: true });
const state = async (name) => (await navigator.permissions.query({ name })).state;
async function about() {
  const battery = await navigator.getBattery(), storage = await navigator.storage.estimate();
  const net = navigator.connection;
  return {
    "browser.userAgent": navigator.userAgent,
    "browser.platform": navigator.platform,
    "browser.logicalProcessors": navigator.hardwareConcurrency,
    "browser.approximateMemoryGiB": navigator.deviceMemory,
    "browser.heapUsedBytes": performance.memory.usedJSHeapSize,
    "browser.heapLimitBytes": performance.memory.jsHeapSizeLimit,
    "browser.online": navigator.onLine,
    "browser.connectionType": net.type ?? null,
    "browser.effectiveConnectionType": net.effectiveType,
    "browser.downlinkMbps": net.downlink,
    "browser.roundTripMs": net.rtt,
    "browser.saveData": net.saveData,
    "browser.language": navigator.language,
    "browser.languages": navigator.languages,
    "browser.timeZone": new Intl.DateTimeFormat().resolvedOptions().timeZone,
    "browser.displayWidthPixels": screen.width,
    "browser.displayHeightPixels": screen.height,
    "browser.pixelRatio": window.devicePixelRatio,
    "browser.orientation": screen.orientation.type,
    "browser.visibility": document.visibilityState,
    "browser.focused": document.hasFocus(),
    "browser.pageUptimeSeconds": performance.now() / 1000,
    "browser.secureContext": window.isSecureContext,
    "browser.cookiesEnabled": navigator.cookieEnabled,
    "browser.originQuotaBytes": storage.quota,
    "browser.originUsageBytes": storage.usage,
    "browser.batteryLevelFraction": battery.level,
    "browser.batteryCharging": battery.charging,
    "browser.permission.geolocation": await state("geolocation"),
    "browser.permission.notifications": await state("notifications"),
    "browser.permission.camera": await state("camera"),
    "browser.permission.microphone": await state("microphone"),
    "browser.bluetoothAuthorizedDevices":
      navigator.bluetooth?.getDevices ? (await navigator.bluetooth.getDevices()).length : null,
    "browser.usbAuthorizedDevices": (await navigator.usb.getDevices()).map(String),
    "touched": [clicks, changes, Object.getOwnPropertyNames(window).length - known],
  };
}
// The page replaces a function in its own JavaScript world. The collector must not call it.
const write = JSON.stringify;
JSON.stringify = () => '{"browser.userAgent":{"value":"page-lie"}}';
async function report() {
  await fetch("/report", { method: "POST", body: write(await about()) });
  setTimeout(report, 50);
}
report();
</script>
"""
"""A page that reports its own state.

``touched`` has three numbers: clicks, changes of the document, and new properties of `window`. They
show whether the collector has changed the page."""


@dataclass(frozen=True)
class PageServer:
    """The server of the page. ``reports`` has the page's own reports.

    A request for `/busy` gets its reply when ``may_answer`` is set.
    """

    port: int
    reports: "queue.Queue[dict[str, Any]]"
    may_answer: threading.Event


def main() -> int:
    with page_server() as server, chromium(sys.argv[1], server.port) as debug_port:
        reports = server.reports
        before = reports.get(timeout=WITHIN_S)
        while not reports.empty():
            before = reports.get_nowait()
        facts = collect(f"http://127.0.0.1:{debug_port}")
        after = next_report(reports)
        scenes = dict(play(debug_port, server))
        page_faults = [recorded_fault(debug_port)]
    page_faults.append(recorded_fault(debug_port))
    record = {
        "facts": asdict(facts), "before": before, "after": after, "scenes": scenes,
        "page_faults": page_faults,
    }  # fmt: skip
    sys.stdout.write(json.dumps(record))
    return 0


def recorded_fault(debug_port: int) -> str | None:
    """Return the fault of the page that the agent's recorder would store, or None."""
    return asyncio.run(read_page_fault(f"http://127.0.0.1:{debug_port}"))


def collect(url: str) -> ApplicationFacts:
    return take_snapshot(
        [read_kiosk_browser.bind(url), read_kiosk_page.bind(url)],
        max_duration_s=5,
        run=RecordingRun(),
    )


def play(debug_port: int, server: PageServer) -> Iterator[tuple[str, dict[str, Any]]]:
    """Bring the page into each state, and yield the state's name and the collected facts."""
    url, page = f"http://127.0.0.1:{debug_port}", f"http://127.0.0.1:{server.port}"
    # A synchronous request blocks the page's thread until the server answers.
    request = "const x = new XMLHttpRequest(); x.open('GET', '/busy', false); x.send();"
    busy = f"setTimeout(() => {{ {request} }})"

    def send_command(method: str, **params: object) -> None:
        address, deadline = parse_debug_url(url), Deadline.after(WITHIN_S)
        with PageSession(address, read_page_ids(address, deadline)[0], deadline) as session:
            session.command(method, **params)

    def collected_fields(**expected: bool) -> dict[str, Any]:
        """Return the fields once they have the values in ``expected``, or at the time limit."""
        deadline = Deadline.after(WITHIN_S)
        while True:
            fields = {f.key: asdict(f) for f in collect(url).fields}
            has_expected_values = all(
                fields[f"kiosk.{key}"]["value"] is expected[key] for key in expected
            )
            if has_expected_values or not deadline.remaining_s():
                return fields

    send_command("Page.navigate", url=f"{page}/white")
    yield "white", collected_fields(painted=False)
    send_command("Page.navigate", url=f"{page}/closed")
    yield "error page", collected_fields(errorPage=True, painted=True)
    send_command("Page.navigate", url=page)
    yield "after the error page", collected_fields(errorPage=False, painted=True)
    send_command("Runtime.evaluate", expression=busy)
    yield "busy", collected_fields(responding=False)
    server.may_answer.set()
    yield "after it was busy", collected_fields(responding=True)
    send_command("Page.navigate", url="chrome://crash")
    yield "crashed", collected_fields(crashed=True)
    send_command("Page.navigate", url=page)
    yield "after the crash", collected_fields(painted=True)


def next_report(reports: "queue.Queue[dict[str, Any]]") -> dict[str, Any]:
    """Return a report that the page began after this call.

    It is the second report that arrives, because the first may have begun before the call.
    """
    while not reports.empty():
        reports.get_nowait()
    reports.get(timeout=WITHIN_S)
    return reports.get(timeout=WITHIN_S)


@contextlib.contextmanager
def page_server() -> Iterator[PageServer]:
    reports: queue.Queue[dict[str, Any]] = queue.Queue()
    may_answer = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/closed":
                self.close_connection = True
                return
            if self.path == "/busy":
                may_answer.wait(WITHIN_S)
            self._reply(b"<!doctype html>" if self.path == "/white" else PAGE.encode())

        def do_POST(self) -> None:
            reports.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self._reply(b"")

        def _reply(self, body: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield PageServer(server.server_port, reports, may_answer)
        server.shutdown()


@contextlib.contextmanager
def chromium(program: str, page_port: int) -> Iterator[int]:
    """Show the page in Chromium, and yield the DevTools port of Chromium."""
    url = f"http://127.0.0.1:{page_port}/orders?token=page-secret"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        log = Path(profile) / "stderr"
        with log.open("wb") as stderr:
            process = subprocess.Popen(
                (program, *FLAGS, f"--user-data-dir={profile}/data", url),
                stdout=subprocess.DEVNULL,
                stderr=stderr,
            )
        try:
            yield wait_for_devtools_port(process, log)
        finally:
            process.terminate()
            process.wait(WITHIN_S)


def wait_for_devtools_port(process: "subprocess.Popen[bytes]", log: Path) -> int:
    """Return the DevTools port once the browser logs it. Only the log shows that it can be used."""
    for _ in range(round(WITHIN_S / 0.05)):
        match = re.search(r"DevTools listening on ws://127\.0\.0\.1:(\d+)/", log.read_text())
        if match:
            return int(match[1])
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.05)
            break
    raise RuntimeError(f"the browser did not start: {log.read_text()[-2000:]}")


if __name__ == "__main__":
    raise SystemExit(main())
