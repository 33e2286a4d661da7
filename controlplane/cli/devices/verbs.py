"""``venue-control devices``, ``device`` and ``revoke``."""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from agent.presentation.plain_text import plain
from agent.wire.base import Tolerant
from agent.wire.codec import encode_indented, to_plain
from agent.wire.operator_operations import Device, DeviceDetailRequest, RevokeRequest
from controlplane.cli.arguments.client import HEALTHS
from controlplane.cli.connection import client_of, find_device_id
from controlplane.cli.devices import fleet
from controlplane.cli.devices.filters import Filters, location_of, state_of
from controlplane.cli.devices.fleet import ListedDevice
from controlplane.cli.screen.cells import Cell, age, status, utc_text
from controlplane.cli.screen.confirmation import confirm
from controlplane.cli.screen.output import CsvColumns, print_json_or_csv, print_note, print_records
from controlplane.client.errors import CommandError
from controlplane.client.operations import OperationsClient
from controlplane.devices.timeline.timeline import Timeline

DEVICE = "/console/api/device"
LEGEND = "█ online  ▄ partly  _ offline  · closed"
MORE_DEVICES_NOTE = "There are more devices than this command reads."
VERSIONS_MAX = 4
"""Maximum number of versions in the line below the table."""
CSV: Final[CsvColumns[Device]] = {
    "instanceId": lambda device: device.instance_id,
    "name": lambda device: device.legacy_install_id,
    "state": state_of,
    "health": lambda device: getattr(device, "health", None),
    "locationId": lambda device: device.location_id,
    "locationName": lambda device: device.location_name,
    "platform": lambda device: device.platform,
    "appVersion": lambda device: device.app_version,
    "lastSeenAt": lambda device: _format_time(device.last_seen_at),
    "createdAt": lambda device: _format_time(device.created_at),
    "revokedAt": lambda device: _format_time(device.revoked_at),
    "capabilities": lambda device: "; ".join(device.capabilities),
    "bindingId": lambda device: device.binding_id,
    "userId": lambda device: device.user_id,
}


class TimelineReply(Tolerant):
    """The part of the console's reply that this module reads."""

    timeline: Timeline


def list_all(options: argparse.Namespace) -> None:
    with client_of(options) as client:
        devices_of_service, is_cut = client.devices()
        healths = fleet.healths(client)
        if healths is None and options.health:
            raise CommandError("this service does not report the health of devices")
        matching = fleet.healths(client, options.search) if options.search.strip() else None
    if matching is not None:
        # The service has already searched, also in the newest reports. `Filters` must not search.
        options.search = ""
    devices = [
        ListedDevice(**dict(device), health=(healths or {}).get(device.instance_id))
        for device in Filters(options).apply(devices_of_service)
        if matching is None or device.instance_id in matching
    ]
    if options.health:
        devices = [device for device in devices if device.health in options.health]
    if options.ndjson:
        for device in devices:
            print(json.dumps(to_plain(device)))
    elif not print_json_or_csv(options, devices, CSV):
        print_devices(devices, is_cut=is_cut, all_count=len(devices_of_service))
        return
    if is_cut:
        sys.stderr.write(f"{MORE_DEVICES_NOTE}\n")


def print_devices(devices: Sequence[Device], *, is_cut: bool, all_count: int | None = None) -> None:
    """Print a table of devices.

    Args:
        is_cut: whether the service has more devices than the client has read.
        all_count: number of devices before filtering.
    """
    print_records(
        devices,
        {
            "instance": lambda device: device.instance_id,
            "name": lambda device: device.legacy_install_id,
            "state": lambda device: status(state_of(device)),
            **({"health": _health} if any(map(_health, devices)) else {}),
            "location": location_of,
            "version": lambda device: device.app_version,
            "seen": lambda device: age(device.last_seen_at),
        },
        "No devices match." if all_count else "No device has enrolled yet.",
    )
    if devices:
        print_note(_summary(devices, all_count))
    if is_cut:
        print_note(MORE_DEVICES_NOTE)


def show(options: argparse.Namespace) -> None:
    """Show the device with the newest page of its requests and reports."""
    with client_of(options) as client:
        instance_id = find_device_id(client, options.instance)
        detail = client.device(DeviceDetailRequest(instance_id=instance_id))
        days = () if options.json else _timeline_lines(client, instance_id)
    if options.json:
        print(encode_indented(detail))
        return
    # rich is slow to import
    from controlplane.cli.screen.tables import console, print_facts, print_lines

    print_facts(device_facts(detail.device))
    print_lines(days)
    console().print()
    print_records(
        detail.requests,
        {
            "request": lambda request: request.id,
            "kind": lambda request: request.kind,
            "status": lambda request: status(request.status),
            "created": lambda request: age(request.created_at),
        },
        "No requests.",
        "Requests",
    )
    console().print()
    print_records(
        detail.reports,
        {
            "report": lambda report: report.report_id,
            "kind": lambda report: report.kind,
            "outcome": lambda report: status(report.outcome),
            "tracker": lambda report: status(report.tracker_status),
            "received": lambda report: age(report.created_at),
        },
        "No reports.",
        "Reports",
    )
    if detail.next_cursor is not None:
        console().print("\nOlder requests and reports are not shown.")


def revoke(options: argparse.Namespace) -> None:
    """Revoke the device's binding after a confirmation.

    Only a new enrollment binds the device again.
    """
    with client_of(options) as client:
        body = RevokeRequest(instance_id=find_device_id(client, options.instance))
        if not options.yes:
            _confirm(client, body)
        client.revoke(body)
    print(f"revoked {body.instance_id}")


def device_facts(device: Device) -> Iterable[tuple[str, Cell]]:
    """Yield the names and values that the command `device` shows."""
    yield "name", device.legacy_install_id
    yield "instance", device.instance_id
    yield "state", status(state_of(device))
    yield "binding", device.binding_id
    yield "location", location_of(device)
    yield "organization", device.organization_name or device.organization_id
    yield "platform", f"{device.platform}, agent {device.app_version or 'of unknown version'}"
    yield "capabilities", ", ".join(device.capabilities) or "none"
    timestamps = (
        ("last seen", device.last_seen_at),
        ("enrolled", device.created_at),
        ("revoked", device.revoked_at),
    )
    for name, timestamp in timestamps:
        if timestamp is not None:
            yield name, f"{timestamp:%Y-%m-%d %H:%M:%S} UTC"


def _timeline_lines(client: OperationsClient, instance_id: UUID) -> tuple[str, ...]:
    """Return the liveness of a device over thirty days, as a line of characters with a legend.

    There are no lines if the call fails, for example because the service has no console API.
    """
    try:
        body = DeviceDetailRequest(instance_id=instance_id)
        timeline = client.post(DEVICE, body, TimelineReply).timeline
    except CommandError:
        return ()
    first, last = timeline.days[0].date, timeline.days[-1].date
    return (f"{first[5:]}  {timeline.line}  {last[5:]}", f"{'':5}  {LEGEND}")


def _confirm(client: OperationsClient, body: RevokeRequest) -> None:
    device = client.device(DeviceDetailRequest(instance_id=body.instance_id)).device
    name = plain(device.legacy_install_id)
    sys.stderr.write(
        f"{name} at {plain(location_of(device))}, {state_of(device)},"
        f" last seen {age(device.last_seen_at)} ago\n"
        "The requests of the device expire, and its agent collects nothing. The device returns\n"
        "only after a new enrollment. Its reports are kept.\n"
    )
    confirm(f"Revoke {name}?", is_sure=False)


def _summary(devices: Sequence[Device], all_count: int | None) -> str:
    """Return ``3 of 12 devices: 2 healthy, 1 offline; versions: 0.2.0 2, 0.1.0 1``."""
    is_filtered = all_count is not None and all_count > len(devices)
    total = f"{len(devices)} of {all_count}" if is_filtered else str(len(devices))
    counts = Counter(
        (isinstance(device, ListedDevice) and device.health) or state_of(device)
        for device in devices
    )
    states = [f"{counts[state]} {state}" for state in ("online", *HEALTHS) if counts[state]]
    versions = Counter(device.app_version or "unknown" for device in devices).most_common()
    parts = [f"{version} {count}" for version, count in versions[:VERSIONS_MAX]]
    if len(versions) > VERSIONS_MAX:
        parts.append(f"{len(versions) - VERSIONS_MAX} more")
    noun = "device" if total == "1" else "devices"
    return f"{total} {noun}: {', '.join(states)}; versions: {', '.join(parts)}"


def _health(device: Device) -> Cell:
    health = device.health if isinstance(device, ListedDevice) else None
    return health and status(health)


def _format_time(timestamp: datetime | None) -> str:
    return "" if timestamp is None else utc_text(timestamp)
