"""Tests the identity and location of a device: copied disks, restored backups, new locations, a
revoked device, and state directories and keys with wrong permissions.
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agent.adapters.storage.database import NAME as DATABASE
from agent.rules.lifecycle import State
from tests.fakes.hostile_service import HostileService, hang, status
from tests.fakes.virtual_clock import VirtualClock, run_in_virtual_time
from tests.scenario.agent_process import forked_agent, run_forked_agent, write_config
from tests.scenario.simulated_agent import config_for, simulated_agent


def _record(home: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((home / "state" / "device.json").read_text())
    return record


def _names_in_quarantine(home: Path) -> list[str]:
    """Return the names of the files in quarantine without the time at their beginning."""
    quarantine = home / "state" / "quarantine"
    return sorted(p.name[23:] for p in quarantine.iterdir()) if quarantine.exists() else []


async def _until_enrolled(service: HostileService) -> None:
    await service.until(lambda: service.heartbeats > 0, 60)


async def _leave_an_unsent_report(home: Path, service: HostileService, clock: VirtualClock) -> str:
    """Create a state directory with one unsent report. Return the id of its request."""
    service.faults["submitResult"] = hang
    async with simulated_agent(config_for(home, service.base_url), home, clock):
        request_id = await service.request_report("network")
        await service.until(lambda: "submitResult" in [name for _, name in service.called_at], 600)
    service.faults.clear()
    return request_id


async def _start_with_a_copied_disk(home: Path) -> None:
    clock = VirtualClock()
    async with HostileService(clock.true_time) as service:
        await _leave_an_unsent_report(home, service, clock)
        first = _record(home)
        record = {**first, "fingerprint": "that of another machine"}
        (home / "state" / "device.json").write_text(json.dumps(record))
        service.binding_id = "0b1f6a52-9d2c-4b3e-8f57-1d2c3b4a5e6f"
        for start in ("first", "second"):
            service.heartbeats = 0
            async with simulated_agent(config_for(home, service.base_url), home, clock) as app:
                await _until_enrolled(service)
                await asyncio.sleep(60)
                assert app.health.is_set("device-cloned") is (start == "first")
                assert app._ledger.outbox.depth().reports == 0
        now = _record(home)
        ids = [r["binding"]["record"]["instanceId"] for r in (first, now)]
        assert ids[0] != ids[1]
        assert now["legacy_install_id"] != first["legacy_install_id"]
        assert service.calls.count("enroll") == 2
        # This machine does not send the reports of the other machine.
        assert service.reports == []
        assert _names_in_quarantine(home) == [DATABASE, "identity.pem"]


def test_copied_disk_enrolls_once_as_a_new_device(
    memory_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The fingerprint is set, because a container may have no machine id to compute it from.
    monkeypatch.setattr("agent.adapters.machine.fingerprint", lambda: "that of this machine")
    run_in_virtual_time(_start_with_a_copied_disk(memory_home))


async def _restore_a_backup(home: Path) -> None:
    clock = VirtualClock()
    backup = home / "backup"
    async with HostileService(clock.true_time) as service:
        await _leave_an_unsent_report(home, service, clock)
        shutil.copytree(home / "state", backup)
        async with simulated_agent(config_for(home, service.base_url), home, clock):
            later_id = await service.request_report("application")
            await service.until(lambda: service.report_for(later_id) is not None, 300)
            await asyncio.sleep(60)
        assert len(service.reports) == 2
        shutil.rmtree(home / "state")
        shutil.copytree(backup, home / "state")
        # The restored journal lacks the later request. The service delivers this request again, but
        # refuses its acknowledgements, because the request has ended.
        service._waiting[later_id] = _command(service, later_id)
        service.faults["acknowledge"] = status(409)
        async with simulated_agent(config_for(home, service.base_url), home, clock) as app:
            await app.until_ended({later_id}, 600)
            await asyncio.sleep(300)
            assert app.collectors.runs == 0
            entry = app.entry(later_id)
            assert entry is not None
            assert entry.state is State.REJECTED
        # The service counts a report once, even if it is sent again with the same bytes. Other
        # bytes would be a violation.
        assert len(service.reports) == 2
        assert service.violations == []


def _command(service: HostileService, request_id: str) -> dict[str, Any]:
    return {
        "version": 1,
        "requestId": request_id,
        "bindingId": service.binding_id,
        "kind": "application",
        "expiresAt": "2099-01-01T00:00:00Z",
        "status": "completed",
    }


def test_agent_with_a_restored_backup_collects_nothing_twice(memory_home: Path) -> None:
    run_in_virtual_time(_restore_a_backup(memory_home))


async def _change_the_binding(home: Path) -> None:
    clock = VirtualClock()
    async with HostileService(clock.true_time) as service:
        async with simulated_agent(config_for(home, service.base_url), home, clock):
            await _until_enrolled(service)
        assert service.device is not None
        service.binding_id = service.device["bindingId"] = "0b1f6a52-9d2c-4b3e-8f57-1d2c3b4a5e6f"
        async with simulated_agent(config_for(home, service.base_url), home, clock) as app:
            request_id = await service.request_report("network", expires_in_s=clock.passed_s + 600)
            await service.until(lambda: service.report_for(request_id) is not None, 300)
            assert str(app.binding_state.binding_id) == service.binding_id
        assert service.calls.count("enroll") == 1


def test_a_new_binding_of_the_service_is_used_without_a_new_enrollment(memory_home: Path) -> None:
    run_in_virtual_time(_change_the_binding(memory_home))


async def _change_the_service(home: Path) -> None:
    clock = VirtualClock()
    async with HostileService(clock.true_time) as old, HostileService(clock.true_time) as new:
        request_id = await _leave_an_unsent_report(home, old, clock)
        call_count = len(old.called_at)
        async with simulated_agent(config_for(home, new.base_url), home, clock) as app:
            await _until_enrolled(new)
            await asyncio.sleep(120)
            assert [p.detail for p in app.health.problems() if p.code == "place-changed"]
            assert app.entry(request_id) is None
        assert "submitResult" not in new.calls
        assert len(old.called_at) == call_count
        assert _names_in_quarantine(home) == [DATABASE]
        # The report for the old service can still be read from the file in quarantine.
        file = next((home / "state" / "quarantine").iterdir())
        assert request_id.encode() in file.read_bytes()


def test_reports_for_another_service_are_quarantined_and_not_sent(memory_home: Path) -> None:
    run_in_virtual_time(_change_the_service(memory_home))


async def _change_the_location(home: Path, *, is_refused: bool) -> None:
    clock = VirtualClock()
    async with HostileService(clock.true_time) as service:
        request_id = await _leave_an_unsent_report(home, service, clock)
        if is_refused:
            service.faults["submitResult"] = status(403)
        moved_config = config_for(home, service.base_url, service={"location_id": "loc-2"})
        async with simulated_agent(moved_config, home, clock) as app:
            await app.until_ended({request_id}, 600)
            await asyncio.sleep(60)
            assert app.health.is_set("reports-dropped") is is_refused
        assert service.calls.count("enroll") == 2
        assert _record(home)["binding"]["location_id"] == "loc-2"
        assert (service.report_for(request_id) is None) is is_refused
        refused_reports = [
            name for name in _names_in_quarantine(home) if name.startswith("refused-")
        ]
        assert len(refused_reports) == (1 if is_refused else 0)


@pytest.mark.parametrize("is_refused", [False, True])
def test_reports_of_the_previous_location_are_sent_or_quarantined_if_refused(
    is_refused: bool, memory_home: Path
) -> None:
    run_in_virtual_time(_change_the_location(memory_home, is_refused=is_refused))


async def _revoke_and_restore(home: Path) -> None:
    clock = VirtualClock()
    async with HostileService(clock.true_time) as service:
        async with simulated_agent(config_for(home, service.base_url), home, clock) as app:
            await _until_enrolled(service)
            app.collectors.may_end.clear()
            running_id = await service.request_report("network", expires_in_s=1e5)
            waiting_id = await service.request_report("application", expires_in_s=1e5)
            await service.until(lambda: len(service.acknowledged) == 3)
            device, service.device = service.device, None
            service.faults.update(dict.fromkeys(("heartbeat", "acknowledge"), status(403)))
            service.faults["submitResult"] = status(403)
            await asyncio.sleep(app._config.heartbeat.interval_seconds * 1.2)
            assert app.binding_state.is_revoked
            assert app._status_now().is_revoked
            assert "revoked" in {p.code for p in app._status_now().problems}
            app.collectors.may_end.set()  # the current collection ends; no other may start
            app._executor.schedule("application")
            before = len(service.called_at)
            await asyncio.sleep(1800)
            assert app.collectors.runs == 1
            # The agent only checks, at long intervals, whether the device is still revoked.
            assert {name for _, name in service.called_at[before:]} == {"current"}
            assert len(service.called_at) - before <= 12
            service.device = device
            service.faults.clear()
            await app.until_ended({running_id, waiting_id}, 4000)
        assert sum(r.get("requestId") == running_id for r in service.reports) == 1
        assert sum(r.get("requestId") == waiting_id for r in service.reports) == 1


def test_revoked_device_stops_collecting_within_a_heartbeat_and_reports_why(
    memory_home: Path,
) -> None:
    run_in_virtual_time(_revoke_and_restore(memory_home))


# ------------------------------------------------------------------ real processes


@pytest.mark.parametrize("state_dir", ["/proc/venue", "/dev/null", "/dev/null/state"])
async def test_invalid_state_directory_is_a_one_line_error(state_dir: str, tmp_path: Path) -> None:
    config = write_config(tmp_path, "http://127.0.0.1:1")
    config.write_text(config.read_text().replace(str(tmp_path / "state"), state_dir))
    code, output, errors = await run_forked_agent(config, "run")
    assert (code, output) == (1, "")
    assert errors.startswith(f"venue-agent: the state directory {state_dir} cannot be written: ")
    assert len(errors.splitlines()) == 1


AS_ANOTHER_USER = """
import os, sys
from pathlib import Path
from agent.adapters.storage.state import StateDirectory
from agent.errors import StateError
if os.geteuid() == 0:
    os.setuid(65534)
try:
    StateDirectory(Path(sys.argv[1])).prepare()
except StateError as error:
    print(error)
"""


def test_state_directory_of_another_user_is_reported(memory_home: Path) -> None:
    foreign_state = memory_home / "theirs"
    foreign_state.mkdir(mode=0o700)
    memory_home.chmod(0o755)
    if os.geteuid() != 0:
        foreign_state.chmod(0o500)
    result = subprocess.run(
        [sys.executable, "-c", AS_ANOTHER_USER, str(foreign_state)],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert (
        result.stdout
        == f"the state directory {foreign_state} cannot be written: Permission denied\n"
    )


async def test_world_readable_key_is_refused(tmp_path: Path) -> None:
    config = write_config(tmp_path, "http://127.0.0.1:1")
    key = tmp_path / "api-key"
    key.chmod(0o604)
    code, _, errors = await run_forked_agent(config, "run")
    assert code == 2
    assert errors == (
        f"venue-agent: every user of this machine can read the file {key}: run `chmod 600` on it\n"
    )


async def test_group_readable_key_causes_a_warning(tmp_path: Path) -> None:
    config = write_config(tmp_path, "http://127.0.0.1:1")
    (tmp_path / "api-key").chmod(0o640)
    async with forked_agent(config) as agent:
        await agent.until_logged("try 1:")
        assert await agent.stop() == 0
    # The warning is a plain line, because the agent reads the key before it configures logging.
    assert "a group can read" in agent.log
