"""``venue-control findings``: counts of devices by finding, or the devices with one finding."""

import argparse
from typing import Final

from agent.presentation.humanize import counted
from agent.presentation.severity import STYLES
from controlplane.cli.connection import client_of
from controlplane.cli.devices import fleet
from controlplane.cli.screen.cells import Columns, Styled, age, utc_text
from controlplane.cli.screen.output import (
    CsvColumns,
    print_json_or_csv,
    print_note,
    print_records,
)
from controlplane.devices.findings.records import (
    FindingDevice,
    FindingDevicesReply,
    FindingDevicesRequest,
    FindingEntry,
    FindingRecord,
    FindingsReply,
    FindingsRequest,
)

Row = tuple[FindingEntry, FindingDevice]
"""A row of CSV: a finding at a location, and one of the devices that have it."""

COUNTS_CSV: Final[CsvColumns[FindingRecord]] = {
    "rule": lambda each: each.rule,
    "severity": lambda each: each.severity,
    "title": lambda each: each.title,
    "devices": lambda each: each.device_count,
    "unknown": lambda each: each.unknown_count,
    "new": lambda each: each.new_count,
    "devices30DaysAgo": lambda each: each.trend[0] if each.trend else None,
    "fix": lambda each: each.fix,
}
COUNTS: Final[Columns[FindingRecord]] = {
    "finding": lambda each: Styled(each.rule, STYLES[each.severity]),
    "devices": lambda each: str(each.device_count),
    "unknown": lambda each: str(each.unknown_count),
    "new": lambda each: str(each.new_count),
    "30 days ago": lambda each: "" if each.trend is None else str(each.trend[0]),
    "title": lambda each: each.title,
}
DEVICES_CSV: Final[CsvColumns[Row]] = {
    "rule": lambda row: row[0].rule,
    "severity": lambda row: row[0].severity,
    "locationId": lambda row: row[0].location_id,
    "locationName": lambda row: row[0].location_name,
    "device": lambda row: row[1].name,
    "instanceId": lambda row: row[1].instance_id,
    "platform": lambda row: row[1].platform,
    "version": lambda row: row[1].app_version,
    "health": lambda row: row[1].health,
    "since": lambda row: utc_text(row[1].since),
    "lastSeen": lambda row: utc_text(row[1].last_seen),
    "sentence": lambda row: row[1].sentence,
    "reportId": lambda row: row[1].report_id,
}


def show(options: argparse.Namespace) -> None:
    """Show how many devices have each finding, or the devices with one finding or new findings."""
    filters = {
        "rule": options.rule,
        "state": options.device_state,
        "location": options.location,
        "platform": options.platform,
        "version": options.app_version,
        "search": options.search or None,
    }
    with client_of(options) as client:
        if options.rule is None and not options.new:
            _show_counts(options, fleet.findings(client, FindingsRequest(**filters)))
        else:
            body = FindingDevicesRequest(is_new=options.new or None, **filters)
            _show_devices(options, fleet.finding_devices(client, body))


def _show_counts(options: argparse.Namespace, reply: FindingsReply) -> None:
    present_findings = [each for each in reply.findings if each.device_count]
    if print_json_or_csv(options, present_findings, COUNTS_CSV):
        return
    print_records(present_findings, COUNTS, "No findings in recent reports.", has_sentences=True)
    print_note(_describe_unknown(reply.unknown_count, reply.device_count))


def _show_devices(options: argparse.Namespace, reply: FindingDevicesReply) -> None:
    rows = [(entry, each) for entry in reply.entries for each in entry.devices]
    if print_json_or_csv(options, rows if options.csv else reply.entries, DEVICES_CSV):
        return
    columns: Columns[FindingEntry] = {
        "finding": lambda each: Styled(each.rule, STYLES[each.severity]),
        "location": lambda each: each.location_name or each.location_id,
        "devices": lambda each: str(each.device_count),
        "since": lambda each: age(each.since),
        "detail": _describe_devices,
    }
    empty = "No new findings." if options.new else "No devices have this finding."
    print_records(reply.entries, columns, empty, has_sentences=True)
    print_note(_describe_unknown(reply.unknown_count, None))


def _describe_devices(entry: FindingEntry) -> str:
    if entry.device_count == 1:
        (device,) = entry.devices
        return f"{device.name}: {device.sentence}"
    return f"{', '.join(each.name for each in entry.devices)}: {entry.title}"


def _describe_unknown(count: int, total: int | None) -> str:
    devices = counted(count, "device") if total is None else f"{count} of {total} devices"
    reason = "the devices have no recent report that could contain these findings"
    return f"The findings of {devices} are unknown: {reason}."
