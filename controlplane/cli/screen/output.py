"""Records as a table on a terminal, or as JSON or CSV for programs."""

import argparse
import io
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from pydantic import BaseModel

from agent.presentation.plain_text import plain
from agent.presentation.report_csv import Cell as CsvCell
from agent.presentation.report_csv import csv_of
from agent.wire.codec import to_plain
from controlplane.cli.screen.cells import Columns, Record

CsvColumns = Mapping[str, Callable[[Record], CsvCell | UUID]]
"""The heading of each CSV column, and the function that returns the value of a record."""


def print_json(records: Iterable[BaseModel]) -> None:
    print(json.dumps([to_plain(record) for record in records], indent=2))


def print_csv(records: Iterable[Record], columns: CsvColumns[Record]) -> None:
    rows = ([_csv_cell(value(record)) for value in columns.values()] for record in records)
    write_exactly(csv_of(tuple(columns), rows))


def print_records(
    records: Iterable[Record],
    columns: Columns[Record],
    empty: str,
    title: str = "",
    *,
    has_sentences: bool = False,
) -> None:
    """Print a table, or ``empty`` if there are no records.

    Args:
        has_sentences: The last column has sentences. On a narrow terminal, each is below its row.
    """
    from controlplane.cli.screen import tables  # rich is slow to import

    rows = [[value(record) for value in columns.values()] for record in records]
    if has_sentences:
        tables.print_rows_with_sentences(tuple(columns), rows, empty)
    else:
        tables.print_rows(tuple(columns), rows, empty, title)


def print_note(line: str) -> None:
    """Print a line about the table: below it, or on standard error if the table is piped."""
    from controlplane.cli.screen import tables  # rich is slow to import

    if tables.is_piped():
        sys.stderr.write(f"{plain(line)}\n")
    else:
        tables.console().print(tables.text_of(line, "dim"))


def print_json_or_csv(
    options: argparse.Namespace, records: Sequence[Any], csv_columns: CsvColumns[Any] | None = None
) -> bool:
    """If --json or --csv is given, print the records and return True. Otherwise return False."""
    if options.json:
        print_json(records)
    elif csv_columns is not None and options.csv:
        print_csv(records, csv_columns)
    else:
        return False
    return True


def write_exactly(text: str) -> None:
    """Write text with unchanged line ends, also on Windows."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(newline="")
    sys.stdout.write(text)


def print_secret(secret: str, note: str) -> None:
    """Print a secret on standard output, and a note about it on standard error."""
    print(secret, flush=True)
    sys.stderr.write(f"{note}\n")


def _csv_cell(value: CsvCell | UUID) -> CsvCell:
    return str(value) if isinstance(value, UUID) else value
