"""What both command lines have at every verb: `--version`, and the word that was meant."""

import argparse
import re
from collections.abc import Sequence
from typing import Any, Final, NoReturn

from agent import __version__

_UNKNOWN: Final = "unrecognized arguments: "
_CHOICE: Final = re.compile(r"invalid choice: '([^']*)' \(choose from (.*)\)")
_OPTION: Final = re.compile(r"(?<![\w-])--\w[\w-]*")
_NEAR: Final = 0.6
"""How alike two words must be to be taken for each other (difflib's ratio)."""


class CommandLine(argparse.ArgumentParser):
    """Verbs are made of the same class: their mistakes are told with their own usage."""

    def __init__(self, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.add_argument(
            "--version",
            action="version",
            version=f"{self.prog.split()[0]} {__version__}",
            help="show the version and exit",
        )

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse, and refuse what is not known while it is known whose option it could be."""
        options, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"{_UNKNOWN}{' '.join(unknown)}")
        return options, unknown

    def error(self, message: str) -> NoReturn:
        super().error(message + did_you_mean(message, self.format_help()))


def did_you_mean(message: str, help_text: str) -> str:
    """Return the nearest word that argparse would have taken, as words to add to its message."""
    from difflib import get_close_matches  # where there is a mistake only

    if choice := _CHOICE.search(message):
        words, known = [choice[1]], re.findall(r"[\w-]+", choice[2])
    elif message.startswith(_UNKNOWN):
        words = [word.partition("=")[0] for word in message.split() if word.startswith("-")]
        known = _OPTION.findall(help_text)
    else:
        return ""
    for word in words:
        if near := get_close_matches(word, known, n=1, cutoff=_NEAR):
            return f"; did you mean {near[0]!r}?"
    return ""
