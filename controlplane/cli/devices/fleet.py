"""The service's own lists of healths, printers, findings, incidents, alerts and reports.

The contract does not have them. A different service that implements the contract refuses these
calls with 404.
"""

from collections.abc import Callable, Iterator
from typing import TypeVar
from uuid import UUID

from agent.wire.operator_operations import Device
from controlplane.alerts.operations.messages import PAGE_MAX as ALERTS_PAGE_MAX
from controlplane.alerts.operations.messages import AlertRecord, AlertsReply, AlertsRequest
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


def healths(client: OperationsClient, search: str = "") -> dict[UUID, Health] | None:
    """Return the health of each device that matches a search.

    Returns None if the service has no list of healths.
    """

    def fetch_page(cursor: str | None) -> HealthsReply:
        body = HealthsRequest(search=search or None, cursor=cursor, size=HEALTHS_PAGE_MAX)
        return client.post(HEALTHS, body, HealthsReply)

    try:
        return {
            device.instance_id: device.health
            for reply in _pages(fetch_page)
            for device in reply.devices
        }
    except NotFoundError:
        return None


def printers(
    client: OperationsClient, state: PrinterStateName | None, search: str
) -> list[PrinterRecord]:
    def fetch_page(cursor: str | None) -> PrintersReply:
        body = PrintersRequest(state=state, search=search or None, cursor=cursor, size=PAGE_MAX)
        return client.post(PRINTERS, body, PrintersReply)

    return [printer for reply in _pages(fetch_page) for printer in reply.printers]


def incidents(client: OperationsClient, location: str | None, days: int) -> list[IncidentRecord]:
    def fetch_page(cursor: str | None) -> IncidentsReply:
        body = IncidentsRequest(
            location=location, days=days, cursor=cursor, size=INCIDENTS_PAGE_MAX
        )
        return client.post(INCIDENTS, body, IncidentsReply)

    return [incident for reply in _pages(fetch_page) for incident in reply.incidents]


def firing_alerts(client: OperationsClient, location: str | None) -> list[AlertRecord]:
    def fetch_page(cursor: str | None) -> AlertsReply:
        body = AlertsRequest(open=True, location=location, cursor=cursor, size=ALERTS_PAGE_MAX)
        return client.post(ALERTS, body, AlertsReply)

    return [alert for reply in _pages(fetch_page) for alert in reply.alerts]


def findings(client: OperationsClient, body: FindingsRequest) -> FindingsReply:
    return client.post(FINDINGS, body, FindingsReply)


def finding_devices(client: OperationsClient, body: FindingDevicesRequest) -> FindingDevicesReply:
    """Return all pages as one reply."""

    def fetch_page(cursor: str | None) -> FindingDevicesReply:
        limits = {"cursor": cursor, "size": FINDINGS_PAGE_MAX, "devices": DEVICES_MAX}
        return client.post(FINDING_DEVICES, body.model_copy(update=limits), FindingDevicesReply)

    replies = list(_pages(fetch_page))
    entries = tuple(each for reply in replies for each in reply.entries)
    return replies[0].model_copy(update={"entries": entries, "next_cursor": None})


def reports(client: OperationsClient, request: ReportsRequest) -> list[ListedReport] | None:
    """Return the reports, newest first, or None if the service has no such list."""

    def fetch_page(cursor: str | None) -> ReportsReply:
        body = request.model_copy(update={"cursor": cursor, "size": PAGE_MAX})
        return client.post(REPORTS, body, ReportsReply)

    try:
        return [report for reply in _pages(fetch_page) for report in reply.reports]
    except NotFoundError:
        return None


def _pages(fetch_page: Callable[[str | None], Reply]) -> Iterator[Reply]:
    cursor = None
    while True:
        reply = fetch_page(cursor)
        yield reply
        cursor = reply.next_cursor
        if cursor is None:
            return
