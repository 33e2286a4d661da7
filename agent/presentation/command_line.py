"""Common parts of the command lines of agent and control plane.

Every verb has `--version`, and a misspelled word gets a suggestion.
"""

import argparse
import re
from collections.abc import Sequence
from typing import Any, ClassVar, Final, NoReturn

UNKNOWN: Final = "unrecognized arguments: "
"""The start of argparse's message about unknown options."""
_CHOICE: Final = re.compile(r"invalid choice: '([^']*)' \(choose from (.*)\)")
_MISSING: Final = re.compile(r"the following arguments are required: (.*)")
_NO_VALUE: Final = re.compile(r"argument (\S+): expected one argument")
_OPTION: Final = re.compile(r"(?<![\w-])--\w[\w-]*")
_SIMILARITY_MIN: Final = 0.6
"""Minimum similarity of a suggestion (difflib's ratio)."""


class SuggestingParser(argparse.ArgumentParser):
    """A parser with `--version` for every verb. After a mistake it suggests the nearest word.

    argparse creates the parser of each verb with the class of its parent parser, so each verb uses
    this class.
    """

    version: ClassVar[str]
    """The program's name and its version."""

    def __init__(self, **keywords: Any) -> None:
        super().__init__(**keywords)
        text = "show the version and exit"
        self.add_argument("--version", action="version", version=self.version, help=text)

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        options, unknown_words = super().parse_known_args(args, namespace)
        if unknown_words:
            self.error(f"{UNKNOWN}{' '.join(unknown_words)}")
        return options, unknown_words

    def error(self, message: str) -> NoReturn:
        super().error(readable(message) + did_you_mean(message, self.format_help()))


def readable(message: str) -> str:
    """Return argparse's message in plain words."""
    if missing := _MISSING.fullmatch(message):
        return f"{missing[1]} is missing: see --help"
    if no_value := _NO_VALUE.fullmatch(message):
        return f"{no_value[1]} needs a value"
    if choice := _CHOICE.search(message):
        argument = message.partition(":")[0].removeprefix("argument ")
        choices = ", ".join(re.findall(r"[\w-]+", choice[2]))
        ending = message[choice.end() :]
        return f"{choice[1]!r} is not a valid {argument}: choose from {choices}{ending}"
    return message


def did_you_mean(message: str, help_text: str) -> str:
    """Return text to append to argparse's message, such as ``; did you mean '--json'?``.

    Return "" if no valid word is similar enough.
    """
    if choice := _CHOICE.search(message):
        words, valid_words = [choice[1]], re.findall(r"[\w-]+", choice[2])
    elif message.startswith(UNKNOWN):
        words = [word.partition("=")[0] for word in message.split() if word.startswith("-")]
        valid_words = _OPTION.findall(help_text)
    else:
        return ""
    from difflib import get_close_matches  # only needed after a mistake

    for word in words:
        if matches := get_close_matches(word, valid_words, n=1, cutoff=_SIMILARITY_MIN):
            return f"; did you mean {matches[0]!r}?"
    return ""
