"""A typed client of the facade, for this service or any other that implements the contract."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Generic, TypeVar

from agent.wire import device_operations, routes
from agent.wire import operator_operations as operators
from agent.wire.base import Message
from agent.wire.codec import encode
from controlplane.analytics import messages as figures
from controlplane.analytics import routes as figure_routes
from controlplane.client.calls import ServiceCalls
from controlplane.support import messages as support
from controlplane.support import routes as support_routes

PAGES_MAX: Final = 500
PAGE_SIZE: Final = 200
"""The requested page size. A service may send smaller pages."""

Body = TypeVar("Body", bound=Message)
Reply = TypeVar("Reply", bound=Message)


@dataclass(frozen=True, slots=True)
class Operation(Generic[Body, Reply]):
    """A descriptor for a method of the client that posts a body and returns the reply."""

    path: str
    body: type[Body]
    reply: type[Reply]
    is_repeatable: bool = True

    def __get__(self, client: "OperationsClient", _owner: object) -> Callable[[Body], Reply]:
        return partial(client.post, self.path, reply=self.reply, is_repeatable=self.is_repeatable)


class OperationsClient(ServiceCalls):
    """Every operation of the facade: for devices, operators, support and figures."""

    challenge = Operation(
        routes.CHALLENGE, device_operations.ChallengeRequest, device_operations.ChallengeReply
    )
    enroll = Operation(
        routes.ENROLL,
        device_operations.EnrollRequest,
        device_operations.EnrollmentRecord,
        is_repeatable=False,
    )
    heartbeat = Operation(
        routes.HEARTBEAT, device_operations.HeartbeatRequest, device_operations.HeartbeatReply
    )
    acknowledge = Operation(
        routes.ACKNOWLEDGE, device_operations.AcknowledgeRequest, device_operations.AcknowledgeReply
    )
    submit_result = Operation(
        routes.SUBMIT_RESULT,
        device_operations.SubmitResultRequest,
        device_operations.SubmitResultReply,
    )
    on_commands = Operation(
        routes.ON_COMMANDS, device_operations.EmptyRequest, device_operations.CommandList
    )

    device = Operation(
        routes.DEVICE_DETAIL, operators.DeviceDetailRequest, operators.DeviceDetailReply
    )
    create_request = Operation(
        routes.CREATE_REQUEST,
        operators.CreateRequestRequest,
        operators.CreateRequestReply,
        is_repeatable=False,
    )
    report = Operation(routes.REPORT_DETAIL, operators.ReportDetailRequest, operators.ReportDetail)
    revoke = Operation(routes.REVOKE, operators.RevokeRequest, operators.RevokeReply)

    financial_summary = Operation(
        figure_routes.FINANCIAL_SUMMARY, figures.FiguresQuery, figures.FinancialSummary
    )
    dashboard = Operation(figure_routes.DASHBOARD, figures.FiguresQuery, figures.Dashboard)
    venue_financial_pulse = Operation(
        figure_routes.VENUE_FINANCIAL_PULSE, figures.LocationQuery, figures.FinancialPulse
    )
    # The operations from `chart` to `venue_pulse` are deprecated: `dashboard` and
    # `venue_financial_pulse` contain the same figures.
    chart = Operation(figure_routes.CHART, figures.FiguresQuery, figures.Chart)
    sales = Operation(figure_routes.SALES, figures.NarrowedQuery, figures.Sales)
    items = Operation(figure_routes.ITEMS, figures.NarrowedQuery, figures.Items)
    reconciliation = Operation(
        figure_routes.RECONCILIATION, figures.NarrowedQuery, figures.Reconciliation
    )
    trend = Operation(figure_routes.TREND, figures.NarrowedQuery, figures.Trend)
    venues = Operation(figure_routes.VENUES, figures.NarrowedQuery, figures.Venues)
    venue_pulse = Operation(figure_routes.VENUE_PULSE, figures.LocationQuery, figures.Pulse)

    support_inspect = Operation(support_routes.INSPECT, support.TokenRequest, support.Inspection)
    support_confirm = Operation(support_routes.CONFIRM, support.ConfirmRequest, support.Link)
    support_disconnect = Operation(support_routes.DISCONNECT, support.TokenRequest, support.Link)

    def current(self) -> device_operations.EnrollmentRecord | None:
        """Return the newest of this API key's enrollments that are not revoked, or None."""
        # mypy does not accept a union as a `type`.
        reply: Any = device_operations.EnrollmentRecord | None
        record: device_operations.EnrollmentRecord | None = self.post(
            routes.CURRENT, device_operations.EmptyRequest(), reply
        )
        return record

    def support_contact(self) -> support.Contact:
        return self.post(support_routes.CONTACT, None, support.Contact)

    def devices(self) -> tuple[list[operators.Device], bool]:
        """Return the devices, and whether there are more than `PAGES_MAX` pages."""
        devices: list[operators.Device] = []
        cursor: str | None = None
        for _ in range(PAGES_MAX):
            body = operators.ListDevicesRequest(cursor=cursor)
            page = self.post(routes.LIST_DEVICES, body, operators.ListDevicesReply)
            devices += page.devices
            cursor = page.next_cursor
            if cursor is None:
                return devices, False
        return devices, True

    def post(
        self, path: str, body: Message | None, reply: type[Reply], *, is_repeatable: bool = True
    ) -> Reply:
        """Call any operation of the service."""
        content = b"" if body is None else encode(body)
        return self.call("POST", path, reply, is_repeatable=is_repeatable, content=content)
