"""Whose access token it is: looked up at each call, from what was read within a few seconds."""

import time
from collections import OrderedDict
from collections.abc import Iterable
from http import HTTPStatus
from typing import Final
from uuid import UUID

from starlette.requests import Request

from controlplane.operation.caller import Caller
from controlplane.operation.errors import Refusal
from controlplane.retail.credentials import clients, signing_keys
from controlplane.retail.credentials.access_tokens import InvalidTokenError
from controlplane.retail.credentials.signing_keys import SigningKeys
from controlplane.web.auth import require_json, require_method
from controlplane.web.core import Core

CLIENTS_MAX: Final = 4096


class Admission:
    """Used from the event loop only."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._keys: tuple[float, SigningKeys] | None = None
        self._clients: OrderedDict[UUID, tuple[float, Caller]] = OrderedDict()

    async def admit(self, request: Request, methods: Iterable[str]) -> Caller:
        """Return who is calling, or raise the refusal. What is no GET writes."""
        caller = await self._authenticate(request)
        request.state.caller = caller
        self._core.fairness.admit(caller)
        require_method(request, *methods)
        if request.method != "GET":
            if not caller.can_write:
                raise Refusal(HTTPStatus.FORBIDDEN, "read_only_key", "this API key only reads")
            require_json(request.headers)
        return caller

    async def keys(self) -> SigningKeys:
        """Return the keys that the service signs with, as of a few seconds ago."""
        if self._keys is None or self._is_old(self._keys[0]):
            read_at_s = time.monotonic()
            keys = await self._core.read(signing_keys.load)
            if keys is None:
                now = self._core.clock()
                keys = await self._core.write(lambda session: signing_keys.create(session, now))
            self._keys = (read_at_s, keys)
        return self._keys[1]

    async def _authenticate(self, request: Request) -> Caller:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            raise unauthenticated()
        try:
            key_id = (await self.keys()).access_tokens.client(token.strip(), self._core.clock())
        except InvalidTokenError:
            raise unauthenticated() from None
        caller = await self._caller(key_id)
        if caller is None:
            raise unauthenticated()
        return caller

    async def _caller(self, key_id: UUID) -> Caller | None:
        known = self._clients.get(key_id)
        if known is not None and not self._is_old(known[0]):
            return known[1]
        read_at_s = time.monotonic()
        caller = await self._core.read(lambda session: clients.caller_of(session, key_id))
        self._clients.pop(key_id, None)
        if caller is not None:
            self._clients[key_id] = (read_at_s, caller)
            while len(self._clients) > CLIENTS_MAX:
                self._clients.popitem(last=False)
        return caller

    def _is_old(self, read_at_s: float) -> bool:
        return time.monotonic() - read_at_s >= self._core.settings.key_cached_s


def unauthenticated() -> Refusal:
    return Refusal(
        HTTPStatus.UNAUTHORIZED,
        "unauthenticated",
        "a valid access token is needed",
        headers={"WWW-Authenticate": 'Bearer realm="retail"'},
    )
