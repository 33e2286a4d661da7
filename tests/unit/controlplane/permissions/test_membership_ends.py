"""Tests with a real process: a removed membership ends all credentials and streams of the user.

`accounts/test_live_permissions.py` tests with a fake clock that keys, sessions and streams end
within five seconds.
"""

import asyncio
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import httpx2
import pytest
from sqlalchemy.orm import Session

from agent.wire import routes
from controlplane.accounts import users
from controlplane.accounts.keys.key_store import DEFAULT_ORGANIZATION
from controlplane.accounts.oauth.metadata import RESOURCE_PATH as AGENT_PROTOCOL
from controlplane.settings import Settings
from controlplane.storage.database import Database
from controlplane.web.console_api import PREFIX
from tests.unit.controlplane.permissions.credentials import CredentialMaker, Headers, bearer, cookie
from tests.unit.controlplane.permissions.organizations import FOREIGN_ORGANIZATION, Enroller
from tests.unit.controlplane.simulated_device import SimulatedDevice
from tests.unit.controlplane.test_process import Process, start, stop

TIMEOUT_S: Final = 300
POLL_INTERVAL_S: Final = 0.1
"""Seconds between repetitions of a call.

Each key is used for two repeated calls, so it makes at most 20 calls a second. More would exceed
the rate limit of a key.
"""
TOOLS_LIST: Final = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
pytestmark = [
    pytest.mark.medium,
    pytest.mark.skipif(
        sys.platform == "win32", reason="the test stops the service with POSIX signals"
    ),
]


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    started = start(str(tmp_path_factory.mktemp("memberships") / "service.db"))
    yield started
    stop(started)


class MemberCalls:
    """Repeats calls until they are refused, and reads streams until the service ends them."""

    def __init__(self, http: httpx2.AsyncClient, instance_id: str) -> None:
        self._http = http
        self._changes_body = {"instanceIds": [instance_id]}
        self._begin_events: list[asyncio.Event] = []
        self.tasks: dict[str, asyncio.Task[None]] = {}

    def watch(self, name: str, credentials: Mapping[str, Headers]) -> None:
        key, session, oauth = (
            credentials[credential] for credential in ("key", "session", "token")
        )
        for kind, headers in (("key", key), ("session", session)):
            overview = (PREFIX + "overview", {}, headers)
            self._add(f"{name}: {kind}", self._call_until_refused, *overview)
            commands = headers | {"accept": "text/event-stream"}
            self._add(
                f"{name}: {kind}'s commands",
                self._read_until_ended,
                routes.ON_COMMANDS,
                {},
                commands,
            )
            changes = (PREFIX + "changes", self._changes_body, headers)
            self._add(f"{name}: {kind}'s console", self._read_until_ended, *changes)
        self._add(
            f"{name}: key used for tools", self._call_until_refused, AGENT_PROTOCOL, TOOLS_LIST, key
        )
        self._add(f"{name}: token", self._call_until_refused, AGENT_PROTOCOL, TOOLS_LIST, oauth)

    async def wait_until_begun(self) -> None:
        """Wait until every call was answered once, and every stream has begun."""
        async with asyncio.timeout(TIMEOUT_S):
            waits = asyncio.gather(*(event.wait() for event in self._begin_events))
            await asyncio.wait((waits, *self.tasks.values()), return_when=asyncio.FIRST_COMPLETED)
            assert waits.done(), [name for name, task in self.tasks.items() if task.done()]

    def _add(self, name: str, work: Any, path: str, body: Any, headers: Headers) -> None:
        has_begun = asyncio.Event()
        self._begin_events.append(has_begun)
        self.tasks[name] = asyncio.create_task(work(has_begun, path, body, headers), name=name)

    async def _call_until_refused(
        self, has_begun: asyncio.Event, path: str, body: Any, headers: Headers
    ) -> None:
        """Repeat the call until it is refused."""
        while (reply := await self._http.post(path, json=body, headers=headers)).is_success:
            has_begun.set()
            await asyncio.sleep(POLL_INTERVAL_S)
        assert reply.status_code == 401, reply.text

    async def _read_until_ended(
        self, has_begun: asyncio.Event, path: str, body: Any, headers: Headers
    ) -> None:
        """Read a stream until the service ends it."""
        async with self._http.stream("POST", path, json=body, headers=headers) as reply:
            assert reply.status_code == 200
            async for _ in reply.aiter_raw():
                has_begun.set()


async def test_a_removed_membership_ends_all_calls_and_streams(process: Process) -> None:
    """Two of three members are removed. One of these two also belongs to another organization."""
    database = Database(process.database)
    limits = httpx2.Limits(max_connections=100)
    try:
        async with httpx2.AsyncClient(
            base_url=process.url, timeout=TIMEOUT_S, limits=limits
        ) as http:
            await _remove_and_watch(process, database, http)
    finally:
        database.close()


async def _remove_and_watch(process: Process, database: Database, http: httpx2.AsyncClient) -> None:
    device = await SimulatedDevice(http, process.api_key).enrolled()
    members = {
        name: database.write(lambda session, name=name: _member(session, process, name))
        for name in ("elsewhere", "nowhere", "stays")
    }  # fmt: skip
    ending, staying = MemberCalls(http, device.instance_id), MemberCalls(http, device.instance_id)
    try:
        for name, (_, credentials) in members.items():
            (staying if name == "stays" else ending).watch(name, credentials)
        await asyncio.gather(ending.wait_until_begun(), staying.wait_until_begun())
        removed_users = [members[name][0] for name in ("elsewhere", "nowhere")]
        database.write(lambda session: _remove(session, removed_users))
        async with asyncio.timeout(TIMEOUT_S):
            await asyncio.gather(*ending.tasks.values())
        assert [name for name, task in staying.tasks.items() if task.done()] == []
    finally:
        all_tasks = [*ending.tasks.values(), *staying.tasks.values()]
        for task in all_tasks:
            task.cancel()
        await asyncio.gather(*all_tasks, return_exceptions=True)


def _member(session: Session, process: Process, name: str) -> tuple[Any, dict[str, Headers]]:
    now = datetime.now(UTC)
    maker = CredentialMaker(session, {}, Enroller(session, Settings(), now), now)
    user = maker.add_user("owner")
    if name == "elsewhere":
        users.set_membership(
            session, user, FOREIGN_ORGANIZATION, role="owner", locations=(), now=now
        )  # fmt: skip
    return user, {
        "key": maker.key(can_write=True, owner=user)[1],
        "session": cookie(maker.sign_in(user)[1]) | {"origin": process.url},
        "token": bearer(maker.grant(user)[1]),
    }


def _remove(session: Session, removed_users: list[Any]) -> None:
    for user in removed_users:
        assert users.remove_membership(session, user, DEFAULT_ORGANIZATION, datetime.now(UTC))
