"""Notifies systemd of a program's state (sd_notify(3)). The agent and the service use this module.

It does nothing if NOTIFY_SOCKET is not set, and on systems without systemd.
"""

import os
import socket
from collections.abc import Mapping

from agent.wire.controls import without_controls


class Notifier:
    """Sends notifications to systemd.

    ``watchdog_s`` is the watchdog interval in seconds: the program must call `alive` within this
    time. It is 0 if systemd does not monitor this process.
    """

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        address = environment.get("NOTIFY_SOCKET", "")
        # An "@" stands for the zero byte at the start of an abstract address.
        self._address = "\0" + address[1:] if address.startswith("@") else address
        is_for_this_process = environment.get("WATCHDOG_PID") in {None, str(os.getpid())}
        microseconds = environment.get("WATCHDOG_USEC", "") if is_for_this_process else ""
        self.watchdog_s = int(microseconds) / 1e6 if microseconds.isdecimal() else 0.0

    def ready(self, status: str = "") -> None:
        """Report that the program is ready. Sets its status line, unless ``status`` is empty."""
        self._send("READY=1" + (f"\n{_status_line(status)}" if status else ""))

    def reloading(self, monotonic_us: int) -> None:
        """Report a reload that began at this time of CLOCK_MONOTONIC, in microseconds."""
        self._send(f"RELOADING=1\nMONOTONIC_USEC={monotonic_us}")

    def stopping(self) -> None:
        self._send("STOPPING=1")

    def status(self, text: str) -> None:
        self._send(_status_line(text))

    def alive(self) -> None:
        self._send("WATCHDOG=1")

    def _send(self, state: str) -> None:
        if not self._address or not hasattr(socket, "AF_UNIX"):
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as out:
                # The event loop must not block if systemd does not read the notification.
                out.setblocking(False)
                out.connect(self._address)
                out.send(state.encode())
        except OSError:
            return  # systemd has stopped, or is busy


def _status_line(text: str) -> str:
    first_line, _, _ = text.partition("\n")
    return f"STATUS={without_controls(first_line)}"
