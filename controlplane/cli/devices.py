"""``venue-control devices``, ``device`` and ``revoke``."""

import argparse
import json
import sys

from agent.wire.codec import encode_indented, to_plain
from agent.wire.operator_operations import DeviceDetailRequest, RevokeRequest
from controlplane.cli.connection import client_of, device_of
from controlplane.cli.watching.strip import strip_lines


def list_all(options: argparse.Namespace) -> int:
    with client_of(options) as client:
        devices, is_cut = client.devices()
    if options.json:
        records = [to_plain(device) for device in devices]
        sys.stdout.write(json.dumps(records, indent=2) + "\n")
        return 0
    from controlplane.cli.tables import print_devices  # rich only where shown

    print_devices(devices, is_cut=is_cut)
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

    tables.print_device(detail.device)
    tables.print_lines(days)
    tables.console().print()
    tables.print_requests(detail.requests)
    tables.console().print()
    tables.print_reports(detail.reports)
    if detail.next_cursor is not None:
        tables.console().print("\nOlder requests and reports are not shown.")
    return 0


def revoke(options: argparse.Namespace) -> int:
    with client_of(options) as client:
        body = RevokeRequest(instance_id=device_of(client, options.instance))
        client.revoke(body)
    sys.stdout.write(f"revoked {body.instance_id}\n")
    return 0
