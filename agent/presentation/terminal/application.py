"""An application snapshot on a terminal: groups of facts, then missing facts with the reasons."""

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from agent.presentation import application_rows
from agent.presentation.application_rows import AbsenceRow, FieldRow, Group
from agent.presentation.connectivity.sentences import Entry
from agent.presentation.connectivity.view import connection_view
from agent.presentation.headline import headline_of
from agent.presentation.terminal.blocks import (
    EditAdvice,
    columns,
    headline_view,
    notes_view,
    stacked,
    styled,
    table,
    title,
    words,
)
from agent.wire.payloads.application import ApplicationPayload


def application_view(
    payload: ApplicationPayload, edit_advice: EditAdvice = str
) -> Iterator[RenderableType]:
    yield from headline_view(headline_of(payload), edit_advice)
    yield from _connection(payload)
    groups = (
        *application_rows.snapshot_groups(payload),
        *application_rows.interface_and_peripheral_groups(payload),
    )
    for group in groups:
        yield from _group(group)
    yield from _absences(payload)
    yield from notes_view(application_rows.snapshot_limitation_lines(payload), payload.failures)


def _connection(payload: ApplicationPayload) -> Iterator[RenderableType]:
    view = connection_view(payload)
    if view is None:
        return
    yield title("Connection")
    yield words(view.summary)
    if view.entries:
        yield columns((_entry(entry) for entry in view.entries), 12)
    if view.more:
        yield words(f"and {len(view.more)} earlier", "dim")


def _entry(entry: Entry) -> tuple[Text, Text]:
    duration = f"{entry.duration}: " if entry.duration else ""
    style = "dim" if entry.severity == "muted" else ""
    return words(entry.when, "dim"), words(f"{duration}{entry.text}", style)


def _group(group: Group) -> Iterator[RenderableType]:
    yield title(group.title)
    for section in group.sections:
        if section.title:
            yield words(section.title, "bold")
        yield columns((_fact(row, 2 if section.title else 0) for row in section.rows), 26)


def _fact(row: FieldRow, indent: int) -> tuple[Text, Text]:
    label = words(row.label, "dim")
    label.pad_left(indent)
    return label, words(row.value)


def _absences(payload: ApplicationPayload) -> Iterator[RenderableType]:
    rows = application_rows.absence_rows(payload)
    missing_rows = [row for row in rows if row.severity != "muted"]
    if missing_rows:
        yield title("Could not be read", sum(row.count for row in missing_rows))
        yield table(("Status", 17), "Why, and which facts", map(_absence, missing_rows))
    if note := application_rows.inapplicable_note(rows):
        yield Text.assemble("\n", words(f"{note}; --json shows the reasons.", "dim"))


def _absence(row: AbsenceRow) -> tuple[Text, Text]:
    facts = (words(line, "dim") for line in row.facts)
    return styled(row.status, row.severity), stacked(words(row.reason), *facts)
