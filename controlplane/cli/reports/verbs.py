"""``venue-control reports`` and ``report``: a list of reports, and one report as tables, JSON,
HTML or CSV.
"""

import argparse
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

from agent.presentation.plain_text import plain
from agent.presentation.report_csv import report_csv, tables_of
from agent.presentation.severity import STYLES
from agent.wire.codec import encode_indented, to_plain
from agent.wire.operator_operations import Device, ReportDetail, ReportDetailRequest, ReportSummary
from agent.wire.payloads.by_kind import ReportPayload
from agent.wire.vocabulary import Kind
from controlplane.cli.arguments.client import KINDS
from controlplane.cli.connection import (
    client_of,
    find_device,
    find_device_id,
    find_report_id,
    newest_reports,
)
from controlplane.cli.devices import fleet
from controlplane.cli.devices.filters import Filters, location_of
from controlplane.cli.reports.changes import show_against
from controlplane.cli.screen.cells import Cell, Styled, age, status
from controlplane.cli.screen.output import print_records, write_exactly
from controlplane.cli.screen.progress import Progress
from controlplane.client.errors import CommandError, UsageError
from controlplane.client.operations import OperationsClient
from controlplane.devices.overview.records import ListedReport, ReportsRequest

DeviceReport = tuple[Device, ReportSummary]


def list_all(options: argparse.Namespace) -> None:
    """List reports.

    This project's service has an operation that lists all reports. The contract does not define
    this operation. If a service does not offer it, the reports are read device by device.
    """
    since = datetime.now(UTC) - timedelta(seconds=options.since)
    with client_of(options) as client:
        devices = Filters(options).apply(client.devices()[0])
        if options.device is not None:
            devices = [find_device(options.device, devices)]
        pairs = _read_list_of_service(client, devices, since, options)
        if pairs is None:
            pairs = _read_each_device(client, devices, since, options.kind)
    if options.json:
        records = [
            {**to_plain(report), "instanceId": str(device.instance_id)} for device, report in pairs
        ]
        print(json.dumps(records, indent=2))
    else:
        print_records(
            pairs,
            {
                "report": lambda pair: pair[1].report_id,
                "device": lambda pair: pair[0].legacy_install_id,
                "location": lambda pair: location_of(pair[0]),
                "kind": lambda pair: pair[1].kind,
                "outcome": lambda pair: status(pair[1].outcome),
                "received": lambda pair: age(pair[1].created_at),
                "headline": _headline_of,
            },
            f"No report since {since.astimezone():%Y-%m-%d %H:%M}.",
            has_sentences=True,
        )


def _read_list_of_service(
    client: OperationsClient, devices: list[Device], since: datetime, options: argparse.Namespace
) -> list[DeviceReport] | None:
    """Return the reports with their headlines, or None if the service has no list of reports."""
    instance_id = devices[0].instance_id if options.device is not None else None
    request = ReportsRequest(instance_id=instance_id, kind=options.kind, since=since)
    reports = fleet.reports(client, request)
    if reports is None:
        return None
    by_id = {device.instance_id: device for device in devices}
    return [
        (by_id[report.instance_id], report) for report in reports if report.instance_id in by_id
    ]


def _headline_of(pair: DeviceReport) -> Cell:
    report = pair[1]
    if not isinstance(report, ListedReport):
        return ""
    return Styled(report.headline or "", STYLES[report.severity or "muted"])


def show(options: argparse.Namespace) -> None:
    if (options.id is None) == (options.latest is None):
        raise UsageError("give either the id of a report or --latest DEVICE KIND")
    if options.against is not None and (options.html is not None or options.csv is not None):
        raise UsageError("--against cannot be used with --html or --csv, only with --json")
    with client_of(options) as client:
        report_id = (
            _latest_report_id(client, *options.latest)
            if options.latest
            else find_report_id(client, options.id)
        )
        if options.against is not None:
            show_against(client, report_id, options)
            return
        report = client.report(ReportDetailRequest(report_id=report_id))
    if options.json:
        print(encode_indented(report))
    elif options.html is not None:
        _write_page(report, Path(options.html))
    elif options.csv is not None:
        _write_csv(report, options.csv)
    else:
        _show(report)


def _read_each_device(
    client: OperationsClient, devices: list[Device], since: datetime, kind: Kind | None
) -> list[DeviceReport]:
    """Return the reports of these devices created at ``since`` or later, newest first."""
    pairs: list[DeviceReport] = []
    with Progress() as progress:
        for number, device in enumerate(devices, 1):
            progress.show(f"reading {number} of {len(devices)} devices: {len(pairs)} reports")
            reports = newest_reports(
                client, device.instance_id, lambda report: report.created_at >= since
            )
            pairs += [(device, report) for report in reports if kind in (None, report.kind)]
    return sorted(pairs, key=lambda pair: pair[1].created_at, reverse=True)


def _latest_report_id(client: OperationsClient, name: str, kind: str) -> UUID:
    if kind not in KINDS:
        raise UsageError(f"{kind!r} is not a kind of report: use {' or '.join(KINDS)}")
    reports = newest_reports(client, find_device_id(client, name), lambda _: True)
    for report in reports:
        if report.kind == kind:
            return report.report_id
    raise CommandError(
        f"{plain(name)} has no report of kind {kind}",
        f"Request one: venue-control request {plain(name)} {kind} --wait",
    )


def _write_page(report: ReportDetail, path: Path) -> None:
    payload = _payload_of(report)
    from agent.presentation.page.html import report_page  # slow to import

    try:
        path.write_text(report_page(payload), encoding="utf-8")
    except OSError as error:
        raise CommandError(f"cannot write {path}: {error.strerror}") from error
    print(f"wrote {path}")


def _write_csv(report: ReportDetail, table: str) -> None:
    payload = _payload_of(report)
    if table not in tables_of(payload):
        table_names = ", ".join(tables_of(payload))
        raise UsageError(
            f"a report of kind {report.kind} has no table {table}: use one of {table_names}"
        )
    write_exactly(report_csv(payload, table))


def _show(report: ReportDetail) -> None:
    payload = _payload_of(report)
    from agent.presentation.terminal.report import report_view  # rich is slow to import
    from controlplane.cli.screen.tables import console

    console().print(report_view(payload))


def _payload_of(report: ReportDetail) -> ReportPayload:
    if report.payload is None:
        reason = f": {report.failure_reason}" if report.failure_reason else ""
        raise CommandError(
            f"the report {report.id} has no content: its outcome is {report.outcome}{reason}"
        )
    return report.payload
