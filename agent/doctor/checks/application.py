"""Checks of the programs on this machine that reports look at: the spooler and the kiosk."""

import json
import socket
import sys
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from agent.adapters.service_manager.commands import SystemCommands
from agent.adapters.service_manager.contract import ServiceManagerError
from agent.doctor.check import Finding, fail, ok, skipped, warn
from agent.doctor.context import Context
from agent.doctor.probe import connect
from agent.wire.controls import without_controls

CUPS_SOCKETS: Final = (Path("/run/cups/cups.sock"), Path("/private/var/run/cupsd"))
ANSWER_MAX: Final = 65536
STEP_S: Final = 2.0


def print_system(context: Context) -> Finding:
    if sys.platform == "win32":
        return _spooler()
    for path in CUPS_SOCKETS:
        if path.exists():
            return judge_cups(path)
    return skipped("no print system is installed (CUPS)")


def judge_cups(path: Path) -> Finding:
    """Tell whether CUPS listens on its socket (cupsd(8))."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
            sock.settimeout(STEP_S)
            sock.connect(str(path))
            sock.sendall(b"HEAD / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            if not sock.recv(12).startswith(b"HTTP/"):
                return warn("CUPS gives no HTTP answer", "systemctl restart cups")
    except PermissionError:
        return warn(f"{path} is closed to this user", "add the agent's user to the group lp")
    except OSError as error:
        return fail(
            f"CUPS does not answer ({error.strerror or error})",
            "systemctl restart cups.socket cups",
        )
    return ok("CUPS answers")


def kiosk(context: Context) -> Finding:
    url = context.local.application.kiosk_debug_url if context.local else ""
    if not url:
        return skipped("application.kiosk_debug_url is not set")
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or 80
    try:
        with connect(host, port, STEP_S) as sock:
            sock.sendall(
                f"GET /json/version HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode()
            )
            answer = _read(sock)
    except OSError as error:
        return fail(
            f"the kiosk browser does not answer on {host}:{port} ({error.strerror or error})",
            f"start it with --remote-debugging-port={port}, or correct application.kiosk_debug_url",
        )
    name = parse_browser(answer)
    if name is None:
        return fail(
            f"what answers on {host}:{port} is no browser's DevTools",
            "correct application.kiosk_debug_url",
        )
    return ok(name)


def parse_browser(answer: bytes) -> str | None:
    """Read the browser's name from the answer of /json/version; None when it is not one."""
    head, _, body = answer.partition(b"\r\n\r\n")
    if not head.startswith(b"HTTP/"):
        return None
    begin, end = body.find(b"{"), body.rfind(b"}")
    try:
        document = json.loads(body[begin : end + 1])
    except (ValueError, RecursionError):
        return None
    name = document.get("Browser") if isinstance(document, dict) else None
    if not isinstance(name, str) or not name:
        return None
    return without_controls(name)[:100]


def _read(sock: socket.socket) -> bytes:
    """Read until the end, or until a DevTools answer is whole: browsers keep connections open."""
    answer = b""
    while len(answer) < ANSWER_MAX and not (
        b"\r\n\r\n" in answer and answer.rstrip().endswith(b"}")
    ):
        part = sock.recv(4096)
        if not part:
            break
        answer += part
    return answer


def _spooler() -> Finding:
    try:
        output = SystemCommands(STEP_S).run("sc", "query", "Spooler")
    except ServiceManagerError as error:
        return warn(f"the spooler's state cannot be read ({error})", "run `sc query Spooler`")
    # The state's number is not localised, its name is: 4 is running (sc.exe query).
    if any(part.split()[-2:-1] == ["4"] or " 4 " in part for part in output.stdout.splitlines()):
        return ok("the print spooler runs")
    return fail("the print spooler does not run", "start it: `sc start Spooler`")
