"""A report's lists as CSV (RFC 4180): endpoints, hosts and printers, or the facts of a snapshot.

Columns have the contract's names, so that other programs can use them. Derived values (a host's
kind and maker, a moved printer) have their own columns. Each row begins with the identity of its
report, so that the files of many devices can be concatenated.
"""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Final

from agent.presentation.findings.snapshot_facts import all_fields
from agent.presentation.hosts.rows import host_rows
from agent.presentation.plain_text import plain
from agent.presentation.printer_status import status_of
from agent.wire.codec import to_plain
from agent.wire.payloads.application import ApplicationPayload
from agent.wire.payloads.network import NetworkPayload

Cell = str | float | bool | Sequence[str] | None
Row = Sequence[Cell]

LIST_SEPARATOR: Final = "; "
"""Separates the values of a list in one cell."""
IDENTITY_COLUMNS: Final = ("locationId", "installId", "reportId", "finishedAt")
ENDPOINT_COLUMNS: Final = (
    "address", "host", "port", "label", "model", "discoveredBy", "status", "macAddress",
    "matchedPrinterIds",
)  # fmt: skip
HOST_COLUMNS: Final = (
    "address", "name", "kind", "model", "maker", "hostname", "macAddress", "interfaceName",
    "reachability", "latencyMs", "services", "printers",
)  # fmt: skip
PRINTER_COLUMNS: Final = (
    "id", "name", "transport", "address", "status", "isMoved", "matchedEndpoint", "reason",
)  # fmt: skip
FACT_COLUMNS: Final = ("of", "key", "status", "value", "reason", "source")
"""``of`` is the id of the interface or peripheral that the fact describes. It is empty for a fact
of the machine or its browser."""
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
"""First characters of a cell that make a spreadsheet run it as a formula."""


def tables_of(payload: NetworkPayload | ApplicationPayload) -> tuple[str, ...]:
    """Return the names of the tables that a report of this kind has, the default first."""
    return tuple(_tables(payload))


def report_csv(payload: NetworkPayload | ApplicationPayload, table: str) -> str:
    """Return a table as CSV with a line of headings.

    Raises:
        KeyError: ``table`` is not in ``tables_of(payload)``.
    """
    headings, rows = _tables(payload)[table]
    identity = (
        payload.identity.location_id,
        payload.identity.install_id,
        payload.report_id,
        payload.finished_at,
    )
    return csv_of((*IDENTITY_COLUMNS, *headings), ((*identity, *row) for row in rows))


def csv_of(headings: Sequence[str], rows: Iterable[Row]) -> str:
    """Return headings and rows as text for a file opened with ``newline=""``.

    Untrusted text is made plain. An apostrophe is put before text that a spreadsheet would run as
    a formula.
    """
    output = io.StringIO()
    writer = csv.writer(output)
    writer.writerow(headings)
    writer.writerows([_cell(value) for value in row] for row in rows)
    return output.getvalue()


def _cell(value: Cell) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return f"{value:.15g}"
    text = plain(value if isinstance(value, str) else LIST_SEPARATOR.join(value or ()))
    return f"'{text}" if text.startswith(_FORMULA) else text


def _tables(
    payload: NetworkPayload | ApplicationPayload,
) -> Mapping[str, tuple[Sequence[str], Iterator[Row]]]:
    """Return the headings and rows of each table."""
    if isinstance(payload, ApplicationPayload):
        return {"facts": (FACT_COLUMNS, _facts(payload))}
    return {
        "hosts": (HOST_COLUMNS, _hosts(payload)),
        "endpoints": (ENDPOINT_COLUMNS, _endpoints(payload)),
        "printers": (PRINTER_COLUMNS, _printers(payload)),
    }


def _endpoints(payload: NetworkPayload) -> Iterator[Row]:
    for endpoint in payload.endpoints:
        values = to_plain(endpoint)
        yield [values[name] for name in ENDPOINT_COLUMNS]


def _hosts(payload: NetworkPayload) -> Iterator[Row]:
    """Yield the hosts in the order of ``host_rows``: hosts of the network map come first."""
    mapped_hosts = payload.network_map.hosts if payload.network_map else ()
    for row, host in zip_longest(host_rows(payload), mapped_hosts):
        yield (
            row.address, row.name, row.kind_label, row.model, row.maker, row.hostname,
            row.mac_address, row.interface, "reachable" if row.is_reachable else "unknown",
            host.latency_ms if host else None, row.services, row.printers,
        )  # fmt: skip


def _printers(payload: NetworkPayload) -> Iterator[Row]:
    for printer in payload.printers or ():
        values = {**to_plain(printer), "isMoved": status_of(printer) == "moved"}
        yield [values[name] for name in PRINTER_COLUMNS]


def _facts(payload: ApplicationPayload) -> Iterator[Row]:
    for owner, field in all_fields(payload):
        yield owner, field.key, field.status, field.value, field.reason, field.source
