"""Tells the service manager how the daemon is: sd_notify(3) over a datagram socket.

Without NOTIFY_SOCKET, or on another system, nothing happens.
"""

import os
import socket
from collections.abc import Mapping

from agent.wire.controls import without_controls


class Notifier:
    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        self._address = environment.get("NOTIFY_SOCKET", "")
        if self._address.startswith("@"):
            self._address = "\0" + self._address[1:]
        own = environment.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        microseconds = environment.get("WATCHDOG_USEC", "0") if own else "0"
        self.watchdog_s = int(microseconds) / 1e6 if microseconds.isdecimal() else 0.0
        """How long the manager waits for a sign of life; 0 when it does not."""

    def ready(self) -> None:
        self._send("READY=1")

    def reloading(self, monotonic_us: int) -> None:
        self._send(f"RELOADING=1\nMONOTONIC_USEC={monotonic_us}")

    def stopping(self) -> None:
        self._send("STOPPING=1")

    def status(self, text: str) -> None:
        self._send(f"STATUS={without_controls(text.partition(chr(10))[0])}")

    def alive(self) -> None:
        self._send("WATCHDOG=1")

    def _send(self, state: str) -> None:
        if not self._address or not hasattr(socket, "AF_UNIX"):
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as out:
                # A manager that does not read must not hang the loop whose life it is told of.
                out.setblocking(False)
                out.connect(self._address)
                out.send(state.encode())
        except OSError:
            return  # the manager went away or is busy: there is nobody to tell
