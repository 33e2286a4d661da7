"""Tests of the client of the service's operations, with a real server on loopback."""

import asyncio
import contextlib
import errno
import gzip
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx2
import pytest

from agent import __version__
from agent.adapters import http_client
from agent.adapters.http_client import REPLY_MAX_BYTES, as_unavailable
from agent.adapters.service_client import ServiceClient
from agent.config.credential import ApiKeySource
from agent.errors import (
    BodyRejected,
    BodyTooLarge,
    ConfigError,
    CredentialRefused,
    Refused,
    ServiceError,
    ServiceUnavailable,
    Throttled,
)
from agent.rules.command_frames import FRAME_MAX_BYTES, Frame
from agent.wire.codec import decode, encode
from agent.wire.device_operations import (
    AcknowledgeRequest,
    ChallengeRequest,
    EnrollRequest,
    HeartbeatRequest,
)
from collectors.shared import system_proxy
from tests.contract import golden
from tests.fakes.fake_clock import FakeClock
from tests.fakes.scripted_server import ScriptedServer, head, running_server
from tests.unit.agent.samples import BINDING, config

KEY = ApiKeySource(None, "key-1")
HEARTBEAT = HeartbeatRequest(binding_id=BINDING, foreground=False)
COMMAND = golden.text_of("onCommands/command").replace("\n", "").encode()


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "*")


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with running_server() as running:
        yield running


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def client(server: ScriptedServer, clock: FakeClock) -> AsyncIterator[ServiceClient]:
    client = ServiceClient(config(server.base_url).service, KEY, clock)
    yield client
    await client.close()


async def frames(client: ServiceClient, *, stream: bool = True) -> tuple[bool, list[Frame]]:
    """Return whether the answer of the service is a stream, and the received frames."""
    async with client.commands(stream=stream) as answer:
        return answer.is_stream, [frame async for frame in answer.frames]


CHALLENGE = decode(golden.text_of("challenge/request"), ChallengeRequest)
ENROLL = decode(golden.text_of("enroll/request"), EnrollRequest)
ACKNOWLEDGE = decode(golden.text_of("acknowledge/request-received"), AcknowledgeRequest)
SUBMIT = golden.text_of("submitResult/request-failed").encode()
Call = Callable[[ServiceClient], Awaitable[Any]]
CALLS: dict[str, tuple[Call, str, str]] = {
    "challenge": (
        lambda client: client.challenge(CHALLENGE),
        "challenge/request",
        "challenge/reply",
    ),
    "enroll": (lambda client: client.enroll(ENROLL), "enroll/request", "enroll/reply"),
    "current": (lambda client: client.current(), "current/request", "current/reply"),
    "heartbeat": (
        lambda client: client.heartbeat(
            decode(golden.text_of("heartbeat/request"), HeartbeatRequest)
        ),
        "heartbeat/request",
        "heartbeat/reply",
    ),
    "acknowledge": (
        lambda client: client.acknowledge(ACKNOWLEDGE),
        "acknowledge/request-received",
        "acknowledge/reply-received",
    ),
    "submitResult": (
        lambda client: client.submit_result(SUBMIT),
        "submitResult/request-failed",
        "submitResult/reply",
    ),
}
"""For each operation: a call, and the names of the contract's examples of request and reply."""


@pytest.mark.parametrize("operation", CALLS)
async def test_each_operation_matches_the_examples_of_the_contract(
    server: ScriptedServer, client: ServiceClient, clock: FakeClock, operation: str
) -> None:
    call, request, reply = CALLS[operation]
    server.answer(golden.text_of(reply).encode())

    answer = await call(client)

    (received,) = server.requests
    assert (received.method, received.path) == ("POST", f"/api/public/v1/remoteControl/{operation}")
    assert json.loads(received.body) == golden.document_of(request)
    assert received.headers["authorization"] == "Bearer key-1"
    assert received.headers["content-type"] == "application/json"
    assert received.headers["accept-encoding"] == "identity"
    assert received.headers["user-agent"] == f"venue-agent/{__version__}"
    assert json.loads(encode(answer)) == golden.document_of(reply)
    assert client.last_contact_at == clock.now()


async def test_a_sealed_body_is_sent_unchanged(
    server: ScriptedServer, client: ServiceClient
) -> None:
    server.answer(golden.text_of("submitResult/reply").encode())

    await client.submit_result(SUBMIT)

    assert server.requests[0].body == SUBMIT


async def test_the_reply_of_current_may_be_null(
    server: ScriptedServer, client: ServiceClient
) -> None:
    server.answer(b" null\n")

    assert await client.current() is None


@pytest.mark.parametrize("body", [b"", b"  ", b"{}", b"undefined", b"[]", b"{", b"\xff"])
async def test_an_invalid_reply_to_current_raises_service_unavailable(
    server: ScriptedServer, client: ServiceClient, body: bytes
) -> None:
    server.answer(body)

    with pytest.raises(ServiceUnavailable) as error:
        await client.current()

    assert error.value.cause == "bad-reply"


async def test_the_key_is_read_for_each_call(
    server: ScriptedServer, clock: FakeClock, tmp_path: Path
) -> None:
    server.answer(b"null")
    file = tmp_path / "key"
    client = ServiceClient(config(server.base_url).service, ApiKeySource(file, None), clock)
    for key in ("first", "second"):
        file.write_text(key)
        await client.current()
    file.unlink()
    with pytest.raises(CredentialRefused):
        await client.current()
    await client.close()

    assert [h.headers["authorization"] for h in server.requests] == [
        "Bearer first",
        "Bearer second",
    ]


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, BodyRejected),
        (401, CredentialRefused),
        (403, Refused),
        (404, Refused),
        (409, Refused),
        (410, Refused),
        (413, BodyTooLarge),
        (422, BodyRejected),
        (429, Throttled),
        (500, ServiceUnavailable),
        (503, ServiceUnavailable),
    ],
)
@pytest.mark.parametrize("operation", ["heartbeat", "onCommands"])
async def test_each_error_status_raises_its_error(
    server: ScriptedServer,
    client: ServiceClient,
    status: int,
    kind: type[ServiceError],
    operation: str,
) -> None:
    server.answer(b'{"detail": "because"}', status, "application/problem+json")

    with pytest.raises(kind) as error:
        await (client.heartbeat(HEARTBEAT) if operation == "heartbeat" else frames(client))

    assert type(error.value) is kind
    if status < 500:
        assert "because" in str(error.value)
    assert client.last_contact_at is None


async def test_retry_after_header_is_honoured(
    server: ScriptedServer, client: ServiceClient
) -> None:
    server.answer(b"", 503, Retry_After="17")

    with pytest.raises(Throttled) as error:
        await client.heartbeat(HEARTBEAT)

    assert error.value.retry_after_s == 17


async def test_redirects_of_the_service_are_not_followed(
    server: ScriptedServer, client: ServiceClient
) -> None:
    server.answer(b"", 307, Location=f"{server.base_url}/other")

    with pytest.raises(ServiceUnavailable, match="redirected") as error:
        await client.heartbeat(HEARTBEAT)

    assert error.value.cause == "redirect"
    assert len(server.requests) == 1


async def test_a_web_page_raises_service_unavailable(
    server: ScriptedServer, client: ServiceClient
) -> None:
    server.answer(b"<html>sign in", 200, "text/html; charset=utf-8")

    for call in (client.current(), frames(client)):
        with pytest.raises(ServiceUnavailable) as error:
            await call
        assert error.value.cause == "captive-portal"


@pytest.mark.parametrize("shift_s", [-7200, -1, 0, 1, 90])
async def test_the_clock_skew_is_measured_from_the_date_header(
    server: ScriptedServer, client: ServiceClient, clock: FakeClock, shift_s: int
) -> None:
    timestamp = clock.now() + timedelta(seconds=shift_s)
    server.answer(b"null", Date=timestamp.strftime("%a, %d %b %Y %H:%M:%S GMT"))

    await client.current()

    expected = timedelta(0) if abs(shift_s) < 2 else timedelta(seconds=shift_s)
    assert client.skew.offset == expected


@pytest.mark.parametrize(("status", "media_type"), [(200, "text/html"), (502, "application/json")])
async def test_the_date_of_a_portal_or_gateway_is_not_the_service_time(
    server: ScriptedServer, client: ServiceClient, status: int, media_type: str
) -> None:
    server.answer(b"{}", status, media_type, Date="Fri, 20 Nov 2015 19:00:00 GMT")

    with pytest.raises(ServiceUnavailable):
        await client.current()

    assert client.skew.offset == timedelta(0)


@pytest.mark.parametrize("date", ["yesterday", "", "Fri, 99 Nov 2026 19:00:00 GMT"])
async def test_an_invalid_date_header_is_ignored(
    server: ScriptedServer, client: ServiceClient, date: str
) -> None:
    server.answer(b"null", Date=date)

    await client.current()

    assert client.skew.offset == timedelta(0)


@pytest.mark.parametrize("status", [200, 400])
async def test_a_reply_that_is_too_large_is_refused(
    server: ScriptedServer, client: ServiceClient, status: int
) -> None:
    server.answer(b"x" * (REPLY_MAX_BYTES * 5), status)

    with pytest.raises(ServiceUnavailable, match=f"larger than {REPLY_MAX_BYTES} bytes"):
        await client.current()


@pytest.mark.parametrize("operation", ["current", "onCommands"])
async def test_a_compressed_reply_is_refused(
    server: ScriptedServer, client: ServiceClient, operation: str
) -> None:
    server.answer(gzip.compress(b"null"), Content_Encoding="gzip")

    with pytest.raises(ServiceUnavailable, match="compressed"):
        await (client.current() if operation == "current" else frames(client))


async def test_content_encoding_identity_is_accepted(
    server: ScriptedServer, client: ServiceClient
) -> None:
    server.answer(b"null", Content_Encoding="identity")

    assert await client.current() is None


async def never_reply(writer: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


async def trickle(writer: asyncio.StreamWriter) -> None:
    """Send one byte every 50 ms, without end."""
    writer.write(head(200, {"Content-Type": "application/json"}))
    while True:
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.05)


async def send_half(writer: asyncio.StreamWriter) -> None:
    """Send the headers and a part of the body."""
    writer.write(head(200, {"Content-Type": "application/json", "Content-Length": "100"}) + b"{")


async def close_without_reply(writer: asyncio.StreamWriter) -> None:
    """Send nothing: the server then closes the connection without a reply."""


async def send_ssh_greeting(writer: asyncio.StreamWriter) -> None:
    writer.write(b"SSH-2.0-OpenSSH_9.2\r\n")


@pytest.mark.parametrize(
    ("write_answer", "cause"),
    [
        pytest.param(never_reply, "timeout", marks=pytest.mark.medium),
        pytest.param(trickle, "timeout", marks=pytest.mark.medium),
        (send_half, "connection-lost"),
        (close_without_reply, "connection-lost"),
        (send_ssh_greeting, "connection-lost"),
    ],
)
async def test_a_misbehaving_server_raises_service_unavailable(
    server: ScriptedServer, client: ServiceClient, write_answer: Any, cause: str
) -> None:
    server.write_answer = write_answer

    with pytest.raises(ServiceUnavailable) as error:
        await asyncio.wait_for(client.current(), 60)

    assert error.value.cause == cause
    assert str(error.value)


async def test_a_closed_port_raises_service_unavailable(clock: FakeClock) -> None:
    async with running_server() as stopped:
        url = stopped.base_url
    client = ServiceClient(config(url).service, KEY, clock)

    with pytest.raises(ServiceUnavailable) as error:
        await client.current()
    await client.close()

    assert error.value.cause == "connection-refused"


@pytest.mark.medium
@pytest.mark.parametrize(("greeting", "cause"), [(b"SSH-2.0-OpenSSH\r\n", "tls"), (b"", "timeout")])
async def test_port_without_tls_is_reported_and_disconnected(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch, greeting: bytes, cause: str
) -> None:
    # With this small share, the time for connecting ends long before the time for the whole call,
    # even on a busy machine. If the time for the whole call ended first, the socket would stay
    # open.
    assert http_client.CONNECT_SHARE < 1
    monkeypatch.setattr(http_client, "CONNECT_SHARE", 0.02)
    has_connected, has_disconnected = asyncio.Event(), asyncio.Event()

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        has_connected.set()
        writer.write(greeting)
        with contextlib.suppress(ConnectionError):
            while await reader.read(9999):
                pass
        writer.close()
        has_disconnected.set()

    listener = await asyncio.start_server(greet, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    service = config(f"https://127.0.0.1:{port}").service
    service = service.model_copy(update={"request_timeout_seconds": 60.0})
    client = ServiceClient(service, KEY, clock)

    # On a busy machine, the first call can time out before it connects.
    while not has_connected.is_set():
        with pytest.raises(ServiceUnavailable) as error:
            await client.current()

    assert error.value.cause == cause
    await asyncio.wait_for(has_disconnected.wait(), 60)
    await client.close()
    listener.close()
    await listener.wait_closed()


@pytest.mark.parametrize(
    "proxy",
    ["nonsense", "ftp://proxy.example", "http://u:secret@[::1", "http://u:secret@proxy:99999"],
)
def test_invalid_proxy_raises_an_error_without_its_password(clock: FakeClock, proxy: str) -> None:
    service = config("https://ops.example.com").service.model_copy(update={"proxy": proxy})

    with pytest.raises(ConfigError, match=r"service\.proxy must be a URL") as error:
        ServiceClient(service, KEY, clock)

    assert "secret" not in str(error.value)


async def _queried_proxies(
    monkeypatch: pytest.MonkeyPatch, clock: FakeClock, *hosts_without_proxy: str
) -> tuple[list[str], list[str]]:
    """Call the service with ``proxy = "system"``. The system's settings name one proxy, and the
    environment names another. The system's settings use no proxy for ``hosts_without_proxy``.

    Return the paths that were requested from the proxy of the system, and from the proxy of the
    environment.
    """
    async with running_server() as system, running_server() as environment:
        for proxy in (system, environment):
            proxy.answer(b"", 502)
        monkeypatch.delenv("NO_PROXY")
        monkeypatch.setenv("HTTPS_PROXY", environment.base_url)
        monkeypatch.setattr(
            system_proxy,
            "system_proxies",
            lambda host: {} if host in hosts_without_proxy else {"https": system.base_url},
        )
        monkeypatch.setattr(system_proxy, "HAS_SETTINGS", True)
        # Every name resolves to this machine. Without a proxy, its port 1 refuses the call.
        resolve = partial(socket.getaddrinfo, "127.0.0.1")
        monkeypatch.setattr(
            socket, "getaddrinfo", lambda _, *rest, **options: resolve(*rest, **options)
        )
        service = config("https://ops.invalid:1").service.model_copy(update={"proxy": "system"})
        client = ServiceClient(service, KEY, clock)
        with pytest.raises(ServiceUnavailable):
            await client.heartbeat(HEARTBEAT)
        await client.close()
        return (
            [request.path for request in system.requests],
            [request.path for request in environment.requests],
        )


async def test_the_proxy_of_the_system_takes_precedence_over_the_environment(
    monkeypatch: pytest.MonkeyPatch, clock: FakeClock
) -> None:
    assert await _queried_proxies(monkeypatch, clock) == (["ops.invalid:1"], [])


async def test_a_host_that_the_system_excludes_from_its_proxy_is_called_directly(
    monkeypatch: pytest.MonkeyPatch, clock: FakeClock
) -> None:
    assert await _queried_proxies(monkeypatch, clock, "ops.invalid") == ([], [])


def test_unusable_proxy_of_the_system_raises_an_error_without_its_password(
    monkeypatch: pytest.MonkeyPatch, clock: FakeClock
) -> None:
    proxies = {"https": "socks4://user:secret@proxy.example"}
    monkeypatch.setattr(system_proxy, "system_proxies", lambda _: proxies)
    service = config("https://ops.example.com").service.model_copy(update={"proxy": "system"})

    with pytest.raises(ConfigError, match="the proxy in the system's settings") as error:
        ServiceClient(service, KEY, clock)

    assert "secret" not in str(error.value)


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "service.proxy"])
async def test_local_service_is_called_without_a_proxy(
    server: ScriptedServer, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    """A proxy could read the API key of an http request."""
    monkeypatch.delenv("NO_PROXY")
    server.answer(golden.text_of("heartbeat/reply").encode())
    async with running_server() as proxy:
        proxy.answer(b"", 502)
        service = config(server.base_url).service
        if variable == "service.proxy":
            service = service.model_copy(update={"proxy": proxy.base_url})
        else:
            monkeypatch.setenv(variable, proxy.base_url)
        client = ServiceClient(service, KEY, clock)
        try:
            await client.heartbeat(HEARTBEAT)
        finally:
            await client.close()
        assert proxy.requests == []
    assert len(server.requests) == 1


@pytest.mark.parametrize("content", [None, b"no certificate"])
def test_unreadable_trust_anchors_raise_an_error(
    clock: FakeClock, tmp_path: Path, content: bytes | None
) -> None:
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_bytes(content)
    service = config("https://localhost:9").service.model_copy(update={"ca_file": str(file)})

    with pytest.raises(ConfigError, match=r"service\.ca_file .*ca\.pem: "):
        ServiceClient(service, KEY, clock)


# ------------------------------------------------------------------------- onCommands


def command_ids(answers: list[Frame]) -> list[UUID]:
    return [command.request_id for frame in answers for command in frame.commands]


COMMAND_ID = UUID("c9f0f895-fb98-4b91-8b5e-2f6d7a8b9c0d")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (COMMAND, [COMMAND_ID]),
        (b"[" + COMMAND + b"," + COMMAND + b"]", [COMMAND_ID, COMMAND_ID]),
        (b'{"commands":[' + COMMAND + b"]}", [COMMAND_ID]),
        (b"null", []),
        (b"", []),
        (COMMAND + b"\n" + COMMAND + b"\n", [COMMAND_ID, COMMAND_ID]),
    ],
)
@pytest.mark.parametrize("content_type", ["application/json; charset=utf-8", "text/plain", ""])
async def test_a_complete_reply_is_parsed_as_polled_commands(
    server: ScriptedServer,
    client: ServiceClient,
    body: bytes,
    expected: list[UUID],
    content_type: str,
) -> None:
    server.answer(body, content_type=content_type)

    is_stream, answers = await frames(client)

    assert not is_stream
    assert command_ids(answers) == expected


async def test_accept_header_matches_the_delivery(
    server: ScriptedServer, client: ServiceClient
) -> None:
    server.answer(b"[]")

    await frames(client, stream=True)
    await frames(client, stream=False)

    first, second = server.requests
    assert first.path == "/api/public/v1/remoteControl/onCommands"
    assert first.headers["accept"].startswith("text/event-stream")
    assert second.headers["accept"] == "application/json"
    assert first.body == b"{}"


SSE = "\n".join(
    (
        ": keep-alive", "",
        "data: COMMAND", "",
        "event: command", "id: 7", "data: COMMAND", "",
        "event: anything", "data: [COMMAND, null]", "",
        "event: error", "data: COMMAND", "",
        "event: done", "data: COMMAND", "",
        "data: {", "data:  broken", "",
        'data: {"commands": [COMMAND]}', "", "",
    )
)  # fmt: skip


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
async def test_server_sent_events_are_parsed(
    server: ScriptedServer, client: ServiceClient, end: str
) -> None:
    body = SSE.replace("COMMAND", COMMAND.decode()).replace("\n", end).encode()
    server.answer(body, content_type="Text/Event-Stream;charset=utf-8")

    is_stream, answers = await frames(client)

    assert is_stream
    assert command_ids(answers) == [COMMAND_ID] * 4
    assert sum(len(frame.rejected) for frame in answers) == 3, (
        "null and both lines of the broken event must be rejected"
    )


@pytest.mark.parametrize(
    "content_type", ["application/x-ndjson", "application/ndjson", "application/jsonl"]
)
async def test_each_line_of_ndjson_is_a_frame(
    server: ScriptedServer, client: ServiceClient, content_type: str
) -> None:
    server.answer(COMMAND + b"\n\nbroken\r\n[" + COMMAND + b"]", content_type=content_type)

    is_stream, answers = await frames(client)

    assert is_stream
    assert command_ids(answers) == [COMMAND_ID, COMMAND_ID]


@pytest.mark.parametrize("content_type", ["text/event-stream", "application/x-ndjson"])
async def test_frames_of_a_stream_are_returned_as_they_arrive(
    server: ScriptedServer, client: ServiceClient, content_type: str
) -> None:
    may_continue = asyncio.Event()
    data = (b"data: " if "event" in content_type else b"") + COMMAND + b"\n\n"

    async def write_answer(writer: asyncio.StreamWriter) -> None:
        writer.write(head(200, {"Content-Type": content_type}) + data[:20])
        await writer.drain()
        writer.write(data[20:])
        await may_continue.wait()
        writer.write(data)

    server.write_answer = write_answer
    async with client.commands(stream=True) as answer:
        first = await anext(answer.frames)
        assert command_ids([first]) == [COMMAND_ID]
        may_continue.set()
        later_frames = [frame async for frame in answer.frames]

    assert command_ids(later_frames) == [COMMAND_ID]


@pytest.mark.parametrize(
    ("retry", "expected"),
    [("3000", [3.0]), ("0", [0.0]), ("-7", [0.0]), ("9" * 4000, [86_400.0]), ("soon", [])],
)
async def test_stream_sets_the_reconnect_time(
    server: ScriptedServer, client: ServiceClient, retry: str, expected: list[float]
) -> None:
    async def write_answer(writer: asyncio.StreamWriter) -> None:
        writer.write(head(200, {"Content-Type": "text/event-stream"}))
        writer.write(f"retry: {retry}\n: connected\n\n".encode())

    server.write_answer = write_answer

    answers = (await frames(client))[1]
    assert [answer.reconnect_s for answer in answers if answer.reconnect_s is not None] == expected
    assert command_ids(answers) == []


@pytest.mark.medium
async def test_a_stream_may_last_longer_than_the_deadline_of_a_call(
    server: ScriptedServer, client: ServiceClient
) -> None:
    """The deadline of a call applies only to the headers of a stream. The stream itself has an idle
    time-out.
    """

    async def write_answer(writer: asyncio.StreamWriter) -> None:
        writer.write(head(200, {"Content-Type": "text/event-stream"}))
        for _ in range(13):
            writer.write(b": still here\n\n")
            await writer.drain()
            await asyncio.sleep(0.1)
        writer.write(b"data: " + COMMAND + b"\n\n")

    server.write_answer = write_answer

    assert command_ids((await frames(client))[1]) == [COMMAND_ID]


async def test_broken_stream_returns_the_frames_before_the_error(
    server: ScriptedServer, client: ServiceClient
) -> None:
    async def write_answer(writer: asyncio.StreamWriter) -> None:
        line = b"data: " + COMMAND + b"\n\n"
        writer.write(
            head(200, {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"})
        )
        writer.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")

    server.write_answer = write_answer
    received: list[Frame] = []
    with pytest.raises(ServiceUnavailable) as error:
        await receive_frames(client, received)

    assert error.value.cause == "connection-lost"
    assert command_ids(received) == [COMMAND_ID]


async def receive_frames(client: ServiceClient, received: list[Frame]) -> None:
    """Append each frame of a stream to ``received``, until the stream ends or breaks."""
    async with client.commands(stream=True) as answer:
        async for frame in answer.frames:
            received.append(frame)


@pytest.mark.parametrize(
    ("content_type", "start"), [("text/event-stream", b"data: "), ("application/x-ndjson", b"")]
)
async def test_an_endless_event_raises_service_unavailable(
    server: ScriptedServer, client: ServiceClient, content_type: str, start: bytes
) -> None:
    server.answer(start + b"x" * (FRAME_MAX_BYTES * 3), content_type=content_type)

    with pytest.raises(ServiceUnavailable) as error:
        await frames(client)

    assert error.value.cause == "bad-reply"


async def test_invalid_utf8_does_not_end_the_stream(
    server: ScriptedServer, client: ServiceClient
) -> None:
    server.answer(b"data: \xff\xfe\n\ndata: " + COMMAND + b"\n\n", content_type="text/event-stream")

    assert command_ids((await frames(client))[1]) == [COMMAND_ID]


async def test_a_stream_is_closed_when_its_context_ends(
    server: ScriptedServer, client: ServiceClient
) -> None:
    closed = asyncio.Event()

    async def write_answer(writer: asyncio.StreamWriter) -> None:
        writer.write(head(200, {"Content-Type": "text/event-stream"}))
        try:
            while True:
                writer.write(b": still here\n\n")
                await writer.drain()
                await asyncio.sleep(0.01)
        except ConnectionError:
            closed.set()

    server.write_answer = write_answer
    async with client.commands(stream=True) as answer:
        assert answer.is_stream

    await asyncio.wait_for(closed.wait(), 60)


def test_a_failed_connection_on_windows_is_reported_with_its_reason() -> None:
    """An asynchronous call of Windows sets `errno` to EINVAL, so `errno` cannot name the reason."""
    cause = ConnectionRefusedError(errno.EINVAL, "The remote computer refused the connection")
    cause.winerror = 1225  # type: ignore[attr-defined, unused-ignore]
    with pytest.raises(ServiceUnavailable) as error, as_unavailable():
        raise httpx2.ConnectError("All connection attempts failed") from cause
    assert (error.value.cause, str(error.value)) == ("connection-refused", cause.strerror)
