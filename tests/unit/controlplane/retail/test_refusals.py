"""Tests of the errors of the retail API when the database fails or calls are too frequent."""

import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import httpx2
import pytest

from controlplane.retail import routes
from controlplane.settings import Settings
from controlplane.storage.database import Database, DatabaseBusyError
from controlplane.web.app import build_app
from controlplane.web.core import Core
from tests.unit.controlplane.retail.retailer import PIECE, VAT, create_retailer, validated_reply
from tests.unit.controlplane.running_service import FakeClock, RunningService, service_on

CALLS = [
    ("GET", routes.GOODS),
    ("POST", routes.GOODS),
    ("GET", routes.SALES),
    ("POST", routes.TOKENS),
    ("POST", routes.REFRESH),
]
BODIES = {routes.TOKENS: '{"api_key": "a"}', routes.REFRESH: '{"refresh_token": "a"}'}


class BrokenDatabase(Database):
    """A database in which every transaction raises the given error."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def read(self, work: Callable[..., Any]) -> Any:
        raise self._error

    write = read


@asynccontextmanager
async def client_of_broken_service(error: Exception) -> AsyncIterator[httpx2.AsyncClient]:
    core = Core(BrokenDatabase(error), Settings(refusal_delay_s=0), FakeClock())
    try:
        transport = httpx2.ASGITransport(app=build_app(core))
        async with httpx2.AsyncClient(transport=transport, base_url="http://service") as http:
            yield http
    finally:
        core.close()


async def call(http: httpx2.AsyncClient, method: str, path: str) -> httpx2.Response:
    headers = {"authorization": "Bearer a.b.c", "content-type": "application/json"}
    return validated_reply(
        await http.request(method, path, headers=headers, content=BODIES.get(path, "{}"))
    )


@pytest.mark.parametrize(("method", "path"), CALLS)
async def test_an_internal_error_reveals_no_details(method: str, path: str) -> None:
    async with client_of_broken_service(RuntimeError("password=hunter2")) as http:
        reply = await call(http, method, path)
    assert (reply.status_code, reply.json()["code"]) == (500, "internal_server_error")
    assert "hunter2" not in reply.text


@pytest.mark.parametrize(("method", "path"), CALLS)
async def test_a_busy_database_returns_503_with_retry_after(method: str, path: str) -> None:
    async with client_of_broken_service(DatabaseBusyError("the database is busy")) as http:
        reply = await call(http, method, path)
    assert (reply.status_code, "code" in reply.json()) == (503, False)
    assert int(reply.headers["retry-after"]) >= 1


async def test_creating_a_good_in_a_locked_database_returns_503_with_retry_after(
    tmp_path: Path,
) -> None:
    file = tmp_path / "service.db"
    database = Database(str(file), busy_timeout_s=0.05)
    async with service_on(database, Settings(refusal_delay_s=0), FakeClock()) as service:
        company = await create_retailer(service)
        body = {
            "name": "Tea",
            "uom_id": str(PIECE),
            "vat": {"fee_item_id": str(VAT)},
            "variations": [{}],
        }
        with closing(sqlite3.connect(file, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            reply = await company.create_good(body)
            assert (reply.status_code, "code" in reply.json()) == (503, False)
            assert int(reply.headers["retry-after"]) >= 1
            assert "locked by another program" in reply.json()["detail"]
            assert (await company.get(routes.GOODS)).json()["items"] == []
        assert (await company.create_good(body)).status_code == 201
    database.close()


class TestRate:
    @pytest.fixture
    def settings(self) -> Settings:
        return Settings(rate_per_s=0.1, burst=2, refusal_delay_s=0)

    async def test_too_many_calls_return_retry_after(self, service: RunningService) -> None:
        company = await create_retailer(service)
        replies = [await company.get(routes.UOMS) for _ in range(3)]
        assert [reply.status_code for reply in replies] == [200, 200, 429]
        assert replies[2].json()["code"] == "unexpected_error"
        assert 1 <= int(replies[2].headers["retry-after"]) <= 20
