"""What SIGHUP means to this process: that its terminal is gone, or "reload"."""

import os
import signal
import sys
from collections.abc import Mapping
from typing import Final, Literal

SighupAction = Literal["stop", "reload", "ignore"]

_STREAMS: Final = (0, 1, 2)


def sighup_action(environment: Mapping[str, str] = os.environ) -> SighupAction:
    """Return what SIGHUP asks for: the terminal is gone, unless a service manager sends it.

    Who starts a process by nohup(1) has it outlive the terminal.
    """
    if sys.platform == "win32" or is_service(environment) or not any(map(_is_own, _STREAMS)):
        return "reload"
    return "ignore" if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN else "stop"


def is_service(environment: Mapping[str, str] = os.environ) -> bool:
    """Tell whether systemd started this very process (systemd.exec(5)).

    INVOCATION_ID would not tell: terminals that are services themselves hand it to every shell.
    """
    started = environment.get("SYSTEMD_EXEC_PID") == str(os.getpid())
    return started or "NOTIFY_SOCKET" in environment


def _is_own(stream: int) -> bool:
    """Tell whether a stream is the controlling terminal: tcgetpgrp(3) fails for any other file."""
    if sys.platform == "win32":
        return False
    try:
        os.tcgetpgrp(stream)
    except OSError:
        return False
    return True
