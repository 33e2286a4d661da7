"""Faults of a service in one operation, and the conditions that the agent must report for each."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.fakes import hostile_service as replies
from tests.fakes.hostile_service import Fault

OPERATIONS = (
    "challenge",
    "enroll",
    "current",
    "heartbeat",
    "onCommands",
    "acknowledge",
    "submitResult",
)

ODD_REPLIES: dict[str, Fault] = {
    "empty": replies.status(200),
    "204": replies.status(204),
    "garbage": replies.status(200, b"\x00\x01\x02 garbage"),
    "truncated-json": replies.status(200, b'{"lastSeenAt": "2026-'),
    "wrong-types": replies.wrong_types,
    "number": replies.document(12),
    "text": replies.document("ok"),
    "true": replies.document(True),
    "list-of-lists": replies.document([[[]]]),
    "empty-object": replies.document({}),
    "deep-nesting": replies.status(200, b"[" * 100_000),
    "deep-objects": replies.status(200, b'{"a":' * 50_000),
    "duplicate-keys": replies.status(
        200, b'{"bindingId": 1, "bindingId": 2, "nonce": "", "nonce": 3}'
    ),
    "not-utf8": replies.not_utf8,
    "byte-order-mark": replies.status(200, b"\xef\xbb\xbf{}"),
    "large": replies.large,
    "compressed": replies.compressed,
    "another-device": replies.another_device,
}
"""For these replies, any condition is correct: a reply that is invalid for one operation can be
valid for a different one."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """A fault, and codes of conditions (rules.health), one of which the agent must report."""

    fault: Fault
    codes: tuple[str, ...]


TROUBLES: dict[str, Trouble] = {
    "500": Trouble(replies.status(500), ("server-error",)),
    "500-page": Trouble(replies.status(500, b"<html>oops", "text/html"), ("server-error",)),
    "502": Trouble(replies.status(502, b"<html>bad gateway", "text/html"), ("server-error",)),
    "503": Trouble(replies.status(503), ("server-error",)),
    "504": Trouble(replies.status(504), ("server-error",)),
    "511": Trouble(
        replies.status(511, replies.PORTAL, "text/html"), ("server-error", "captive-portal")
    ),
    "599": Trouble(replies.status(599), ("server-error",)),
    "503-wait": Trouble(replies.status(503, Retry_After="20"), ("throttled",)),
    "429": Trouble(replies.status(429), ("throttled",)),
    "429-wait": Trouble(replies.status(429, Retry_After="7"), ("throttled",)),
    "429-zero": Trouble(replies.status(429, Retry_After="0"), ("throttled",)),
    "429-negative": Trouble(replies.status(429, Retry_After="-5"), ("throttled",)),
    "429-words": Trouble(replies.status(429, Retry_After="soon"), ("throttled",)),
    "429-huge": Trouble(replies.status(429, Retry_After="9" * 400), ("throttled",)),
    "429-date": Trouble(replies.retry_after_date(429, 25), ("throttled",)),
    "429-past": Trouble(replies.retry_after_date(429, -3600), ("throttled",)),
    "503-year-9999": Trouble(
        replies.status(503, Retry_After="Fri, 31 Dec 9999 23:59:59 GMT"), ("throttled",)
    ),
    "reset": Trouble(replies.reset, ("connection-lost",)),
    "close": Trouble(replies.close, ("connection-lost",)),
    "not-http": Trouble(replies.raw(b"SSH-2.0-OpenSSH_9.2\r\n"), ("connection-lost",)),
    "cut-body": Trouble(replies.executed_and_truncated, ("connection-lost",)),
    "bad-chunks": Trouble(
        replies.raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
        ("connection-lost",),
    ),
    "bad-length": Trouble(
        replies.raw(b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"), ("connection-lost",)
    ),
    "endless-head": Trouble(
        replies.raw(b"HTTP/1.1 200 OK\r\nX: " + b"y" * 300_000 + b"\r\n\r\n{}"),
        ("connection-lost", "bad-reply"),
    ),
    "hang": Trouble(replies.hang, ("timeout",)),
    "hang-after-head": Trouble(replies.hang_after_the_head, ("timeout",)),
    "trickle": Trouble(replies.trickle, ("timeout",)),
    "trickle-head": Trouble(replies.trickle_head, ("timeout",)),
    "100-for-ever": Trouble(replies.continue_for_ever, ("timeout",)),
    "portal-200": Trouble(replies.status(200, replies.PORTAL, "text/html"), ("captive-portal",)),
    "portal-403": Trouble(replies.status(403, replies.PORTAL, "text/html"), ("captive-portal",)),
    "portal-404": Trouble(replies.status(404, replies.PORTAL, "text/html"), ("captive-portal",)),
    "redirect": Trouble(replies.status(302, Location="http://portal.example/login"), ("redirect",)),
    "redirect-to-itself": Trouble(replies.status(307, Location="/"), ("redirect",)),
    "304": Trouble(replies.status(304), ("redirect",)),
    "401": Trouble(replies.status(401), ("credential-refused",)),
    "407": Trouble(replies.status(407), ("proxy",)),
    "408": Trouble(replies.status(408), ("timeout",)),
    "425": Trouble(replies.status(425), ("timeout",)),
    "executed-and-lost": Trouble(replies.executed_and_lost, ("connection-lost",)),
}

REFUSALS: dict[str, Fault] = {
    str(code): replies.status(code, b'{"title": "No", "detail": "go \\u001b[31maway\\u0000"}')
    for code in (400, 403, 404, 405, 409, 410, 413, 418, 422)
}

STREAMS: dict[str, Fault] = {
    "sse-ends": replies.streamed("text/event-stream", b": hi\n\n"),
    "sse-no-line-end": replies.streamed("text/event-stream", b"data: " + b"x" * 65536, 40),
    "sse-endless-event": replies.streamed(
        "text/event-stream", b"data: " + b"x" * 60_000 + b"\n", 40
    ),
    "sse-garbage": replies.streamed("text/event-stream", b"data: {{{\n\n" * 20),
    "sse-nulls": replies.streamed("text/event-stream", b"\x00" * 1000 + b"\n\n"),
    "sse-trickle": replies.streamed("text/event-stream", b"d", 10_000, 10),
    "sse-silence": replies.streamed("text/event-stream", b"", 1, 10**6),
    "sse-flood": replies.streamed("text/event-stream", b"data: {}\n\n" * 2000),
    "ndjson-no-line-end": replies.streamed("application/x-ndjson", b"[" * 65536, 40),
    "ndjson-garbage": replies.streamed("application/x-ndjson", b"\xff\n" * 3000),
    "ndjson-ends": replies.streamed("application/x-ndjson", b"\n"),
}


@dataclass(frozen=True, slots=True)
class Case:
    """A fault in one operation.

    Args:
        codes: The agent must report one of these conditions. If empty, any condition is correct.
        rank: A number from 0 to 6. The cases of one rank contain each fault of a reply exactly
            once, spread over all operations. So any one rank covers all these faults and all
            operations. The faults of streams have rank 0.
    """

    operation: str
    name: str
    fault: Fault
    codes: tuple[str, ...] = field(default=())
    rank: int = 0

    def __str__(self) -> str:
        return f"{self.operation}-{self.name}"


def _codes(operation: str, name: str, trouble: Trouble) -> tuple[str, ...]:
    if operation != "onCommands" or not trouble.codes:
        return trouble.codes
    # A fault after the head of the reply breaks a command stream. If the stream is cut before its
    # first frame, the agent treats it as ended, which is no condition.
    return () if name == "cut-body" else (*trouble.codes, "stream-broken", "partly-failing")


def cases() -> Iterator[Case]:
    """Yield every case, one operation after the other."""
    troubles = [
        *TROUBLES.items(),
        *((n, Trouble(f, ())) for n, f in {**ODD_REPLIES, **REFUSALS}.items()),
    ]
    for row, operation in enumerate(OPERATIONS):
        for column, (name, trouble) in enumerate(troubles):
            codes = _codes(operation, name, trouble)
            yield Case(operation, name, trouble.fault, codes, (column - row) % len(OPERATIONS))
    for name, fault in STREAMS.items():
        yield Case("onCommands", name, fault)
