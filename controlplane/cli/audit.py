"""``venue-control audit``: what was asked and changed, read directly in the database."""

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Final

from sqlalchemy.orm import Session

from agent.presentation.report_csv import csv_of
from agent.wire.codec import encode
from controlplane.audit.messages import AuditRecord
from controlplane.audit.reading import AuditFilters, entries
from controlplane.cli.arguments.audit import SHOWN
from controlplane.cli.keys import in_database, require_database
from controlplane.operation.records import record_of

COLUMNS: Final = tuple(AuditRecord.__pydantic_fields__)


def show(options: argparse.Namespace) -> int:
    require_database(options)
    found = in_database(options.database, lambda session: _records(session, options))
    if options.json:
        rows = [json.loads(encode(each)) for each in found]
        sys.stdout.write(json.dumps(rows, ensure_ascii=False, indent=2) + "\n")
    elif options.csv:
        sys.stdout.write(csv_of(COLUMNS, [_cells(each) for each in found]))
    else:
        _print(found)
    return 0


def _records(session: Session, options: argparse.Namespace) -> list[AuditRecord]:
    since = None if options.since is None else options.since.first
    takes_all = options.json or options.csv or since is not None
    limit = options.limit or (None if takes_all else SHOWN)
    organization = None if options.of_nobody else options.organization
    wanted = AuditFilters(by=options.by, since=since)
    return [record_of(AuditRecord, row) for row in entries(session, organization, wanted, limit)]


def _cells(entry: AuditRecord) -> tuple[str, ...]:
    values = json.loads(encode(entry)).values()
    return tuple("" if each is None else str(each) for each in values)


def _print(found: Sequence[AuditRecord]) -> None:
    from controlplane.cli.tables import print_rows, text_of  # rich only where shown

    rows = [
        (
            f"{each.at:%Y-%m-%d %H:%M:%S}",
            text_of(_who(each)),
            text_of(each.operation if each.outcome == "done" else f"{each.operation} refused"),
            text_of(each.subject_name or each.subject_id),
            text_of(each.detail),
        )
        for each in found
    ]
    headings = ("when (UTC)", "who", "what", "name", "within")
    print_rows(headings, rows, "Nothing was noted.")


def _who(entry: AuditRecord) -> str:
    """Return who it was, and by which key."""
    name = entry.actor_name or entry.actor_kind.replace("_", " ")
    return f"{name} (…{entry.credential_hint})" if entry.credential_hint else name
