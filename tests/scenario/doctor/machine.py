"""The simulated machine of doctor: network, file systems, processes, a service and an agent.

The command below starts this module in separate namespaces. Each situation runs in a fork with new
namespaces, so it can delete routes, fill disks and mount file systems without an effect on other
situations.

    unshare --net --mount --pid --fork --mount-proc \\
        python -m tests.scenario.doctor.machine HOME NAME…
"""

import asyncio
import contextlib
import ctypes
import dataclasses
import json
import os
import subprocess
import sys
import traceback
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agent import __version__
from agent.adapters.identity import IdentityFile
from agent.adapters.machine import fingerprint
from agent.adapters.storage.device_record import Binding, DeviceRecord, DeviceRecordFile
from agent.adapters.storage.state import StateDirectory
from agent.adapters.storage.status_file import BindingStatus, DaemonStatus, StatusFile
from agent.doctor.check import Check, CheckResult
from agent.doctor.context import Context
from agent.doctor.public_status import parse_systemctl
from agent.doctor.registry import CHECKS
from agent.doctor.runner import TOTAL_S, run_checks
from agent.wire.codec import decode
from agent.wire.device_operations import EnrollmentRecord
from tests.fakes.strict_service import StrictService
from tests.scenario.agent_process import write_config
from tests.scenario.forked_process import fork_this_process

ADDRESS, GATEWAY, UNUSED_ADDRESS = "192.168.77.2", "192.168.77.1", "192.168.77.99"
CLONE_NEWNS, CLONE_NEWNET = 0x00020000, 0x40000000

ENABLED_UNIT = """LoadState=loaded
UnitFileState=enabled
ActiveState=active
SubState=running
MainPID=0
NRestarts=0
"""

DEADLINE_FACTOR = 5
"""Factor for the deadlines of checks: a machine that runs tests may be busier than a till."""

Play = Callable[["Machine"], Awaitable[tuple[CheckResult, ...]]]
"""A function that creates a situation on a machine, and returns the outcomes of doctor."""


class Machine:
    """A simulated machine with its service. It has no faults until a situation adds one."""

    def __init__(self, home: Path, service: StrictService) -> None:
        self.home = home
        self.service = service
        self.state = StateDirectory(home / "state")
        self.base_url = service.base_url
        self.unit = ENABLED_UNIT
        """The output of systemctl for the agent's unit."""
        self.environment: dict[str, str] = {}
        self.sections: dict[str, str] = {}
        """Further lines of the configuration, by the name of their table."""
        self.status: dict[str, Any] = {}
        """Fields in which the daemon's status file differs from that of a healthy daemon."""
        self.is_enrolled = True
        self.is_daemon_running = True
        """Whether the lock and the status file show a running daemon."""
        self.hanging_check: str | None = None
        """The check that hangs and must be abandoned. It keeps its normal deadline."""

    async def doctor(self) -> tuple[CheckResult, ...]:
        """Write the machine's configuration, enrollment and status to files, and run doctor."""
        self.config = write_config(self.home, self.base_url, **self.sections)
        (self.home / "api-key").chmod(0o600)
        self._enroll_if_required()
        context = self.context()
        with contextlib.ExitStack() as stack:
            if self.is_daemon_running:
                self.state.prepare()
                stack.enter_context(self.state.lock())
                StatusFile(self.state).write(self._status())
            return await asyncio.to_thread(
                run_checks,
                self._checks_with_long_deadlines(),
                context,
                total_s=TOTAL_S * DEADLINE_FACTOR,
            )

    def _checks_with_long_deadlines(self) -> list[Check]:
        return [
            check
            if check.name == self.hanging_check
            else dataclasses.replace(check, deadline_s=check.deadline_s * DEADLINE_FACTOR)
            for check in CHECKS
        ]

    def context(self) -> Context:
        return Context(
            config_path=self.config,
            environment=self.environment,
            unit_reader=lambda: parse_systemctl(self.unit),
        )

    def enroll(self) -> None:
        """Create the state of an enrolled device, here and in the service."""
        self.state.prepare()
        key = IdentityFile(self.state).load_or_create()
        device = {
            "instanceId": str(key.instance_id),
            "locationId": "loc-1",
            "legacyInstallId": "install-1",
            "appVersion": __version__,
            "capabilities": [],
            "bindingId": self.service.binding_id,
            "organizationId": "organization-1",
        }
        self.service.device = device
        record = decode(json.dumps(device), EnrollmentRecord)
        binding = Binding(base_url=self.base_url, location_id="loc-1", record=record)
        DeviceRecordFile(self.state).save(
            DeviceRecord(legacy_install_id="install-1", fingerprint=fingerprint(), binding=binding)
        )

    def _enroll_if_required(self) -> None:
        if not self.is_enrolled or self.service.device is not None:
            return
        with contextlib.suppress(Exception):  # some situations break the state directory
            self.enroll()

    def _status(self) -> DaemonStatus:
        now = datetime.now(UTC).isoformat()
        device = self.service.device or {}
        binding = BindingStatus(
            instance_id=str(device.get("instanceId", uuid.uuid4())),
            binding_id=self.service.binding_id,
            organization_id="organization-1",
            location_id="loc-1",
            base_url=self.base_url,
        )
        fields: dict[str, Any] = {
            "version": __version__,
            "pid": os.getpid(),
            "phase": "running",
            "started_at": now,
            "written_at": now,
            "config_path": str(self.config),
            "binding": binding if self.is_enrolled else None,
            "last_heartbeat_at": now if self.is_enrolled else None,
            "last_contact_at": now if self.is_enrolled else None,
            "delivery": "stream" if self.is_enrolled else None,
        }
        return DaemonStatus(**{**fields, **self.status})


@contextlib.asynccontextmanager
async def new_machine(home: Path) -> AsyncIterator[Machine]:
    home.mkdir(parents=True)
    async with StrictService() as service:
        yield Machine(home, service)


def run(*words: str) -> None:
    """Run a command of the system. Raises CalledProcessError."""
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


def create_network() -> None:
    """Create a wired network in this namespace.

    Its router does not exist: it is only an entry in the neighbour table.
    """
    run("mount", "--make-rprivate", "/")
    run("mount", "-t", "tmpfs", "tmpfs", "/run")
    for line in (
        "link set lo up",
        "link add till0 type veth peer name wall0",
        f"addr add {ADDRESS}/24 dev till0",
        "link set till0 up",
        "link set wall0 up",
        f"route add default via {GATEWAY}",
        f"neigh replace {GATEWAY} lladdr 02:00:00:00:00:01 dev till0 nud permanent",
    ):
        run("ip", *line.split())


def play(situation: Play, home: Path) -> dict[str, Any]:
    """Create a network, run the situation, and return the output of doctor."""
    create_network()

    async def run_situation() -> tuple[CheckResult, ...]:
        async with new_machine(home) as machine:
            return await situation(machine)

    outcomes = asyncio.run(run_situation())
    return {
        "outcomes": [
            {
                "name": o.name,
                "status": o.status,
                "detail": o.detail,
                "fix": o.fix,
                "because": o.because,
            }
            for o in outcomes
        ],
    }


def play_in_a_fork(situation: Play, home: Path) -> str:
    """Run a situation in a fork with new namespaces, and return its result as a line of JSON."""
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        os.close(read)
        try:
            libc = ctypes.CDLL(None, use_errno=True)
            if libc.unshare(CLONE_NEWNS | CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "unshare")
            answer = play(situation, home)
        except BaseException:  # noqa: BLE001 - the fork's boundary: reported to the test
            answer = {"error": traceback.format_exc()}
        with os.fdopen(write, "w") as pipe:
            pipe.write(json.dumps(answer) + "\n")
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        line = pipe.readline()
    os.waitpid(child, 0)
    return line


def main() -> None:
    """Run the named situations; print a line of JSON for each."""
    from tests.scenario.doctor.situations import SITUATIONS

    fork_this_process()
    home, names = Path(sys.argv[1]), sys.argv[2:]
    for name in names:
        sys.stdout.write(play_in_a_fork(SITUATIONS[name].play, home / name))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
