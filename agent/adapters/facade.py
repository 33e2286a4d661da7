"""The service's device operations over HTTPS. The only module that imports httpx2.

Each call either returns what the contract promises or raises a ServiceError that says what to do.
Replies are bounded in bytes and in time, never decompressed, never followed to another address.
"""

import asyncio
import contextlib
import logging
import os
import socket
import ssl
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeVar

import httpx2

from agent import __version__
from agent.adapters import moments
from agent.adapters.clock import Clock
from agent.adapters.moments import Moment
from agent.config import Service
from agent.credential import ApiKeySource
from agent.errors import ConfigError, Unavailable, UnavailableCause
from agent.rules.clock_skew import ClockSkew, ServiceClock
from agent.rules.command_frames import FRAME_MAX_BYTES, IGNORED_EVENTS, Frame, parse_frame
from agent.rules.replies import error_of, http_date
from agent.wire import routes
from agent.wire.base import Message
from agent.wire.device_operations import (
    AcknowledgeReply,
    AcknowledgeRequest,
    ChallengeReply,
    ChallengeRequest,
    EmptyRequest,
    EnrollmentRecord,
    EnrollRequest,
    HeartbeatReply,
    HeartbeatRequest,
    SubmitResultReply,
)
from agent.wire.reading import Mismatch, read_json, write_json

log = logging.getLogger(__name__)

REPLY_MAX_BYTES: Final = 2_097_152
CONNECT_SHARE: Final = 0.9
STREAM_SILENCE_S: Final = 90.0
"""A stream that says nothing, not even a keep-alive comment, for this long is given up."""
ACCEPT_STREAM: Final = "text/event-stream, application/x-ndjson;q=0.9, application/json;q=0.8"
NDJSON_TYPES: Final = ("application/x-ndjson", "application/ndjson", "application/jsonl")

_PATHS: Final = {
    Moment.CHALLENGE_CALLED: routes.CHALLENGE,
    Moment.ENROLL_CALLED: routes.ENROLL,
    Moment.CURRENT_CALLED: routes.CURRENT,
    Moment.HEARTBEAT_CALLED: routes.HEARTBEAT,
    Moment.ACKNOWLEDGE_CALLED: routes.ACKNOWLEDGE,
    Moment.SUBMIT_CALLED: routes.SUBMIT_RESULT,
}

Reply = TypeVar("Reply", bound=Message)


@dataclass(frozen=True, slots=True)
class CommandStream:
    """An answer of `onCommands`. ``is_lasting`` tells a stream from an answer given at once."""

    is_lasting: bool
    frames: AsyncIterator[Frame]


class Facade:
    """The device's side of remoteControl. Its Date headers tell the service's time, except those
    of answers that are not the service's own (portals, proxies, gateways)."""

    def __init__(self, service: Service, api_key: ApiKeySource, clock: Clock) -> None:
        self.last_contact_at: datetime | None = None
        self._service_clock: ServiceClock | None = None
        self._api_key = api_key
        self._clock = clock
        self._timeout_s = service.request_timeout_seconds
        self._base_url = service.base_url
        self._client = _client(service)

    @property
    def skew(self) -> ClockSkew:
        """The service's clock against this machine's, as both are now; none before a reply."""
        if self._service_clock is None:
            return ClockSkew()
        return self._service_clock.skew(
            local_time=self._clock.now(), monotonic_s=self._clock.monotonic()
        )

    async def close(self) -> None:
        await self._client.aclose()

    async def challenge(self, request: ChallengeRequest) -> ChallengeReply:
        return await self._ask(Moment.CHALLENGE_CALLED, request, ChallengeReply)

    async def enroll(self, request: EnrollRequest) -> EnrollmentRecord:
        return await self._ask(Moment.ENROLL_CALLED, request, EnrollmentRecord)

    async def current(self) -> EnrollmentRecord | None:
        body = await self._post(Moment.CURRENT_CALLED, write_json(EmptyRequest()))
        # Only null says that there is no binding; an empty answer says nothing about it.
        if body.strip() == b"null":
            return None
        return _read(EnrollmentRecord, body)

    async def heartbeat(self, request: HeartbeatRequest) -> HeartbeatReply:
        return await self._ask(Moment.HEARTBEAT_CALLED, request, HeartbeatReply)

    async def acknowledge(self, request: AcknowledgeRequest) -> AcknowledgeReply:
        return await self._ask(Moment.ACKNOWLEDGE_CALLED, request, AcknowledgeReply)

    async def submit_result(self, body: bytes) -> SubmitResultReply:
        """Send a sealed body as it is."""
        return _read(SubmitResultReply, await self._post(Moment.SUBMIT_CALLED, body))

    @contextlib.asynccontextmanager
    async def commands(
        self, *, stream: bool, patience_s: float | None = None
    ) -> AsyncIterator[CommandStream]:
        """Ask for commands; yields once the service has begun to answer.

        Frames arrive until the answer ends; iterating raises ServiceError when it breaks.
        ``patience_s`` is how long the answer may take to begin, where that is not as for any
        other call: a service may hold the question until it has a command.
        """
        accept = ACCEPT_STREAM if stream else "application/json"
        timeout = httpx2.Timeout(
            self._timeout_s, connect=self._timeout_s * CONNECT_SHARE, read=STREAM_SILENCE_S
        )
        async with contextlib.AsyncExitStack() as stack:
            moments.before(Moment.COMMANDS_OPENED)
            with _as_unavailable():
                async with asyncio.timeout(patience_s or self._timeout_s):
                    response = await stack.enter_async_context(
                        self._client.stream(
                            "POST",
                            self._base_url + routes.ON_COMMANDS,
                            content=write_json(EmptyRequest()),
                            headers=self._headers(accept),
                            timeout=timeout,
                        )
                    )
                    await self._check(response)
            moments.after(Moment.COMMANDS_OPENED)
            media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            if media_type == "text/event-stream":
                yield CommandStream(True, _server_sent(response))
            elif media_type in NDJSON_TYPES:
                yield CommandStream(True, _lines(response))
            else:
                yield CommandStream(False, self._single(response))

    async def _ask(self, moment: Moment, request: Message, reply: type[Reply]) -> Reply:
        return _read(reply, await self._post(moment, write_json(request)))

    async def _post(self, moment: Moment, body: bytes) -> bytes:
        moments.before(moment)
        answer = await self._exchange(_PATHS[moment], body)
        moments.after(moment)
        return answer

    async def _exchange(self, path: str, body: bytes) -> bytes:
        with _as_unavailable():
            async with (
                asyncio.timeout(self._timeout_s),
                self._client.stream(
                    "POST",
                    self._base_url + path,
                    content=body,
                    headers=self._headers("application/json"),
                ) as response,
            ):
                await self._check(response)
                return await _body(response)

    def _headers(self, accept: str) -> dict[str, str]:
        return {
            "Authorization": f"Bearer {self._api_key.read()}",
            "Content-Type": "application/json",
            "Accept": accept,
        }

    async def _check(self, response: httpx2.Response) -> None:
        """Raise the error that the status stands for; note the service's time, if it was it."""
        shown = http_date(response.headers.get("date"))
        if response.headers.get("content-encoding", "identity").lower() not in {"", "identity"}:
            raise Unavailable("bad-reply", "the answer is compressed, which was not asked for")
        body = b"" if response.is_success else await _body(response)
        headers = {name.lower(): value for name, value in response.headers.items()}
        # A date in Retry-After is one of the service's clock, like the one in Date.
        error = error_of(response.status_code, headers, body, shown or self._clock.now())
        if shown is not None and not isinstance(error, Unavailable):
            self._service_clock = ServiceClock(shown, self._clock.monotonic())
        if error is not None:
            raise error
        self.last_contact_at = self._clock.now()

    async def _single(self, response: httpx2.Response) -> AsyncIterator[Frame]:
        with _as_unavailable():
            async with asyncio.timeout(self._timeout_s):
                body = await _body(response)
        yield parse_frame(body)


async def _server_sent(response: httpx2.Response) -> AsyncIterator[Frame]:
    with _as_unavailable():
        async for event in httpx2.EventSource(response, max_event_size=FRAME_MAX_BYTES):
            if event.event in IGNORED_EVENTS:
                log.info("the command stream says %s: %.200s", event.event, event.data)
            elif event.data:
                yield parse_frame(event.data)


async def _lines(response: httpx2.Response) -> AsyncIterator[Frame]:
    pending = b""
    with _as_unavailable():
        async for chunk in response.aiter_raw():
            *lines, pending = (pending + chunk).split(b"\n")
            for line in lines:
                yield parse_frame(line)
            if len(pending) > FRAME_MAX_BYTES:
                raise Unavailable("bad-reply", "a line of the command stream does not end")
    yield parse_frame(pending)


async def _body(response: httpx2.Response) -> bytes:
    """Read a reply of bounded size, as it came."""
    parts, size = [], 0
    async for chunk in response.aiter_raw():
        parts.append(chunk)
        size += len(chunk)
        if size > REPLY_MAX_BYTES:
            raise Unavailable("bad-reply", f"the answer is larger than {REPLY_MAX_BYTES} bytes")
    return b"".join(parts)


def _read(model: type[Reply], body: bytes) -> Reply:
    try:
        return read_json(body, model)
    except Mismatch as error:
        raise Unavailable("bad-reply", f"{error.where or 'the answer'}: {error.reason}") from None


def check_service(service: Service) -> None:
    """See that a client can be built for ``service``. Raises ConfigError."""
    _client(service)


def _client(service: Service) -> httpx2.AsyncClient:
    """Build the client. Raises ConfigError."""
    trust = _trust(service)
    timeout_s = service.request_timeout_seconds
    try:
        return httpx2.AsyncClient(
            verify=trust,
            proxy=service.proxy or None,
            follow_redirects=False,
            # Connecting gives up by itself before the bound of the whole call does: cancelled in
            # a TLS handshake, the library would leave the socket open until it is collected.
            timeout=httpx2.Timeout(timeout_s, connect=timeout_s * CONNECT_SHARE),
            limits=httpx2.Limits(max_connections=8, max_keepalive_connections=2),
            headers={"User-Agent": f"venue-agent/{__version__}", "Accept-Encoding": "identity"},
        )
    except (ValueError, ImportError, httpx2.InvalidURL):
        # Without the reason: it quotes the URL, which may hold a password.
        where = "service.proxy" if service.proxy else "HTTPS_PROXY"
        raise ConfigError((f"{where} must be a URL such as http://proxy.example:3128",)) from None


def _trust(service: Service) -> ssl.SSLContext | bool:
    """Return the trust anchors: the operating system's, and those of the configuration."""
    if service.base_url.startswith("http://"):
        return False  # loopback only, by the configuration's check: nothing to verify
    context = httpx2.create_ssl_context()
    if service.ca_file:
        try:
            context.load_verify_locations(service.ca_file)
        except (OSError, ssl.SSLError) as error:
            is_tls = isinstance(error, ssl.SSLError)
            reason = "it holds no PEM certificate" if is_tls else error.strerror
            raise ConfigError((f"service.ca_file {service.ca_file}: {reason}",)) from None
    return context


@contextlib.contextmanager
def _as_unavailable() -> Iterator[None]:
    """Turn the library's and the system's network errors into ours."""
    try:
        yield
    except TimeoutError:
        raise Unavailable("timeout", "no answer in time") from None
    except httpx2.TimeoutException as error:
        raise Unavailable("timeout", f"no answer in time ({type(error).__name__})") from None
    except httpx2.ProxyError as error:
        raise Unavailable("proxy", f"the proxy refuses: {error}") from None
    except httpx2.SSEError as error:
        raise Unavailable("bad-reply", str(error)) from None
    except httpx2.ConnectError as error:
        raise Unavailable(_connect_cause(error), _innermost(error)) from None
    except (httpx2.TransportError, httpx2.DecodingError) as error:
        raise Unavailable("connection-lost", _innermost(error)) from None
    except (OSError, UnicodeError, httpx2.InvalidURL) as error:
        raise Unavailable("connection-lost", f"{type(error).__name__}: {error}") from None


def _chain(error: BaseException) -> Iterable[BaseException]:
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        if isinstance(seen, BaseExceptionGroup):
            yield from seen.exceptions
        seen = seen.__cause__ or seen.__context__


def _connect_cause(error: BaseException) -> UnavailableCause:
    for cause in _chain(error):
        if isinstance(cause, ssl.SSLError):
            return "tls"
        if isinstance(cause, socket.gaierror):
            return "name-resolution"
        if isinstance(cause, ConnectionRefusedError):
            return "connection-refused"
    return "connection-lost"


def _innermost(error: BaseException) -> str:
    """Say the first cause in the system's own words, without its numbers."""
    cause = [*_chain(error)][-1]
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {cause.verify_message}"
    if isinstance(cause, OSError) and cause.errno and not isinstance(cause, ssl.SSLError):
        if isinstance(cause, socket.gaierror):
            return cause.strerror or str(cause)
        return os.strerror(cause.errno)
    return (str(cause) or str(error) or type(error).__name__)[:300]
