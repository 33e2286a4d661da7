"""Today's programs open the data of every release, and keep the identity and all reports.

`make_fixture` made the data of each release with the programs of the release.
"""

import asyncio
import json
import sqlite3
from contextlib import closing
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any, ClassVar, Self, cast

import pytest

from agent.adapters import machine
from agent.adapters.storage.device_record import DeviceRecordFile
from agent.adapters.storage.printer_memory import PrinterMemory
from agent.adapters.storage.state import StateDirectory
from agent.cli import timeline
from agent.cli.main import main
from controlplane.settings import Settings
from controlplane.storage.database import Database
from tests.fakes.hostile_service import HostileService
from tests.fakes.strict_service import API_KEY
from tests.fakes.virtual_clock import VirtualClock, run_in_virtual_time
from tests.scenario.agent_process import write_config
from tests.scenario.releases.packed import (
    AGENT_DB,
    FOLDER,
    SERVICE_DB,
    STATE,
    facts_of,
    load,
    unpack_state,
)
from tests.scenario.simulated_agent import config_for, simulated_agent
from tests.unit.controlplane.running_service import FakeClock, service_on

RELEASES = sorted(FOLDER.iterdir())
NEXT_START_AFTER = timedelta(minutes=10)
"""Time from the making of a fixture until today's programs start with it."""
Json = dict[str, Any]

pytestmark = pytest.mark.parametrize("folder", RELEASES, ids=lambda folder: folder.name)


class ClockOfTheRelease(VirtualClock):
    """A clock that begins at the time when the fixture was made, plus `NEXT_START_AFTER`."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._began_at = datetime.fromisoformat(facts_of(folder)["madeAt"]) + NEXT_START_AFTER


def stored_record(folder: Path) -> Json:
    document: Json = json.loads(json.loads((folder / STATE).read_text("utf-8"))["device.json"])
    return document


async def start_the_agent(folder: Path, home: Path) -> tuple[HostileService, Json]:
    """Run today's agent on the state directory of the release until it has sent the waiting
    report. Then run the agent again.

    Return the service, and the device record at the end.
    """
    clock = ClockOfTheRelease(folder)
    binding = stored_record(folder)["binding"]["record"]
    async with HostileService(clock.true_time) as service:
        service.binding_id, service.device = binding["bindingId"], binding
        state = home / "state"
        unpack_state(folder, state, service.base_url)
        location = {"location_id": binding["locationId"]}
        config = config_for(home, service.base_url, service=location)
        for _ in range(2):
            async with simulated_agent(config, home, clock) as app:
                await app.until_ended([facts_of(folder)["waiting"]], 300)
                # If the agent sent the report again, it would do so before the next two heartbeats.
                heartbeats_before = service.heartbeats
                await service.until(lambda: service.heartbeats > heartbeats_before + 1, 300)  # noqa: B023
        record = DeviceRecordFile(StateDirectory(state)).peek()
        assert record is not None
        return service, record.model_dump(mode="json", by_alias=True)


@pytest.fixture
def on_the_same_machine(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give this machine the fingerprint of the machine on which the release's data were made."""
    fingerprint = stored_record(folder)["fingerprint"]
    monkeypatch.setattr(machine, "fingerprint", lambda: fingerprint)


@pytest.mark.medium
@pytest.mark.usefixtures("on_the_same_machine")
async def test_the_agent_keeps_its_identity_and_submits_the_waiting_report_once(
    folder: Path, tmp_path: Path
) -> None:
    """Today's service, with the database of the release, accepts the bytes that the agent sent."""
    service, record = await asyncio.to_thread(
        run_in_virtual_time, start_the_agent(folder, tmp_path)
    )
    facts, before = facts_of(folder), stored_record(folder)
    assert record["fingerprint"] == before["fingerprint"]
    # After an upgrade, the agent enrolls again to send its version, so other fields may change. The
    # service verifies that the agent still has the same key.
    for key in ("instanceId", "bindingId", "locationId", "legacyInstallId"):
        assert record["binding"]["record"][key] == before["binding"]["record"][key]
    texts = json.loads((folder / STATE).read_text("utf-8"))
    assert (tmp_path / "state/identity.pem").read_text() == texts["identity.pem"]
    assert service.violations == []
    assert [report["requestId"] for report in service.reports] == [facts["waiting"]]
    assert len(service.bodies) == 1
    await _submit_to_the_service_of_today(folder, tmp_path, service.bodies[0])


async def _submit_to_the_service_of_today(folder: Path, tmp_path: Path, report_body: bytes) -> None:
    facts = facts_of(folder)
    load(folder, tmp_path / SERVICE_DB)
    database = Database(f"sqlite:///{tmp_path / SERVICE_DB}")
    clock = FakeClock()
    clock.now = datetime.fromisoformat(facts["madeAt"]) + NEXT_START_AFTER
    path = "/api/public/v1/remoteControl/{}".format
    try:
        async with service_on(database, Settings(), clock) as service:
            key = facts["apiKey"]
            device_rows = (await service.post(path("listDevices"), api_key=key)).json()["devices"]
            assert [row["instanceId"] for row in device_rows] == [facts["device"]]
            for _ in range(2):
                reply = await service.post(path("submitResult"), report_body, api_key=key)
                assert reply.status_code == 200, reply.text
            body = json.dumps({"instanceId": facts["device"]})
            detail = (await service.post(path("deviceDetail"), body, api_key=key)).json()
            request_ids = sorted([*facts["answered"], facts["waiting"]])
            assert sorted(report["requestId"] for report in detail["reports"]) == request_ids
            for report in detail["reports"]:
                body = json.dumps({"reportId": report["reportId"]})
                stored_report = await service.post(path("reportDetail"), body, api_key=key)
                assert stored_report.json()["payload"]["reportId"] == report["reportId"]
    finally:
        database.close()


class TimeOfTheFixture(datetime):
    """A datetime class whose `now` is the time at which a fixture was made."""

    made_at: ClassVar[datetime]

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Self:
        return cast("Self", cls.made_at.astimezone(tz))


def test_the_commands_show_what_the_release_showed(
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The output may have new keys. No recorded key may be missing. Only values that depend on the
    time of the command may differ.
    """
    facts = facts_of(folder)
    monkeypatch.setattr(
        TimeOfTheFixture, "made_at", datetime.fromisoformat(facts["madeAt"]), raising=False
    )
    monkeypatch.setattr(timeline, "datetime", TimeOfTheFixture)
    (tmp_path / "api-key").write_text(API_KEY)
    config = write_config(tmp_path, facts["baseUrl"])
    unpack_state(folder, tmp_path / "state", facts["baseUrl"])
    for command, expected in facts["printed"].items():
        words = [*command.split(), "--json", "--config", str(config)]
        assert main(words) == 0
        printed = json.loads(capsys.readouterr().out)
        assert_contains(printed, expected, command)
    memory, reason = PrinterMemory(StateDirectory(tmp_path / "state")).peek()
    assert (reason, [printer.id for printer in memory.printers]) == (None, ["queue:kitchen"])
    with closing(sqlite3.connect(tmp_path / "state" / AGENT_DB)) as connection:
        reports = [row[0] for row in connection.execute("SELECT report_id FROM sent")]
    assert reports
    for report in reports:
        assert main(["history", report, "--json", "--config", str(config)]) == 0
        assert json.loads(capsys.readouterr().out)["reportId"] == report


def assert_contains(printed: Any, expected: Any, place: str) -> None:
    if isinstance(expected, dict):
        for key, value in expected.items():
            assert key in printed, f"{place} lacks {key}"
            if key not in {"until", "hours"}:  # they depend on the time of the command
                assert_contains(printed[key], value, f"{place}.{key}")
    elif isinstance(expected, list):
        assert len(printed) == len(expected), place
        for index, value in enumerate(expected):
            assert_contains(printed[index], value, f"{place}[{index}]")
    else:
        assert printed == expected, place
