"""Runs an agent that kills itself at a given failpoint.

    python -m tests.scenario.crash.crashing_agent PLAN TRACE CONFIG

PLAN is ``failpoint:before|after:n``: the agent dies when it reaches this side of the failpoint for
the n-th time. With the PLAN ``never`` it does not die. At each side of each failpoint, before it
continues, the agent appends a line such as ``failpoint:before`` to the file TRACE. Instead of the
collector, a fast child process sends constant facts (tests/fakes/collectors/quick.py).
"""

import asyncio
import os
import signal
import sys
from collections import Counter
from pathlib import Path

from agent import daemon
from agent.adapters import failpoints
from agent.adapters.failpoints import Failpoint
from tests.fakes.collectors.command import command_of

NEVER = "never"


def point(failpoint: Failpoint, is_over: bool) -> str:
    """Return the line for a side of a failpoint, such as ``failpoint:before``."""
    return f"{failpoint}:{'after' if is_over else 'before'}"


def _die_at(plan: str, trace: int) -> failpoints.Listener:
    where, _, number = plan.rpartition(":")
    counts: Counter[str] = Counter()

    def listener(failpoint: Failpoint, is_over: bool) -> None:
        name = point(failpoint, is_over)
        counts[name] += 1
        os.write(trace, f"{name}\n".encode())
        if plan != NEVER and name == where and counts[name] == int(number):
            os.kill(os.getpid(), signal.SIGKILL)

    return listener


if __name__ == "__main__":
    plan, trace_path, config = sys.argv[1:]
    trace = os.open(trace_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    failpoints.set_listener(_die_at(plan, trace))
    asyncio.run(daemon.run(Path(config), foreground=False, collector_command=command_of("quick")))
