"""A venue's machine with an enrolled agent, and the fake service that it reports to."""

import asyncio
import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.fakes.http_server import Reply
from tests.fakes.strict_service import API_KEY, StrictService
from tests.packaging.upgrade.machine import WITHIN_S, Machine

STATE: Final = "/var/lib/venue-agent"
RECORD: Final = "/var/lib/venue-agent-upgrade/upgrade"
LINK: Final = "/usr/lib/venue-agent.current"
NEW, KEPT = "venue-agent", "venue-agent.previous"
"""Names of directories in /usr/lib. dpkg replaces the files in NEW. Before that, preinst copies the
previous version to KEPT. That version runs during the upgrade, and again if the new one fails.
"""
POLL_EVERY_S: Final = 0.1
CONFIG: Final = "[heartbeat]\ninterval_seconds = 1\n[network]\nmax_duration_seconds = 5\n"
UNAVAILABLE: Final = Reply(503, b"{}", headers={"Retry-After": "1"})


@dataclass
class Venue:
    """A machine with an enrolled agent, and its service.

    ``request_ids`` has the ids of all requests so far. ``identity`` is the hash of the agent's
    identity file at the enrollment.
    """

    machine: Machine
    service: StrictService
    request_ids: list[str] = field(default_factory=list)
    identity: str = ""
    instance_id: str = ""

    async def run(self, *words: str, expect: int | None = 0) -> str:
        return await asyncio.to_thread(self.machine.run, *words, expect=expect)

    async def install(self, package: str) -> None:
        """Install a package and enroll the agent."""
        await self.run("dpkg", "-i", package)
        (self.machine.results / "key").write_text(API_KEY + "\n")
        await self.run(
            "venue-agent", "service", "install", "--base-url", self.service.base_url,
            "--location", "loc-upgrade", "--api-key-file", "/results/key",
        )  # fmt: skip
        config = self.machine.path("/etc/venue-agent/config.toml")
        config.write_text(config.read_text() + CONFIG)
        await self.run("systemctl", "restart", "venue-agent.service")
        await self.until(lambda: self.service.device is not None and self.status("binding"))
        assert self.service.device is not None
        self.instance_id = self.service.device["instanceId"]
        self.identity = self._identity()

    def _identity(self) -> str:
        return hashlib.sha256(self.machine.path(f"{STATE}/identity.pem").read_bytes()).hexdigest()

    def status(self, key: str) -> Any:
        """Return a value of `status.json`; None if there is none."""
        try:
            return json.loads(self.machine.path(f"{STATE}/status.json").read_text()).get(key)
        except (OSError, ValueError):
            return None

    def record(self) -> dict[str, str]:
        """Return the fields of the record of an upgrade; empty if there is none."""
        try:
            lines = self.machine.path(RECORD).read_text().splitlines()
        except OSError:
            return {}
        return dict(line.split("=", 1) for line in lines)

    def selected(self) -> str:
        return str(self.machine.path(LINK).readlink())

    async def make_busy(self) -> None:
        """Make a report wait in the outbox, and wait until the agent collects another report."""
        self.service.overrides["submitResult"] = lambda: UNAVAILABLE
        await self.request("application")
        await self.until(lambda: self.status("outbox_reports"))
        is_running = False
        while not is_running:  # a collection can end before its activity is read
            count = self.status("outbox_reports")
            await self.request("network")
            await self.until(lambda: self._is_collecting() or self._has_other_count(count))  # noqa: B023
            is_running = self._is_collecting()

    def _is_collecting(self) -> bool:
        return "collect" in str(self.status("activity"))

    def _has_other_count(self, report_count: int) -> bool:
        return self.status("outbox_reports") not in {None, report_count}

    async def request(self, kind: str) -> None:
        self.request_ids.append(await self.service.request_report(kind, expires_in_s=7200))

    async def until(self, condition: Any, within_s: float = WITHIN_S) -> None:
        """Wait until ``condition`` is true. ``condition`` reads files of the machine."""
        async with asyncio.timeout(within_s):
            while not condition():  # noqa: ASYNC110 - it reads files
                await asyncio.sleep(POLL_EVERY_S)

    async def until_it_works(self) -> None:
        """Accept reports again, and wait until each request has its report."""
        self.service.overrides.clear()
        await self.request("application")
        await self.until(
            lambda: all(self.service.report_for(each) is not None for each in self.request_ids)
        )
        await self.until(lambda: self.status("outbox_reports") == 0)

    def faults(self) -> list[str]:
        """Return a text for each lost or doubled report, each violation of the protocol, a changed
        identity of the device, and files in quarantine.
        """
        reports = [report["requestId"] for report in self.service.reports]
        faults = [f"{each}: {reports.count(each)} reports" for each in self.request_ids
                  if reports.count(each) != 1]  # fmt: skip
        faults += self.service.violations
        device = self.service.device or {}
        if device.get("instanceId") != self.instance_id or self._identity() != self.identity:
            faults.append("another identity")
        if list(self.machine.path(f"{STATE}/quarantine").glob("*")):
            faults.append("state in quarantine")
        return faults

    def running_directory(self, pid: int) -> str:
        """Return the name of the directory of the program that a process of the container runs."""
        return Path(self.machine.run("readlink", f"/proc/{pid}/exe")).parent.name
