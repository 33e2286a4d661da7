"""The outermost ASGI layer: headers of replies, replies to failures, and the access log."""

import asyncio
import logging
import random
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from email.utils import format_datetime
from http import HTTPStatus

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from controlplane.clock import Clock
from controlplane.operation.errors import Refusal, internal_error
from controlplane.web.problems import reply_to

log = logging.getLogger("controlplane.access")
PATH_MAX = 200
OTHER = "other"
"""The name of the operation in metrics and logs if the path is unknown."""
CountCall = Callable[[str, int, str, float | None], None]
"""Takes the operation, the status (0 if the client disconnected before the reply), the code of the
refusal (``_Call.code``), and the duration in seconds (None for streams)."""
DELAYED_STATUSES = {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE}
NO_STORE = (b"cache-control", b"no-store")
NO_SNIFFING = (b"x-content-type-options", b"nosniff")
_NOT_PLAIN = re.compile(r"[^\x21-\x7e]")


@dataclass(frozen=True, slots=True)
class CallMiddleware:
    """ASGI middleware. It passes a trace id to the application in ``scope["state"]["trace_id"]``.

    Attributes:
        delay_s: delay in seconds before a refusal with status 429 or 503 is sent. Without the
            delay, clients that retry at once would keep the service busy.
        names: names of operations by path.
        count: counts a call in the metrics.
    """

    app: ASGIApp
    _: KW_ONLY
    clock: Clock
    delay_s: float
    names: Mapping[str, str]
    count: CountCall

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        call = _Call(scope, send, self.clock)
        try:
            await self.app(scope, receive, call.send)
        except ClientDisconnect:
            call.code = "client_gone"
        except Refusal as refusal:
            if refusal.status in DELAYED_STATUSES:
                await asyncio.sleep(self.delay_s)
            await call.refuse(refusal, receive)
        except Exception:
            # Every error is caught: the caller gets only a trace id, and the log has the details.
            fields = {"trace_id": call.trace_id}
            log.exception("trace_id=%s the call failed", call.trace_id, extra=fields)
            await call.refuse(internal_error(), receive)
        finally:
            operation = self.names.get(scope["path"], OTHER)
            self.count(operation, call.status, call.code, call.took_s)
            call.write_log(operation)


class _Call:
    """One call that passes through the middleware."""

    def __init__(self, scope: Scope, send: Send, clock: Clock) -> None:
        # The id only identifies the call in the log, so it does not matter if it can be guessed.
        self.trace_id = f"{random.getrandbits(128):032x}"
        self.code = ""
        """Code of the refusal, or `client_gone` if the client disconnected. Otherwise empty."""
        self._scope = scope
        self._send = send
        self._clock = clock
        self.status = 0
        self._is_stream = False
        self._began_s = time.monotonic()
        scope.setdefault("state", {})["trace_id"] = self.trace_id

    @property
    def took_s(self) -> float | None:
        """The duration in seconds. None for a stream, because its client decides when it ends."""
        return None if self._is_stream else time.monotonic() - self._began_s

    async def send(self, message: Message) -> None:
        self._is_stream |= message.get("more_body", False)
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers: list[tuple[bytes, bytes]] = message["headers"]
            if all(name.lower() != b"cache-control" for name, _ in headers):
                headers.append(NO_STORE)
            date = format_datetime(self._clock(), usegmt=True).encode()
            if renewed_cookie := self._scope["state"].get("set_cookie"):
                headers.append((b"set-cookie", renewed_cookie.encode()))
            headers += ((b"date", date), (b"trace-id", self.trace_id.encode()), NO_SNIFFING)
        await self._send(message)

    async def refuse(self, refusal: Refusal, receive: Receive) -> None:
        self.code = refusal.code
        if self.status:
            return  # The reply has started. The server closes the connection.
        response = reply_to(refusal, _plain(self._scope["path"]), self.trace_id)
        await response(self._scope, receive, self.send)

    def write_log(self, operation: str) -> None:
        """Log the call: on level ERROR for status 5xx, on INFO for 4xx, otherwise on DEBUG."""
        level = logging.DEBUG
        if self.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            level = logging.ERROR
        elif self.status >= HTTPStatus.BAD_REQUEST:
            level = logging.INFO
        if not log.isEnabledFor(level):
            return
        caller = self._scope["state"].get("caller")
        key_id = str(caller.key_id) if caller else None
        took_ms = (time.monotonic() - self._began_s) * 1000
        method, path = _plain(self._scope["method"]), _plain(self._scope["path"])
        log.log(
            level,
            "%s %s %d %.0fms key=%s trace_id=%s %s",
            *(method, path, self.status, took_ms, key_id or "-", self.trace_id, self.code),
            extra={
                "trace_id": self.trace_id,
                "operation": operation,
                "method": method,
                "path": path,
                "status": self.status,
                "duration_ms": round(took_ms, 1),
                "code": self.code or None,
                "key_id": key_id,
                "organization_id": caller.organization_id if caller else None,
            },
        )


def _plain(text: str) -> str:
    """Return the start of ``text``, with ``?`` for each character that is unsafe in a log line."""
    return _NOT_PLAIN.sub("?", text[:PATH_MAX])
