"""``venue-control request``: ask one device or many for a report, and wait if told to."""

import argparse
import sys
from datetime import UTC, datetime
from pathlib import Path

from agent.presentation.humanize import format_seconds
from agent.presentation.plain_text import plain
from agent.wire.operator_operations import (
    CreateRequestReply,
    CreateRequestRequest,
    Device,
    DeviceDetailRequest,
    RemoteRequest,
)
from controlplane.cli.connection import client_of, device_of
from controlplane.cli.devices.filters import state_of
from controlplane.cli.requests.selection import Selection, is_for_one, select
from controlplane.cli.requests.waiting import Asked, Round, wait
from controlplane.cli.screen.progress import Progress
from controlplane.cli.screen.terminal import confirm
from controlplane.cli.watching import wishes
from controlplane.client.errors import CommandError, UsageError
from controlplane.client.operations import OperationsClient

CONFIRM_ABOVE = 20
"""Devices that are asked without a question."""
EXIT_INTERRUPTED = 130


def create(options: argparse.Namespace) -> int:
    if options.when_back:
        return wishes.create(options)
    if not options.wait and (options.at_once or options.out):
        raise UsageError("--at-once and --out need --wait")
    return _ask_one(options) if is_for_one(options) else _ask_many(options)


def _ask_one(options: argparse.Namespace) -> int:
    progress = Progress()
    with client_of(options, progress) as client:
        instance_id = device_of(client, options.instance[0])
        device = client.device(DeviceDetailRequest(instance_id=instance_id)).device
        reply = client.create_request(
            CreateRequestRequest(instance_id=instance_id, kind=options.kind)
        )
        _print_line(f"request {reply.request_id} queued")
        _say_if_offline(device, reply)
        if not options.wait:
            return 0
        try:
            return _wait_for_one(client, progress, device, reply, options.out)
        except KeyboardInterrupt:
            _say_what_goes_on([reply])
            return EXIT_INTERRUPTED


def _wait_for_one(
    client: OperationsClient,
    progress: Progress,
    device: Device,
    reply: CreateRequestReply,
    out: str | None,
) -> int:
    from controlplane.cli.requests import results  # rich only where shown

    def on_change(request: RemoteRequest) -> None:
        progress.show(f"{device.legacy_install_id}: {request.status}")
        _print_line(f"request {request.id} {request.status}")

    with progress:
        progress.show(f"{device.legacy_install_id}: queued")
        request, report_ids = wait(client, device.instance_id, reply, on_change)
    asked = Asked(device, reply, request.status, report_ids)
    result = results.result_of(client, asked)
    if result.headline:
        sys.stderr.write(f"{plain(device.legacy_install_id)}: {plain(result.headline)}\n")
    if out is not None:
        results.save(result, Path(out))
    for report_id in report_ids:
        _print_line(f"report {report_id}")
    return 0 if result.is_good else 1


def _ask_many(options: argparse.Namespace) -> int:
    progress = Progress()
    with client_of(options, progress) as client:
        every, is_cut = client.devices()
        if is_cut:
            raise CommandError("there are more devices than could be read: choose by name")
        selection = select(options, every)
        for line in selection.lines():
            progress.tell(line)
        if not selection.devices:
            raise CommandError("no device is left to ask")
        count = len(selection.devices)
        confirm(
            f"Ask {count} devices for a report of kind {options.kind}?",
            is_sure=options.yes or count <= CONFIRM_ABOVE,
        )
        return _run(client, progress, selection, options)


def _run(
    client: OperationsClient,
    progress: Progress,
    selection: Selection,
    options: argparse.Namespace,
) -> int:
    total = len(selection.devices)
    asked_already: list[Device] = []

    def on_change(asked: Asked) -> None:
        progress.show(_progress_of(round_, total - len(asked_already)))
        if asked.is_over:
            done = sum(each.is_over for each in round_.asked)
            name, said = asked.device.legacy_install_id, asked.trouble or asked.status
            progress.log(f"{done} of {total - len(asked_already)}: {name} {said}")

    round_ = Round(client, options.kind, on_change, asked_already.append)
    is_interrupted = False
    with progress:
        progress.show(f"asking {total} devices")
        try:
            if options.wait:
                round_.ask_and_wait(selection.devices, options.at_once)
            else:
                round_.ask(selection.devices)
        except KeyboardInterrupt:
            is_interrupted = True
    later = Selection([])
    for device in asked_already:
        later.leave_out(device, "already asked")
    for line in later.lines():
        progress.tell(line)
    is_good = _finish(client, progress, round_, options)
    if is_interrupted:
        _say_what_goes_on([each.reply for each in round_.open if each.reply])
        return EXIT_INTERRUPTED
    return 0 if is_good and round_.asked else 1


def _finish(
    client: OperationsClient, progress: Progress, round_: Round, options: argparse.Namespace
) -> bool:
    """Print what came of it; tell whether all is well."""
    from controlplane.cli.requests import results  # rich only where shown

    found = []
    with progress:
        for number, asked in enumerate(round_.asked, 1):
            progress.show(f"reading reports: {number} of {len(round_.asked)}")
            found.append(results.result_of(client, asked))
            if options.out is not None:
                results.save(found[-1], Path(options.out))
    results.print_results(found)
    if not options.wait:
        return not any(each.asked.trouble for each in found)
    return all(each.is_good for each in found)


def _progress_of(round_: Round, total: int) -> str:
    """Return ``12 of 40 done · 3 running, 20 queued``."""
    counts = round_.counts()
    done = sum(each.is_over for each in round_.asked)
    rest = [f"{counts[word]} {word}" for word in ("running", "received", "queued") if counts[word]]
    ahead = total - len(round_.asked)
    rest += [f"{ahead} to be asked"] if ahead > 0 else []
    said = f"{done} of {total} done" + (f" · {', '.join(rest)}" if rest else "")
    if round_.unreachable_since_s is not None:
        said += " · the service cannot be reached, trying again"
    return said


def _say_if_offline(device: Device, reply: CreateRequestReply) -> None:
    """An offline device is asked all the same: it may be back before the request expires."""
    if state_of(device) != "offline":
        return
    now = datetime.now(UTC)
    heard = format_seconds(max(0, int((now - device.last_seen_at).total_seconds())), units=1)
    left = format_seconds(max(0, int((reply.expires_at - now).total_seconds())), units=1)
    sys.stderr.write(
        f"{plain(device.legacy_install_id)} is offline, last heard {heard} ago. The request waits "
        f"for it\nand expires in {left}, at {_time_of_day(reply.expires_at)}.\n"
    )


def _say_what_goes_on(replies: list[CreateRequestReply]) -> None:
    if not replies:
        return
    until = _time_of_day(max(reply.expires_at for reply in replies))
    what = "The request goes" if len(replies) == 1 else f"{len(replies)} requests go"
    sys.stderr.write(
        f"{what} on at the service, until {until} at most.\n"
        "`venue-control reports --since 1h` lists what comes back.\n"
    )


def _time_of_day(moment: datetime) -> str:
    return f"{moment.astimezone():%H:%M}"


def _print_line(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
