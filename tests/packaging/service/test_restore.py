"""Restores the service from a backup, as in docs/service-install.md, while real agents run."""

import asyncio
import json
import shutil
import signal
import sqlite3
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, closing
from pathlib import Path
from typing import Any

import httpx2
import pytest

from controlplane.storage.backup import snapshot
from tests.packaging.service.service_process import ServiceProcess
from tests.scenario.agent_process import (
    AgentProcess,
    environment,
    killed_at_the_end,
    run_agent,
    write_config,
)

pytestmark = pytest.mark.large
OPERATION = "/api/public/v1/remoteControl/{}"
BACK_WITHIN_S = 300
DONE = ("completed", "partial")


class Operator:
    def __init__(self, http: httpx2.AsyncClient, api_key: str) -> None:
        self.http = http
        self.headers = {"Authorization": f"Bearer {api_key}"}

    async def call(self, operation: str, **body: Any) -> Any:
        reply = await self.http.post(OPERATION.format(operation), json=body, headers=self.headers)
        assert reply.status_code == 200, reply.text
        return reply.json()

    async def devices(self) -> dict[str, str]:
        """Return the ids of the devices by name."""
        devices = (await self.call("listDevices"))["devices"]
        return {device["legacyInstallId"]: device["instanceId"] for device in devices}

    async def request_report(self, instance_id: str) -> str:
        reply = await self.call("createRequest", instanceId=instance_id, kind="application")
        return str(reply["requestId"])

    async def status(self, instance_id: str, request_id: str) -> str:
        detail = await self.call("deviceDetail", instanceId=instance_id)
        return next((r["status"] for r in detail["requests"] if r["id"] == request_id), "unknown")

    async def wait_for_status(self, instance_id: str, request_id: str, *statuses: str) -> None:
        async def has_status() -> bool:
            return await self.status(instance_id, request_id) in statuses

        await until(has_status, BACK_WITHIN_S)

    async def wait_for_devices(self, *names: str) -> dict[str, str]:
        async def are_listed() -> bool:
            return set(names) <= (await self.devices()).keys()

        await until(are_listed, BACK_WITHIN_S)
        return await self.devices()


async def until(condition: Callable[[], Awaitable[bool]], within_s: float) -> None:
    async with asyncio.timeout(within_s):
        while True:
            if await condition():
                return
            await asyncio.sleep(0.05)


@asynccontextmanager
async def impatient_agent(config: Path) -> AsyncIterator[AgentProcess]:
    """Run an agent that checks a revocation again after a second instead of after a minute."""
    home = config.parent
    log = home / "agent.log"
    with log.open("ab") as output:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.packaging.service.impatient_agent", "run",
            "--config", str(config), stdout=output, stderr=output, env=environment(),
        )  # fmt: skip
    async with killed_at_the_end(AgentProcess(process, home, log)) as agent:
        yield agent


class Venue:
    """A service and its agents."""

    def __init__(self, folder: Path, stack: AsyncExitStack) -> None:
        self.folder = folder
        self.stack = stack
        self.service = ServiceProcess(folder)
        stack.callback(self.service.stop)

    async def agent(self, name: str, on_revoked: str) -> AgentProcess:
        home = self.folder / name
        home.mkdir()
        (home / "api-key").write_text(self.service.api_key + "\n")
        (home / "api-key").chmod(0o600)
        config = write_config(
            home,
            self.service.url,
            device=f'legacy_install_id = "{name}"',
            enrollment=f'on_revoked = "{on_revoked}"',
        )
        return await self.stack.enter_async_context(impatient_agent(config))

    def restore_and_start(self, backup: Path) -> None:
        """Restore ``backup`` while the service is stopped, and start the service."""
        self.service.command("restore", str(backup))
        self.service.start()

    async def kill_during_a_collection(self, operator: Operator, instance_id: str) -> str:
        """Request a report, copy the database to `collecting.db` while the agent collects, and kill
        the service before the report arrives. Return the id of the request.
        """
        request_id = await operator.request_report(instance_id)
        await operator.wait_for_status(instance_id, request_id, "running")
        with snapshot(Path(self.service.database)) as copy:
            shutil.copy(copy, self.folder / "collecting.db")
        assert self.service.stop(signal.SIGKILL) == -signal.SIGKILL
        with closing(sqlite3.connect(self.folder / "collecting.db")) as copied:
            row = copied.execute(
                "SELECT status FROM requests ORDER BY position DESC LIMIT 1"
            ).fetchone()
        assert row == ("running",)
        return request_id

    def rows(self, statement: str) -> list[Any]:
        """Execute an SQL statement on the service's database. Return the rows."""
        with closing(sqlite3.connect(self.service.database)) as connection:
            return connection.execute(statement).fetchall()


async def test_agents_continue_after_a_restore_that_lost_the_last_minutes(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        venue = Venue(tmp_path, stack)
        url = venue.service.url
        # On a busy machine, the service can close the idle connection just before the next request.
        # Therefore each request has its own connection.
        limits = httpx2.Limits(max_keepalive_connections=0)
        http = await stack.enter_async_context(
            httpx2.AsyncClient(base_url=url, timeout=30, limits=limits)
        )
        operator = Operator(http, venue.service.api_key)
        await venue.agent("old", "stop")
        old = (await operator.wait_for_devices("old"))["old"]
        kept = await operator.request_report(old)
        await operator.wait_for_status(old, kept, *DONE)

        # The request `open_at_backup` is created before the backup and answered after it. The
        # request `answered` is created and answered after the backup.
        open_at_backup = await operator.request_report(old)
        backup = tmp_path / "backup.db"
        venue.service.command("backup", str(backup))
        await operator.wait_for_status(old, open_at_backup, *DONE)
        answered = await operator.request_report(old)
        await operator.wait_for_status(old, answered, *DONE)
        # The next two devices enroll after the backup, so the restored service does not know them.
        new = await venue.agent("new", "stop")
        await venue.agent("again", "reenroll")
        await operator.wait_for_devices("new", "again")

        assert await asyncio.to_thread(venue.service.stop) == 0
        venue.service.command("restore", str(backup))
        assert venue.rows("SELECT legacy_install_id FROM devices") == [("old",)]
        venue.service.start()
        assert await operator.status(old, kept) in DONE
        assert await operator.status(old, answered) == "unknown"
        code, _, errors = await run_agent(tmp_path / "old/config.toml", "history", answered)
        assert code == 0, errors
        fresh = await operator.request_report(old)
        await operator.wait_for_status(old, fresh, *DONE)
        if await operator.status(old, open_at_backup) not in DONE:
            # The agent acknowledges the request again, but does not collect again.
            await operator.wait_for_status(old, open_at_backup, "running")

        async def is_revoked() -> bool:
            return "revoked" in json.dumps(new.status())

        await until(is_revoked, BACK_WITHIN_S)
        assert "new" not in await operator.devices()
        again = (await operator.wait_for_devices("again"))["again"]
        await operator.wait_for_status(again, await operator.request_report(again), *DONE)

        # A report that arrives after the restore is stored if the restored database has its
        # request. Otherwise the agent sets the report aside.
        on_its_way = await venue.kill_during_a_collection(operator, old)
        venue.restore_and_start(tmp_path / "collecting.db")
        await operator.wait_for_status(old, on_its_way, *DONE)
        unknown = await venue.kill_during_a_collection(operator, old)
        venue.restore_and_start(backup)

        async def is_set_aside() -> bool:
            return bool(list((tmp_path / "old/state/quarantine").glob("*-refused-*.json")))

        await until(is_set_aside, BACK_WITHIN_S)
        assert await operator.status(old, unknown) == "unknown"
        await operator.wait_for_status(old, await operator.request_report(old), *DONE)
