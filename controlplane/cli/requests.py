"""``venue-control request``: ask a device for a report, and wait for it if told to."""

import argparse
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from uuid import UUID

from agent.wire.operator_operations import (
    CreateRequestReply,
    CreateRequestRequest,
    DeviceDetailReply,
    DeviceDetailRequest,
    RemoteRequest,
)
from controlplane.cli.connection import client_of, device_of
from controlplane.cli.errors import CommandError, UsageError
from controlplane.cli.watching import wishes
from controlplane.client.operations import OperationsClient
from controlplane.remote_control.requests.lifecycle import FINISHED

POLL_S = 1.0
GRACE = timedelta(seconds=30)
"""How long after ``expiresAt`` we still ask: the clocks of both sides may differ."""


def create(options: argparse.Namespace) -> int:
    if options.when_back:
        return wishes.create(options)
    if options.instance is None:
        raise UsageError("name a device; several can be asked with --when-back")
    with client_of(options) as client:
        instance_id = device_of(client, options.instance)
        body = CreateRequestRequest(instance_id=instance_id, kind=options.kind)
        reply = client.create_request(body)
        sys.stdout.write(f"request {reply.request_id} queued\n")
        sys.stdout.flush()
        if not options.wait:
            return 0
        request, report_ids = wait(client, body.instance_id, reply, _print_status)
    for report_id in report_ids:
        sys.stdout.write(f"report {report_id}\n")
    return 0 if request.status in {"completed", "partial"} else 1


def wait(
    client: OperationsClient,
    instance_id: UUID,
    reply: CreateRequestReply,
    on_change: Callable[[RemoteRequest], None] = lambda _: None,
    *,
    poll_s: float = POLL_S,
) -> tuple[RemoteRequest, list[UUID]]:
    """Return the request once it has ended, and the ids of its reports. Raises CommandError."""
    last = "queued"
    while datetime.now(UTC) < reply.expires_at + GRACE:
        detail = client.device(DeviceDetailRequest(instance_id=instance_id))
        request = _find(detail, reply.request_id)
        if request.status != last:
            last = request.status
            on_change(request)
        if last in FINISHED or last == "expired":
            return request, [r.report_id for r in detail.reports if r.request_id == request.id]
        time.sleep(poll_s)
    raise CommandError(f"the request is still {last} after it should have expired")


def _find(detail: DeviceDetailReply, request_id: UUID) -> RemoteRequest:
    for request in detail.requests:
        if request.id == request_id:
            return request
    raise CommandError("the service does not list the request any more")


def _print_status(request: RemoteRequest) -> None:
    sys.stdout.write(f"request {request.id} {request.status}\n")
    sys.stdout.flush()
