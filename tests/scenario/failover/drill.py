"""Interrupts a service that runs on two hosts, with a PostgreSQL server and a standby.

Usage: python -m tests.scenario.failover.drill [--devices N] [--limits]

The drill disconnects a host of the service, restarts the PostgreSQL server, and then replaces
this server by the standby. It prints a JSON object with the seconds until the service worked again
after each of these steps. It exits with 1 if something that the service accepted is lost, or if the
database has a report that no device has submitted. With ``--limits``, it also exits with 1 if a
recovery took too long.
"""

import argparse
import asyncio
import contextlib
import itertools
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable

import httpx2

from controlplane.storage.database import Database
from tests.bench.fleet.fleet import Member, populate
from tests.lab.namespaces import entering
from tests.paths import ROOT
from tests.scenario.failover.devices import FailoverDevice, Record
from tests.scenario.failover.hosts import Host, make_bridge
from tests.scenario.failover.replicated_database import start_replicated, url_of

PORT = 8470
HOST_LIMIT_S = 60.0
DATABASE_LIMIT_S = 30.0
"""The limits of ``--limits``: the maximum times until the service works again after the loss of a
host, and after a restart or the replacement of the PostgreSQL server."""
WITHIN_S = 300.0


class Drill:
    """The two hosts of the service, its database, and the devices."""

    def __init__(self, devices: int, stack: contextlib.ExitStack) -> None:
        make_bridge()
        self.primary, self.standby = start_replicated(Host(11, stack), Host(12, stack), stack)
        self.url = url_of(self.primary, self.standby)
        self.hosts = [Host(1, stack), Host(2, stack)]
        self.addresses = [f"http://{each.address}:{PORT}" for each in self.hosts]
        self.record = Record()
        fleet = _populate_database(self.url, devices)
        self.devices = [FailoverDevice(each, self.addresses, self.record) for each in fleet]
        self._requested_devices = itertools.cycle(self.devices)
        self._stack = stack
        self._services = [self._serve(each) for each in self.hosts]
        self.seconds: dict[str, float] = {}
        """Seconds until the service worked again, by the name of the step."""

    async def run(self) -> None:
        async with self._running_devices():
            await self._until(lambda: all(each.streams_at for each in self.devices))
            await self._until_working(self.addresses)
            await self._lose_host()
            await self._restart_database()
            await self._replace_primary()

    async def _lose_host(self) -> None:
        """Disconnect the first host during a transaction that has locked all devices.

        All streams must move to the second host, and the database must end the transaction.
        """
        await asyncio.to_thread(self._lock_devices, self.hosts[0])
        began_s, second_address = time.monotonic(), self.addresses[1]
        self.hosts[0].disconnect()
        await self._until(lambda: all(each.streams_at == second_address for each in self.devices))
        self.seconds["host lost"] = time.monotonic() - began_s
        await self._until_working([second_address])
        self._services[0].kill()
        self._services[0].wait()
        self.hosts[0].connect()
        self._services[0] = await asyncio.to_thread(self._serve, self.hosts[0])
        await self._until_working(self.addresses)

    async def _restart_database(self) -> None:
        await asyncio.to_thread(self.primary.restart)
        began_s = time.monotonic()
        await self._until_working(self.addresses)
        self.seconds["database restarted"] = time.monotonic() - began_s

    async def _replace_primary(self) -> None:
        """Disconnect the host of the primary, and promote the standby."""
        self.primary.host.disconnect()
        await asyncio.to_thread(self.standby.promote)
        began_s = time.monotonic()
        await self._until_working(self.addresses)
        self.seconds["primary replaced"] = time.monotonic() - began_s

    async def _until_working(self, addresses: list[str]) -> None:
        """Create two requests at each of the hosts, and wait until they have reached their devices.
        Also wait until each device has submitted a report.
        """
        since_s = time.monotonic()
        for address in (*addresses, *addresses):
            await self._request(address)
        await self._until(lambda: all(each.reported_s > since_s for each in self.devices))

    async def _request(self, address: str) -> None:
        """Create a request at a host, and wait until it has reached its device.

        Each attempt is for another device: an attempt that times out can create a request, and the
        number of open requests of a device is limited.
        """
        async with asyncio.timeout(WITHIN_S), httpx2.AsyncClient(timeout=5) as http:
            while True:
                with contextlib.suppress(httpx2.HTTPError):
                    device = next(self._requested_devices)
                    request_id = await device.create_request(http, address)
                    break
                await asyncio.sleep(0.2)
        await self._until(lambda: request_id in self.record.arrived)

    async def _until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(WITHIN_S):
            while not condition():  # noqa: ASYNC110 - the condition is about other processes
                await asyncio.sleep(0.05)

    @contextlib.asynccontextmanager
    async def _running_devices(self) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(each.run()) for each in self.devices]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _serve(self, host: Host) -> "subprocess.Popen[str]":
        words = ("serve", "--database", self.url, "--host", "0.0.0.0", "--port", str(PORT))
        return self._start(host, "controlplane", *words, "--rate", "0")

    def _lock_devices(self, host: Host) -> None:
        self._start(host, "tests.scenario.failover.open_transaction", self.url)

    def _start(self, host: Host, module: str, *words: str) -> "subprocess.Popen[str]":
        """Run a module on a host, and wait for its first line of output."""
        process = self._stack.enter_context(
            subprocess.Popen(
                host.command(sys.executable, "-m", module, *words),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                cwd=ROOT,
            )
        )
        self._stack.callback(process.kill)
        assert process.stdout is not None
        if not process.stdout.readline():
            raise RuntimeError(f"{module} did not start")
        return process

    def faults(self) -> list[str]:
        """Return the reports and requests that the database lacks, and the reports in it that no
        device has submitted. The ids are unique in the database, so no row can occur twice.
        """
        reports = self.standby.query("SELECT id FROM reports")
        requests = self.standby.query("SELECT id FROM requests")
        record = self.record
        return [
            *(f"report {each} is lost" for each in record.accepted.difference(reports)),
            *(f"report {each} is unknown" for each in set(reports) - record.submitted),
            *(f"request {each} is lost" for each in record.created.difference(requests)),
        ]


def _populate_database(url: str, devices: int) -> list[Member]:
    database = Database(url)
    try:
        return populate(database, devices)
    finally:
        database.close()


def main() -> int:
    parser = argparse.ArgumentParser(description="Disconnect hosts of service and database.")
    parser.add_argument("--devices", type=int, default=60)
    parser.add_argument("--limits", action="store_true", help="fail if a recovery takes too long")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.inside:
        module = (sys.executable, "-m", "tests.scenario.failover.drill")
        words = (*entering(), *module, *sys.argv[1:], "--inside")
        return subprocess.run(words, check=False, cwd=ROOT).returncode
    with contextlib.ExitStack() as stack:
        drill = Drill(options.devices, stack)
        asyncio.run(drill.run())
        faults = drill.faults()
    is_slow = options.limits and (
        drill.seconds["host lost"] > HOST_LIMIT_S
        or drill.seconds["database restarted"] > DATABASE_LIMIT_S
        or drill.seconds["primary replaced"] > DATABASE_LIMIT_S
    )
    figures = {name: round(seconds, 1) for name, seconds in drill.seconds.items()}
    accepted = len(drill.record.accepted)
    result = {"seconds": figures, "accepted": accepted, "failures": drill.record.failures}
    sys.stdout.write(json.dumps(result | {"faults": faults}) + "\n")
    return 1 if faults or is_slow else 0


if __name__ == "__main__":
    sys.exit(main())
