"""A service whose replies have a mark in each text, and many keys that the contract does not have.

A test searches for the marks to find each place that they reach. A mark looks like a path and a
shell command, so that it has an effect if the agent uses it as one of them.
"""

import asyncio
import json
from datetime import datetime
from typing import Any, Final

from tests.fakes.hostile_service import STREAM, Exchange, HostileService
from tests.fakes.strict_service import Json

MARK_END: Final = ";$(reboot)|../../../tmp/x"


def mark(name: str) -> str:
    """Return the text that the service sends as ``name``."""
    return f"mark-{name}{MARK_END}"


UNKNOWN_KEYS: Final = (
    "command", "args", "shell", "script", "code", "path", "file", "content", "url", "host",
    "address", "addresses", "subnets", "ports", "exclude", "target", "printer", "proxy", "baseUrl",
    "apiKey", "interval", "update", "version2", "restart", "reboot", "config", "environment",
    "plugin", "__class__", "py/object",
)  # fmt: skip
TEXT_FIELDS: Final = ("organizationId", "locationId", "legacyInstallId", "appVersion")
"""Fields of the enrollment record that may contain any text."""
PROBLEM_FIELDS: Final = (
    "title", "type", "instance", "trace_id", "code", "detail", "reason", "errors"
)  # fmt: skip
HEADERS: Final = (
    "Set-Cookie", "Location", "Link", "Refresh", "Alt-Svc", "Content-Location", "Via", "ETag",
    "Strict-Transport-Security", "Proxy-Authenticate", "WWW-Authenticate", "X-Command", "Upgrade",
    "Last-Modified", "Content-Disposition", "Retry-After",
)  # fmt: skip
OTHER_KINDS: Final = (
    "shell", "exec", "file", "update", "restart", "config", "print", "scan", "Network", "", None, 7,
    ["network"], {"network": 1}, True,
)  # fmt: skip
COMMAND_FIELDS: Final = ("version", "requestId", "bindingId", "kind", "expiresAt", "status")
"""Fields of a command. All but the last one are required."""
REFUSED: Final = 409
LAST_SEEN: Final = "2001-02-03T04:05:06+00:00"


class HostileReplies(HostileService):
    """Answers every call. ``trap`` is an address that no device may connect to.

    With ``is_hostile`` = False, it makes the same sequence of replies without marks.
    """

    def __init__(self, *, is_hostile: bool, trap: str) -> None:
        super().__init__(lambda: datetime.now().astimezone())
        self._is_hostile = is_hostile
        self._trap = trap
        self.sent: dict[str, list[str]] = {}
        """What the device sent, by operation: headers and body of each call."""
        self.values: dict[str, str] = {}
        """The values that the service chose, by operation and field."""
        self.refuses = False
        """Whether heartbeats are refused. The agent then calls `current`: see `_answer_current`."""
        for operation in ("challenge", "enroll", "heartbeat", "acknowledge", "submitResult"):
            self.faults[operation] = self._answer
        self.faults["current"] = self._answer_current
        self.faults["onCommands"] = self._push_hostile

    def _unknown_keys(self) -> Json:
        keys: Json = {key: mark(f"key-{key}") for key in UNKNOWN_KEYS}
        return keys | {"url": self._trap, "addresses": [self._trap], "host": "127.0.0.1"}

    async def _reply(self, x: Exchange, code: int, body: Any) -> None:
        headers: dict[str, Any] = {}
        if self._is_hostile:
            headers = {name: f"{mark(f'header-{name}')}={self._trap}" for name in HEADERS}
            headers["Set-Cookie"] = f"{mark('cookie')}; Path=/".replace(";$(reboot)|", "=")
            if isinstance(body, dict):
                body = self._unknown_keys() | body
        await x.reply(code, json.dumps(body).encode(), **headers)

    def _note(self, x: Exchange) -> str:
        """Store a call of the device in ``sent``, and return its operation."""
        operation = x.request.path.rpartition("/")[2]
        content = f"{x.request.path} {x.request.headers} {x.request.body.decode()}"
        self.sent.setdefault(operation, []).append(content)
        return operation

    async def _answer(self, x: Exchange) -> None:
        operation = self._note(x)
        if operation == "heartbeat" and self.refuses:
            fields = [f for f in PROBLEM_FIELDS if self._is_hostile]
            problem: Json = {field: mark(f"problem-{field}") for field in fields}
            if fields:
                problem["errors"] = {mark("problem-errors-key"): [mark("problem-errors")]}
            await self._reply(x, REFUSED, problem)
            return
        reply = json.loads((await x.execute()).body)
        if self._is_hostile and operation == "challenge":
            nonce = reply["nonce"] = mark("nonce")
            self._challenges[reply["challengeId"]] = nonce, json.loads(x.request.body)
        if self._is_hostile and operation == "enroll":
            reply |= {field: mark(field) for field in TEXT_FIELDS}
            reply["capabilities"] = [mark("capabilities")]
        if self._is_hostile and operation == "heartbeat":
            reply["lastSeenAt"] = LAST_SEEN
        self._note_values(operation, reply)
        await self._reply(x, 200, reply)

    def _note_values(self, operation: str, reply: Json) -> None:
        for field, value in reply.items():
            text = value[0] if isinstance(value, list) else value
            self.values[f"{operation}.{field}"] = str(text)

    async def _answer_current(self, x: Exchange) -> None:
        """Redirect the first call, and then state that the device has no binding."""
        is_first = "current" not in self.sent
        self._note(x)
        if is_first:
            location = f"{self._trap}/{mark('location')}" if self._is_hostile else "/"
            await x.reply(307, Location=location)
        else:
            await self._reply(x, 200, None)

    async def _push_hostile(self, x: Exchange) -> None:
        """Send hostile entries and then the requests that wait, and leave the stream open."""
        self._note(x)
        await x.write(STREAM.format("text/event-stream").encode())
        entries: list[Any] = []
        if self._is_hostile:
            await x.write(f"retry: 1\nid: {mark('event-id')}\n: {mark('comment')}\n\n".encode())
            await x.write(f"event: error\ndata: {mark('event-error')}\n\n".encode())
            entries = self._hostile_entries()
        further_keys = self._unknown_keys() if self._is_hostile else {}
        for waiting_request in self._waiting.values():
            self._note_values("onCommands", waiting_request)
        for entry in (
            *entries,
            *({**further_keys, **waiting_request} for waiting_request in self._waiting.values()),
        ):
            await x.write(b"data: " + json.dumps(entry).encode() + b"\n\n")
        await asyncio.Event().wait()

    def _hostile_entries(self) -> list[Any]:
        """Return entries that must cause no collection. They are too few to make the agent close
        the stream.
        """
        valid = next(iter(self._waiting.values()))
        return [
            self._unknown_keys(),
            {"type": "shell", "command": mark("type-shell")},
            *({**valid, "kind": kind} for kind in OTHER_KINDS),
            *({**valid, field: mark(f"command-{field}")} for field in COMMAND_FIELDS),
            *({k: v for k, v in valid.items() if k != f} for f in COMMAND_FIELDS[:5]),
            {**valid, "version": 2},
            {**valid, "status": "restart"},
            {**valid, "bindingId": "0f7e4a52-8f4c-4f0e-9c52-6f1b1d1c7a10", "kind": "application"},
            mark("entry"),
        ]
