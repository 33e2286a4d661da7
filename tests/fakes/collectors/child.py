"""A child process that acts as a correct, faulty or unresponsive collector.

It is started as ``python child.py BEHAVIOUR [FILE]``. It implements the protocol of collectors by
hand, so that it can also violate the protocol. It imports nothing of the project.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

FACTS = {"kind": "application", "started_at": "2026-11-20T19:00:00+00:00", "duration_ms": 1.5}
FILE = Path(sys.argv[2] if len(sys.argv) > 2 else ".")
"""File to which some behaviours write the id of a process."""
SLEEPER = "import sys, time; sys.stdout.write('up\\n'); sys.stdout.flush(); time.sleep(30)"


def send_event(event: str, **values: object) -> None:
    write_line(json.dumps({"event": event, **values}))


def write_line(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def send_checkpoint() -> None:
    send_event("checkpoint", facts={**FACTS, "limitations": ["so far"]})
    send_event("progress", step="disks", done=1, total=2)


def send_result(*limitations: str, cancelled: bool = False) -> None:
    send_event("result", facts={**FACTS, "limitations": limitations, "cancelled": cancelled})


def hang() -> None:
    time.sleep(60)


def succeed() -> None:
    job = sys.stdin.readline()
    send_checkpoint()
    send_result(job.strip())


def write_extra_lines() -> None:
    sys.stderr.write("a warning of some library\n")
    send_result()
    send_result("too late")


def crash() -> None:
    send_checkpoint()
    send_event("crash", error="ValueError: broken")
    sys.exit(1)


def crash_at_once() -> None:
    sys.exit(7)


def crash_with_surrogate() -> None:
    """Send an error text that contains half of a surrogate pair."""
    send_event("crash", error="no\udcffgood")


def kill_itself() -> None:
    send_checkpoint()
    os.kill(os.getpid(), 9)


def hang_later() -> None:
    send_checkpoint()
    hang()


def wait_for_command() -> None:
    """Wait for a command, and then send the result."""
    sys.stdin.readline()
    send_checkpoint()
    send_result(sys.stdin.readline().strip(), cancelled=True)


def send_invalid_line() -> None:
    send_checkpoint()
    write_line("DeprecationWarning: something")
    hang()


def answer_command_with_invalid_line() -> None:
    sys.stdin.readline()
    send_checkpoint()
    sys.stdin.readline()
    write_line("not an event")
    hang()


def send_unknown_event() -> None:
    """Send an event of an unknown type."""
    send_event("surprise", facts=FACTS)


def send_half_surrogates() -> None:
    send_result("printer \udcff", "\\udcff stays")


def write_endless_line() -> None:
    while True:
        sys.stdout.write("x" * 65536)


def send_long_checkpoint() -> None:
    send_checkpoint()
    send_event("checkpoint", facts={**FACTS, "limitations": ["x" * 17 * 2**20]})
    send_event("progress", step="after", done=1, total=2)
    send_result("whole")


def send_long_result() -> None:
    send_checkpoint()
    send_result("x" * 40 * 2**20)
    send_event("progress", step="after", done=1, total=2)


def send_many_lines() -> None:
    while True:
        send_event("progress", step="disks", done=1)


def send_environment() -> None:
    send_result(*(f"{key}={value}" for key, value in sorted(os.environ.items())))


def start_grandchild(*, escapes: bool = False) -> None:
    """Start a process that sleeps, send the result, and hang.

    If ``escapes`` is True, the new process has its own session. Then a signal to the process group
    of the collector does not reach the new process.
    """
    grandchild_process = subprocess.Popen(
        [sys.executable, "-c", SLEEPER], stdout=subprocess.PIPE, start_new_session=escapes
    )
    assert grandchild_process.stdout is not None
    grandchild_process.stdout.readline()
    FILE.write_text(str(grandchild_process.pid))
    send_result()
    hang()


def start_escaped_grandchild() -> None:
    start_grandchild(escapes=True)


def wait_for_stdin_end() -> None:
    """Run until standard input is closed. The kernel also closes it if the agent is killed."""
    sys.stdin.readline()
    FILE.write_text(str(os.getpid()))
    send_checkpoint()
    sys.stdin.read()


BEHAVIOURS: tuple[Callable[[], None], ...] = (
    succeed, write_extra_lines, crash, crash_at_once, crash_with_surrogate, kill_itself, hang,
    hang_later, wait_for_command, send_invalid_line, answer_command_with_invalid_line,
    send_unknown_event, send_half_surrogates, write_endless_line, send_many_lines,
    send_long_checkpoint, send_long_result, send_environment, start_grandchild,
    start_escaped_grandchild, wait_for_stdin_end,
)  # fmt: skip

if __name__ == "__main__":
    {behave.__name__: behave for behave in BEHAVIOURS}[sys.argv[1]]()
