"""An application snapshot on a terminal: groups of facts, then what is missing and why."""

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from agent.presentation.application_rows import (
    Group,
    absence_rows,
    browser_group,
    interface_group,
    peripheral_group,
    snapshot_groups,
    snapshot_limitation_lines,
)
from agent.presentation.headline import headline_of
from agent.presentation.terminal.blocks import (
    headline_view,
    notes_view,
    stacked,
    styled,
    table,
    title,
    words,
)
from agent.wire.payloads.application import ApplicationPayload


def application_view(payload: ApplicationPayload) -> Iterator[RenderableType]:
    yield from headline_view(headline_of(payload))
    for group in (
        *snapshot_groups(payload),
        interface_group(payload),
        peripheral_group(payload),
        browser_group(payload),
    ):
        yield from _group(group)
    yield from _absences(payload)
    yield from notes_view(snapshot_limitation_lines(payload), payload.failures)


def _group(group: Group) -> Iterator[RenderableType]:
    if not group.sections:
        return
    yield title(group.title)
    for section in group.sections:
        if section.title:
            yield words(section.title, "bold")
        facts = Table.grid(padding=(0, 2, 0, 0))
        facts.add_column(width=26, overflow="fold")
        facts.add_column(overflow="fold")
        for row in section.rows:
            label = words(row.label, "dim")
            label.pad_left(2 if section.title else 0)
            facts.add_row(label, words(row.value))
        yield facts


def _absences(payload: ApplicationPayload) -> Iterator[RenderableType]:
    rows = absence_rows(payload)
    missed = [row for row in rows if row.severity != "muted"]
    if missed:
        yield title("Could not be read", sum(row.count for row in missed))
        absences = table(("Status", 17), ("Why, and which facts", None))
        for row in missed:
            facts = (words(line, "dim") for line in row.facts)
            absences.add_row(styled(row.status, row.severity), stacked(words(row.reason), *facts))
        yield absences
    if count := sum(row.count for row in rows if row.severity == "muted"):
        folded = f"{count} facts are not for this machine; --json says why of each."
        yield Text.assemble("\n", words(folded, "dim"))
