"""Who is at the terminal, if anyone: a question before what is hard to undo, and raw output."""

import io
import sys

from controlplane.client.errors import CommandError, UsageError


def confirm(question: str, *, is_sure: bool) -> None:
    """Ask a person at a terminal; elsewhere ``--yes`` must have said it. Raises CommandError."""
    if is_sure:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(f"{question} There is no terminal to ask at.", "Say it by --yes.")
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().casefold() not in {"y", "yes"}:
        raise CommandError("nothing was done")


def write_exactly(text: str) -> None:
    """Write to stdout what has line ends of its own (CSV), whatever this system's are."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(newline="")
    sys.stdout.write(text)
