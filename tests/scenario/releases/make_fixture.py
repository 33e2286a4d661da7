"""Makes the fixture of a release, by running this checkout's service and agent as processes.

Run it in the checkout of a release, before the next release changes the code. An agent enrolls and
submits a report of each kind. Then the service is killed while the agent collects, so that a third
report waits in the outbox. The programs run in namespaces of their own: the host is called `till`,
and the only network is loopback.

Needs root. Usage: python -m tests.scenario.releases.make_fixture
"""

import asyncio
import json
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from agent import __version__
from agent.adapters.storage.printer_memory import PrinterMemory
from agent.adapters.storage.state import StateDirectory
from agent.rules.learned_printers import RememberedPrinters
from collectors.contract import LearnedPrinter
from tests.packaging.local_service import LocalService
from tests.packaging.service.service_process import ServiceProcess
from tests.paths import ROOT
from tests.scenario.agent_process import AgentProcess, run_agent, running_agent, write_config
from tests.scenario.releases.packed import AGENT_DB, FOLDER, SERVICE_DB, pack

HOME: Final = Path("/srv/venue")
WITHIN_S: Final = 120
NAMESPACES: Final = ("--net", "--mount", "--uts", "--pid", "--fork", "--mount-proc", "--kill-child")
PRINTED: Final = ("history", "timeline")
"""Commands whose output with --json the fixture contains."""


async def make() -> dict[str, Any]:
    """Fill HOME with the data of both programs. Return the content of `facts.json`."""
    service = ServiceProcess(HOME)
    key = HOME / "api-key"
    key.write_text(service.api_key + "\n")
    key.chmod(0o600)
    config = write_config(HOME, service.url)
    operator = LocalService(service.url, service.api_key)
    async with running_agent(config) as agent:
        await _until(lambda: operator.devices() != [])
        device = operator.devices()[0]["instanceId"]
        request_ids = [await _report(operator, device, kind) for kind in ("application", "network")]
        waiting = await _leave_a_report_waiting(service, operator, agent, device)
        await _until(_has_stored_an_incident)
        await agent.stop()
    printer = LearnedPrinter(
        id="queue:kitchen", setup="ipp://192.168.1.50/ipp/print",
        seen_at=datetime.now(UTC).isoformat(timespec="seconds"),
        address="192.168.1.50", mac_address="00:26:ab:00:00:34",
    )  # fmt: skip
    assert PrinterMemory(StateDirectory(HOME / "state")).write(RememberedPrinters((printer,)))
    outputs = {}
    for command in PRINTED:
        code, output, errors = await run_agent(config, *command.split(), "--json")
        assert code == 0, errors
        outputs[command] = json.loads(output)
    return {
        "madeAt": datetime.now(UTC).isoformat(), "version": __version__, "baseUrl": service.url,
        "apiKey": service.api_key, "device": device, "answered": request_ids, "waiting": waiting,
        "printed": outputs,
    }  # fmt: skip


async def _report(operator: LocalService, device: str, kind: str) -> str:
    """Request a report, and return the id of the request when the report has arrived."""
    request = operator.request(device, kind)
    await _until(lambda: operator.report_of(device, request) is not None)
    return request


async def _leave_a_report_waiting(
    service: ServiceProcess, operator: LocalService, agent: AgentProcess, device: str
) -> str:
    """Kill the service while the agent collects, so that the report waits in the outbox.

    Return the id of the request.
    """
    request = operator.request(device, "application")
    await _until(lambda: operator.request_row(device, request)["status"] != "queued")
    service.stop(signal.SIGKILL)
    await _until(lambda: agent.status()["outbox_reports"] == 1)
    return request


def _has_stored_an_incident() -> bool:
    with closing(sqlite3.connect(HOME / "state" / AGENT_DB)) as connection:
        return bool(connection.execute("SELECT count(*) FROM incidents").fetchone()[0])


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(WITHIN_S):
        while not condition():  # noqa: ASYNC110 - it reads data of other processes
            await asyncio.sleep(0.05)


def _hide_this_machine() -> None:
    """Hide facts of this machine that a report would contain: its name, name servers and mounts."""
    for line in Path("/proc/self/mounts").read_text().splitlines():
        if line.split()[1].startswith(("/tmp/", "/var/", "/mnt/", "/home/", "/root/")):
            subprocess.run(("umount", "--lazy", line.split()[1]), check=False)
    subprocess.run(("mount", "-t", "tmpfs", "fixture", "/srv"), check=True)
    HOME.mkdir()
    (HOME / "resolv.conf").write_text("nameserver 192.0.2.53\n")
    bind = ("mount", "--bind", str(HOME / "resolv.conf"), "/etc/resolv.conf")
    subprocess.run(bind, check=True)
    socket.sethostname("till")


def main() -> None:
    if sys.argv[1:] != ["--inside"]:
        loopback = (sys.executable, "-I", str(ROOT / "tests/lab/loopback.py"))
        module = (sys.executable, "-m", "tests.scenario.releases.make_fixture", "--inside")
        sys.exit(
            subprocess.run(("unshare", *NAMESPACES, *loopback, *module), check=False).returncode
        )
    _hide_this_machine()
    facts = asyncio.run(make())
    folder = FOLDER / __version__
    pack(HOME / "state", HOME / SERVICE_DB, facts, folder)
    for path in sorted(folder.iterdir()):
        print(path.relative_to(ROOT), path.stat().st_size)


if __name__ == "__main__":
    main()
