"""Tests of the checks of every call: keys, grants, media types, sizes and rates."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from email.utils import parsedate_to_datetime
from typing import Any

import httpx2
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from sqlalchemy.exc import OperationalError

from agent.wire import routes
from agent.wire.codec import decode
from agent.wire.problem import MEDIA_TYPE, Problem
from controlplane.accounts.keys import key_store
from controlplane.analytics.registry import ANALYTICS, REPORTS
from controlplane.remote_control.registry import REMOTE_CONTROL
from controlplane.settings import Settings
from controlplane.storage.database import Database, DatabaseBusyError
from controlplane.support.operations import SUPPORT
from controlplane.web.app import build_app
from controlplane.web.core import Core
from controlplane.web.openapi.interfaces import OPERATIONS
from tests import sizes
from tests.unit.controlplane.running_service import FakeClock, RunningService, running_service

PATHS = tuple(operation.path for operation in OPERATIONS)
PATHS_WITH_BODY = tuple(operation.path for operation in OPERATIONS if operation.body)
REMOTE_CONTROL_PATHS = tuple(operation.path for operation in REMOTE_CONTROL.operations)
FIGURE_PATHS = tuple(
    operation.path for area in (ANALYTICS, REPORTS) for operation in area.operations
)
SUPPORT_PATHS = tuple(operation.path for operation in SUPPORT.operations)
WRITING_PATHS = tuple(operation.path for operation in OPERATIONS if operation.writes)
READING_PATHS = tuple(path for path in PATHS if path not in WRITING_PATHS)


def problem_of(response: httpx2.Response) -> Problem:
    assert response.headers["content-type"] == MEDIA_TYPE
    body = response.json()
    assert body["status"] == response.status_code
    assert body["trace_id"] == response.headers["trace-id"]
    assert set(body) <= {
        "title", "type", "instance", "trace_id", "status", "code", "detail", "errors",
    }  # fmt: skip
    return decode(response.content, Problem)


def test_all_operations_of_the_contract_are_served() -> None:
    assert sorted(PATHS) == sorted((*REMOTE_CONTROL_PATHS, *FIGURE_PATHS, *SUPPORT_PATHS))
    names = {path.removeprefix(routes.PREFIX) for path in REMOTE_CONTROL_PATHS}
    assert len(REMOTE_CONTROL_PATHS) == 12
    assert set(map(str.lower, names)) == {
        "challenge", "enroll", "current", "heartbeat", "acknowledge", "submitresult",
        "oncommands", "createrequest", "listdevices", "devicedetail", "reportdetail", "revoke",
    }  # fmt: skip
    assert {path.removeprefix("/api/public/v1/") for path in FIGURE_PATHS} == {
        "reports/financialSummary", "analytics/dashboard", "analytics/venueFinancialPulse",
        "analytics/chart", "analytics/items", "analytics/reconciliation", "analytics/sales",
        "analytics/trend", "analytics/venuePulse", "analytics/venues",
    }  # fmt: skip
    assert {path.removeprefix("/api/public/v1/support/") for path in SUPPORT_PATHS} == {
        "contact", "inspect", "confirm", "disconnect",
    }  # fmt: skip


def test_only_the_reading_operations_of_the_contract_need_no_write_grant() -> None:
    assert set(READING_PATHS) == {
        routes.CURRENT,
        routes.LIST_DEVICES,
        routes.DEVICE_DETAIL,
        routes.REPORT_DETAIL,
        *FIGURE_PATHS,
        *(path for path in SUPPORT_PATHS if path.endswith(("/contact", "/inspect"))),
    }


@pytest.mark.parametrize("path", PATHS)
async def test_every_path_requires_a_key(service: RunningService, path: str) -> None:
    for header in ("", "Bearer", "Bearer x", "Basic dTpw", f"Bearer vck_{'A' * 43}"):
        response = await service.post(path, b"{}", authorization=header)
        assert response.status_code == 401
        assert response.headers["www-authenticate"].startswith("Bearer")
        assert problem_of(response).code == "unauthenticated"


async def test_a_revoked_key_returns_401(service: RunningService) -> None:
    key = service.make_key()
    key_id = service.caller(key).key_id
    service.database.write(lambda session: key_store.revoke_key(session, key_id, service.clock()))
    assert (await service.post(routes.LIST_DEVICES, api_key=key)).status_code == 401


@pytest.mark.parametrize("path", PATHS)
async def test_a_read_only_key_cannot_call_operations_that_write(
    service: RunningService, path: str
) -> None:
    response = await service.post(path, api_key=service.make_key(can_write=False))
    if path in WRITING_PATHS:
        assert (response.status_code, problem_of(response).code) == (403, "read_only_key")
    else:
        assert response.status_code in {200, 400}


@pytest.mark.parametrize("path", PATHS)
async def test_only_post_is_served(service: RunningService, path: str) -> None:
    for method in ("GET", "PUT", "DELETE", "OPTIONS"):
        response = await service.http.request(method, path)
        assert (response.status_code, response.headers["allow"]) == (405, "POST")
        assert problem_of(response).code == "method_not_allowed"


@pytest.mark.parametrize("path", ["/nope", "/api/public/v1/remoteControl/", "/console/x.js"])
async def test_an_unknown_path_returns_404(service: RunningService, path: str) -> None:
    response = await service.post(path)
    problem = problem_of(response)
    assert (response.status_code, problem.code, problem.instance) == (404, "not_found", path)


@pytest.mark.parametrize("media_type", ["", "text/plain", "application/xml", "application/jsonx"])
async def test_only_bodies_with_the_media_type_of_json_are_accepted(
    service: RunningService, media_type: str
) -> None:
    response = await service.post(routes.LIST_DEVICES, content_type=media_type)
    assert (response.status_code, problem_of(response).code) == (415, "invalid_request")


async def test_the_content_type_can_contain_a_charset(service: RunningService) -> None:
    response = await service.post(
        routes.LIST_DEVICES, content_type="Application/JSON; charset=utf-8"
    )
    assert response.status_code == 200


@pytest.mark.parametrize("path", PATHS_WITH_BODY)
async def test_every_operation_requires_a_json_object(service: RunningService, path: str) -> None:
    for body in (b"", b"[]", b"null", b'{"a":1,"a":2}'):
        response = await service.post(path, body)
        assert (response.status_code, problem_of(response).code) == (400, "invalid_request")


@pytest.mark.parametrize("path", PATHS_WITH_BODY)
async def test_every_operation_refuses_unknown_keys_in_the_body(
    service: RunningService, path: str
) -> None:
    response = await service.post(path, b'{"colour": "red"}')
    problem = problem_of(response)
    assert (response.status_code, problem.code) == (400, "validation_error")
    assert "colour" in (problem.errors or {})


async def test_every_reply_contains_the_date_of_the_service(service: RunningService) -> None:
    for response in (
        await service.post(routes.LIST_DEVICES),
        await service.post(routes.LIST_DEVICES, authorization=""),
        await service.http.get("/nope"),
        await service.http.get("/healthz"),
    ):
        assert parsedate_to_datetime(response.headers["date"]) == service.clock()
        assert response.headers["cache-control"] == "no-store"


class TestBodyLimits:
    @pytest.fixture
    def settings(self) -> Settings:
        return Settings(rate_per_s=0, body_limit_bytes=100, body_timeout_s=0.05)

    async def test_a_body_with_a_content_length_above_the_limit_is_refused(
        self, service: RunningService
    ) -> None:
        response = await service.post(routes.LIST_DEVICES, b"x" * 101)
        assert (response.status_code, problem_of(response).code) == (413, "body_too_large")

    async def test_a_large_body_without_a_content_length_is_refused(
        self, service: RunningService
    ) -> None:
        async def chunks() -> AsyncIterator[bytes]:
            for _ in range(11):
                yield b"x" * 10

        response = await self.send(service, chunks())
        assert (response.status_code, problem_of(response).code) == (413, "body_too_large")

    async def test_a_body_of_exactly_the_limit_is_accepted(self, service: RunningService) -> None:
        response = await service.post(routes.LIST_DEVICES, b"{}".ljust(100))
        assert response.status_code == 200

    async def test_a_body_that_does_not_arrive_in_time_returns_408(
        self, service: RunningService
    ) -> None:
        never = asyncio.Event()

        async def chunks() -> AsyncIterator[bytes]:
            yield b"{"
            await never.wait()

        response = await self.send(service, chunks(), expect=408)
        assert problem_of(response).code == "body_timeout"

    async def send(
        self, service: RunningService, chunks: AsyncIterator[bytes], expect: int = 413
    ) -> httpx2.Response:
        headers = {
            "authorization": f"Bearer {service.write_key}",
            "content-type": "application/json",
        }
        response = await service.http.post(routes.LIST_DEVICES, content=chunks, headers=headers)
        assert response.status_code == expect
        return response


class TestRate:
    @pytest.fixture
    def settings(self) -> Settings:
        return Settings(rate_per_s=0.1, burst=2, refusal_delay_s=0)

    async def test_too_many_calls_return_retry_after(self, service: RunningService) -> None:
        responses = [await service.post(routes.LIST_DEVICES) for _ in range(3)]
        assert [response.status_code for response in responses] == [200, 200, 429]
        assert problem_of(responses[2]).code == "rate_limited"
        assert 1 <= int(responses[2].headers["retry-after"]) <= 20
        other = await service.post(routes.LIST_DEVICES, api_key=service.make_key())
        assert other.status_code == 200


class BrokenDatabase(Database):
    """A database in which every transaction raises the given error."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def read(self, work: Callable[..., Any]) -> Any:
        raise self._error

    write = read


async def call_with_broken_database(error: Exception) -> httpx2.Response:
    """Call a service whose database raises the error."""
    core = Core(BrokenDatabase(error), Settings(refusal_delay_s=0), FakeClock())
    try:
        transport = httpx2.ASGITransport(app=build_app(core))
        async with httpx2.AsyncClient(transport=transport, base_url="http://service") as http:
            return await http.post(
                routes.LIST_DEVICES,
                content=b"{}",
                headers={"authorization": f"Bearer vck_{'A' * 43}"},
            )
    finally:
        core.close()


async def test_an_internal_error_is_logged_and_reveals_no_details(
    caplog: pytest.LogCaptureFixture,
) -> None:
    response = await call_with_broken_database(RuntimeError("password=hunter2"))
    problem = problem_of(response)
    assert (response.status_code, problem.code) == (500, "internal_server_error")
    assert "hunter2" not in response.text
    (record,) = [record for record in caplog.records if record.exc_info]
    assert str(problem.trace_id) in record.getMessage()


async def test_a_busy_database_returns_503_with_retry_after() -> None:
    response = await call_with_broken_database(DatabaseBusyError("the database is busy"))
    assert (response.status_code, problem_of(response).code) == (503, "unavailable")
    assert int(response.headers["retry-after"]) >= 1


async def test_readyz_fails_without_the_database(service: RunningService) -> None:
    assert (await service.http.get("/readyz")).status_code == 200
    core = Core(
        BrokenDatabase(OperationalError("SELECT 1", {}, Exception("gone"))),
        Settings(refusal_delay_s=0),
        FakeClock(),
    )
    try:
        transport = httpx2.ASGITransport(app=build_app(core))
        async with httpx2.AsyncClient(transport=transport, base_url="http://service") as http:
            assert (await http.get("/readyz")).status_code == 503
            assert (await http.get("/healthz")).status_code == 200
            core.feeds.close()
            assert problem_of(await http.get("/readyz")).detail == "the service is being stopped"
            assert (await http.post("/readyz")).status_code == 405
    finally:
        core.close()


async def test_log_lines_cannot_be_forged(
    service: RunningService, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "controlplane.access"):
        await service.http.get("/x%0aPOST%20/forged%1b[31m")
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith("GET /x?POST?/forged?[31m 404 ")


async def test_log_lines_contain_the_id_of_a_key_but_not_the_key(
    service: RunningService, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "controlplane.access"):
        await service.post(routes.LIST_DEVICES)
    assert service.write_key not in caplog.text
    assert f"key={service.caller(service.write_key).key_id}" in caplog.text


@hypothesis_settings(
    max_examples=sizes.examples(30),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    path=st.sampled_from(PATHS_WITH_BODY),
    body=st.binary(max_size=100).filter(lambda body: b"{}" not in body),
)
def test_random_bytes_as_a_body_are_refused_with_400(
    database: Database, path: str, body: bytes
) -> None:
    async def call() -> int:
        async with running_service(database, Settings(rate_per_s=0)) as service:
            return (await service.post(path, body)).status_code

    assert asyncio.run(call()) == 400
