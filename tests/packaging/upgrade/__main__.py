"""Interrupts upgrades at each step, and installs versions that do not work.

Needs root, systemd-nspawn and the package that `make test-deb` builds. Before each interruption, a
report must wait to be sent, and a request must be running. One command completes the upgrade.
Afterwards each request has exactly one report, and the device is the same.

Usage: python -m tests.packaging.upgrade [--part PART] [--only REGEX] [--older DEB]
"""

import argparse
import asyncio
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agent import __version__
from tests.fakes.strict_service import StrictService
from tests.packaging.upgrade.interruptions import INTERRUPTIONS, KILLED, Interruption
from tests.packaging.upgrade.machine import PYTHON, VERSION_FILE, Machine, machine, make_package
from tests.packaging.upgrade.tracer import DECISION, HELD
from tests.packaging.upgrade.venue import KEPT, NEW, Venue
from tests.packaging.verify_systemd import PACKAGES, overlay_of_this_machine
from tests.paths import ROOT

TRACER: Final = (PYTHON, "-m", "tests.packaging.upgrade.tracer", "/results")
SCRIPT: Final = "/usr/libexec/venue-agent-upgrade"
DROP_IN: Final = "/run/systemd/system/venue-agent-upgrade.service.d/test.conf"
NEXT: Final = "/results/next.deb"
REPEAT: Final = (
    "sh", "-c", f"dpkg --configure -a; apt-get install --yes --reinstall {NEXT}",
)  # fmt: skip
"""The command of docs/upgrades.md that completes an interrupted upgrade."""
DOES_NOT_START: Final = "#!/bin/sh\nexit 1\n"
# A new version whose daemon uses an API key that the service refuses. Its other commands work.
DOES_NOT_REACH: Final = """\
#!/bin/sh
if [ "$1" = run ]; then
    unset CREDENTIALS_DIRECTORY
    export VENUE_AGENT_API_KEY=wrong
fi
exec /usr/lib/venue-agent/venue-agent.real "$@"
"""
SHORT_TIMEOUT: Final = "WITHIN_S=3"
"""Lets the verification roll back after 3 s instead of two minutes."""
BACK_WITHIN_S: Final = 180.0


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the printed table.

    Args:
        before_repair: which version ran after the interruption, before the upgrade was completed.
        after_repair: which version ran after the command that completes the upgrade.
    """

    interruption: str
    killed: str
    before_repair: str
    after_repair: str
    faults: list[str]


class Runner:
    def __init__(self, venue: Venue, first: Path) -> None:
        self.venue = venue
        self._machine = venue.machine
        self._first = first
        self._upgrades = 0
        self._version = ""

    async def interrupt(self, interruption: Interruption) -> Row:
        """Interrupt an upgrade, complete it, and return what happened."""
        venue = self.venue
        change = DOES_NOT_START if interruption.traced == "roll-back" else None
        self._make_next(change)
        await venue.make_busy()
        for name in (HELD, DECISION):
            (self._machine.results / name).unlink(missing_ok=True)
        if interruption.traced == "dpkg":
            upgrade = await self._start(*TRACER, interruption.step, "--", "dpkg", "-i", NEXT)
        else:
            environment = SHORT_TIMEOUT if interruption.traced == "roll-back" else "WITHIN_S=120"
            self._trace_verification(interruption.step, environment)
            upgrade = await self._start("dpkg", "-i", NEXT)
        await venue.until((self._machine.results / HELD).exists)
        if (self._machine.results / HELD).read_text() != "held":
            raise AssertionError(f"the step was not reached: {interruption.step}")
        await self._kill(interruption)
        await upgrade.wait()
        before_repair = await self._version_before_repair(interruption)
        if interruption.traced == "roll-back":
            self._make_next(None)
            write_drop_in(self._machine, "")
        if interruption.traced != "verification":
            await venue.run(*REPEAT)
        await venue.until(lambda: not venue.record())
        after_repair = await self._version_after_repair()
        await venue.until_it_works()
        return Row(
            interruption.text,
            KILLED[interruption.kill],
            before_repair,
            after_repair,
            venue.faults(),
        )

    def _make_next(self, change: str | None) -> None:
        self._upgrades += 1
        self._version = f"{__version__}+{self._upgrades}"
        make_package(self._first, self._version, self._machine.results / "next.deb", change)

    async def _start(self, *words: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *self._machine.command(*words),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def _trace_verification(self, step: str, environment: str) -> None:
        """Write a drop-in that makes systemd run the verification under the tracer, until the
        drop-in is replaced or a power cut deletes it (/run is in memory).
        """
        write_drop_in(
            self._machine,
            f"ProtectHome=no\nPrivateTmp=no\nEnvironment={environment} PYTHONDONTWRITEBYTECODE=1\n"
            f"WorkingDirectory={ROOT}\nExecStart=\n"
            f'ExecStart={" ".join(TRACER)} "{step}" -- {SCRIPT} verify\n',
        )

    async def _kill(self, interruption: Interruption) -> None:
        if interruption.traced != "dpkg":
            # From now on, the verification runs without the tracer.
            environment = SHORT_TIMEOUT if interruption.traced == "roll-back" else ""
            write_drop_in(self._machine, f"Environment={environment}")
            self._machine.run("systemctl", "daemon-reload")
        if interruption.kill == "power":
            await asyncio.to_thread(self._machine.cut_power)
            await asyncio.to_thread(self._machine.boot)
            return
        decision = f"kill-{interruption.kill}"
        if interruption.kill == "service":
            self._machine.run("systemctl", "kill", "--kill-whom=main", "--signal=KILL",
                              "venue-agent.service")  # fmt: skip
            decision = "continue"
        if interruption.kill == "command":
            decision = "kill-one"
        new = self._machine.results / "decision.new"
        new.write_text(decision)
        new.rename(self._machine.results / DECISION)

    async def _version_before_repair(self, interruption: Interruption) -> str:
        """Wait until the agent runs, without repeating the upgrade. Return which version runs."""
        venue = self.venue
        if interruption.traced == "verification":
            await venue.until(lambda: not venue.record())
        if interruption.traced == "roll-back":
            await venue.until(lambda: venue.record().get("state") == "failed")
            await venue.until(lambda: venue.selected() == KEPT)
        directory = await wait_for_running_directory(venue)
        version = self._machine.path(f"/usr/lib/{directory}/{VERSION_FILE}").read_text()
        is_new = version == self._version
        return f"{'new' if is_new else 'old'} version runs"

    async def _version_after_repair(self) -> str:
        venue = self.venue
        output = await venue.run("dpkg-query", "-W", "-f=${Status} ${Version}", "venue-agent")
        expected = f"install ok installed {self._version}"
        directory = await wait_for_running_directory(venue)
        if output != expected or venue.selected() != NEW or directory != NEW:
            return f"WRONG: {output}, {venue.selected()}, {directory}"
        return "new version"


async def wait_for_running_directory(venue: Venue) -> str:
    """Wait until the agent runs. Return the name of the directory of its version."""
    async with asyncio.timeout(BACK_WITHIN_S):
        while True:
            with contextlib.suppress(AssertionError, ValueError, subprocess.TimeoutExpired):
                state = await asyncio.to_thread(venue.machine.unit_property, "ActiveState")
                pid = int(await asyncio.to_thread(venue.machine.unit_property, "MainPID"))
                if state == "active" and pid:
                    return await asyncio.to_thread(venue.running_directory, pid)
            await asyncio.sleep(0.1)


def write_drop_in(machine_: Machine, text: str) -> None:
    """Change the unit of the verification. systemd reads it when dpkg configures the package."""
    script = f"mkdir -p $(dirname {DROP_IN}) && cat > {DROP_IN}"
    subprocess.run(
        machine_.command("sh", "-c", script), input=f"[Service]\n{text}\n".encode(), check=True
    )


async def roll_back(venue: Venue, first: Path, change: str, reason: str) -> None:
    """Install a version that does not work. The kept version must run again within 3 minutes."""
    make_package(first, "9.0", venue.machine.results / "next.deb", change)
    await venue.make_busy()
    began = time.monotonic()
    await venue.run("dpkg", "-i", NEXT)
    await venue.until(lambda: venue.record().get("state") == "failed", BACK_WITHIN_S)
    # The record is written before the kept version is started.
    heartbeats = venue.service.heartbeats
    while (directory := await wait_for_running_directory(venue)) != KEPT:
        assert time.monotonic() - began < BACK_WITHIN_S
    await venue.until(lambda: venue.service.heartbeats > heartbeats)
    back_s = time.monotonic() - began
    await venue.until_it_works()
    output = " ".join((await venue.run("venue-agent", "status", expect=None)).split())
    sentence = f"version 9.0 {reason}; {venue.record()['from']} runs again since"
    assert sentence in output, output
    assert (directory, venue.faults(), back_s < BACK_WITHIN_S) == (KEPT, [], True), back_s
    sys.stdout.write(
        f"ok  {reason}: the previous version reached the service after {back_s:.0f} s\n"
    )


async def verify_roll_backs(place: Path, first: Path) -> None:
    async with boot_venue(place) as venue:
        shutil.copy(first, venue.machine.results / "first.deb")
        await venue.install("/results/first.deb")
        await roll_back(venue, first, DOES_NOT_START, "did not start")
        await roll_back(venue, first, DOES_NOT_REACH, "did not reach the service")


async def verify_older(place: Path, first: Path, older: Path) -> None:
    """Upgrade from a package that lacks the script for upgrades, and roll back to this package."""
    async with boot_venue(place) as venue:
        shutil.copy(older, venue.machine.results / "first.deb")
        await venue.install("/results/first.deb")
        make_package(first, "8.0", venue.machine.results / "next.deb", DOES_NOT_START)
        write_drop_in(venue.machine, f"Environment={SHORT_TIMEOUT}")
        await venue.make_busy()
        await venue.run("dpkg", "-i", NEXT)
        await venue.until(lambda: venue.record().get("state") == "failed")
        assert await wait_for_running_directory(venue) == KEPT
        write_drop_in(venue.machine, "")
        make_package(first, "9.0", venue.machine.results / "next.deb")
        await venue.run("dpkg", "-i", NEXT)
        await venue.until(lambda: not venue.record())
        assert await wait_for_running_directory(venue) == NEW
        await venue.until_it_works()
        await venue.run(SCRIPT, "roll-back")
        assert await wait_for_running_directory(venue) == KEPT
        assert venue.record()["reason"] == "was rolled back by hand"
        await venue.run("dpkg", "-i", NEXT)
        await venue.until(lambda: not venue.record())
        assert await wait_for_running_directory(venue) == NEW
        assert venue.faults() == [], venue.faults()
        await venue.run("dpkg", "-i", "/results/first.deb")
        assert await wait_for_running_directory(venue) == NEW
        await venue.until_it_works()
        assert venue.faults() == [], venue.faults()
        assert not venue.record()
        sys.stdout.write(
            f"ok  from {older.name}: rolled back, upgraded, rolled back by hand, downgraded\n"
        )


async def verify_interruptions(
    place: Path, first: Path, interruptions: Iterable[Interruption]
) -> int:
    """Interrupt an upgrade at each step. Print the table, and return the number of faults."""
    remaining = list(interruptions)
    fault_count = 0
    while remaining:
        async with boot_venue(place) as venue:
            make_package(first, f"{__version__}+0", venue.machine.results / "first.deb")
            await venue.install("/results/first.deb")
            runner = Runner(venue, first)
            fault_count += await _interrupt_each(runner, remaining)
            sys.stdout.write(
                f"{venue.machine.boots - 1} power cuts, {len(venue.request_ids)} requests,"
                f" {len(venue.service.reports)} reports\n"
            )
    return fault_count


async def _interrupt_each(runner: Runner, remaining: list[Interruption]) -> int:
    """Take interruptions from ``remaining`` until it is empty or one has failed. Return the number
    of faults.
    """
    fault_count = 0
    while remaining:
        interruption = remaining.pop(0)
        began = time.monotonic()
        try:
            row = await runner.interrupt(interruption)
        except (AssertionError, TimeoutError, OSError) as error:
            log = await log_of(runner.venue)
            sys.stdout.write(f"FAILED {interruption}: {error!r}\n{log}\n")
            return fault_count + 1
        fault_count += bool(row.faults) or row.after_repair != "new version"
        verdict = "; ".join(row.faults) or "0 lost, 0 doubled, same device"
        sys.stdout.write(
            f"{row.interruption:33} {row.killed:21} {row.before_repair:22} {row.after_repair:12}"
            f" {verdict} ({time.monotonic() - began:.0f} s)\n"
        )
        sys.stdout.flush()
    return fault_count


async def log_of(venue: Venue) -> str:
    units = ("-u", "venue-agent.service", "-u", "venue-agent-upgrade.service")
    output = await venue.run("journalctl", *units, "-n", "60", "-o", "cat", expect=None)
    state = "ls -la /usr/lib | grep venue; dpkg -l venue-agent; ps ax"
    return f"{output}\n{await venue.run('sh', '-c', state, expect=None)}"


@contextlib.asynccontextmanager
async def boot_venue(place: Path):  # type: ignore[no-untyped-def]
    """Boot a machine, with a service that it can reach."""
    directory = Path(tempfile.mkdtemp(dir=place))
    results = directory / "results"
    results.mkdir()
    async with StrictService() as service:
        with overlay_of_this_machine(directory) as root:
            # Without this, each upgrade would spend ten seconds on the index of man pages.
            (root / "var/lib/man-db/auto-update").unlink(missing_ok=True)
            with machine(root, results) as booted:
                yield Venue(booted, service)


async def verify(options: argparse.Namespace) -> int:
    packages = [options.package] if options.package else [*PACKAGES.glob("venue-agent_*.deb")]
    if len(packages) != 1:
        raise SystemExit(f"exactly one {PACKAGES}/venue-agent_*.deb is required: make test-deb")
    interruptions = [
        each for each in INTERRUPTIONS if re.search(options.only, f"{each.text}, {each.kill}")
    ]
    if not interruptions:
        raise SystemExit(f"no interruption matches {options.only!r}")
    with tempfile.TemporaryDirectory(prefix="venue-agent-upgrade-", dir=options.scratch) as name:
        place = Path(name)
        # Another build may replace the package meanwhile.
        first = Path(shutil.copy(packages[0], place / "package.deb"))
        if options.older:
            await verify_older(place, first, options.older)
        if options.part in {"all", "roll-backs"}:
            await verify_roll_backs(place, first)
        if options.part in {"all", "interruptions"}:
            return 1 if await verify_interruptions(place, first, interruptions) else 0
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description="Interrupt upgrades of the Debian package.")
    parser.add_argument(
        "--only", default="", help="only interruptions whose name matches this regular expression"
    )
    parser.add_argument("--part", choices=("all", "roll-backs", "interruptions"), default="all")
    parser.add_argument(
        "--older", type=Path, help="package without the script for upgrades, to upgrade from"
    )
    parser.add_argument("--package", type=Path, help="package to test")
    parser.add_argument("--scratch", type=Path, help="directory for temporary files")
    options = parser.parse_args()
    if os.geteuid() != 0:
        raise SystemExit("a container needs root: run it with sudo")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    return asyncio.run(verify(options))


if __name__ == "__main__":
    sys.exit(main())
