"""The public facade as the command line speaks it: this service, or any other of the contract."""

from typing import TypeVar

import httpx2

from agent.presentation.plain_text import plain
from agent.wire import routes
from agent.wire.base import Message
from agent.wire.codec import decode, encode
from agent.wire.operator_operations import (
    CreateRequestReply,
    CreateRequestRequest,
    Device,
    DeviceDetailReply,
    DeviceDetailRequest,
    ListDevicesReply,
    ListDevicesRequest,
    ReportDetail,
    ReportDetailRequest,
    RevokeReply,
    RevokeRequest,
)
from agent.wire.validation import ValidationError
from controlplane.analytics import messages as figures
from controlplane.analytics import routes as figures_at
from controlplane.client.errors import CommandError
from controlplane.client.refusals import UnreachableError, refusal
from controlplane.client.waiting import Patience
from controlplane.support import messages as support
from controlplane.support import routes as support_at

REPLY_MAX_BYTES = 16 * 1024 * 1024
PAGES_MAX = 500
PAGE_SIZE = 200
"""Records of a page that are asked for; a service may have pages of its own."""

Reply = TypeVar("Reply", bound=Message)


class OperationsClient:
    """The operator's operations. Each raises ``CommandError`` with words for a person.

    Told to slow down (429) or to come again (503), they wait, for as long as ``patience`` has. One
    that may not be done twice, a new request, is sent again only after a 429, which says that
    nothing was done.
    """

    def __init__(self, http: httpx2.Client, patience: Patience | None = None) -> None:
        self._http = http
        self._patience = patience or Patience()

    def devices(self) -> tuple[list[Device], bool]:
        """Return all devices, and whether there were more than we are ready to fetch."""
        devices: list[Device] = []
        cursor: str | None = None
        for _ in range(PAGES_MAX):
            page = self._call(
                routes.LIST_DEVICES, ListDevicesRequest(cursor=cursor), ListDevicesReply
            )
            devices += page.devices
            cursor = page.next_cursor
            if cursor is None:
                return devices, False
        return devices, True

    def device(self, body: DeviceDetailRequest) -> DeviceDetailReply:
        return self._call(routes.DEVICE_DETAIL, body, DeviceDetailReply)

    def create_request(self, body: CreateRequestRequest) -> CreateRequestReply:
        return self._call(routes.CREATE_REQUEST, body, CreateRequestReply, is_repeatable=False)

    def report(self, body: ReportDetailRequest) -> ReportDetail:
        return self._call(routes.REPORT_DETAIL, body, ReportDetail)

    def revoke(self, body: RevokeRequest) -> RevokeReply:
        return self._call(routes.REVOKE, body, RevokeReply)

    # ------------------------------------------------------------------ figures

    def financial_summary(self, body: figures.FiguresQuery) -> figures.FinancialSummary:
        return self._call(figures_at.FINANCIAL_SUMMARY, body, figures.FinancialSummary)

    def dashboard(self, body: figures.FiguresQuery) -> figures.Dashboard:
        return self._call(figures_at.DASHBOARD, body, figures.Dashboard)

    def venue_financial_pulse(self, body: figures.LocationQuery) -> figures.FinancialPulse:
        return self._call(figures_at.VENUE_FINANCIAL_PULSE, body, figures.FinancialPulse)

    def chart(self, body: figures.FiguresQuery) -> figures.Chart:
        """Deprecated: it is the ``buckets`` of `dashboard`."""
        return self._call(figures_at.CHART, body, figures.Chart)

    def sales(self, body: figures.NarrowedQuery) -> figures.Sales:
        """Deprecated: it is the ``financial`` of `dashboard`."""
        return self._call(figures_at.SALES, body, figures.Sales)

    def items(self, body: figures.NarrowedQuery) -> figures.Items:
        """Deprecated: it is the ``financialItems`` of `dashboard`."""
        return self._call(figures_at.ITEMS, body, figures.Items)

    def reconciliation(self, body: figures.NarrowedQuery) -> figures.Reconciliation:
        """Deprecated: it is the ``methods`` of `dashboard`."""
        return self._call(figures_at.RECONCILIATION, body, figures.Reconciliation)

    def trend(self, body: figures.NarrowedQuery) -> figures.Trend:
        """Deprecated: it is the ``financialTrading`` of `dashboard`."""
        return self._call(figures_at.TREND, body, figures.Trend)

    def venues(self, body: figures.NarrowedQuery) -> figures.Venues:
        """Deprecated: it is the ``locations`` of `dashboard`."""
        return self._call(figures_at.VENUES, body, figures.Venues)

    def venue_pulse(self, body: figures.LocationQuery) -> figures.Pulse:
        """Deprecated: it is the ``activity`` of `venue_financial_pulse`."""
        return self._call(figures_at.VENUE_PULSE, body, figures.Pulse)

    # ------------------------------------------------------------------ support

    def support_contact(self) -> support.Contact:
        return self._call(support_at.CONTACT, None, support.Contact)

    def support_inspect(self, body: support.TokenRequest) -> support.Inspection:
        return self._call(support_at.INSPECT, body, support.Inspection)

    def support_confirm(self, body: support.ConfirmRequest) -> support.Link:
        return self._call(support_at.CONFIRM, body, support.Link)

    def support_disconnect(self, body: support.TokenRequest) -> support.Link:
        return self._call(support_at.DISCONNECT, body, support.Link)

    # ------------------------------------------------------------------ the way there

    def ask_own(self, path: str, body: Message, reply: type[Reply]) -> Reply:
        """Call what only this service has, beside the facade."""
        return self._call(path, body, reply)

    def _call(
        self, path: str, body: Message | None, reply: type[Reply], *, is_repeatable: bool = True
    ) -> Reply:
        sent = b"" if body is None else encode(body)
        content = self._post(path, sent, is_repeatable=is_repeatable)
        try:
            return decode(content, reply)
        except ValidationError as error:
            raise CommandError(
                f"the service's reply does not fit the contract: {error}",
                f"Is {self._http.base_url} the address of the service itself?",
            ) from error

    def _post(self, path: str, content: bytes, *, is_repeatable: bool) -> bytes:
        waits = self._patience.waits(is_repeatable=is_repeatable)
        while True:
            response, body = self._send(path, content)
            if response.is_success:
                return body
            if not waits.wait(response.status_code, response.headers.get("Retry-After")):
                raise refusal(response.status_code, body)

    def _send(self, path: str, content: bytes) -> tuple[httpx2.Response, bytes]:
        try:
            with self._http.stream("POST", path.lstrip("/"), content=content) as response:
                return response, _read_bounded(response)
        except httpx2.HTTPError as error:
            raise UnreachableError(
                f"cannot reach {self._http.base_url}: {plain(str(error)) or type(error).__name__}",
                "Is the service running? --base-url or $VENUE_CONTROL_URL says where it is.",
            ) from error


def _read_bounded(response: httpx2.Response) -> bytes:
    body = bytearray()
    for chunk in response.iter_bytes():
        body += chunk
        if len(body) > REPLY_MAX_BYTES:
            raise CommandError(f"the service's reply is larger than {REPLY_MAX_BYTES} bytes")
    return bytes(body)
