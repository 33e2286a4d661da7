"""Creates requests for one kind of report, one for each device, and waits for their results."""

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

from agent.wire.operator_operations import (
    CreateRequestReply,
    CreateRequestRequest,
    Device,
    DeviceDetailRequest,
)
from agent.wire.vocabulary import Kind
from controlplane.client.errors import CommandError
from controlplane.client.operations import OperationsClient
from controlplane.client.refusals import RefusedError, UnreachableError
from controlplane.devices.requests.lifecycle import FINISHED, OPEN

POLL_S: Final = 1.0
POLLS_PER_S: Final = 5.0
"""Maximum number of polls per second for all requests together. The service limits the calls of an
API key, and other programs might use the same key.
"""
GRACE: Final = timedelta(seconds=30)
"""How long requests are polled after ``expiresAt``, because the service's clock might be slow."""
ABOUT_ONE_DEVICE: Final = frozenset({403, 404, 409})
"""HTTP statuses of refusals that concern one device. Requests to other devices continue."""


@dataclass(slots=True)
class DeviceRequest:
    """A request for a report from one device.

    Args:
        reply: The service's reply to the creation of the request. None if there is none.
        status: The status that the contract defines. It is "" if the request was not created, or if
            it is unknown whether it was created.
        report_ids: The reports of the request, newest first.
        trouble: Why the request was not created, or why its final status is unknown. Otherwise "".
        next_poll_s: When to poll the request next, as a time of ``time.monotonic()``.
    """

    device: Device
    reply: CreateRequestReply | None = None
    status: str = ""
    report_ids: list[UUID] = field(default_factory=list)
    trouble: str = ""
    next_poll_s: float = 0.0

    @property
    def outcome(self) -> str:
        """Return the status, or ``not requested`` or ``possibly requested`` if there is none."""
        return self.status or self.trouble.partition(":")[0]

    @property
    def is_over(self) -> bool:
        return bool(self.trouble) or self.status in FINISHED or self.status == "expired"


class RequestBatch:
    """Creates a request for each device and polls it until it is finished.

    After an interruption (Ctrl-C), ``requests`` has each request with its last known status.
    ``is_unreachable`` is true if the service was unreachable at the last poll.

    Args:
        on_change: Called after each change of a request.
        skip: Called for each device that already has an open request of this kind. Such a device
            gets no new request. If ``skip`` is None, every device gets a new request.
        raises: Raise every CommandError, except that polling continues while the service is
            unreachable. By default, an error is stored as ``trouble`` of the request. An error at
            the creation of the first request is always raised, unless it concerns only the device.
    """

    def __init__(
        self,
        client: OperationsClient,
        kind: Kind,
        on_change: Callable[[DeviceRequest], None] = lambda _request: None,
        *,
        skip: Callable[[Device], None] | None = None,
        raises: bool = False,
        poll_s: float = POLL_S,
    ) -> None:
        self._client = client
        self._kind = kind
        self._on_change = on_change
        self._skip = skip
        self._raises = raises
        self._poll_s = poll_s
        self.requests: list[DeviceRequest] = []
        self.is_unreachable = False

    def counts(self) -> Counter[str]:
        return Counter(request.status for request in self.requests)

    @property
    def open_requests(self) -> list[DeviceRequest]:
        return [request for request in self.requests if not request.is_over]

    def create(self, devices: Iterable[Device]) -> None:
        for device in devices:
            self._create(device)

    def wait(self, devices: Iterable[Device] = (), at_once: int | None = None) -> None:
        """Create requests for ``devices``, and return when no request is open.

        Args:
            at_once: Maximum number of open requests. With None, all requests are created before
                the first poll.
        """
        remaining = deque(devices)
        while remaining or self.open_requests:
            while remaining and (at_once is None or len(self.open_requests) < at_once):
                self._create(remaining.popleft())
            if waiting := self.open_requests:
                self._poll(min(waiting, key=lambda entry: entry.next_poll_s))

    def _create(self, device: Device) -> None:
        request = DeviceRequest(device)
        body = CreateRequestRequest(instance_id=device.instance_id, kind=self._kind)
        is_sent = False
        try:
            if self._skip is not None and self._has_open_request(device):
                self._skip(device)
                return
            is_sent = True
            request.reply = self._client.create_request(body)
            request.status = request.reply.status
            request.next_poll_s = time.monotonic() + self._poll_s
        except (RefusedError, UnreachableError) as error:
            status = error.status if isinstance(error, RefusedError) else None
            if self._raises or (status not in ABOUT_ONE_DEVICE and not self.requests):
                raise
            # Without a reply, it is unknown whether the service created the request.
            is_unknown = is_sent and status is None
            outcome = "possibly requested" if is_unknown else "not requested"
            request.trouble = f"{outcome}: {error}"
        self.requests.append(request)
        self._on_change(request)

    def _has_open_request(self, device: Device) -> bool:
        detail = self._client.device(DeviceDetailRequest(instance_id=device.instance_id))
        return any(
            request.kind == self._kind and request.status in OPEN for request in detail.requests
        )

    def _poll(self, request: DeviceRequest) -> None:
        """Poll one request when it is due."""
        if request.reply is None:
            return  # the request was not created
        time.sleep(max(0.0, request.next_poll_s - time.monotonic()))
        interval_s = max(self._poll_s, len(self.open_requests) / POLLS_PER_S)
        request.next_poll_s = time.monotonic() + interval_s
        before = request.status, request.trouble
        try:
            self._update(request, request.reply)
            self.is_unreachable = False
        except UnreachableError:
            self.is_unreachable = True  # the service might be restarting: poll again
        except CommandError as error:
            self.is_unreachable = False
            self._fail(request, error)
        if not request.is_over and datetime.now(UTC) >= request.reply.expires_at + GRACE:
            problem = f"the request is still {request.status} after its expiry"
            self._fail(request, CommandError(problem))
        if (request.status, request.trouble) != before:
            self._on_change(request)

    def _fail(self, request: DeviceRequest, error: CommandError) -> None:
        if self._raises:
            raise error
        request.trouble = str(error)

    def _update(self, request: DeviceRequest, reply: CreateRequestReply) -> None:
        body = DeviceDetailRequest(instance_id=request.device.instance_id)
        detail = self._client.device(body)
        statuses = [row.status for row in detail.requests if row.id == reply.request_id]
        if not statuses:
            raise CommandError("the service does not list the request any more")
        request.status = statuses[0]
        request.report_ids = [
            report.report_id for report in detail.reports if report.request_id == reply.request_id
        ]
