"""Confirmation prompts."""

import sys

from controlplane.client.errors import CommandError, UsageError

CONFIRM_ABOVE = 20
"""Number of devices above which a confirmation is required."""


def confirm(question: str, *, is_sure: bool) -> None:
    """Ask the user to confirm, unless ``is_sure``.

    Raises:
        UsageError: there is no terminal.
        CommandError: the answer is not yes.
    """
    if is_sure:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(f"{question} There is no terminal to confirm it.", "Use --yes.")
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().casefold() not in {"y", "yes"}:
        raise CommandError("cancelled: nothing was changed")
