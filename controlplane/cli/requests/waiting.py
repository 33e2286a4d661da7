"""Waiting for one request, and for those of many devices at once."""

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
    DeviceDetailReply,
    DeviceDetailRequest,
    RemoteRequest,
)
from agent.wire.vocabulary import Kind
from controlplane.client.errors import CommandError
from controlplane.client.operations import OperationsClient
from controlplane.client.refusals import RefusedError, UnreachableError
from controlplane.devices.requests.lifecycle import FINISHED, OPEN

POLL_S: Final = 1.0
LOOKS_PER_S: Final = 5.0
"""At most, however many are waited for: a key has a rate, which others may share."""
GRACE: Final = timedelta(seconds=30)
"""How long after ``expiresAt`` we still ask: the clocks of both sides may differ."""
ABOUT_ONE_DEVICE: Final = frozenset({403, 404, 409})
"""Refusals that say nothing of the next device."""


def wait(
    client: OperationsClient,
    instance_id: UUID,
    reply: CreateRequestReply,
    on_change: Callable[[RemoteRequest], None] = lambda _: None,
    *,
    poll_s: float = POLL_S,
) -> tuple[RemoteRequest, list[UUID]]:
    """Return the request once it has ended, and the ids of its reports. Raises CommandError."""
    last = "queued"
    while datetime.now(UTC) < reply.expires_at + GRACE:
        try:
            detail = client.device(DeviceDetailRequest(instance_id=instance_id))
        except UnreachableError:
            time.sleep(poll_s)  # it may be restarting: the request goes on
            continue
        request = _find(detail, reply.request_id)
        if request.status != last:
            last = request.status
            on_change(request)
        if _is_over(last):
            return request, _reports_of(detail, request.id)
        time.sleep(poll_s)
    raise CommandError(f"the request is still {last} after it should have expired")


@dataclass(slots=True)
class Asked:
    """A device's request. ``status`` is the contract's; "" while it is not asked.

    ``trouble`` says why it was not asked, or no end of it was seen.
    """

    device: Device
    reply: CreateRequestReply | None = None
    status: str = ""
    report_ids: list[UUID] = field(default_factory=list)
    trouble: str = ""
    next_look_s: float = 0.0

    @property
    def is_over(self) -> bool:
        return bool(self.trouble) or _is_over(self.status)


class Round:
    """Asks each device once and follows its request; ``on_change`` is told of each step.

    ``already_asked`` takes who has such a request open: it is left out. Interrupted (Ctrl-C), it
    holds what is known so far in ``asked``, as it does at the end.
    """

    def __init__(
        self,
        client: OperationsClient,
        kind: Kind,
        on_change: Callable[[Asked], None],
        already_asked: Callable[[Device], None],
        *,
        poll_s: float = POLL_S,
    ) -> None:
        self._client = client
        self._kind = kind
        self._on_change = on_change
        self._already_asked = already_asked
        self._poll_s = poll_s
        self.asked: list[Asked] = []
        self.unreachable_since_s: float | None = None

    def counts(self) -> Counter[str]:
        return Counter(each.status for each in self.asked)

    @property
    def open(self) -> list[Asked]:
        return [each for each in self.asked if not each.is_over]

    def ask(self, devices: Iterable[Device]) -> None:
        for device in devices:
            self._ask(device)

    def ask_and_wait(self, devices: Iterable[Device], at_once: int | None) -> None:
        """Return when all are over; ``at_once`` None asks all before it waits."""
        ahead = deque(devices)
        while ahead or self.open:
            while ahead and (at_once is None or len(self.open) < at_once):
                self._ask(ahead.popleft())
            if waiting := self.open:
                self._look(min(waiting, key=lambda each: each.next_look_s))

    def _ask(self, device: Device) -> None:
        asked = Asked(device)
        body = CreateRequestRequest(instance_id=device.instance_id, kind=self._kind)
        try:
            if self._has_open_request(device):
                self._already_asked(device)
                return
            asked.reply = self._client.create_request(body)
            asked.status = asked.reply.status
            asked.next_look_s = time.monotonic() + self._poll_s
        except RefusedError as error:
            if error.status not in ABOUT_ONE_DEVICE and not self.asked:
                raise
            asked.trouble = f"not asked: {error}"
        except UnreachableError as error:
            if not self.asked:
                raise
            asked.trouble = f"not known to be asked: {error}"
        self.asked.append(asked)
        self._on_change(asked)

    def _has_open_request(self, device: Device) -> bool:
        detail = self._client.device(DeviceDetailRequest(instance_id=device.instance_id))
        return any(each.kind == self._kind and each.status in OPEN for each in detail.requests)

    def _look(self, asked: Asked) -> None:
        """Look at one request, when it is its turn."""
        if asked.reply is None:
            return  # it is over: it was never asked
        time.sleep(max(0.0, asked.next_look_s - time.monotonic()))
        spread_s = max(self._poll_s, len(self.open) / LOOKS_PER_S)
        asked.next_look_s = time.monotonic() + spread_s
        before = asked.status, asked.trouble
        try:
            self._take_in(asked, asked.reply)
        except UnreachableError:
            if self.unreachable_since_s is None:
                self.unreachable_since_s = time.monotonic()
        else:
            self.unreachable_since_s = None
        if not asked.is_over and datetime.now(UTC) >= asked.reply.expires_at + GRACE:
            asked.trouble = f"still {asked.status} after it should have expired"
        if (asked.status, asked.trouble) != before:
            self._on_change(asked)

    def _take_in(self, asked: Asked, reply: CreateRequestReply) -> None:
        body = DeviceDetailRequest(instance_id=asked.device.instance_id)
        try:
            detail = self._client.device(body)
            asked.status = _find(detail, reply.request_id).status
            asked.report_ids = _reports_of(detail, reply.request_id)
        except UnreachableError:
            raise
        except CommandError as error:
            asked.trouble = str(error)


def _is_over(status: str) -> bool:
    return status in FINISHED or status == "expired"


def _find(detail: DeviceDetailReply, request_id: UUID) -> RemoteRequest:
    for request in detail.requests:
        if request.id == request_id:
            return request
    raise CommandError("the service does not list the request any more")


def _reports_of(detail: DeviceDetailReply, request_id: UUID) -> list[UUID]:
    return [each.report_id for each in detail.reports if each.request_id == request_id]
