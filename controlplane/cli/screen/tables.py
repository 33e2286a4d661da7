"""Prints rows as a table on a terminal, as a list on a narrow terminal, and as lines in a pipe.

On a terminal, ids are shortened to 8 characters, or to more if two ids would look the same.
Commands accept shortened ids. In a pipe or a file, ids are complete. If the environment variable
``COLUMNS`` is set, the output is always that of a terminal with this width.
"""

import os
import sys
from collections.abc import Iterable, Sequence
from uuid import UUID

from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from agent.presentation.plain_text import plain
from controlplane.cli.screen.cells import NONE, Cell, Styled

WIDE = 120
"""Minimum terminal width at which `print_rows_with_sentences` prints the sentences as a column."""
TABLES_FROM = 72
"""Minimum terminal width at which `print_rows` always prints a table. On a narrower terminal, it
prints a list if the table does not fit.
"""
FREE_TEXT = frozenset(
    {
        "location", "locations", "name", "device", "headline",
        "organization", "till", "tax", "within", "codes", "detail", "printer", "reason",
        "interruption", "title", "channel", "requested by", "hours",
    }
)  # fmt: skip
"""Headings of columns in which long text is wrapped."""
NUMBERS = frozenset(
    {
        "lines", "total", "price", "decimals", "percentage", "net", "share", "sales",
        "now", "before", "change", "today", "yesterday",
    }
)  # fmt: skip
"""Headings of columns that are aligned to the right."""
SHORT_ID = 8
"""Minimum number of characters of a shortened id."""

Rows = Sequence[Sequence[Cell]]


def console() -> Console:
    return Console(highlight=False, soft_wrap=False)


def is_piped() -> bool:
    return not sys.stdout.isatty() and "COLUMNS" not in os.environ


def ids_of(ids: Iterable[UUID]) -> dict[UUID, str]:
    """Return the text of each id: the whole id in a pipe, otherwise its first characters.

    There are enough characters that no two ids have the same text.
    """
    sorted_ids = sorted({str(id_) for id_ in ids})
    length = 36 if is_piped() else SHORT_ID
    while len({id_text[:length] for id_text in sorted_ids}) < len(sorted_ids):
        length += 1
    return {UUID(id_text): id_text[:length] for id_text in sorted_ids}


def print_lines(lines: Sequence[str]) -> None:
    """Print an empty line and then ``lines``. Print nothing if ``lines`` is empty."""
    if lines:
        for line in ("", *lines):
            console().print(Text(line), soft_wrap=is_piped())


def text_of(value: str, style: str = "") -> Text:
    return Text(plain(value), style)


def print_facts(facts: Iterable[tuple[str, Cell]]) -> None:
    """Print names and values as two columns."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim")
    grid.add_column(overflow="fold")
    for name, value in facts:
        grid.add_row(name, str(value) if isinstance(value, UUID) else _text(value, {}))
    console().print(grid)


def print_rows(headings: Sequence[str], rows: Rows, empty: str, title: str = "") -> None:
    """Print a table, or ``empty`` if there are no rows.

    If the table does not fit on a narrow terminal, print a list without headings: for each row, its
    first cell on one line and its other cells on the next line.
    """
    screen, cells = console(), _cells(rows)
    if not cells:
        screen.print(Text(empty, "dim"))
    elif is_piped():
        _write_lines(headings, cells, title)
    elif screen.width >= TABLES_FROM or _width_of(headings, cells) <= screen.width:
        screen.print(_table(headings, cells, title))
    else:
        if title:
            screen.print(Text(title, "italic"))
        for first, *other_cells in cells:
            screen.print(first)
            screen.print(
                Padding(
                    Text(" · ").join(other_cell for other_cell in other_cells if other_cell),
                    (0, 0, 0, 2),
                )
            )


def fits(headings: Sequence[str], rows: Rows) -> bool:
    """Return whether a table fits on the terminal without wrapping a cell."""
    return is_piped() or _width_of(headings, _cells(rows)) <= console().width


def _print_sentences_below(headings: Sequence[str], rows: Rows) -> None:
    """Print each row, and its sentence on the next line.

    If the rows do not fit on the terminal, print their cells without columns and headings.
    """
    screen = console()
    # The row of headings has no sentence.
    cells = [[*(text_of(heading, "dim") for heading in headings[:-1]), Text()], *_cells(rows)]
    widths = _widths(*(row[:-1] for row in cells))
    is_list = sum(widths) + 2 * len(widths) > screen.width
    if is_list:
        cells, widths = cells[1:], [0] * len(widths)
    for *row, sentence in cells:
        for cell, width in zip(row, widths, strict=True):
            cell.pad_right(max(0, width - cell.cell_len))
        line = Text(" · " if is_list else "  ").join(row)
        line.rstrip()
        screen.print(line)
        if sentence:
            screen.print(Padding(sentence, (0, 0, 0, 2)))


def print_rows_with_sentences(headings: Sequence[str], rows: Rows, empty: str) -> None:
    """Print rows whose last cell is a sentence.

    On a terminal that is narrower than `WIDE`, each sentence is below its row, without a heading.
    """
    if not rows or is_piped() or console().width >= WIDE:
        print_rows(headings, rows, empty)
    else:
        _print_sentences_below(headings, rows)


def _cells(rows: Rows) -> list[list[Text]]:
    columns = []
    for column in zip(*rows, strict=True):
        ids = ids_of(cell for cell in column if isinstance(cell, UUID))
        columns.append([_text(cell, ids) for cell in column])
    return [list(row) for row in zip(*columns, strict=True)]


def _text(value: Cell, ids: dict[UUID, str]) -> Text:
    if isinstance(value, UUID):
        return Text(ids[value])
    if isinstance(value, Styled):
        return text_of(value.text, value.style)
    return text_of(NONE if value is None else value)


def _write_lines(headings: Sequence[str], rows: list[list[Text]], title: str) -> None:
    widths = _widths(headings, *rows)
    if title:
        sys.stdout.write(f"{title}\n")
    for row in (headings, *rows):
        padded_cells = (
            _pad(str(cell), width, is_right_aligned=heading in NUMBERS)
            for cell, width, heading in zip(row, widths, headings, strict=True)
        )
        sys.stdout.write("  ".join(padded_cells).rstrip() + "\n")


def _width_of(headings: Sequence[str], rows: list[list[Text]]) -> int:
    """Return the width of a table with two spaces between its columns."""
    return sum(_widths(headings, *rows)) + 2 * (len(headings) - 1)


def _widths(*rows: Sequence[str | Text]) -> list[int]:
    return [max(cell_len(str(cell)) for cell in column) for column in zip(*rows, strict=True)]


def _pad(cell: str, width: int, *, is_right_aligned: bool) -> str:
    padding = " " * (width - cell_len(cell))
    return padding + cell if is_right_aligned else cell + padding


def _table(headings: Sequence[str], rows: list[list[Text]], title: str) -> Table:
    table = Table(
        title=title or None, title_justify="left", box=None, pad_edge=False, header_style="dim"
    )
    for heading in headings:
        # Ids are not wrapped, so that they can be copied.
        table.add_column(
            heading,
            no_wrap=heading not in FREE_TEXT,
            overflow="fold",
            justify="right" if heading in NUMBERS else "left",
        )
    for row in rows:
        table.add_row(*row)
    return table
