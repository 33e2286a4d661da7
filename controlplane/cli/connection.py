"""Opens the client of a command, and finds the device or report that an argument names."""

import argparse
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from uuid import UUID

from agent.wire.operator_operations import Device, DeviceDetailRequest, ReportSummary
from controlplane.cli.matching import only_match
from controlplane.cli.screen.progress import Progress
from controlplane.client import retail
from controlplane.client.connection import connect
from controlplane.client.errors import UsageError
from controlplane.client.operations import OperationsClient
from controlplane.client.retail import RetailClient
from controlplane.client.waiting import RetryPolicy

ID_START_MIN = 4
"""Minimum number of characters to name a report by the start of its id."""
_ID_START = re.compile(rf"[0-9a-f-]{{{ID_START_MIN},36}}")


@contextmanager
def client_of(
    options: argparse.Namespace, progress: Progress | None = None
) -> Iterator[OperationsClient]:
    """Open the client. The progress display reports when the service makes the client wait."""
    display = progress or Progress()
    retry_policy = RetryPolicy(on_wait=display.show_wait)
    with connect(options.base_url, options.api_key_file, os.environ, retry_policy) as client:
        yield client


def retail_client_of(options: argparse.Namespace, progress: Progress | None = None) -> RetailClient:
    """Return a client of the retail API. Raises UsageError."""
    retry_policy = RetryPolicy(on_wait=(progress or Progress()).show_wait)
    return retail.connect(options.base_url, options.retail_key_file, retry_policy=retry_policy)


def find_device_id(client: OperationsClient, text: str) -> UUID:
    """Return the id of a device, given the id, its first characters or the name of the device.

    Raises CommandError.
    """
    try:
        return UUID(text)
    except ValueError:
        return find_device(text, client.devices()[0]).instance_id


def find_device(text: str, devices: Sequence[Device]) -> Device:
    """Return the only device whose name is ``text`` or whose id starts with it.

    Raises CommandError.
    """
    word = text.casefold()
    matches = {
        device.instance_id: device
        for device in devices
        if device.legacy_install_id.casefold() == word or str(device.instance_id).startswith(word)
    }
    hint = "`venue-control devices --search TEXT` searches names, locations and ids."
    return only_match(text, matches, "device", hint)


def find_report_id(client: OperationsClient, text: str) -> UUID:
    """Return the id of a report, given its id or the start of its id. Raises CommandError.

    The service returns a report only by its full id. For the start of an id, this function
    searches the newest reports of every device.
    """
    try:
        return UUID(text)
    except ValueError as error:
        start = text.casefold()
        if _ID_START.fullmatch(start) is None:
            raise UsageError(
                f"{text!r} is not the id of a report: use a UUID or at least its first"
                f" {ID_START_MIN} characters",
                "`venue-control reports` lists the reports.",
            ) from error
    matches: dict[UUID, UUID] = {}
    with Progress() as progress:
        devices = client.devices()[0]
        for number, device in enumerate(devices, 1):
            progress.show(f"searching for report {start}: {number} of {len(devices)} devices")
            newest = client.device(DeviceDetailRequest(instance_id=device.instance_id)).reports
            ids = (report.report_id for report in newest)
            matches |= {id_: id_ for id_ in ids if str(id_).startswith(start)}
    return only_match(text, matches, "report", "Use the whole id for a report that is not recent.")


def newest_reports(
    client: OperationsClient, instance_id: UUID, is_included: Callable[[ReportSummary], bool]
) -> Iterable[ReportSummary]:
    """Yield a device's reports, newest first.

    Ends at the first report for which ``is_included`` returns False.
    """
    cursor: str | None = None
    while True:
        detail = client.device(DeviceDetailRequest(instance_id=instance_id, cursor=cursor))
        for report in detail.reports:
            if not is_included(report):
                return
            yield report
        cursor = detail.next_cursor
        if cursor is None or not detail.reports:
            return
