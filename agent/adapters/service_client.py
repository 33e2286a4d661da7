"""The service's device operations over HTTPS.

Each call returns the contract's reply or raises a ServiceError. Every call except a
command stream has a total time limit.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeVar

from agent.adapters import http_client as http
from agent.adapters.clock import Clock
from agent.adapters.failpoints import Failpoint, passing
from agent.adapters.read_rate_limit import ReadRateLimit
from agent.config.credential import ApiKeySource
from agent.config.model import Service
from agent.errors import ServiceUnavailable
from agent.rules.clock_skew import ClockSkew, ServiceClock
from agent.rules.command_frames import Frame, parse_frame
from agent.rules.replies import error_of, http_date
from agent.wire import device_operations as messages
from agent.wire import routes
from agent.wire.base import Message
from agent.wire.codec import decode, encode
from agent.wire.validation import ValidationError

ACCEPT_STREAM: Final = "text/event-stream, application/x-ndjson;q=0.9, application/json;q=0.8"
NDJSON_TYPES: Final = ("application/x-ndjson", "application/ndjson", "application/jsonl")
RECORD_MAX_BYTES: Final = 131_072
"""Maximum size of an enrollment. It is stored on disk, and the contract does not limit the length
of some of its strings."""

_PATHS: Final = {
    Failpoint.CHALLENGE_CALLED: routes.CHALLENGE,
    Failpoint.ENROLL_CALLED: routes.ENROLL,
    Failpoint.CURRENT_CALLED: routes.CURRENT,
    Failpoint.HEARTBEAT_CALLED: routes.HEARTBEAT,
    Failpoint.ACKNOWLEDGE_CALLED: routes.ACKNOWLEDGE,
    Failpoint.SUBMIT_CALLED: routes.SUBMIT_RESULT,
}

Reply = TypeVar("Reply", bound=Message)


@dataclass(frozen=True, slots=True)
class CommandStream:
    """A reply of `onCommands`: a stream, or a single reply with all commands."""

    is_stream: bool
    frames: AsyncIterator[Frame]


class ServiceClient:
    """Calls the device operations of the contract's `remoteControl` API.

    The service's time comes from the Date header of its replies. A reply that raises
    ServiceUnavailable is not used for this, because it may come from a captive portal, a proxy or a
    gateway.
    """

    def __init__(
        self, service: Service, api_key: ApiKeySource, clock: Clock, *, tcp_keep_alive: bool = False
    ) -> None:
        """``tcp_keep_alive``: detect a dead connection within seconds (see `client_for`)."""
        self.last_contact_at: datetime | None = None
        self._service_clock: ServiceClock | None = None
        self._api_key = api_key
        self._clock = clock
        self._timeout_s = service.request_timeout_seconds
        self._base_url = service.base_url
        self._client = http.client_for(service, tcp_keep_alive=tcp_keep_alive)
        self._read_limit = ReadRateLimit(clock)

    @property
    def skew(self) -> ClockSkew:
        """The service's clock minus this machine's clock. It is zero before the first reply."""
        if self._service_clock is None:
            return ClockSkew()
        return self._service_clock.skew(
            local_time=self._clock.now(), monotonic_s=self._clock.monotonic()
        )

    async def close(self) -> None:
        await self._client.aclose()

    async def challenge(self, request: messages.ChallengeRequest) -> messages.ChallengeReply:
        return await self._exchange(Failpoint.CHALLENGE_CALLED, request, messages.ChallengeReply)

    async def enroll(self, request: messages.EnrollRequest) -> messages.EnrollmentRecord:
        return _decode_record(await self._post(Failpoint.ENROLL_CALLED, encode(request)))

    async def current(self) -> messages.EnrollmentRecord | None:
        body = await self._post(Failpoint.CURRENT_CALLED, encode(messages.EmptyRequest()))
        # Only null means that there is no binding. An empty reply is an error.
        if body.strip() == b"null":
            return None
        return _decode_record(body)

    async def heartbeat(self, request: messages.HeartbeatRequest) -> messages.HeartbeatReply:
        return await self._exchange(Failpoint.HEARTBEAT_CALLED, request, messages.HeartbeatReply)

    async def acknowledge(self, request: messages.AcknowledgeRequest) -> messages.AcknowledgeReply:
        return await self._exchange(
            Failpoint.ACKNOWLEDGE_CALLED, request, messages.AcknowledgeReply
        )

    async def submit_result(self, body: bytes) -> messages.SubmitResultReply:
        """Send a sealed body without changes."""
        return _decode(messages.SubmitResultReply, await self._post(Failpoint.SUBMIT_CALLED, body))

    @contextlib.asynccontextmanager
    async def commands(
        self, *, stream: bool, answer_within_s: float | None = None
    ) -> AsyncIterator[CommandStream]:
        """Call `onCommands`, and yield its reply as soon as the reply begins.

        Iterating over the frames raises ServiceError if the connection breaks.

        Args:
            stream: whether to request a stream.
            answer_within_s: timeout for the start of the reply, in seconds. It can be longer than
                the timeout of other calls, because a service can wait until it has a command.
        """
        accept = ACCEPT_STREAM if stream else "application/json"
        async with contextlib.AsyncExitStack() as stack:
            with passing(Failpoint.COMMANDS_OPENED), http.as_unavailable():
                async with asyncio.timeout(answer_within_s or self._timeout_s):
                    body = encode(messages.EmptyRequest())
                    timeout = http.stream_timeout(self._timeout_s)
                    reply = self._stream(routes.ON_COMMANDS, body, accept, timeout=timeout)
                    response = await stack.enter_async_context(reply)
                    await self._check(response)
            media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            if media_type == "text/event-stream":
                http.limit_read_rate(response, self._read_limit)
                yield CommandStream(True, http.frames_of_events(response))
            elif media_type in NDJSON_TYPES:
                http.limit_read_rate(response, self._read_limit)
                yield CommandStream(True, http.frames_of_lines(response))
            else:
                yield CommandStream(False, self._read_single_reply(response))

    async def _exchange(self, failpoint: Failpoint, request: Message, reply: type[Reply]) -> Reply:
        return _decode(reply, await self._post(failpoint, encode(request)))

    async def _post(self, failpoint: Failpoint, body: bytes) -> bytes:
        with passing(failpoint), http.as_unavailable():
            async with (
                asyncio.timeout(self._timeout_s),
                self._stream(_PATHS[failpoint], body, "application/json") as response,
            ):
                await self._check(response)
                return await http.read_body(response)

    def _stream(
        self, path: str, body: bytes, accept: str, **options: Any
    ) -> AbstractAsyncContextManager[http.Response]:
        """Send a request. Entering the context returns the reply before its body is read."""
        headers = {
            "Authorization": f"Bearer {self._api_key.read()}",
            "Content-Type": "application/json",
            "Accept": accept,
        }
        url = self._base_url + path
        return self._client.stream("POST", url, content=body, headers=headers, **options)

    async def _check(self, response: http.Response) -> None:
        """Raise an error unless the call succeeded.

        Stores the service's time, unless the error is a ServiceUnavailable.
        """
        service_time = http_date(response.headers.get("date"))
        if response.headers.get("content-encoding", "identity").lower() not in {"", "identity"}:
            raise ServiceUnavailable("bad-reply", "the reply is compressed, but must not be")
        body = b"" if response.is_success else await http.read_body(response)
        headers = {name.lower(): value for name, value in response.headers.items()}
        # A date in Retry-After is a time of the service's clock, so it is compared with Date.
        error = error_of(response.status_code, headers, body, service_time or self._clock.now())
        if service_time is not None and not isinstance(error, ServiceUnavailable):
            self._service_clock = ServiceClock(service_time, self._clock.monotonic())
        if error is not None:
            raise error
        self.last_contact_at = self._clock.now()

    async def _read_single_reply(self, response: http.Response) -> AsyncIterator[Frame]:
        with http.as_unavailable():
            async with asyncio.timeout(self._timeout_s):
                body = await http.read_body(response)
        yield parse_frame(body)


def _decode_record(body: bytes) -> messages.EnrollmentRecord:
    if len(body) > RECORD_MAX_BYTES:
        reason = f"the enrollment is larger than {RECORD_MAX_BYTES} bytes"
        raise ServiceUnavailable("bad-reply", reason)
    return _decode(messages.EnrollmentRecord, body)


def _decode(model: type[Reply], body: bytes) -> Reply:
    try:
        return decode(body, model)
    except ValidationError as error:
        where = error.where or "the reply"
        raise ServiceUnavailable("bad-reply", f"{where}: {error.reason}") from None
