"""``venue-control devices``, ``device`` and ``revoke``."""

import argparse
import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime

from agent.presentation.plain_text import plain
from agent.presentation.report_csv import csv_of
from agent.wire.codec import encode_indented, to_plain
from agent.wire.operator_operations import Device, DeviceDetailRequest, RevokeRequest
from controlplane.cli.connection import client_of, device_of
from controlplane.cli.devices.filters import filters_of, place_of, state_of
from controlplane.cli.screen.terminal import confirm, write_exactly
from controlplane.cli.watching.strip import strip_lines
from controlplane.client.operations import OperationsClient

CSV_COLUMNS = (
    "instanceId", "name", "state", "locationId", "locationName", "platform", "appVersion",
    "lastSeenAt", "createdAt", "revokedAt", "capabilities", "bindingId", "userId",
)  # fmt: skip


def list_all(options: argparse.Namespace) -> int:
    with client_of(options) as client:
        every, is_cut = client.devices()
    devices = filters_of(options).of(every)
    if options.csv:
        write_exactly(csv_of(CSV_COLUMNS, (_row(device) for device in devices)))
    elif options.json:
        records = [to_plain(device) for device in devices]
        sys.stdout.write(json.dumps(records, indent=2) + "\n")
    elif options.ndjson:
        for device in devices:
            sys.stdout.write(json.dumps(to_plain(device)) + "\n")
    else:
        from controlplane.cli.screen.listings import print_devices  # rich only where shown

        print_devices(devices, is_cut=is_cut, of=len(every))
        return 0
    if is_cut:
        sys.stderr.write("There are more devices than could be read.\n")
    return 0


def show(options: argparse.Namespace) -> int:
    """Show the device with the newest page of its history."""
    with client_of(options) as client:
        instance_id = device_of(client, options.instance)
        detail = client.device(DeviceDetailRequest(instance_id=instance_id))
        days = () if options.json else strip_lines(client, instance_id)
    if options.json:
        sys.stdout.write(encode_indented(detail) + "\n")
        return 0
    from controlplane.cli import tables  # rich only where shown
    from controlplane.cli.screen import listings

    listings.print_device(detail.device)
    tables.print_lines(days)
    tables.console().print()
    listings.print_requests(detail.requests)
    tables.console().print()
    listings.print_reports(detail.reports)
    if detail.next_cursor is not None:
        tables.console().print("\nOlder requests and reports are not shown.")
    return 0


def revoke(options: argparse.Namespace) -> int:
    """Ask, as what follows needs somebody at the machine; then end the binding."""
    with client_of(options) as client:
        body = RevokeRequest(instance_id=device_of(client, options.instance))
        if not options.yes:
            _ask(client, body)
        client.revoke(body)
    sys.stdout.write(f"revoked {body.instance_id}\n")
    return 0


def _ask(client: OperationsClient, body: RevokeRequest) -> None:
    from controlplane.cli.tables import age

    device = client.device(DeviceDetailRequest(instance_id=body.instance_id)).device
    heard = age(device.last_seen_at, datetime.now(UTC))
    name = plain(device.legacy_install_id)
    sys.stderr.write(
        f"{name} at {plain(place_of(device))}, {state_of(device)}, heard {heard} ago\n"
        "Its requests expire, its agent is refused and stops, and it comes back only when it is\n"
        "enrolled anew. Its reports stay.\n"
    )
    confirm(f"Revoke {name}?", is_sure=False)


def _row(device: Device) -> Sequence[str | None]:
    return (
        str(device.instance_id),
        device.legacy_install_id,
        state_of(device),
        device.location_id,
        device.location_name,
        device.platform,
        device.app_version,
        _moment(device.last_seen_at),
        _moment(device.created_at),
        _moment(device.revoked_at),
        "; ".join(device.capabilities),
        str(device.binding_id),
        device.user_id,
    )


def _moment(moment: datetime | None) -> str:
    return "" if moment is None else f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
