"""``venue-control request``: request reports from devices, and optionally wait for them.

With ``--when-back``, the requests are pending until their devices are online.
"""

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

from agent.presentation.humanize import counted, format_seconds
from agent.presentation.plain_text import plain
from agent.wire.operator_operations import CreateRequestReply, Device, DeviceDetailRequest
from controlplane.cli.connection import client_of, find_device_id
from controlplane.cli.devices.filters import state_of
from controlplane.cli.requests.batch import DeviceRequest, RequestBatch
from controlplane.cli.requests.selection import (
    Selection,
    is_for_one,
    listed_devices,
    select,
    selected_devices,
)
from controlplane.cli.screen import confirmation
from controlplane.cli.screen.cells import age
from controlplane.cli.screen.progress import Progress
from controlplane.client.errors import CommandError, UsageError
from controlplane.client.operations import OperationsClient
from controlplane.pending_requests.records import (
    DEVICES_MAX,
    CreatePendingReply,
    CreatePendingRequest,
)

EXIT_INTERRUPTED = 130
PENDING_REQUESTS = "/console/api/pending-requests"


def create(options: argparse.Namespace) -> int:
    if options.when_back:
        _create_pending(options)
        return 0
    if not options.wait and (options.at_once or options.out):
        raise UsageError("--at-once and --out require --wait")
    return _request_one(options) if is_for_one(options) else _request_many(options)


def _create_pending(options: argparse.Namespace) -> None:
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
                PENDING_REQUESTS,
                CreatePendingRequest(
                    kind=options.kind,
                    until=until,
                    instance_ids=tuple(instance_ids[start : start + DEVICES_MAX]),
                ),
                CreatePendingReply,
            )
            for start in range(0, count, DEVICES_MAX)
        ]
    _print_pending(replies, until)


def _selected_ids(options: argparse.Namespace, client: OperationsClient) -> list[UUID]:
    if is_for_one(options):
        return [find_device_id(client, options.instance[0])]
    devices = selected_devices(options, listed_devices(client))
    return [device.instance_id for device in devices if device.revoked_at is None]


def _print_pending(replies: Sequence[CreatePendingReply], until: datetime) -> None:
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


def _request_one(options: argparse.Namespace) -> int:
    progress = Progress()

    def on_change(request: DeviceRequest) -> None:
        progress.show(f"{request.device.legacy_install_id}: {request.status}")
        if request.reply is not None:
            print(f"request {request.reply.request_id} {request.status}", flush=True)

    with client_of(options, progress) as client:
        body = DeviceDetailRequest(instance_id=find_device_id(client, options.instance[0]))
        device = client.device(body).device
        batch = RequestBatch(client, options.kind, on_change, raises=True)
        batch.create([device])
        (request,) = batch.requests
        if request.reply is not None:
            _note_if_offline(device, request.reply)
        if not options.wait:
            return 0
        try:
            with progress:
                progress.show(f"{device.legacy_install_id}: {request.status}")
                batch.wait()
            return _print_result(client, request, options)
        except KeyboardInterrupt:
            _note_continuing_requests(batch.requests)
            return EXIT_INTERRUPTED


def _print_result(
    client: OperationsClient, request: DeviceRequest, options: argparse.Namespace
) -> int:
    from controlplane.cli.requests import results  # rich is slow to import

    result = results.result_of(client, request)
    if result.headline:
        name = plain(request.device.legacy_install_id)
        sys.stderr.write(f"{name}: {plain(result.headline)}\n")
    if options.out is not None:
        results.save(result, Path(options.out))
    for report_id in request.report_ids:
        print(f"report {report_id}", flush=True)
    return 0 if result.is_good else 1


def _request_many(options: argparse.Namespace) -> int:
    progress = Progress()
    with client_of(options, progress) as client:
        selection = select(options, listed_devices(client))
        for line in selection.lines():
            progress.write_line(line)
        if not selection.devices:
            raise CommandError("no device is left to request a report from")
        count = len(selection.devices)
        question = f"Request {options.kind} reports from {count} devices?"
        confirmation.confirm(question, is_sure=options.yes or count <= confirmation.CONFIRM_ABOVE)
        return _run_batch(client, progress, selection, options)


def _run_batch(
    client: OperationsClient,
    progress: Progress,
    selection: Selection,
    options: argparse.Namespace,
) -> int:
    total = len(selection.devices)
    skipped_devices: list[Device] = []

    def on_change(request: DeviceRequest) -> None:
        progress.show(_describe_progress(batch, total - len(skipped_devices)))
        if request.is_over:
            done_count = sum(created.is_over for created in batch.requests)
            name, outcome = request.device.legacy_install_id, request.trouble or request.status
            progress.log(f"{done_count} of {total - len(skipped_devices)}: {name} {outcome}")

    batch = RequestBatch(client, options.kind, on_change, skip=skipped_devices.append)
    is_interrupted = False
    with progress:
        progress.show(f"creating {total} requests")
        try:
            if options.wait:
                batch.wait(selection.devices, options.at_once)
            else:
                batch.create(selection.devices)
        except KeyboardInterrupt:
            is_interrupted = True
    left_out = Selection([])
    for device in skipped_devices:
        left_out.leave_out(device, "already open")
    for line in left_out.lines():
        progress.write_line(line)
    is_good = _print_results(client, progress, batch, options)
    if is_interrupted:
        _note_continuing_requests(batch.open_requests)
        return EXIT_INTERRUPTED
    return 0 if is_good and batch.requests else 1


def _print_results(
    client: OperationsClient, progress: Progress, batch: RequestBatch, options: argparse.Namespace
) -> bool:
    """Print the results.

    Returns whether all requests were successful. Without --wait, this means that they were created.
    """
    from controlplane.cli.requests import results  # rich is slow to import

    request_results = []
    with progress:
        for number, request in enumerate(batch.requests, 1):
            progress.show(f"reading reports: {number} of {len(batch.requests)}")
            request_results.append(results.result_of(client, request))
            if options.out is not None:
                results.save(request_results[-1], Path(options.out))
    results.print_results(request_results)
    if not options.wait:
        return not any(result.request.trouble for result in request_results)
    return all(result.is_good for result in request_results)


def _describe_progress(batch: RequestBatch, total: int) -> str:
    """Return ``12 of 40 done · 3 running, 20 queued``."""
    counts = batch.counts()
    done_count = sum(request.is_over for request in batch.requests)
    counts_by_state = [
        f"{counts[word]} {word}" for word in ("running", "received", "queued") if counts[word]
    ]
    remaining_count = total - len(batch.requests)
    counts_by_state += [f"{remaining_count} not yet requested"] if remaining_count > 0 else []
    text = f"{done_count} of {total} done" + (
        f" · {', '.join(counts_by_state)}" if counts_by_state else ""
    )
    if batch.is_unreachable:
        text += " · the service is not reachable, trying again"
    return text


def _note_if_offline(device: Device, reply: CreateRequestReply) -> None:
    if state_of(device) != "offline":
        return
    left_s = (reply.expires_at - datetime.now(UTC)).total_seconds()
    remaining_time = format_seconds(max(0, int(left_s)), units=1)
    sys.stderr.write(
        f"{plain(device.legacy_install_id)} is offline, last seen {age(device.last_seen_at)} ago."
        f" The request waits for the\ndevice and expires in {remaining_time}, at"
        f" {_time_of_day(reply.expires_at)}.\n"
    )


def _note_continuing_requests(requests: list[DeviceRequest]) -> None:
    replies = [request.reply for request in requests if request.reply is not None]
    if not replies:
        return
    until = _time_of_day(max(reply.expires_at for reply in replies))
    subject = "The request continues" if len(replies) == 1 else f"{len(replies)} requests continue"
    sys.stderr.write(
        f"{subject} at the service until {until} at the latest.\n"
        "`venue-control reports --since 1h` lists the reports.\n"
    )


def _time_of_day(timestamp: datetime) -> str:
    return f"{timestamp.astimezone():%H:%M}"
