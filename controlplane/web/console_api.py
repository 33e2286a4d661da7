"""The operations under ``/console/api/``, which the console and ``venue-control`` use.

They include the lists of the console, the operations for members, alerts and the audit log, and the
stream of changes to the list of devices.
"""

from collections.abc import AsyncGenerator
from functools import partial
from typing import Final

from sqlalchemy import select
from sqlalchemy.orm import Session
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from controlplane.accounts.audit_operations import audit_operations
from controlplane.accounts.members.operations import member_operations
from controlplane.accounts.profile import profile_operations
from controlplane.accounts.second_factor.operations import second_factor_operations
from controlplane.alerts.operations.registry import ALERT_OPERATIONS
from controlplane.analytics.venue_list import venue_list
from controlplane.devices.findings.listing import finding_devices, findings
from controlplane.devices.findings.printers import worst_printers
from controlplane.devices.incidents.listing import incidents
from controlplane.devices.locations.operations import location_operations
from controlplane.devices.overview.console_feeds import ConsoleStream
from controlplane.devices.overview.listing import device, healths, overview
from controlplane.devices.overview.printers import printers
from controlplane.devices.overview.records import ChangesRequest
from controlplane.devices.overview.start_page import reports, summary
from controlplane.operation.caller import Caller
from controlplane.operation.context import RequestContext
from controlplane.operation.operation import procedure
from controlplane.pending_requests.creation import cancel, create
from controlplane.storage.tables import Device
from controlplane.web.admission import admit, read_model
from controlplane.web.commands import KEEP_ALIVE, OPENING, RECONNECT_MIN_MS, send_events
from controlplane.web.core import Core
from controlplane.web.pipeline import Endpoint

PREFIX: Final = "/console/api/"


OPERATIONS: Final = (
    procedure(PREFIX + "overview", overview),
    procedure(PREFIX + "summary", summary),
    procedure(PREFIX + "healths", healths),
    procedure(PREFIX + "printers", printers),
    procedure(PREFIX + "incidents", incidents),
    procedure(PREFIX + "findings", findings),
    procedure(PREFIX + "findings/devices", finding_devices),
    procedure(PREFIX + "findings/printers", worst_printers),
    procedure(PREFIX + "reports", reports),
    procedure(PREFIX + "pending-requests", create, writes=True),
    procedure(PREFIX + "pending-requests/cancel", cancel, writes=True),
    procedure(PREFIX + "venues", venue_list),
    *profile_operations(),
    *second_factor_operations(),
    *member_operations(),
    *audit_operations(),
    *location_operations(),
    *ALERT_OPERATIONS,
)


def console_api_routes(core: Core) -> list[Route]:
    operations = (*OPERATIONS, procedure(PREFIX + "device", partial(device, core.changes)))
    return [
        *(Route(operation.path, Endpoint(core, operation)) for operation in operations),
        Route(PREFIX + "changes", ChangesEndpoint(core)),
    ]


class ChangesEndpoint:
    """Streams the list rows of the devices that a console displays.

    The stream begins with the row of each device, and sends a row again when it has changed. The
    event ``device`` contains a row of `overview`. The event ``reload`` means that the order of the
    device list may have changed. The stream ends when the credential ends.
    """

    def __init__(self, core: Core) -> None:
        self._core = core

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        caller = await admit(self._core, request, writes=False)
        with self._core.fairness.call(caller):
            body = await read_model(self._core, request, caller, ChangesRequest)
            displayed_positions = await self._core.read_for(
                caller, partial(self._positions, caller, body)
            )
        with (
            self._core.fairness.stream(caller, "console"),
            self._core.streams.open(caller),
            self._core.metrics.stream("console"),
            self._core.console_feeds.open(
                caller.organization_id, caller.key_id, displayed_positions
            ) as stream,
        ):
            await send_events(stream, self._events(stream), receive, send)

    async def _events(self, stream: ConsoleStream) -> AsyncGenerator[bytes]:
        yield OPENING % RECONNECT_MIN_MS
        while not stream.is_ended:
            rows, is_reordered = await stream.next(self._core.settings.keep_alive_s)
            for data in rows:
                yield b"event: device\ndata: " + data + b"\n\n"
            if is_reordered:
                yield b"event: reload\ndata: {}\n\n"
            if not rows and not is_reordered and not stream.is_ended:
                yield KEEP_ALIVE % RECONNECT_MIN_MS

    def _positions(self, caller: Caller, body: ChangesRequest, session: Session) -> list[int]:
        context = RequestContext(session, caller, self._core.clock(), self._core.settings)
        query = select(Device.position).where(
            context.visible(Device), Device.instance_id.in_(body.instance_ids)
        )
        return list(session.scalars(query))
