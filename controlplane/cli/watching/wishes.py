"""``venue-control request … --when-back``: asked when the device is heard."""

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID

from controlplane.cli.connection import client_of, device_of
from controlplane.cli.requests.selection import is_for_one, meant_by
from controlplane.cli.screen.terminal import confirm
from controlplane.client.errors import CommandError, UsageError
from controlplane.client.operations import OperationsClient
from controlplane.pending_requests.records import (
    DEVICES_MAX,
    CreatePendingReply,
    CreatePendingRequest,
)

PATH = "/console/api/pending-requests"
CONFIRM_ABOVE = 20
"""Devices that are wished for without a question."""


def create(options: argparse.Namespace) -> int:
    if options.wait or options.at_once or options.out:
        raise UsageError("--when-back waits at the service: leave --wait, --at-once and --out away")
    until = datetime.now(UTC) + options.until
    with client_of(options) as client:
        meant = _meant(options, client)
        count = len(meant)
        confirm(
            f"Ask {count} devices for a report of kind {options.kind} when they are heard?",
            is_sure=options.yes or count <= CONFIRM_ABOVE,
        )
        replies = [
            client.ask_own(
                PATH,
                CreatePendingRequest(
                    kind=options.kind, until=until, instance_ids=tuple(meant[at : at + DEVICES_MAX])
                ),
                CreatePendingReply,
            )
            for at in range(0, count, DEVICES_MAX)
        ]
    return _tell(replies, until)


def _meant(options: argparse.Namespace, client: OperationsClient) -> list[UUID]:
    if is_for_one(options):
        return [device_of(client, options.instance[0])]
    every, is_cut = client.devices()
    if is_cut:
        raise CommandError("there are more devices than could be read: choose by name")
    return [each.instance_id for each in meant_by(options, every) if each.revoked_at is None]


def _tell(replies: Sequence[CreatePendingReply], until: datetime) -> int:
    wishes = sum(len(each.pending_requests) for each in replies)
    known = sum(each.existing for each in replies)
    refused = sum(each.refused for each in replies)
    if not wishes:
        raise CommandError("there is no device that makes such a report")
    devices = f"{wishes} device{'' if wishes == 1 else 's'}"
    sys.stdout.write(f"waiting for {devices} until {until:%Y-%m-%d %H:%M} UTC\n")
    if known:
        sys.stdout.write(f"{known} of them had been wished for already\n")
    if refused:
        sys.stdout.write(f"{refused} left out: revoked, or without such reports\n")
    return 0
