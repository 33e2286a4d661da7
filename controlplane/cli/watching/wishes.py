"""``venue-control request … --when-back``: asked when the device is heard."""

import argparse
import sys
from datetime import UTC, datetime

from controlplane.cli.connection import client_of, device_of
from controlplane.cli.errors import CommandError, UsageError
from controlplane.remote_control.wishes.records import WishReply, WishRequest

PATH = "/console/api/wish"


def create(options: argparse.Namespace) -> int:
    whom = (options.instance is not None, options.location is not None, options.all)
    if sum(whom) != 1:
        raise UsageError("name one device, or a location by --location, or --all")
    with client_of(options) as client:
        named = options.instance
        body = WishRequest(
            kind=options.kind,
            until=datetime.now(UTC) + options.until,
            instance_ids=None if named is None else (device_of(client, named),),
            location=options.location,
            all=True if options.all else None,
        )
        reply = client.ask_own(PATH, body, WishReply)
    if not reply.wishes:
        raise CommandError("there is no device that makes such a report")
    devices = f"{len(reply.wishes)} device{'' if len(reply.wishes) == 1 else 's'}"
    sys.stdout.write(f"waiting for {devices} until {reply.until:%Y-%m-%d %H:%M} UTC\n")
    if reply.known:
        sys.stdout.write(f"{reply.known} of them had been wished for already\n")
    if reply.refused:
        sys.stdout.write(f"{reply.refused} left out: revoked, or without such reports\n")
    return 0
