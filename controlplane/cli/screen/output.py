"""Records as a table on a terminal, or as JSON or CSV for programs."""

import argparse
import io
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from pydantic import BaseModel

from agent.presentation.humanize import seconds_in_words
from agent.presentation.report_csv import Cell as CsvCell
from agent.presentation.report_csv import csv_of
from agent.wire.codec import to_plain

NONE = "–"
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
    "revoked": "red",
    "online": "green",
    "offline": "yellow",
}


class Styled(NamedTuple):
    """A text and its style, as Rich calls it."""

    text: str
    style: str


Cell = str | UUID | Styled | None
"""UUIDs are shortened on a terminal. None is shown as a dash."""
Record = TypeVar("Record")
Columns = Mapping[str, Callable[[Record], Cell]]
"""The heading of each column, and what it shows of a record."""
CsvColumns = Mapping[str, Callable[[Record], CsvCell | UUID]]


def print_json(records: Iterable[BaseModel]) -> None:
    print(json.dumps([to_plain(each) for each in records], indent=2))


def print_csv(records: Iterable[Record], columns: CsvColumns[Record]) -> None:
    rows = ([_csv_cell(value(each)) for value in columns.values()] for each in records)
    write_exactly(csv_of(tuple(columns), rows))


def print_records(
    records: Sequence[Record], columns: Columns[Record], empty: str, title: str = ""
) -> None:
    """Print a table, or ``empty`` if there are no records."""
    from controlplane.cli.screen.tables import print_rows  # rich only where shown

    rows = [[value(each) for value in columns.values()] for each in records]
    print_rows(tuple(columns), rows, empty, title)


def print_as(
    options: argparse.Namespace, records: Sequence[Any], csv_columns: CsvColumns[Any] | None = None
) -> bool:
    """Print records as --json or --csv requires. Returns False if neither is given."""
    if options.json:
        print_json(records)
    elif csv_columns is not None and options.csv:
        print_csv(records, csv_columns)
    else:
        return False
    return True


def write_exactly(text: str) -> None:
    """Write text that has its own line ends, such as CSV, on every system."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(newline="")
    sys.stdout.write(text)


def print_secret(secret: str, note: str) -> None:
    """Print a secret on standard output, and a note about it on standard error."""
    print(secret, flush=True)
    sys.stderr.write(f"{note}\n")


def age(moment: datetime | None) -> str:
    """Return how long ago a moment was, in the largest whole unit: ``29 min``."""
    if moment is None:
        return "never"
    passed_s = (datetime.now(UTC) - moment).total_seconds()
    return seconds_in_words(max(0, int(passed_s)), units=1)


def status(text: str) -> Styled:
    return Styled(text, STATUS_STYLES.get(text, ""))


def grant(key: Any) -> Styled:
    """Return what an API key or retail API key may do."""
    if key.revoked_at:
        return status("revoked")
    return status("write" if key.can_write else "read")


def _csv_cell(value: CsvCell | UUID) -> CsvCell:
    return str(value) if isinstance(value, UUID) else value
