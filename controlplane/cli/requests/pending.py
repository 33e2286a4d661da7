"""``venue-control request … --when-back``: requests that wait until a device is online."""

import argparse
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

from agent.presentation.humanize import counted
from controlplane.cli.connection import client_of, find_device_id
from controlplane.cli.requests.selection import is_for_one, listed_devices, selected_devices
from controlplane.cli.screen import confirmation
from controlplane.client.errors import CommandError, UsageError
from controlplane.client.operations import OperationsClient
from controlplane.pending_requests.records import (
    DEVICES_MAX,
    CreatePendingReply,
    CreatePendingRequest,
)

PATH = "/console/api/pending-requests"


def create(options: argparse.Namespace) -> None:
    if options.wait or options.at_once or options.out:
        raise UsageError("--when-back cannot be used with --wait, --at-once or --out")
    until = datetime.now(UTC) + timedelta(seconds=options.until)
    with client_of(options) as client:
        instance_ids = _selected_ids(options, client)
        count = len(instance_ids)
        question = f"Request {options.kind} reports from {count} devices when they are online?"
        confirmation.confirm(question, is_sure=options.yes or count <= confirmation.CONFIRM_ABOVE)
        replies = [
            client.post(
                PATH,
                CreatePendingRequest(
                    kind=options.kind,
                    until=until,
                    instance_ids=tuple(instance_ids[start : start + DEVICES_MAX]),
                ),
                CreatePendingReply,
            )
            for start in range(0, count, DEVICES_MAX)
        ]
    _print(replies, until)


def _selected_ids(options: argparse.Namespace, client: OperationsClient) -> list[UUID]:
    if is_for_one(options):
        return [find_device_id(client, options.instance[0])]
    devices = selected_devices(options, listed_devices(client))
    return [device.instance_id for device in devices if device.revoked_at is None]


def _print(replies: Sequence[CreatePendingReply], until: datetime) -> None:
    pending_count = sum(len(reply.pending_requests) for reply in replies)
    existing_count = sum(reply.existing for reply in replies)
    refused_count = sum(reply.refused for reply in replies)
    if not pending_count:
        raise CommandError(
            "nothing was requested: the devices are revoked or make no reports of this kind"
        )
    devices = counted(pending_count, "device")
    print(f"waiting for {devices} until {until:%Y-%m-%d %H:%M} UTC")
    if existing_count:
        print(f"{existing_count} of the devices already had a pending request of this kind")
    if refused_count:
        print(f"{refused_count} left out: they are revoked or make no reports of this kind")
