"""The HTTP client for the service. Every network error becomes a ServiceUnavailable.

No other module of the agent imports httpx2. The size of a reply is limited. Replies are never
decompressed, redirects are not followed, and cookies are not kept.
"""

import contextlib
import logging
import os
import socket
import ssl
from collections.abc import AsyncIterator, Iterable, Iterator
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Final

import httpx2

from agent import __version__
from agent.adapters.read_rate_limit import ReadRateLimit
from agent.adapters.service_route import service_route
from agent.config.model import SYSTEM_PROXY, Service
from agent.errors import ConfigError, ServiceUnavailable, UnavailableCause
from agent.rules.command_frames import FRAME_MAX_BYTES, SKIPPED_EVENTS, Frame, parse_frame
from agent.wire.addresses import is_loopback_url

log = logging.getLogger(__name__)

REPLY_MAX_BYTES: Final = 2_097_152
CONNECT_SHARE: Final = 0.9
"""Timeout for connecting, as a share of the timeout of the whole call."""
STREAM_READ_TIMEOUT_S: Final = 90.0
"""A stream is closed if no data arrives for this time, not even a keep-alive comment."""

IDLE_MAX_S: Final = 3.0
"""A connection that was idle for longer is not used again. Services close idle connections after
five seconds or more, and a request must not meet a connection that is being closed.
"""
_MESSAGE_MAX: Final = 300  # characters
RETRY_MAX_MS: Final = 86_400_000
"""A longer reconnection time that the service sends in a stream is reduced to this."""

_KEEP_ALIVE_IDLE_S: Final = 4
_KEEP_ALIVE_OPTIONS: Final = (
    ("TCP_KEEPIDLE", _KEEP_ALIVE_IDLE_S),
    ("TCP_KEEPALIVE", _KEEP_ALIVE_IDLE_S),  # the name of TCP_KEEPIDLE on macOS
    ("TCP_KEEPINTVL", 1),
    ("TCP_KEEPCNT", 3),
)
"""TCP keep-alive (tcp(7)): the kernel ends an idle connection within 7 s after its path failed."""

Response = httpx2.Response


def client_for(service: Service, *, tcp_keep_alive: bool = False) -> httpx2.AsyncClient:
    """Build the client. Raises ConfigError for an invalid proxy or certificate file.

    ``tcp_keep_alive``: the kernel checks idle connections. Without it, a dead path of an idle
    command stream is detected by `STREAM_READ_TIMEOUT_S` only.
    """
    trust = _trusted_certificates(service)
    timeout_s = service.request_timeout_seconds
    proxy, reads_environment = _proxy_of(service)
    try:
        service_route(service)  # raises for an invalid port, which the library does not check
        return httpx2.AsyncClient(
            verify=trust,
            proxy=proxy,
            trust_env=reads_environment,
            follow_redirects=False,
            # Connecting must time out earlier than the whole call. The timeout of the whole call
            # cancels a running TLS handshake, and the library then leaves the socket open until it
            # is garbage collected.
            timeout=httpx2.Timeout(timeout_s, connect=timeout_s * CONNECT_SHARE),
            limits=httpx2.Limits(
                max_connections=8, max_keepalive_connections=2, keepalive_expiry=IDLE_MAX_S
            ),
            headers={"User-Agent": f"venue-agent/{__version__}", "Accept-Encoding": "identity"},
            event_hooks={"response": [_enable_keep_alive]} if tcp_keep_alive else None,
            # By default, the library keeps any number of cookies and sends them back.
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
        )
    except (ValueError, ImportError, httpx2.InvalidURL):
        # The reason is omitted, because it contains the URL, which can contain a password.
        names = {"": "HTTPS_PROXY", SYSTEM_PROXY: "the proxy in the system's settings"}
        where = names.get(service.proxy, "service.proxy")
        raise ConfigError((f"{where} must be a URL such as http://proxy.example:3128",)) from None


async def _enable_keep_alive(response: Response) -> None:
    """Enable TCP keep-alive on the connection of a response.

    The library's ``socket_options`` cannot be used, because only a transport accepts them, and a
    client with its own transport ignores the proxies of the environment. Also, these options have
    no effect on connections through a SOCKS proxy.
    """
    stream = response.extensions.get("network_stream")
    connection = stream.get_extra_info("socket") if stream is not None else None
    if connection is None:
        return
    with contextlib.suppress(OSError):  # an option that this system does not know
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEP_ALIVE_OPTIONS:
            if (option := getattr(socket, name, None)) is not None:
                connection.setsockopt(socket.IPPROTO_TCP, option, value)


def _proxy_of(service: Service) -> tuple[str | None, bool]:
    """Return the proxy for calls to the service, and whether the environment is read.

    If the environment is read and the proxy is None, variables such as HTTPS_PROXY name the proxy.

    Calls to a service on this machine bypass proxies: a proxy could read the API key, because such
    calls can use plain HTTP.
    """
    if is_loopback_url(service.base_url):
        return None, False
    if service.proxy != SYSTEM_PROXY:
        return service.proxy or None, True
    from collectors.shared.system_proxy import HAS_SETTINGS, system_proxies  # rarely needed

    # Systems without settings for a proxy use the environment.
    url = httpx2.URL(service.base_url)
    return system_proxies(url.host).get(url.scheme), not HAS_SETTINGS


def _trusted_certificates(service: Service) -> ssl.SSLContext | bool:
    """Return the trusted certificates: the operating system's and the configured ones.

    Returns False for a service without TLS, which the configuration allows on loopback only.
    """
    if service.base_url.startswith("http://"):
        return False
    context = httpx2.create_ssl_context()
    if service.ca_file:
        try:
            context.load_verify_locations(service.ca_file)
        except (OSError, ssl.SSLError) as error:
            is_tls = isinstance(error, ssl.SSLError)
            reason = "it contains no PEM certificate" if is_tls else error.strerror
            raise ConfigError((f"service.ca_file {service.ca_file}: {reason}",)) from None
    return context


def stream_timeout(timeout_s: float) -> httpx2.Timeout:
    """Return the timeouts of a stream, which has no total time limit."""
    return httpx2.Timeout(timeout_s, connect=timeout_s * CONNECT_SHARE, read=STREAM_READ_TIMEOUT_S)


class _RateLimitedBytes(httpx2.AsyncByteStream):
    """The bytes of a response, read no faster than ``limit`` allows."""

    def __init__(self, stream: httpx2.AsyncByteStream, limit: ReadRateLimit) -> None:
        self._stream = stream
        self._limit = limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            await self._limit.acquire(len(chunk))
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


def limit_read_rate(response: Response, limit: ReadRateLimit) -> None:
    """Limit the rate at which ``response`` is read."""
    if isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _RateLimitedBytes(response.stream, limit)


async def frames_of_events(response: Response) -> AsyncIterator[Frame]:
    """Yield the frames of an event stream. Raises ServiceUnavailable if the connection breaks."""
    with as_unavailable():
        async for event in httpx2.EventSource(response, max_event_size=FRAME_MAX_BYTES):
            if event.retry is not None:
                yield Frame(reconnect_s=min(max(event.retry, 0), RETRY_MAX_MS) / 1000)
            if event.event in SKIPPED_EVENTS:
                log.info("the command stream sent %s: %.200s", event.event, event.data)
            elif event.data:
                yield parse_frame(event.data)


async def frames_of_lines(response: Response) -> AsyncIterator[Frame]:
    """Yield the frames of an NDJSON stream. Raises ServiceUnavailable if the connection breaks."""
    pending = b""
    with as_unavailable():
        async for chunk in response.aiter_raw():
            *lines, pending = (pending + chunk).split(b"\n")
            for line in lines:
                yield parse_frame(line)
            if len(pending) > FRAME_MAX_BYTES:
                raise ServiceUnavailable("bad-reply", "a line of the command stream does not end")
    yield parse_frame(pending)


async def read_body(response: Response) -> bytes:
    """Return the body of a reply without decoding it.

    Raises ServiceUnavailable if it is larger than REPLY_MAX_BYTES.
    """
    parts, size = [], 0
    async for chunk in response.aiter_raw():
        parts.append(chunk)
        size += len(chunk)
        if size > REPLY_MAX_BYTES:
            raise ServiceUnavailable(
                "bad-reply", f"the reply is larger than {REPLY_MAX_BYTES} bytes"
            )
    return b"".join(parts)


@contextlib.contextmanager
def as_unavailable() -> Iterator[None]:
    """Convert errors of httpx2 and of the operating system to ServiceUnavailable."""
    try:
        yield
    except TimeoutError:
        raise ServiceUnavailable("timeout", "no reply in time") from None
    except httpx2.TimeoutException as error:
        raise ServiceUnavailable("timeout", f"no reply in time ({type(error).__name__})") from None
    except httpx2.ProxyError as error:
        raise ServiceUnavailable("proxy", f"the proxy refuses: {error}") from None
    except httpx2.SSEError as error:
        raise ServiceUnavailable("bad-reply", str(error)) from None
    except httpx2.ConnectError as error:
        raise ServiceUnavailable(_connect_cause(error), _root_message(error)) from None
    except (httpx2.TransportError, httpx2.DecodingError) as error:
        raise ServiceUnavailable("connection-lost", _root_message(error)) from None
    except (OSError, UnicodeError, httpx2.InvalidURL) as error:
        raise ServiceUnavailable("connection-lost", f"{type(error).__name__}: {error}") from None


def _chain(error: BaseException) -> Iterable[BaseException]:
    current: BaseException | None = error
    while current is not None:
        yield current
        if isinstance(current, BaseExceptionGroup):
            yield from current.exceptions
        current = current.__cause__ or current.__context__


def _connect_cause(error: BaseException) -> UnavailableCause:
    for cause in _chain(error):
        if isinstance(cause, ssl.SSLError):
            return "tls"
        if isinstance(cause, socket.gaierror):
            return "name-resolution"
        if isinstance(cause, ConnectionRefusedError):
            return "connection-refused"
    return "connection-lost"


def _root_message(error: BaseException) -> str:
    """Return the message of the root cause of an error, without an error number."""
    cause = [*_chain(error)][-1]
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {cause.verify_message}"
    if isinstance(cause, ssl.SSLError) and cause.reason == "WRONG_VERSION_NUMBER":
        return "the other side does not use TLS"
    if isinstance(cause, OSError) and cause.errno and not isinstance(cause, ssl.SSLError):
        if isinstance(cause, socket.gaierror) or getattr(cause, "winerror", None):
            # On Windows, `errno` has no text, or is EINVAL for an error of an asynchronous call.
            return cause.strerror or str(cause)
        return os.strerror(cause.errno)
    return (str(cause) or str(error) or type(error).__name__)[:_MESSAGE_MAX]
