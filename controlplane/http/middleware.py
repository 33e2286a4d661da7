"""The outermost layer: every reply has its headers, every failure its problem, every call its
line in the log.
"""

import asyncio
import logging
import random
import re
import time
from collections.abc import Callable
from email.utils import format_datetime
from http import HTTPStatus

from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from controlplane.clock import Clock
from controlplane.http.errors import Refusal, internal_error

log = logging.getLogger("controlplane.access")
PATH_MAX = 200
TOO_MUCH = {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE}
Answer = Callable[[Refusal, str, str], Response]
"""Makes the reply of a refusal, the path as it may be shown, and the trace id."""
_NOT_PLAIN = re.compile(r"[^\x21-\x7e]")


class Guard:
    """ASGI middleware. Gives ``scope["state"]["trace_id"]`` to what is inside.

    Who is refused for asking too much is answered after ``delay_s``: who asks again at once would
    otherwise keep the service busy with refusals.
    """

    def __init__(self, app: ASGIApp, clock: Clock, delay_s: float, answer: Answer) -> None:
        self._app = app
        self._clock = clock
        self._delay_s = delay_s
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        call = _Call(scope, send, self._clock, self._answer)
        try:
            await self._app(scope, receive, call.send)
        except ClientDisconnect:
            call.note = "the client went away"
        except Refusal as refusal:
            if refusal.status in TOO_MUCH:
                await asyncio.sleep(self._delay_s)
            await call.refuse(refusal, receive)
        except Exception:
            # The boundary: whatever it was, the caller learns a trace id and the log the rest.
            log.exception("trace_id=%s the call failed", call.trace_id)
            await call.refuse(internal_error(), receive)
        finally:
            call.write_log()


class _Call:
    """One call on its way through the guard."""

    def __init__(self, scope: Scope, send: Send, clock: Clock, answer: Answer) -> None:
        # Names the call in the log; nothing depends on its being hard to guess.
        self.trace_id = f"{random.getrandbits(128):032x}"
        self.note = ""
        self._scope = scope
        self._send = send
        self._clock = clock
        self._answer = answer
        self._status = 0
        self._began_s = time.monotonic()
        scope.setdefault("state", {})["trace_id"] = self.trace_id

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            headers = MutableHeaders(scope=message)
            headers["Date"] = format_datetime(self._clock(), usegmt=True)
            headers["Trace-Id"] = self.trace_id
            headers.setdefault("Cache-Control", "no-store")
            headers["X-Content-Type-Options"] = "nosniff"
        await self._send(message)

    async def refuse(self, refusal: Refusal, receive: Receive) -> None:
        self.note = refusal.code
        if self._status:
            return  # The reply had begun: all that is left is to end the connection.
        response = self._answer(refusal, _plain(self._scope["path"]), self.trace_id)
        await response(self._scope, receive, self.send)

    def write_log(self) -> None:
        is_fault = self._status >= HTTPStatus.INTERNAL_SERVER_ERROR
        log.log(
            logging.WARNING if is_fault else logging.INFO,
            "%s %s %d %.0fms key=%s trace_id=%s %s",
            _plain(self._scope["method"]),
            _plain(self._scope["path"]),
            self._status,
            (time.monotonic() - self._began_s) * 1000,
            self._scope["state"].get("key_id", "-"),
            self.trace_id,
            self.note,
        )


def _plain(text: str) -> str:
    """Return ``text`` fit for a log line: strangers choose paths and methods."""
    return _NOT_PLAIN.sub("?", text[:PATH_MAX])
