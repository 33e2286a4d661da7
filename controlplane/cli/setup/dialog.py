"""Asks for the values of `setup` that are not given as options."""

import sys
from collections.abc import Callable
from typing import TypeVar

from controlplane.client.errors import UsageError

Value = TypeVar("Value")
Parser = Callable[[str], Value]
"""Returns the value of an answer. Raises UsageError with a message for users."""


def is_possible() -> bool:
    """Return whether there is a terminal to ask on."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def ask(question: str, parse: Parser[Value], default: str = "") -> Value:
    """Ask until the answer is valid. An empty answer selects ``default``."""
    prompt = f"{question} [{default}]: " if default else f"{question}: "
    return retry(lambda: parse(_read_line(prompt) or default))


def retry(work: Callable[[], Value]) -> Value:
    """Repeat ``work`` until it raises no UsageError. Errors are printed."""
    while True:
        try:
            return work()
        except UsageError as error:
            sys.stderr.write(f"  {error}\n")


def _read_line(question: str) -> str:
    sys.stderr.write(question)
    sys.stderr.flush()
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line.strip()
