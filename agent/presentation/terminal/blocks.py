"""The building blocks of a terminal view: headline, titled tables, toned words, bullet lists."""

from collections.abc import Iterator, Sequence
from typing import Final

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from agent.presentation.findings.rule import Finding
from agent.presentation.headline import Headline
from agent.presentation.plain_text import plain
from agent.presentation.severity import Severity
from agent.wire.payloads.common import Failure

_FLEXIBLE_MIN: Final = 16
"""Columns that what has no width of its own needs to be read."""
STYLES: Final[dict[Severity, str]] = {
    "good": "green",
    "warn": "yellow",
    "bad": "bold red",
    "muted": "dim",
}


def words(text: str, style: str = "") -> Text:
    """Return plain text that folds rather than losing its end."""
    return Text(plain(text), style=style, overflow="fold")


def styled(text: str, severity: Severity) -> Text:
    return words(text, STYLES[severity])


def stacked(*lines: Text) -> Text:
    """Return the lines that are not empty, one below the other."""
    return Text("\n", overflow="fold").join(line for line in lines if line)


def headline_view(headline: Headline) -> Iterator[RenderableType]:
    yield Text()
    yield words(headline.title, "bold")
    yield styled(headline.verdict, headline.severity)
    yield styled(headline.outcome, headline.outcome_severity)
    yield from _findings_view(headline.findings)
    facts = Table.grid(padding=(0, 2))
    facts.add_column(no_wrap=True)
    facts.add_column(overflow="fold")
    for fact in headline.facts:
        facts.add_row(words(fact.label, "dim"), words(fact.value))
    yield Padding(facts, (1, 0, 0, 0))


def _findings_view(findings: Sequence[Finding]) -> Iterator[RenderableType]:
    if not findings:
        return
    yield title("Findings", sum(finding.count for finding in findings))
    listed = Table.grid(padding=(0, 2, 0, 0))
    listed.add_column(width=7)
    listed.add_column(overflow="fold")
    for finding in findings:
        more = words(f"and {finding.more} more" if finding.more else "")
        listed.add_row(
            styled(finding.label, finding.severity),
            stacked(*map(words, finding.sentences), more, words(finding.advice, "dim")),
        )
    yield listed


def title(text: str, count: int | None = None) -> Text:
    heading = Text.assemble("\n", words(text, "bold cyan"))
    return heading if count is None else Text.assemble(heading, " ", words(str(count), "dim"))


class ReportTable:
    """Columns where there is room for them; elsewhere each row as lines, one cell below the other.

    ``columns`` are (heading, width); a column of width None takes what is left.
    """

    def __init__(self, columns: Sequence[tuple[str, int | None]]) -> None:
        self._columns = columns
        self._rows: list[tuple[tuple[Text, ...], bool]] = []

    def add_row(self, *cells: Text, end_section: bool = False) -> None:
        self._rows.append((cells, end_section))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        needed = sum((width or _FLEXIBLE_MIN) + 1 for _, width in self._columns)
        if options.max_width >= needed:
            yield self._as_table()
            return
        for (first, *others), end_section in self._rows:
            yield first
            yield from (Padding(cell, (0, 0, 0, 2)) for cell in others if cell)
            if end_section:
                yield Text()

    def _as_table(self) -> Table:
        built = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
        built.header_style = "dim"
        for heading, width in self._columns:
            built.add_column(
                heading,
                width=width,
                overflow="fold",
                ratio=1 if width is None else None,
                justify="right" if heading == "Latency" else "left",
            )
        built.expand = any(width is None for _, width in self._columns)
        for cells, end_section in self._rows:
            built.add_row(*cells, end_section=end_section)
        return built


def table(*columns: tuple[str, int | None]) -> ReportTable:
    """Return a table of the columns given as (heading, width); None takes what is left."""
    return ReportTable(columns)


def nothing(text: str) -> RenderableType:
    return words(text, "dim")


def bullets(lines: Sequence[str]) -> RenderableType:
    """Return one line a bullet, its continuation lines indented."""
    listed = Table.grid(padding=(0, 1))
    listed.add_column(width=1)
    listed.add_column(overflow="fold")
    for line in lines:
        listed.add_row(words("-", "dim"), words(line))
    return listed


def notes_view(limitations: Sequence[str], failures: Sequence[Failure]) -> Iterator[RenderableType]:
    """Show what was limited and what failed; nothing where there is nothing to say."""
    if limitations:
        yield title("Limitations", len(limitations))
        yield bullets(limitations)
    if failures:
        yield title("Failed steps", len(failures))
        failed = table(("Step", 18), ("Reason", None))
        for failure in failures:
            failed.add_row(styled(failure.step, "bad"), words(failure.reason))
        yield failed
