"""Plain text output: texts are wrapped, and lose their control characters. Terminals get colours.

The fast verbs of `venue-agent`, such as `status`, use this module instead of rich. Importing rich
would double the time that such a verb takes.
"""

import json
import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import Final, Literal, TextIO

from agent.config.rights import with_config
from agent.presentation.plain_text import plain
from agent.presentation.severity import Severity

Style = Literal["good", "warn", "bad", "quiet", "strong", "none"]
Part = str | tuple[str, Style]
"""A text, or a text and its style."""

# Codes of ECMA-48 for colours that are readable on dark and light backgrounds.
_CODES: Final[dict[Style, str]] = {
    "good": "32", "warn": "33", "bad": "1;31", "quiet": "2", "strong": "1", "none": "",
}  # fmt: skip
SEVERITY_STYLES: Final[dict[Severity, Style]] = {
    "good": "good", "warn": "warn", "bad": "bad", "muted": "quiet",
}  # fmt: skip
WIDTH_MAX: Final = 100
WIDTH_MIN: Final = 40
NAME_WIDTH: Final = 13
"""Width of the names that `Screen.fact` writes."""
LAST_COLUMN_MIN: Final = 20
"""If the last column of a table has less space than this, long texts in it are written below the
other columns, with the indent BELOW_INDENT."""
BELOW_INDENT: Final = 4


class Screen:
    """Writes lines to ``stream``, wrapped to the terminal's width (default: 80).

    The width is at least WIDTH_MIN and at most WIDTH_MAX.
    """

    def __init__(self, stream: TextIO | None = None, width: int | None = None) -> None:
        self._stream = stream or sys.stdout
        columns = width or shutil.get_terminal_size((80, 24)).columns
        self.width = max(WIDTH_MIN, min(columns, WIDTH_MAX))
        self._is_coloured = is_coloured(self._stream)

    def line(self, *parts: Part) -> None:
        """Write one line of parts, without wrapping."""
        styled = map(_with_style, parts)
        self._stream.write("".join(self._painted(plain_part(t), s) for t, s in styled) + "\n")

    def beside(self, head: tuple[str, Style], tail: tuple[str, Style]) -> None:
        """Write two parts on one line, or below each other if they do not fit."""
        if len(head[0]) + 2 + len(tail[0]) <= self.width:
            self.line(head, "  ", tail)
            return
        self.paragraph(*head)
        self.paragraph(*tail, indent="  ")

    def paragraph(self, text: str, style: Style = "none", *, indent: str = "") -> None:
        """Write wrapped text, each line after ``indent``.

        If the user passed `--config`, it is added to the commands in the text.
        """
        for line in wrapped(with_config(text), self.width - len(indent)):
            self._stream.write(indent + self._painted(line, style) + "\n")

    def fact(self, name: str, value: str, style: Style = "none") -> None:
        """Write a name and its value, wrapped next to the name."""
        head = self._painted(f"{name:{NAME_WIDTH}}", "quiet")
        for line in wrapped(value, self.width - NAME_WIDTH) or [""]:
            self._stream.write(f"{head}{self._painted(line, style)}\n")
            head = " " * NAME_WIDTH

    def table(self, headings: Sequence[str], rows: Iterable[Sequence[Part]]) -> None:
        """Write a table whose columns are as wide as their content.

        The last column is wrapped. If there is little space, it is written below the other columns.
        Headings that consist of blanks set a minimum width and are not written.
        """
        lines = [[(plain(text), style) for text, style in map(_with_style, row)] for row in rows]
        widths = [
            max(len(heading), *(len(line[column][0]) for line in lines))
            for column, heading in enumerate(headings[:-1])
        ]
        indent = sum(widths) + 2 * len(widths)
        last_width = max(1, self.width - indent)
        head = "".join(f"{h:{w}}  " for h, w in zip(headings[:-1], widths, strict=True))
        if len(headings[-1]) <= last_width:
            head += headings[-1]
        if head.strip():
            self._stream.write(self._painted(head.rstrip(), "quiet") + "\n")
        for line in lines:
            cells = "".join(
                self._painted(f"{text:{width}}", style) + "  "
                for (text, style), width in zip(line[:-1], widths, strict=True)
            )
            text, style = line[-1]
            if last_width < LAST_COLUMN_MIN and len(text) > last_width:
                first, more, margin = "", wrapped(text, self.width - BELOW_INDENT), BELOW_INDENT
            else:
                (first, *more), margin = wrapped(text, last_width) or [""], indent
            self._stream.write((cells + self._painted(first, style)).rstrip() + "\n")
            for tail in more:
                self._stream.write(" " * margin + self._painted(tail, style) + "\n")

    def blank(self) -> None:
        self._stream.write("\n")

    def _painted(self, text: str, style: Style) -> str:
        code = _CODES[style]
        return f"\x1b[{code}m{text}\x1b[0m" if code and text and self._is_coloured else text


def _with_style(part: Part) -> tuple[str, Style]:
    return (part, "none") if isinstance(part, str) else part


def is_coloured(stream: TextIO) -> bool:
    """Return whether output to ``stream`` is coloured.

    Only terminals get colours. Windows, terminals of the type "dumb", and users who set NO_COLOR
    (no-color.org) get none.
    """
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return stream.isatty() and sys.platform != "win32"


def print_json(document: object, *, ensure_ascii: bool = True) -> None:
    """Print ``document`` on stdout as JSON, for `--json`."""
    sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=ensure_ascii) + "\n")


def time_to_the_minute(timestamp: str) -> str:
    """Return ``2026-11-20 19:04`` for an ISO 8601 timestamp."""
    return timestamp[:16].replace("T", " ")


def wrapped(text: str, width: int) -> list[str]:
    """Make ``text`` plain, and break it into lines of at most ``width`` characters."""
    return textwrap.wrap(plain(text), width, break_on_hyphens=False)


def plain_part(text: str) -> str:
    """Make a part of a line plain, but keep its leading and trailing blanks."""
    inner = plain(text)
    lead = len(text) - len(text.lstrip(" "))
    trail = len(text) - len(text.rstrip(" ")) if inner else 0
    return " " * lead + inner + " " * trail
