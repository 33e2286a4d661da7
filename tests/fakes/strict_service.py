"""An independent service: it implements the contract document and shares no code with the agent.

It refuses every body that the document does not allow, and records the reason. A test selects the
`Reading` of the contract, which is the format in which `onCommands` delivers requests. The service
records the device's actions in order.
"""

import asyncio
import json
import ssl
import uuid
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Self

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_der_public_key

from tests.fakes.http_server import HttpServer, Reply, Request
from tests.fakes.schemas import contract
from tests.fakes.virtual_clock import VirtualTimeLoop

API_KEY = "strict-test-key"
PREFIX = "/api/public/v1/remoteControl/"

Json = dict[str, Any]


class Reading(StrEnum):
    """A format of the reply to `onCommands`. The contract leaves the format open."""

    SSE = "sse"
    SSE_NAMED_EVENTS = "sse-named-events"
    SSE_ARRAY = "sse-array"
    COMMANDS_OBJECT = "commands-object"
    REQUESTS_OBJECT = "requests-object"
    ITEMS_OBJECT = "items-object"
    ARRAY = "array"
    SINGLE_OR_NULL = "single-or-null"
    NDJSON = "ndjson"
    NOTHING = "nothing"  # a reply with an empty body


@dataclass
class StrictService:
    reading: Reading = Reading.SSE
    violations: list[str] = field(default_factory=list)
    """A text for each error in the calls of the device."""
    acknowledged: list[tuple[str, str]] = field(default_factory=list)
    """The id of the request and the acknowledged status, for each acknowledgement."""
    reports: list[Json] = field(default_factory=list)
    """The body of each accepted `submitResult`. A repeated body is stored only once."""
    calls: list[str] = field(default_factory=list)
    """The operation of each call, in order."""
    heartbeats: int = 0
    overrides: dict[str, Callable[[], Reply]] = field(default_factory=dict)
    """Functions whose replies replace the usual replies, by the name of the operation."""
    bodies: list[bytes] = field(default_factory=list)
    """Every body that `submitResult` received, including repeated ones."""

    def __post_init__(self) -> None:
        self.binding_id = str(uuid.uuid4())
        self.device: Json | None = None
        self._challenges: dict[str, tuple[str, Json]] = {}
        self._waiting: dict[str, Json] = {}
        self._once: dict[str, list[Reply]] = {}
        self._changed = asyncio.Condition()
        self._server = HttpServer(self._handle)

    @property
    def base_url(self) -> str:
        return self._server.base_url

    async def __aenter__(self) -> Self:
        await self._server.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._server.__aexit__(*error)

    async def listen(self, host: str, port: int, tls: ssl.SSLContext) -> None:
        """Serve at ``host`` and ``port`` with TLS, until this process ends."""
        await self._server.listen(host, port, tls)

    async def until(self, condition: Callable[[], bool], within_s: float | None = None) -> None:
        """Wait until an action of the device makes ``condition`` true.

        Args:
            within_s: the time limit. The default is 30 s in virtual time. It is 120 s in real time,
                because the machine may be busy.
        """
        if within_s is None:
            is_virtual = isinstance(asyncio.get_running_loop(), VirtualTimeLoop)
            within_s = 30 if is_virtual else 120
        async with asyncio.timeout(within_s), self._changed:
            await self._changed.wait_for(condition)

    async def request_report(self, kind: str, *, expires_in_s: float = 600) -> str:
        """Queue a request and return its id.

        ``expires_in_s`` is counted from the real time, also if the agent's clock is virtual.
        """
        expires = datetime.now(UTC) + timedelta(seconds=expires_in_s)
        command = {
            "version": 1,
            "requestId": str(uuid.uuid4()),
            "bindingId": self.binding_id,
            "kind": kind,
            "expiresAt": expires.isoformat().replace("+00:00", "Z"),
            "status": "queued",
        }
        request_id = str(command["requestId"])
        self._waiting[request_id] = command
        await self._notify()
        return request_id

    def once(self, operation: str, reply: Reply) -> None:
        """Answer the next call of ``operation`` with ``reply``."""
        self._once.setdefault(operation, []).append(reply)

    def report_for(self, request_id: str) -> Json | None:
        return next((r for r in self.reports if r.get("requestId") == request_id), None)

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def _handle(self, request: Request) -> Reply:
        operation = request.path.removeprefix(PREFIX)
        self.calls.append(operation)
        try:
            return await self._reply_to(operation, request)
        finally:
            await self._notify()

    async def _reply_to(self, operation: str, request: Request) -> Reply:
        if request.headers.get("authorization") != f"Bearer {API_KEY}":
            return Reply(401, media_type=None)
        if operation == "submitResult":
            self.bodies.append(request.body)
        if (override := self.overrides.get(operation)) is not None:
            return override()
        if self._once.get(operation):
            return self._once[operation].pop(0)
        if request.method != "POST" or request.headers.get("content-type") != "application/json":
            return self._refuse(f"{operation}: {request.method} {request.headers}")
        body = json.loads(request.body)
        return await getattr(self, f"_on_{operation}", self._unknown)(body)

    def _refuse(self, *lines: str) -> Reply:
        self.violations.extend(lines)
        return Reply(400, json.dumps({"detail": "; ".join(lines)}).encode())

    async def _unknown(self, body: Json) -> Reply:
        return self._refuse(f"an operation that does not exist, with {body}")

    async def _on_challenge(self, body: Json) -> Reply:
        if problems := contract.violations(contract.CHALLENGE, body):
            return self._refuse(*problems)
        nonce, challenge_id = f"nonce-{uuid.uuid4()}-ü😀", str(uuid.uuid4())
        self._challenges[challenge_id] = (nonce, body)
        # "later" is a key of a later version, which the agent must ignore.
        return _json({"challengeId": challenge_id, "nonce": nonce, "later": "key"})

    async def _on_enroll(self, body: Json) -> Reply:
        if problems := contract.violations(contract.ENROLL, body):
            return self._refuse(*problems)
        nonce, challenge = self._challenges.pop(body["challengeId"], ("", {}))
        key = load_der_public_key(bytes.fromhex(challenge["publicKey"]))
        assert isinstance(key, Ed25519PublicKey)
        try:
            key.verify(bytes.fromhex(body["signature"]), nonce.encode())
        except InvalidSignature:
            return self._refuse("the signature does not fit the nonce")
        self.device = {
            "instanceId": challenge["instanceId"],
            "locationId": challenge["locationId"],
            "legacyInstallId": challenge["legacyInstallId"],
            "appVersion": challenge.get("appVersion"),
            "capabilities": challenge["capabilities"],
            "bindingId": self.binding_id,
            "organizationId": "organization-1",
            "somethingOfALaterVersion": {"nested": True},
        }
        return _json(self.device)

    async def _on_current(self, body: Json) -> Reply:
        if problems := contract.violations(contract.EMPTY, body):
            return self._refuse(*problems)
        return _json(self.device)

    async def _on_heartbeat(self, body: Json) -> Reply:
        if problems := contract.violations(contract.HEARTBEAT, body):
            return self._refuse(*problems)
        self.heartbeats += 1
        return _json({"lastSeenAt": datetime.now(UTC).isoformat()})

    async def _on_acknowledge(self, body: Json) -> Reply:
        if problems := contract.violations(contract.ACKNOWLEDGE, body):
            return self._refuse(*problems)
        self.acknowledged.append((body["requestId"], body["status"]))
        self._waiting.pop(body["requestId"], None)
        return _json({"accepted": True, "status": body["status"]})

    async def _on_submitResult(self, body: Json) -> Reply:  # noqa: N802 - the operation's name
        schema = {
            "network": contract.NETWORK_PAYLOAD,
            "application": contract.APPLICATION_PAYLOAD,
        }
        problems = contract.violations(contract.SUBMIT_RESULT, body)
        if not problems and body.get("report") is not None:
            problems = contract.violations(schema[body["kind"]], body["report"])
        if problems:
            return self._refuse(*problems)
        earlier_report = next((r for r in self.reports if r["reportId"] == body["reportId"]), None)
        if earlier_report is not None and earlier_report != body:
            return self._refuse(f"report {body['reportId']} was sent again with different content")
        if earlier_report is None:
            self.reports.append(body)
        return _json(
            {
                "reportId": body["reportId"],
                "requestId": body.get("requestId"),
                "outcome": body["outcome"],
                "trackerStatus": "disabled",
            }
        )

    async def _on_onCommands(self, body: Json) -> Reply:  # noqa: N802 - the operation's name
        if problems := contract.violations(contract.EMPTY, body):
            return self._refuse(*problems)
        if self.reading in {Reading.SSE, Reading.SSE_NAMED_EVENTS, Reading.SSE_ARRAY}:
            return Reply(media_type="text/event-stream; charset=utf-8", stream=self._push())
        if self.reading is Reading.NDJSON:
            return Reply(media_type="application/x-ndjson", stream=self._push())
        commands = list(self._waiting.values())
        documents: dict[Reading, Any] = {
            Reading.COMMANDS_OBJECT: {"commands": commands, "more": False},
            Reading.REQUESTS_OBJECT: {"requests": commands},
            Reading.ITEMS_OBJECT: {"items": commands},
            Reading.ARRAY: commands,
        }
        if self.reading in documents:
            return _json(documents[self.reading])
        if self.reading is Reading.SINGLE_OR_NULL:
            return _json(commands[0] if commands else None)
        return Reply(200, b"")

    async def _push(self) -> AsyncIterator[bytes]:
        """Yield each command once, in the format that ``reading`` selects.

        A command that is not acknowledged is delivered again on the next connection.
        """
        sent_ids: set[str] = set()
        if self.reading is not Reading.NDJSON:
            yield b": hello\r\n\r\n"
        while True:
            async with self._changed:
                await self._changed.wait_for(lambda: bool(self._waiting.keys() - sent_ids))
            commands = [c for i, c in self._waiting.items() if i not in sent_ids]
            sent_ids.update(self._waiting)
            if self.reading is Reading.SSE_ARRAY:
                yield _event(commands)
            for command in commands:
                if self.reading is Reading.SSE:
                    yield _event(command)
                elif self.reading is Reading.SSE_NAMED_EVENTS:
                    yield b'event: error\ndata: {"message": "not a command"}\n\n'
                    yield b"id: 7\nevent: remote-request\n" + _event(command)
                elif self.reading is Reading.NDJSON:
                    yield json.dumps(command).encode() + b"\n"


def _event(document: Any) -> bytes:
    """Return a server-sent event whose data is split into several lines, as the format allows."""
    lines = json.dumps(document, indent=1).split("\n")
    return "".join(f"data: {line}\n" for line in lines).encode() + b"\n"


def _json(document: Any) -> Reply:
    return Reply(200, json.dumps(document).encode())
