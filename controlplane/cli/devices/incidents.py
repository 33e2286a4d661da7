"""``venue-control incidents``: interruptions at locations.

In the table, a shared interruption is one row. In CSV, it has a row for each of its devices.
"""

import argparse
from datetime import UTC, datetime
from typing import Final

from agent.presentation.connectivity.titles import CAUSE_TITLES
from agent.presentation.humanize import counted, format_seconds
from agent.presentation.severity import STYLES
from controlplane.cli.connection import client_of
from controlplane.cli.devices import fleet
from controlplane.cli.screen.cells import Columns, Styled, utc_text
from controlplane.cli.screen.output import (
    CsvColumns,
    print_json_or_csv,
    print_note,
    print_records,
)
from controlplane.devices.incidents.records import DeviceIncidentRecord, IncidentRecord

Row = tuple[IncidentRecord, DeviceIncidentRecord]
"""A row of CSV: an incident of a location, and the incident of one of its devices."""

CSV: Final[CsvColumns[Row]] = {
    "beganAt": lambda row: _utc(row[1].began_at),
    "endedAt": lambda row: _utc(row[1].ended_at),
    "downtimeSeconds": lambda row: row[1].downtime_seconds,
    "count": lambda row: row[1].count,
    "cause": lambda row: row[1].cause,
    "device": lambda row: row[1].name,
    "instanceId": lambda row: row[1].instance_id,
    "locationId": lambda row: row[0].location_id,
    "locationName": lambda row: row[0].location_name,
    "sharedBy": lambda row: row[0].device_count,
    "of": lambda row: row[0].observer_count,
    "sharedBeganAt": lambda row: _utc(row[0].began_at),
    "sharedCause": lambda row: row[0].cause,
    "suspect": lambda row: row[0].suspect,
    "evidence": lambda row: row[1].evidence,
    "clockCorrectionSeconds": lambda row: row[1].clock_correction_seconds,
}


def list_all(options: argparse.Namespace) -> None:
    with client_of(options) as client:
        incidents = fleet.incidents(client, options.location, options.days)
    rows = [
        (incident, device_incident)
        for incident in incidents
        for device_incident in incident.incidents
    ]
    if print_json_or_csv(options, rows if options.csv else incidents, CSV):
        return
    period = "day" if options.days == 1 else f"{options.days} days"
    columns: Columns[IncidentRecord] = {
        "began": lambda incident: f"{incident.began_at.astimezone():%d %b %H:%M}",
        "lasted": _duration,
        "devices": _shared_by,
        "interruption": lambda incident: sentence_of(incident) + _corrections(incident),
    }
    print_records(incidents, columns, f"No interruptions in the last {period}.", has_sentences=True)
    if incidents:
        shared_count = sum(incident.device_count > 1 for incident in incidents)
        total = counted(len(incidents), "interruption")
        print_note(f"{total}, {shared_count} of them shared by several devices")


def sentence_of(incident: IncidentRecord) -> str:
    """Return ``5 of 6 devices at Harbour lost the gateway at 18:02: the router, not the tills.``

    The time is in this machine's time zone. The sentence about an incident of only one device
    contains the title of the cause.
    """
    location = incident.location_name or incident.location_id
    if incident.loss is None:
        (first, *_) = incident.incidents
        title = f"{first.name} at {location}: {CAUSE_TITLES[incident.cause].sentence}"
        return f"{title}: {first.evidence}." if first.evidence else f"{title}."
    devices = f"{incident.device_count} of {counted(incident.observer_count, 'device')}"
    at = f"{incident.began_at.astimezone():%H:%M}"
    return f"{devices} at {location} {incident.loss} at {at}: {incident.suspect}."


def _shared_by(incident: IncidentRecord) -> Styled:
    text = f"{incident.device_count} of {incident.observer_count}"
    return Styled(text, STYLES["bad" if incident.device_count > 1 else "muted"])


def _duration(incident: IncidentRecord) -> str:
    is_open = incident.ended_at is None
    ended_at = incident.ended_at or datetime.now(UTC)
    seconds = max(0, round((ended_at - incident.began_at).total_seconds()))
    return format_seconds(seconds, units=1) + ("…" if is_open else "")


def _corrections(incident: IncidentRecord) -> str:
    """Return a sentence about the devices whose times were corrected, or ""."""
    seconds_by_device = {
        device_incident.name: device_incident.clock_correction_seconds
        for device_incident in incident.incidents
        if device_incident.clock_correction_seconds
    }
    if not seconds_by_device:
        return ""
    parts = (
        f"{name} by {format_seconds(abs(seconds), units=1)}"
        f" ({'fast clock' if seconds < 0 else 'slow clock, or late report'})"
        for name, seconds in seconds_by_device.items()
    )
    return f" Times were corrected with the clock of the service: {', '.join(parts)}."


def _utc(at: datetime | None) -> str | None:
    return None if at is None else utc_text(at)
