"""Runs the service in the test process, with a database and a clock that the tests control."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
from sqlalchemy import text
from sqlalchemy.orm import Session

from controlplane.accounts.keys import key_store
from controlplane.accounts.keys.key_store import DEFAULT_ORGANIZATION
from controlplane.operation.caller import Caller
from controlplane.operation.permissions import callers_of_key_hashes, hash_secret
from controlplane.retail.routes import DOCUMENT, is_retail
from controlplane.settings import Settings
from controlplane.storage.database import Database
from controlplane.storage.layout import Base
from controlplane.storage.tables import Schema
from controlplane.web.app import build_app
from controlplane.web.core import Core
from tests.contract.openapi import conformance
from tests.fakes.remote_control import schema as remote_control_schema
from tests.fakes.schemas import figures as figures_schema
from tests.fakes.schemas import retail as retail_schema
from tests.fakes.support import schema as support_schema
from tests.unit.controlplane.simulated_device import SimulatedDevice

_TABLES_WITH_ROWS = text(
    " UNION ALL ".join(
        f"SELECT '{name}' WHERE EXISTS (SELECT 1 FROM {name})"
        for name in Base.metadata.tables
        if name != Schema.__tablename__
    )
)
_RESTART_SEQUENCES = text(
    "SELECT setval(quote_ident(sequencename)::regclass, 1, false)"
    " FROM pg_sequences WHERE last_value IS NOT NULL"
)


class FakeClock:
    """A clock that moves only when a test advances it."""

    def __init__(self) -> None:
        self.now = self._began = datetime(2026, 11, 20, 12, 0, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def monotonic(self) -> float:
        return (self.now - self._began).total_seconds()

    def advance(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


def caller_of_key(session: Session, key: str) -> Caller | None:
    """Return the caller of an API key, or None if the key is not valid."""
    key_hash = hash_secret(key)
    return callers_of_key_hashes(session, (key_hash,)).get(key_hash)


class RunningService:
    """A running service, and an HTTP client that calls it without a network.

    ``write_key`` is an API key with the write grant for all locations of the default organization.
    """

    def __init__(
        self, database: Database, core: Core, clock: FakeClock, http: httpx2.AsyncClient
    ) -> None:
        self.database = database
        self.core = core
        self.clock = clock
        self.http = http
        self.write_key = self.make_key()

    def make_key(
        self,
        *,
        can_write: bool = True,
        locations: Sequence[str] = (),
        organization_id: str = DEFAULT_ORGANIZATION,
    ) -> str:
        return self.database.write(
            lambda session: key_store.create_key(
                session,
                name="test",
                can_write=can_write,
                locations=locations,
                organization_id=organization_id,
                now=self.clock(),
            )
        )[1]

    def caller(self, api_key: str) -> Caller:
        result = self.database.read(lambda session: caller_of_key(session, api_key))
        assert result is not None
        return result

    def device(self, api_key: str | None = None, **changes: Any) -> SimulatedDevice:
        return SimulatedDevice(self.http, api_key or self.write_key, **changes)

    async def post(
        self, path: str, content: bytes | str = b"{}", *, api_key: str | None = None, **headers: str
    ) -> httpx2.Response:
        extra_headers = {name.replace("_", "-"): value for name, value in headers.items()}
        base = {
            "authorization": f"Bearer {api_key or self.write_key}",
            "content-type": "application/json",
        }
        return await self.http.post(path, content=content, headers=base | extra_headers)


@asynccontextmanager
async def running_service(
    database: Database, settings: Settings, **parts: Any
) -> AsyncIterator[RunningService]:
    """Empty ``database`` and run the service on it. Creating a new database would be slower.

    ``parts`` are passed to `Core`.
    """
    database.write(_empty)
    async with service_on(database, settings, FakeClock(), **parts) as service:
        yield service


@asynccontextmanager
async def service_on(
    database: Database, settings: Settings, clock: FakeClock, **parts: Any
) -> AsyncIterator[RunningService]:
    """Run a service on ``database`` without emptying it. Other services may run on it as well.

    ``parts`` are passed to `Core`.
    """
    core = Core(database, settings, clock, monotonic=clock.monotonic, **parts)
    transport = httpx2.ASGITransport(app=build_app(core))
    try:
        async with httpx2.AsyncClient(
            transport=transport, base_url="http://service", event_hooks={"response": [_check_reply]}
        ) as http:
            yield RunningService(database, core, clock, http)
    finally:
        core.close()


async def _check_reply(response: httpx2.Response) -> None:
    """Compare every reply with the OpenAPI document and with the schemas of the contract."""
    path = response.request.url.path
    kind = response.headers.get("content-type", "").partition(";")[0]
    if is_retail(path) or kind.endswith("json"):
        await response.aread()
    conformance.check(response)
    figures_schema.require_fitting(response)
    remote_control_schema.require_fitting(response)
    support_schema.require_fitting(response)
    if is_retail(path) and path != DOCUMENT and response.request.method != "HEAD":
        retail_schema.require_fitting(response)


def _empty(session: Session) -> None:
    """Delete all rows, and restart the sequences of positions at 1.

    Tables without rows are skipped.
    """
    for name in session.execute(_TABLES_WITH_ROWS).scalars().all():
        session.execute(text(f"DELETE FROM {name}"))
    # SQLite restarts the sequence of an empty table by itself.
    if session.get_bind().dialect.name == "postgresql":
        session.execute(_RESTART_SEQUENCES)
