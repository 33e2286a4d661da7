"""Shows a report on a terminal with `rich`.

It is readable on terminals of 50 columns or more, with a dark or a light background. It uses only
the sixteen colours of the terminal's theme. No information is expressed by a colour alone. Strings
become ``Text`` objects, because rich would interpret markup in plain strings.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeVar

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from agent.presentation import application_rows, network_rows
from agent.presentation.application_rows import AbsenceRow, FieldRow
from agent.presentation.connectivity.sentences import Entry
from agent.presentation.connectivity.view import connection_view
from agent.presentation.findings.rule import Finding
from agent.presentation.headline import Headline, headline_of
from agent.presentation.hosts.rows import HostRow, by_interest, host_rows, makers_note
from agent.presentation.network_rows import InterfaceRow, PrinterRow, SourceRow
from agent.presentation.terminal.blocks import columns, stacked, styled, table, title, words
from agent.presentation.watched_devices import WatchedRow, watched_rows
from agent.wire.payloads.application import ApplicationPayload
from agent.wire.payloads.common import Failure
from agent.wire.payloads.network import NetworkPayload

EditAdvice = Callable[[str], str]
"""Changes the text of a fix, such as the commands in it."""
Row = TypeVar("Row")

_STATUS_WIDTH: Final = 11
_FIRST_WIDTH: Final = 17
"""Width of the first column, in characters: wide enough for a MAC address, but so narrow that the
second column has enough space on a terminal of 50 characters."""


def report_view(
    payload: NetworkPayload | ApplicationPayload, edit_advice: EditAdvice = str
) -> RenderableType:
    """Return a report of either kind in a form that a ``rich.console.Console`` can print.

    ``edit_advice`` is applied to the fix of each finding.
    """
    if isinstance(payload, NetworkPayload):
        contents, limitations = _network(payload), network_rows.limitation_lines(payload)
    else:
        contents = _application(payload)
        limitations = application_rows.snapshot_limitation_lines(payload)
    return Group(
        *_headline(headline_of(payload), edit_advice),
        *contents,
        *_notes(limitations, payload.failures),
    )


# ---------------------------------------------------------------------------- both kinds


def _headline(headline: Headline, edit_advice: EditAdvice) -> Iterator[RenderableType]:
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


def _notes(limitations: Sequence[str], failures: Sequence[Failure]) -> Iterator[RenderableType]:
    """Yield the limitations and the failures under headings; yield nothing if there are none."""
    if limitations:
        yield title("Limitations", len(limitations))
        lines = ((words("-", "dim"), words(line)) for line in limitations)
        yield columns(lines, first_width=1, padding=(0, 1))
    if failures:
        yield title("Failed steps", len(failures))
        steps = ((styled(failure.step, "bad"), words(failure.reason)) for failure in failures)
        yield table(("Step", 18), "Reason", steps)


def _section(
    heading: str,
    rows: Sequence[Row],
    describe: Callable[[Row], tuple[Text, Text]],
    width: int = _FIRST_WIDTH,
) -> Iterator[RenderableType]:
    """Yield the rows under a heading with their number; yield nothing if there are none."""
    if rows:
        yield title(heading, len(rows))
        yield columns(map(describe, rows), width)


# ---------------------------------------------------------------------------- network


def _network(payload: NetworkPayload) -> Iterator[RenderableType]:
    # Without printers there is no section: the headline reports that there are none.
    yield from _section("Printers", network_rows.printer_rows(payload), _printer, _STATUS_WIDTH)
    yield from _section("Watched devices", watched_rows(payload), _watched_device, _STATUS_WIDTH)
    yield from _hosts(payload)
    interfaces = network_rows.interface_rows(payload)
    yield title("Interfaces and gateways", len(interfaces))
    if interfaces:
        yield columns(map(_interface, interfaces), _FIRST_WIDTH)
    else:
        yield words("No interface could be read.", "dim")
    if sources := network_rows.source_rows(payload):
        yield title("Sources")
        yield columns(map(_source, sources), _FIRST_WIDTH)


def _printer(row: PrinterRow) -> tuple[Text, Text]:
    facts = stacked(words(row.name, "bold"), words(row.reason), words(row.address_text, "dim"))
    return styled(row.status, row.severity), facts


def _watched_device(row: WatchedRow) -> tuple[Text, Text]:
    facts = stacked(words(row.name, "bold"), words(f"{row.kind}, {row.detail}", "dim"))
    return styled(row.state, row.severity), facts


def _hosts(payload: NetworkPayload) -> Iterator[RenderableType]:
    rows = host_rows(payload)
    yield title("Hosts", len(rows))
    if not rows:
        yield words("No host was discovered.", "dim")
        return
    first_rows, other_rows = by_interest(rows)
    yield columns(map(_host, first_rows), _FIRST_WIDTH)
    yield from _section("Further hosts", other_rows, _further_host)
    if note := makers_note(rows):
        yield words(note, "dim")


def _host(row: HostRow) -> tuple[Text, Text]:
    tags = (words(f"printer {name}", "magenta") for name in row.printers)
    details = [fact for fact in row.identity_facts if fact != row.title]
    offers = filter(None, (", ".join(row.services), row.latency))
    return (
        stacked(words(row.address), words(row.mac_address, "dim")),
        stacked(
            _joined(words(row.title, "bold"), *tags, *map(words, details)),
            words(" · ".join(offers), "dim"),
        ),
    )


def _further_host(row: HostRow) -> tuple[Text, Text]:
    return words(row.address), _joined(*map(words, (*row.identity_facts, *row.services)))


def _joined(*parts: Text) -> Text:
    return Text(" · ", overflow="fold").join(filter(None, parts))


def _interface(row: InterfaceRow) -> tuple[Text, Text]:
    gateways = (words(f"gateway {gateway}", "dim") for gateway in row.gateways)
    return (
        stacked(words(row.name, "bold"), words(row.mac_address, "dim")),
        stacked(*map(words, row.addresses), *gateways),
    )


def _source(row: SourceRow) -> tuple[Text, Text]:
    return words(row.name), stacked(styled(row.state, row.severity), words(row.reason))


# ---------------------------------------------------------------------------- application


def _application(payload: ApplicationPayload) -> Iterator[RenderableType]:
    yield from _connection(payload)
    for group in (
        *application_rows.snapshot_groups(payload),
        *application_rows.interface_and_peripheral_groups(payload),
    ):
        yield title(group.title)
        for section in group.sections:
            if section.title:
                yield words(section.title, "bold")
            yield columns((_fact(row, 2 if section.title else 0) for row in section.rows), 26)
    yield from _absences(payload)


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
