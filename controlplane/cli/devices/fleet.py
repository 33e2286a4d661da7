"""The service's own lists of healths, printers, findings, incidents, alerts and reports.

The contract does not have them. A different service that implements the contract refuses these
calls with 404.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar
from uuid import UUID

from agent.wire.base import Message
from agent.wire.operator_operations import Device
from controlplane.alerts.operations.messages import PAGE_MAX as ALERTS_PAGE_MAX
from controlplane.alerts.operations.messages import AlertRecord, AlertsReply, AlertsRequest
from controlplane.client.errors import CommandError
from controlplane.client.operations import OperationsClient
from controlplane.client.refusals import NotFoundError
from controlplane.devices.findings.records import (
    DEVICES_MAX,
    FindingDevicesReply,
    FindingDevicesRequest,
    FindingsReply,
    FindingsRequest,
)
from controlplane.devices.findings.records import PAGE_MAX as FINDINGS_PAGE_MAX
from controlplane.devices.health import Health
from controlplane.devices.incidents.records import PAGE_MAX as INCIDENTS_PAGE_MAX
from controlplane.devices.incidents.records import (
    IncidentRecord,
    IncidentsReply,
    IncidentsRequest,
)
from controlplane.devices.overview.records import (
    HEALTHS_PAGE_MAX,
    PAGE_MAX,
    HealthsReply,
    HealthsRequest,
    ListedReport,
    PrinterRecord,
    PrintersReply,
    PrintersRequest,
    PrinterStateName,
    ReportsReply,
    ReportsRequest,
)

ALERTS = "/console/api/alerts"
ACKNOWLEDGE_ALERT = f"{ALERTS}/acknowledge"
SILENCES = f"{ALERTS}/silences"
ADD_SILENCE = f"{SILENCES}/add"
END_SILENCE = f"{SILENCES}/end"
HEALTHS = "/console/api/healths"
FINDINGS = "/console/api/findings"
FINDING_DEVICES = "/console/api/findings/devices"
INCIDENTS = "/console/api/incidents"
PRINTERS = "/console/api/printers"
REPORTS = "/console/api/reports"

Reply = TypeVar(
    "Reply",
    AlertsReply,
    FindingDevicesReply,
    HealthsReply,
    IncidentsReply,
    PrintersReply,
    ReportsReply,
)


class ListedDevice(Device):
    """A device with its health, which is None if the service does not report the health."""

    health: Health | None


@contextmanager
def required_list(name: str) -> Iterator[None]:
    """Raise CommandError if the service does not have the list."""
    try:
        yield
    except NotFoundError as error:
        raise CommandError(f"this service has no list of {name}") from error


def healths(client: OperationsClient, search: str = "") -> dict[UUID, Health] | None:
    """Return the health of each device that matches a search.

    Returns None if the service has no list of healths.
    """
    body = HealthsRequest(search=search or None, size=HEALTHS_PAGE_MAX)
    try:
        return {
            device.instance_id: device.health
            for reply in _pages(client, HEALTHS, body, HealthsReply)
            for device in reply.devices
        }
    except NotFoundError:
        return None


@required_list("printers")
def printers(
    client: OperationsClient, state: PrinterStateName | None, search: str
) -> list[PrinterRecord]:
    body = PrintersRequest(state=state, search=search or None, size=PAGE_MAX)
    pages = _pages(client, PRINTERS, body, PrintersReply)
    return [printer for reply in pages for printer in reply.printers]


@required_list("incidents")
def incidents(client: OperationsClient, location: str | None, days: int) -> list[IncidentRecord]:
    body = IncidentsRequest(location=location, days=days, size=INCIDENTS_PAGE_MAX)
    pages = _pages(client, INCIDENTS, body, IncidentsReply)
    return [incident for reply in pages for incident in reply.incidents]


@required_list("alerts")
def firing_alerts(client: OperationsClient, location: str | None = None) -> list[AlertRecord]:
    body = AlertsRequest(open=True, location=location, size=ALERTS_PAGE_MAX)
    pages = _pages(client, ALERTS, body, AlertsReply)
    return [alert for reply in pages for alert in reply.alerts]


@required_list("findings")
def findings(client: OperationsClient, body: FindingsRequest) -> FindingsReply:
    return client.post(FINDINGS, body, FindingsReply)


@required_list("findings")
def finding_devices(client: OperationsClient, body: FindingDevicesRequest) -> FindingDevicesReply:
    """Return all pages as one reply."""
    limits = {"size": FINDINGS_PAGE_MAX, "devices": DEVICES_MAX}
    largest = body.model_copy(update=limits)
    replies = list(_pages(client, FINDING_DEVICES, largest, FindingDevicesReply))
    entries = tuple(each for reply in replies for each in reply.entries)
    return replies[0].model_copy(update={"entries": entries, "next_cursor": None})


def reports(client: OperationsClient, body: ReportsRequest) -> list[ListedReport] | None:
    """Return the reports, newest first, or None if the service has no such list."""
    pages = _pages(client, REPORTS, body.model_copy(update={"size": PAGE_MAX}), ReportsReply)
    try:
        return [report for reply in pages for report in reply.reports]
    except NotFoundError:
        return None


def _pages(
    client: OperationsClient, path: str, body: Message, reply_type: type[Reply]
) -> Iterator[Reply]:
    """Yield the replies of all pages."""
    while True:
        reply = client.post(path, body, reply_type)
        yield reply
        if reply.next_cursor is None:
            return
        body = body.model_copy(update={"cursor": reply.next_cursor})
