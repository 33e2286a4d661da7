"""``venue-control audit``: the audit log, read directly from the database."""

import argparse
from typing import Final

from sqlalchemy.orm import Session

from agent.presentation.report_csv import csv_of
from agent.wire.codec import to_plain
from controlplane.audit.messages import AuditRecord
from controlplane.audit.reading import AuditFilters, query_of
from controlplane.cli.arguments.database import AUDIT_LIMIT
from controlplane.cli.chosen_database import in_database
from controlplane.cli.screen.output import print_json, print_records, write_exactly
from controlplane.operation.records import record_of
from controlplane.storage.audit_tables import AuditEntry

CSV_COLUMNS: Final = tuple(AuditRecord.__pydantic_fields__)


def show(options: argparse.Namespace) -> None:
    records = in_database(options, lambda session: _records(session, options))
    if options.json:
        print_json(records)
    elif options.csv:
        write_exactly(csv_of(CSV_COLUMNS, [tuple(to_plain(record).values()) for record in records]))
    else:
        print_records(
            records,
            {
                "when (UTC)": lambda entry: f"{entry.at:%Y-%m-%d %H:%M:%S}",
                "who": _actor,
                "what": _operation,
                "name": lambda entry: entry.subject_name or entry.subject_id,
                "detail": lambda entry: entry.detail,
            },
            "There are no entries.",
        )


def _records(session: Session, options: argparse.Namespace) -> list[AuditRecord]:
    since = None if options.since is None else options.since.first
    is_unlimited = options.json or options.csv or since is not None
    limit = options.limit or (None if is_unlimited else AUDIT_LIMIT)
    # If the organization is None, the entries that belong to no organization are selected.
    organization = None if options.of_nobody else options.organization
    query = query_of(organization, AuditFilters(by=options.by, since=since))
    rows = session.scalars(query.order_by(AuditEntry.position.desc()).limit(limit))
    return [record_of(AuditRecord, row) for row in rows]


def _actor(entry: AuditRecord) -> str:
    """Return the name of the user or program, and the last characters of its API key, if any."""
    name = entry.actor_name or entry.actor_kind.replace("_", " ")
    return f"{name} (…{entry.credential_hint})" if entry.credential_hint else name


def _operation(entry: AuditRecord) -> str:
    return entry.operation if entry.outcome == "done" else f"{entry.operation} refused"
