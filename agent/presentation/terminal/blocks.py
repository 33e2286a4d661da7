"""The building blocks of a terminal view: headline, tables, styled words, lists."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from rich import box
from rich.console import RenderableType
from rich.padding import Padding, PaddingDimensions
from rich.table import Table
from rich.text import Text

from agent.presentation.findings.rule import Finding
from agent.presentation.headline import Headline
from agent.presentation.plain_text import plain
from agent.presentation.severity import Severity
from agent.wire.payloads.common import Failure

EditAdvice = Callable[[str], str]
"""Changes the text of a fix, such as the commands in it."""
STYLES: Final[dict[Severity, str]] = {
    "good": "green",
    "warn": "yellow",
    "bad": "bold red",
    "muted": "dim",
}


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


def headline_view(headline: Headline, edit_advice: EditAdvice = str) -> Iterator[RenderableType]:
    yield Text()
    yield words(headline.title, "bold")
    yield styled(headline.verdict, headline.severity)
    yield styled(headline.outcome, headline.outcome_severity)
    if headline.findings:
        yield title("Findings", sum(finding.count for finding in headline.findings))
        rows = (_finding(finding, edit_advice(finding.advice)) for finding in headline.findings)
        yield columns(rows, first_width=7)
    values = ((words(row.label, "dim"), words(row.value)) for row in headline.rows)
    yield Padding(columns(values, padding=(0, 2)), (1, 0, 0, 0))


def _finding(finding: Finding, advice: str) -> tuple[Text, Text]:
    more = words(f"and {finding.more} more" if finding.more else "")
    return (
        styled(finding.label, finding.severity),
        stacked(*map(words, finding.sentences), more, words(advice, "dim")),
    )


def notes_view(limitations: Sequence[str], failures: Sequence[Failure]) -> Iterator[RenderableType]:
    """Yield the limitations and the failures under headings; yield nothing if there are none."""
    if limitations:
        yield title("Limitations", len(limitations))
        lines = ((words("-", "dim"), words(line)) for line in limitations)
        yield columns(lines, first_width=1, padding=(0, 1))
    if failures:
        yield title("Failed steps", len(failures))
        steps = ((styled(failure.step, "bad"), words(failure.reason)) for failure in failures)
        yield table(("Step", 18), "Reason", steps)
