"""Tables: fit for 80 columns, lists where they do not fit below 72, whole lines in a pipe.

At a terminal ids are as short as tells them apart; any verb takes them so. What goes into a pipe or
a file is not folded and has its ids whole. ``COLUMNS`` says how wide a terminal is meant.
"""

import os
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from uuid import UUID

from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from agent.presentation.humanize import format_seconds
from agent.presentation.plain_text import plain

STATUS_STYLES = {
    "queued": "cyan",
    "received": "cyan",
    "running": "blue",
    "completed": "green",
    "partial": "yellow",
    "failed": "red",
    "expired": "dim",
    "sent": "green",
    "pending": "cyan",
    "disabled": "dim",
}
TABLES_FROM = 72
FREE_TEXT = frozenset(
    {
        "location", "locations", "name", "device", "headline",
        "organization", "till", "tax", "within", "codes",
    }
)  # fmt: skip
NUMBERS = frozenset(
    {
        "lines", "total", "price", "decimals", "percentage", "net", "share", "sales",
        "now", "before", "change",
    }
)  # fmt: skip
"""Headings of columns that are read from the right."""
SHORT_ID = 8

Row = Sequence[str | Text]


def console() -> Console:
    return Console(highlight=False, soft_wrap=False)


def is_piped() -> bool:
    return not sys.stdout.isatty() and "COLUMNS" not in os.environ


def ids_of(ids: Iterable[UUID]) -> dict[UUID, str]:
    """Return each id as it is shown: whole in a pipe, else so short as to differ in the list."""
    known = sorted({str(each) for each in ids})
    length = 36 if is_piped() else SHORT_ID
    while len({each[:length] for each in known}) < len(known):
        length += 1
    return {UUID(each): each[:length] for each in known}


def print_lines(lines: Sequence[str]) -> None:
    """Print them below an empty one; nothing where there are none."""
    for line in ("", *lines) if lines else ():
        console().print(Text(line), soft_wrap=is_piped())


def print_note(line: str) -> None:
    """Print a line about the rows: below them, or beside them where they go into a pipe."""
    if is_piped():
        sys.stderr.write(f"{plain(line)}\n")
    else:
        console().print(text_of(line, "dim"))


def age(moment: datetime | None, now: datetime) -> str:
    """Return how long ago ``moment`` was, in the largest whole unit: ``29 min``."""
    if moment is None:
        return "never"
    return format_seconds(max(0, int((now - moment).total_seconds())), units=1)


def text_of(value: str, style: str = "") -> Text:
    return Text(plain(value), style)


def status_text(status: str) -> Text:
    return Text(status, STATUS_STYLES.get(status, ""))


def print_rows(headings: Sequence[str], rows: Sequence[Row], empty: str, title: str = "") -> None:
    """Print a table; on a narrow terminal each row as its first cell and, below it, the rest."""
    to = console()
    if not rows:
        to.print(Text(empty, "dim"))
    elif is_piped():
        _write_lines(headings, rows, title)
    elif to.width >= TABLES_FROM or width_of(headings, rows) <= to.width:
        to.print(_table(headings, rows, title))
    else:
        if title:
            to.print(Text(title, "italic"))
        for first, *others in rows:
            to.print(first)
            words = [Text(each) if isinstance(each, str) else each for each in others]
            to.print(Padding(Text(" · ").join(word for word in words if word), (0, 0, 0, 2)))


def width_of(headings: Sequence[str], rows: Sequence[Row]) -> int:
    """Return how wide the table is where nothing is folded."""
    return sum(_widths(headings, rows)) + 2 * (len(headings) - 1)


def print_rows_with_sentences(
    headings: Sequence[str], rows: Sequence[Row], sentences: Sequence[Text]
) -> None:
    """Print rows, each with a sentence below it, which would be a column of a few letters."""
    to = console()
    cells = [[text_of(each, "dim") for each in headings]]
    cells += [[Text(each) if isinstance(each, str) else each for each in row] for row in rows]
    widths = [max(each.cell_len for each in column) for column in zip(*cells, strict=True)]
    is_list = sum(widths) + 2 * len(widths) > to.width
    if is_list:
        cells, widths = cells[1:], [0] * len(widths)
    below = [*([] if is_list else [Text()]), *sentences]
    for row, sentence in zip(cells, below, strict=True):
        for cell, width in zip(row, widths, strict=True):
            cell.pad_right(max(0, width - cell.cell_len))
        line = Text(" · " if is_list else "  ").join(row)
        line.rstrip()
        to.print(line)
        if sentence:
            to.print(Padding(sentence, (0, 0, 0, 2)))


def _write_lines(headings: Sequence[str], rows: Sequence[Row], title: str) -> None:
    widths = _widths(headings, rows)
    if title:
        sys.stdout.write(f"{title}\n")
    for row in (headings, *rows):
        padded = (
            _padded(str(cell), width, to_the_right=heading in NUMBERS)
            for cell, width, heading in zip(row, widths, headings, strict=True)
        )
        sys.stdout.write("  ".join(padded).rstrip() + "\n")


def _widths(headings: Sequence[str], rows: Sequence[Row]) -> list[int]:
    columns = zip(headings, *rows, strict=True)
    return [max(cell_len(str(cell)) for cell in column) for column in columns]


def _padded(cell: str, width: int, *, to_the_right: bool) -> str:
    padding = " " * (width - cell_len(cell))
    return padding + cell if to_the_right else cell + padding


def _table(headings: Sequence[str], rows: Sequence[Row], title: str) -> Table:
    table = Table(
        title=title or None, title_justify="left", box=None, pad_edge=False, header_style="dim"
    )
    for heading in headings:
        # What people named may be long and is folded; ids are there to be copied whole.
        table.add_column(
            heading,
            no_wrap=heading not in FREE_TEXT,
            overflow="fold",
            justify="right" if heading in NUMBERS else "left",
        )
    for row in rows:
        table.add_row(*row)
    return table
