"""The building blocks of a terminal view: styled words, columns, tables, titles."""

from collections.abc import Iterable

from rich import box
from rich.padding import PaddingDimensions
from rich.table import Table
from rich.text import Text

from agent.presentation.plain_text import plain
from agent.presentation.severity import STYLES, Severity


def words(text: str, style: str = "") -> Text:
    """Return plain text. Long words are folded, not cut."""
    return Text(plain(text), style=style, overflow="fold")


def styled(text: str, severity: Severity) -> Text:
    return words(text, STYLES[severity])


def stacked(*lines: Text) -> Text:
    """Return the lines that are not empty, one below the other."""
    return Text("\n", overflow="fold").join(line for line in lines if line)


def columns(
    rows: Iterable[tuple[Text, Text]],
    first_width: int | None = None,
    padding: PaddingDimensions = (0, 2, 0, 0),
) -> Table:
    """Return two columns. The first one is as wide as ``first_width``, or as its longest text."""
    grid = Table.grid(padding=padding)
    grid.add_column(width=first_width, overflow="fold", no_wrap=first_width is None)
    grid.add_column(overflow="fold")
    for row in rows:
        grid.add_row(*row)
    return grid


def table(first: tuple[str, int], second: str, rows: Iterable[tuple[Text, Text]]) -> Table:
    """Return a table with headings.

    ``first`` is the heading and the width of the first column. The second column gets the remaining
    width of the terminal.
    """
    heading, width = first
    result = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False, expand=True)
    result.header_style = "dim"
    result.add_column(heading, width=width, overflow="fold")
    result.add_column(second, overflow="fold", ratio=1)
    for row in rows:
        result.add_row(*row)
    return result


def title(text: str, count: int | None = None) -> Text:
    heading = Text.assemble("\n", words(text, "bold cyan"))
    return heading if count is None else Text.assemble(heading, " ", words(str(count), "dim"))
