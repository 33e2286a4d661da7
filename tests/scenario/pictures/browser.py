"""Takes pictures of pages with Chromium and its DevTools protocol."""

import base64
import contextlib
import http.client
import json
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from websockets.sync.client import ClientConnection, connect

from tests.fakes.devtools_browser import FLAGS

WITHIN_S: Final = 480.0
HEIGHT_MAX: Final = 12000
"""Maximum height of a picture, in pixels. A longer page is cut."""
PAGE_LEFT_MESSAGES: Final = (
    "Inspected target navigated or closed",
    "Execution context was destroyed.",
)
"""Messages of DevTools if the tab began to load another page during a call."""


class PageLeftError(RuntimeError):
    """The tab began to load another page during a call."""


@dataclass
class Browser:
    """A DevTools connection to one tab, or to the whole browser.

    ``call`` sends a command of the protocol and returns its result.
    """

    socket: ClientConnection
    number: int = 0
    """The id of the last command that was sent."""

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, "method": method, "params": params}))
        while True:
            reply: dict[str, Any] = json.loads(self.socket.recv(WITHIN_S))
            if reply.get("id") == self.number:
                if "error" in reply:
                    is_page_left = reply["error"]["message"] in PAGE_LEFT_MESSAGES
                    error = PageLeftError if is_page_left else RuntimeError
                    raise error(f"{method}: {reply['error']}")
                result: dict[str, Any] = reply["result"]
                return result

    def set_view(self, width: int, height: int, theme: str) -> None:
        """Set the size of the window and the preferred colour scheme."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=width < 600,
        )  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": theme}
        self.call("Emulation.setEmulatedMedia", media="screen", features=[scheme])

    def open(self, address: str, ready: str = "true") -> None:
        """Open a page; return once the expression ``ready`` is true in it."""
        self.call("Page.navigate", url=address)
        self.wait(f"document.readyState === 'complete' && ({ready})")

    def wait(self, expression: str) -> None:
        """Return once the expression is true, even if the tab loads another page meanwhile."""
        deadline = time.monotonic() + WITHIN_S
        while True:
            with contextlib.suppress(PageLeftError):
                if self.value(f"Boolean({expression})"):
                    return
            if time.monotonic() > deadline:
                raise RuntimeError(f"never true: {expression}")
            time.sleep(0.05)

    def value(self, expression: str) -> Any:
        evaluation = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        return evaluation["result"].get("value")

    def shoot(self, file: Path, *, whole: bool = False) -> None:
        """Take a picture of the window or of the whole page."""
        clip = {}
        if whole:
            size = self.call("Page.getLayoutMetrics")["cssContentSize"]
            height = min(size["height"], HEIGHT_MAX)
            clip = {"clip": {"x": 0, "y": 0, "width": size["width"], "height": height, "scale": 1}}
        screenshot = self.call(
            "Page.captureScreenshot", format="png", captureBeyondViewport=whole, **clip
        )
        file.write_bytes(base64.b64decode(screenshot["data"]))


@contextlib.contextmanager
def browser(program: str, profile: Path) -> Iterator[Browser]:
    """Run a browser with one tab while the body runs."""
    with running(program, profile) as port:
        tabs = _read(port, "/json/list")
        address = next(str(t["webSocketDebuggerUrl"]) for t in tabs if t["type"] == "page")
        with connect(address, max_size=None, proxy=None) as socket:
            yield Browser(socket)


@contextlib.contextmanager
def running(program: str, profile: Path) -> Iterator[int]:
    """Run a browser while the body runs, and yield its DevTools port."""
    words = (program, *FLAGS, "--hide-scrollbars", f"--user-data-dir={profile}", "about:blank")
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield _port_of(profile)
        finally:
            process.terminate()
            process.wait(WITHIN_S)


@contextlib.contextmanager
def separate_tab(port: int) -> Iterator[Browser]:
    """Open a tab in a new browser context, which has its own cookies, storage and cache."""
    address = str(_read(port, "/json/version")["webSocketDebuggerUrl"])
    with connect(address, max_size=None, proxy=None) as socket:
        whole_browser = Browser(socket)
        context = whole_browser.call("Target.createBrowserContext")
        tab = whole_browser.call("Target.createTarget", url="about:blank", **context)
        address = f"ws://127.0.0.1:{port}/devtools/page/{tab['targetId']}"
        try:
            with connect(address, max_size=None, proxy=None) as tab_socket:
                yield Browser(tab_socket)
        finally:
            whole_browser.call("Target.disposeBrowserContext", **context)


def _port_of(profile: Path) -> int:
    deadline = time.monotonic() + WITHIN_S
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError, IndexError, ValueError):
            port = int((profile / "DevToolsActivePort").read_text().split()[0])
            _read(port, "/json/version")
            return port
        time.sleep(0.05)
    raise RuntimeError("the browser did not start")


def _read(port: int, path: str) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WITHIN_S)
    with contextlib.closing(connection):
        connection.request("GET", path)
        return json.load(connection.getresponse())
