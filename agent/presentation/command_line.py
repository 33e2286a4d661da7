"""Common parts of both command lines: `--version` for every verb, and suggestions."""

import argparse
import re
from collections.abc import Sequence
from typing import Any, ClassVar, Final, NoReturn

UNKNOWN: Final = "unrecognized arguments: "
"""How argparse, and whoever speaks in its place, begins."""
_CHOICE: Final = re.compile(r"invalid choice: '([^']*)' \(choose from (.*)\)")
_OPTION: Final = re.compile(r"(?<![\w-])--\w[\w-]*")
_NEAR: Final = 0.6
"""How alike two words must be to be taken for each other (difflib's ratio)."""


class SuggestingParser(argparse.ArgumentParser):
    """A parser with `--version` for every verb, which suggests the nearest word after a mistake.

    Parsers of verbs have the same class as their parent."""

    version: ClassVar[str]
    """The program's name and its version."""

    def __init__(self, **keywords: Any) -> None:
        super().__init__(**keywords)
        text = "show the version and exit"
        self.add_argument("--version", action="version", version=self.version, help=text)

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        options, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"{UNKNOWN}{' '.join(unknown)}")
        return options, unknown

    def error(self, message: str) -> NoReturn:
        super().error(message + did_you_mean(message, self.format_help()))


def did_you_mean(message: str, help_text: str) -> str:
    """Return the nearest word that argparse would have taken, as words to add to its message."""
    if choice := _CHOICE.search(message):
        words, known = [choice[1]], re.findall(r"[\w-]+", choice[2])
    elif message.startswith(UNKNOWN):
        words = [word.partition("=")[0] for word in message.split() if word.startswith("-")]
        known = _OPTION.findall(help_text)
    else:
        return ""
    from difflib import get_close_matches  # where there is a mistake only

    for word in words:
        if near := get_close_matches(word, known, n=1, cutoff=_NEAR):
            return f"; did you mean {near[0]!r}?"
    return ""
