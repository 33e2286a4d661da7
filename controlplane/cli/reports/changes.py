"""``venue-control changes`` and ``report --against``: the differences between two reports."""

import argparse
import json
import sys
from dataclasses import asdict
from itertools import islice
from typing import Final
from uuid import UUID

from agent.presentation.changes.change import Changes
from agent.presentation.changes.changes import changes_between
from agent.presentation.plain_text import plain
from agent.wire.operator_operations import ReportDetail, ReportDetailRequest
from controlplane.cli.connection import client_of, find_device_id, find_report_id, newest_reports
from controlplane.client.errors import CommandError, UsageError
from controlplane.client.operations import OperationsClient

REPORTS_COMPARED: Final = 2


def latest(options: argparse.Namespace) -> None:
    """Compare the two newest reports of a kind. Failed reports have no content and are skipped."""
    with client_of(options) as client:
        reports = newest_reports(client, find_device_id(client, options.instance), lambda _: True)
        report_ids = (
            report.report_id
            for report in reports
            if report.kind == options.kind and report.outcome != "failed"
        )
        newest_ids = list(islice(report_ids, REPORTS_COMPARED))
        if len(newest_ids) < REPORTS_COMPARED:
            count = "only one report" if newest_ids else "no report"
            raise CommandError(
                f"{plain(options.instance)} has {count} of kind {options.kind} to compare",
                "Request another: venue-control request DEVICE KIND --wait",
            )
        after, before = (
            client.report(ReportDetailRequest(report_id=compared_id)) for compared_id in newest_ids
        )
    _show(before, after, as_json=options.json)


def show_against(client: OperationsClient, report_id: UUID, options: argparse.Namespace) -> None:
    """Print the changes between ``report_id`` and the report of --against, from old to new."""
    other_id = find_report_id(client, options.against)
    reports = [
        client.report(ReportDetailRequest(report_id=compared_id))
        for compared_id in (report_id, other_id)
    ]
    before, after = sorted(reports, key=lambda report: report.created_at)
    if before.instance_id != after.instance_id:
        sys.stderr.write("The reports are of two different devices.\n")
    _show(before, after, as_json=options.json)


def _show(before: ReportDetail, after: ReportDetail, *, as_json: bool) -> None:
    changes = _compare(before, after)
    if as_json:
        ids = {"before": str(before.id), "after": str(after.id)}
        document = asdict(changes, dict_factory=_with_stable_keys)
        print(json.dumps({**ids, **document}, indent=2))
    else:
        _print(changes)


def _compare(before: ReportDetail, after: ReportDetail) -> Changes:
    if before.payload is None or after.payload is None:
        empty = before if before.payload is None else after
        raise CommandError(f"the report {empty.id} has no content to compare")
    try:
        return changes_between(before.payload, after.payload)
    except ValueError as error:
        raise UsageError(str(error)) from error


def _with_stable_keys(items: list[tuple[str, object]]) -> dict[str, object]:
    """Return ``items`` with the former name of ``severity``, which existing programs read."""
    return {"tone" if key == "severity" else key: value for key, value in items}


def _print(changes: Changes) -> None:
    from rich.padding import Padding  # rich is slow to import

    from agent.presentation.humanize import format_timestamp
    from agent.presentation.terminal.blocks import styled, words
    from controlplane.cli.screen.tables import console

    output = console()
    output.print(words(f"Since {format_timestamp(changes.since)}:", "dim"))
    if not changes.changes:
        output.print(styled(changes.verdict, changes.severity))
    for change in changes.listed:
        output.print(styled(change.sentence, change.severity))
    if changes.more:
        output.print(words(f"and {changes.more} more, see --json", "dim"))
    for sentence in changes.not_compared:
        output.print(Padding(words(sentence, "dim"), (0, 0, 0, 2)))
