"""Runs a command, ends it by a signal, and reports how many processes outlive it and for how long.

    python -m tests.scenario.demo.orphans SIGNAL MARK COMMAND [ARGUMENT ...]

The signal is sent as soon as the file ``MARK`` exists, or immediately if ``MARK`` is "". Each
descendant of the command becomes a child of this process when its own parent dies
(PR_SET_CHILD_SUBREAPER), so this process can wait for all of them. The result is printed as JSON,
after the command's output:

- ``was_running``: whether the command was still running when the signal was sent
- ``orphans``: the number of processes that outlived the command
- ``gone_s``: seconds from the end of the command to the end of the last of these processes
- ``had_namespace``: whether the command ran in a network namespace of its own
- ``in_its_namespace``: the processes that are left in this namespace
"""

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.paths import ROOT

PR_SET_CHILD_SUBREAPER = 36  # prctl(2)
WITHIN_S = 180.0
POLL_S = 0.005


def become_reaper() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == -1:
        raise OSError(ctypes.get_errno(), "no subreaper")


def network_namespace_of(pid: int | str) -> str:
    """Return the network namespace of a process, or an empty string if it has ended."""
    with contextlib.suppress(OSError):
        return str(Path(f"/proc/{pid}/ns/net").readlink())
    return ""


def wait_for(mark: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + WITHIN_S
    path = ROOT / mark
    while mark and process.poll() is None and time.monotonic() < deadline:
        if path.exists():
            return
        time.sleep(POLL_S)


def reap_all() -> int:
    """Wait until every descendant has ended, and return their number.

    If this takes longer than ``WITHIN_S``, SIGALRM ends this process.
    """
    count = 0
    signal.alarm(int(WITHIN_S))
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)
            count += 1
    return count


def main() -> None:
    number, mark, command = signal.Signals[sys.argv[1]], sys.argv[2], sys.argv[3:]
    become_reaper()
    process = subprocess.Popen(command)
    wait_for(mark, process)
    was_running = process.poll() is None
    namespace = network_namespace_of(process.pid)
    process.send_signal(number)
    process.wait()
    began = time.monotonic()
    orphans = reap_all()
    gone_s = time.monotonic() - began
    had_namespace = namespace != network_namespace_of("self")
    remaining_pids = [
        p.name
        for p in Path("/proc").iterdir()
        if p.name.isdigit() and network_namespace_of(p.name) == namespace
    ]
    outcome = {
        "was_running": was_running,
        "orphans": orphans,
        "gone_s": round(gone_s, 2),
        "had_namespace": had_namespace,
        "in_its_namespace": remaining_pids if had_namespace else [],
    }
    print(json.dumps(outcome))


if __name__ == "__main__":
    main()
