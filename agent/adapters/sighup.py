"""The meaning of SIGHUP for this process: its terminal has closed, or "reload"."""

import os
import signal
import sys
from collections.abc import Mapping
from typing import Final, Literal

SighupAction = Literal["stop", "reload", "ignore"]

_STREAMS: Final = (0, 1, 2)


def sighup_action(environment: Mapping[str, str] = os.environ) -> SighupAction:
    """Return the action of SIGHUP: stop when the terminal closes, reload under a service manager.

    A process that nohup(1) started ignores it.
    """
    if sys.platform == "win32" or is_service(environment) or not any(map(_is_own, _STREAMS)):
        return "reload"
    return "ignore" if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN else "stop"


def is_service(environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether systemd started this process itself (systemd.exec(5)).

    INVOCATION_ID does not show it: terminals that are services pass it to every shell.
    """
    started = environment.get("SYSTEMD_EXEC_PID") == str(os.getpid())
    return started or "NOTIFY_SOCKET" in environment


def _is_own(stream: int) -> bool:
    """Return whether a stream is the controlling terminal; else tcgetpgrp(3) fails."""
    if sys.platform == "win32":
        return False
    try:
        os.tcgetpgrp(stream)
    except OSError:
        return False
    return True
