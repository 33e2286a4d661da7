"""Decides what SIGHUP means for this process: stop, reload the configuration, or nothing."""

import os
import signal
import sys
from typing import Final, Literal

SighupAction = Literal["stop", "reload", "ignore"]

_STREAMS: Final = (0, 1, 2)


def sighup_action() -> SighupAction:
    """Return what the process does when it receives SIGHUP.

    A service, and any other process without a terminal, reloads the configuration. A process with a
    terminal stops, because SIGHUP means that the terminal has closed. If nohup(1) started
    such a process, the process ignores the signal.
    """
    if sys.platform == "win32" or is_service() or not any(map(_is_terminal, _STREAMS)):
        return "reload"
    return "ignore" if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN else "stop"


def is_service() -> bool:
    """Return whether systemd started this process directly (systemd.exec(5)).

    INVOCATION_ID is not used: if systemd runs a terminal program as a service, every command in
    this terminal inherits INVOCATION_ID.
    """
    is_main_process = os.environ.get("SYSTEMD_EXEC_PID") == str(os.getpid())
    return is_main_process or "NOTIFY_SOCKET" in os.environ


def _is_terminal(stream: int) -> bool:
    """Return whether a stream is the controlling terminal of this process.

    tcgetpgrp(3) fails for every other stream.
    """
    if sys.platform == "win32":
        return False
    try:
        os.tcgetpgrp(stream)
    except OSError:
        return False
    return True
