"""Notifies the service manager that the service is ready and alive: sd_notify(3).

Without NOTIFY_SOCKET, and on systems without it, nothing happens.
"""

import os
import socket
from collections.abc import Mapping


class Notifier:
    """``watchdog_s`` is the watchdog timeout of this process, or 0 if it has none."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        address = environment.get("NOTIFY_SOCKET", "")
        self._address = "\0" + address[1:] if address.startswith("@") else address
        is_ours = environment.get("WATCHDOG_PID") in {None, str(os.getpid())}
        microseconds = environment.get("WATCHDOG_USEC", "") if is_ours else ""
        self.watchdog_s = int(microseconds) / 1e6 if microseconds.isdecimal() else 0.0

    def ready(self, status: str) -> None:
        self._send(f"READY=1\nSTATUS={status}")

    def alive(self) -> None:
        self._send("WATCHDOG=1")

    def _send(self, state: str) -> None:
        if not self._address or not hasattr(socket, "AF_UNIX"):
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as out:
                # A manager that does not read must not block the event loop.
                out.setblocking(False)
                out.connect(self._address)
                out.send(state.encode())
        except OSError:
            return  # the manager has stopped or is busy
