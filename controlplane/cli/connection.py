"""The client a verb speaks through, and devices and reports as people name them."""

import argparse
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from uuid import UUID

from agent.wire.operator_operations import Device, DeviceDetailRequest, ReportSummary
from controlplane.cli.screen.progress import Progress
from controlplane.client.connection import connect
from controlplane.client.errors import CommandError, UsageError
from controlplane.client.operations import OperationsClient
from controlplane.client.waiting import Patience

ID_START_MIN = 4
"""Characters of an id that may stand for it, where it must be looked for."""
_ID_START = re.compile(rf"[0-9a-f-]{{{ID_START_MIN},36}}")


@contextmanager
def client_of(
    options: argparse.Namespace, progress: Progress | None = None
) -> Iterator[OperationsClient]:
    """Open the client; what the service makes it wait for is shown."""
    shown = progress or Progress()
    patience = Patience(on_wait=shown.waits)
    with connect(options.base_url, options.api_key_file, os.environ, patience) as client:
        yield client


def device_of(client: OperationsClient, text: str) -> UUID:
    """Return the device that is meant by its id, its name, or the first characters of its id.

    Raises CommandError unless it is exactly one.
    """
    try:
        return UUID(text)
    except ValueError:
        return device_named(text, client.devices()[0])


def device_named(text: str, devices: Sequence[Device]) -> UUID:
    return record_named(text, devices).instance_id


def record_named(text: str, devices: Sequence[Device]) -> Device:
    word = text.casefold()
    found = [device for device in devices if device.legacy_install_id.casefold() == word]
    found += [
        device
        for device in devices
        if word and str(device.instance_id).startswith(word) and device not in found
    ]
    if len(found) == 1:
        return found[0]
    if not found:
        raise CommandError(
            f"no device is called {text!r}, nor does an id begin with it",
            "`venue-control devices --search WORDS` finds names, locations and ids.",
        )
    ids = ", ".join(str(device.instance_id) for device in found)
    raise CommandError(f"{text!r} may be any of {len(found)} devices: {ids}")


def report_of(client: OperationsClient, text: str) -> UUID:
    """Return the report that is meant by its id or the first characters of it.

    The contract finds a report by its whole id alone, so the newest of every device are looked
    through. Raises CommandError unless it is exactly one.
    """
    try:
        return UUID(text)
    except ValueError as error:
        start = text.casefold()
        if _ID_START.fullmatch(start) is None:
            raise UsageError(
                f"{text!r} is not the id of a report: a UUID is needed, or its first"
                f" {ID_START_MIN} characters or more",
                "`venue-control reports` lists them.",
            ) from error
    found: set[UUID] = set()
    with Progress() as progress:
        devices = client.devices()[0]
        for number, device in enumerate(devices, 1):
            progress.show(f"looking for report {start}: {number} of {len(devices)} devices")
            body = DeviceDetailRequest(instance_id=device.instance_id)
            newest = client.device(body).reports
            found |= {each.report_id for each in newest if str(each.report_id).startswith(start)}
    if len(found) == 1:
        return found.pop()
    if not found:
        raise CommandError(
            f"no report's id begins with {text!r} among the newest of each device",
            "An older one is found by its whole id.",
        )
    raise CommandError(
        f"{text!r} may be any of {len(found)} reports: " + ", ".join(map(str, sorted(found)))
    )


def reports_since(
    client: OperationsClient, instance_id: UUID, is_wanted: Callable[[ReportSummary], bool]
) -> Iterable[ReportSummary]:
    """Yield a device's reports, the newest first, until one is not wanted any more."""
    cursor: str | None = None
    while True:
        detail = client.device(DeviceDetailRequest(instance_id=instance_id, cursor=cursor))
        for report in detail.reports:
            if not is_wanted(report):
                return
            yield report
        cursor = detail.next_cursor
        if cursor is None or not detail.reports:
            return
