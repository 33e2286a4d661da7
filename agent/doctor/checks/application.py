"""Checks of the spooler and the kiosk browser."""

import json
import socket
import sys
from http.client import HTTPException
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from agent.adapters.service_manager.commands import run_program
from agent.adapters.service_manager.contract import ServiceManagerError
from agent.doctor.check import Outcome, fail, ok, skipped, warn
from agent.doctor.context import Context
from agent.doctor.probe import connect, request
from agent.wire.addresses import join_host_port
from agent.wire.controls import without_controls

CUPS_SOCKETS: Final = (Path("/run/cups/cups.sock"), Path("/private/var/run/cupsd"))
REPLY_MAX_BYTES: Final = 65536
NAME_MAX: Final = 100
TIMEOUT_S: Final = 2.0
RESTART_CUPS: Final = (
    "launchctl kickstart -k system/org.cups.cupsd"
    if sys.platform == "darwin"
    else "systemctl restart cups.socket cups"
)


def print_system(context: Context) -> Outcome:
    if sys.platform == "win32":
        return _spooler()
    for path in CUPS_SOCKETS:
        if path.exists():
            return check_cups(path)
    return skipped("no print system is installed (CUPS)")


def check_cups(path: Path) -> Outcome:
    """Check that CUPS answers on its socket (cupsd(8))."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
            sock.settimeout(TIMEOUT_S)
            sock.connect(str(path))
            with request(sock, "localhost", 80, "HEAD", "/", Connection="close"):
                return ok("CUPS answers")
    except HTTPException:
        return warn("CUPS does not answer with HTTP", RESTART_CUPS)
    except PermissionError:
        return warn(f"{path} is closed to this user", "add the agent's user to the group lp")
    except OSError as error:
        return fail(f"CUPS does not answer ({error.strerror or error})", RESTART_CUPS)


def kiosk(context: Context) -> Outcome:
    url = context.local.application.kiosk_debug_url if context.local else ""
    if not url:
        return skipped("application.kiosk_debug_url is not set")
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or 80
    endpoint = join_host_port(host, port)
    try:
        with connect(host, port, TIMEOUT_S) as sock:
            name = request_browser(sock, host, port)
    except OSError as error:
        return fail(
            f"the kiosk browser does not answer on {endpoint} ({error.strerror or error})",
            f"start it with --remote-debugging-port={port} and its own --user-data-dir (without"
            " this directory, newer versions of Chrome ignore the port), or correct"
            " application.kiosk_debug_url",
        )
    if name is None:
        return fail(
            f"the program on {endpoint} is not a browser with DevTools",
            "correct application.kiosk_debug_url",
        )
    return ok(name)


def request_browser(sock: socket.socket, host: str, port: int) -> str | None:
    """Return the browser's name from DevTools; None if DevTools does not reply. Raises OSError."""
    try:
        with request(sock, host, port, "GET", "/json/version", Connection="close") as reply:
            document = json.loads(reply.read(REPLY_MAX_BYTES))
    except (HTTPException, ValueError, RecursionError):
        return None
    name = document.get("Browser") if isinstance(document, dict) else None
    if not isinstance(name, str) or not name:
        return None
    return without_controls(name)[:NAME_MAX]


def _spooler() -> Outcome:
    try:
        output = run_program("sc", "query", "Spooler", timeout_s=TIMEOUT_S)
    except ServiceManagerError as error:
        return warn(f"the spooler's state cannot be read ({error})", "run `sc.exe query Spooler`")
    # `sc query` translates the name of the state, but not its number. 4 means running.
    if any("4" in line.split() for line in output.stdout.splitlines()):
        return ok("the print spooler runs")
    return fail("the print spooler does not run", "start it: `sc.exe start Spooler`")
