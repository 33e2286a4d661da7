"""`doctor --bundle` and a running daemon collect reports without disturbing each other."""

import asyncio
import json
import zipfile
from pathlib import Path

from agent.adapters.storage.history import read_history
from agent.adapters.storage.state import StateDirectory
from tests.fakes.strict_service import StrictService
from tests.scenario.agent_process import run_agent, running_agent, write_config

KINDS = ("network", "application", "network", "application")


async def test_fresh_reports_of_a_bundle_do_not_disturb_the_daemon(tmp_path: Path) -> None:
    async with StrictService() as service:
        config = write_config(
            tmp_path,
            service.base_url,
            limits="min_collection_interval_seconds = 0",
            device='legacy_install_id = "till-3"',
        )
        bundle = tmp_path / "bundle.zip"
        async with running_agent(config) as agent:
            await service.until(lambda: service.heartbeats > 0)
            doctor_task = asyncio.create_task(
                run_agent(config, "doctor", "--json", "--bundle", str(bundle))
            )
            request_ids = [await service.request_report(kind) for kind in KINDS]
            await service.until(lambda: len(service.reports) == len(request_ids), 60)
            _, _, errors = await doctor_task
            assert await agent.stop() == 0
        with zipfile.ZipFile(bundle) as archive:
            members = {name: archive.read(name).decode() for name in archive.namelist()}
    assert service.violations == []
    assert {report["outcome"] for report in service.reports} == {"completed"}
    assert sorted(report["requestId"] for report in service.reports) == sorted(request_ids)
    sent_ids = {report["reportId"] for report in service.reports}
    for kind in ("network", "application"):
        bundle_report = json.loads(members[f"reports/{kind}.json"])
        assert bundle_report["completeness"] != "partial", errors
        assert bundle_report["identity"]["installId"] == "till-3"
        assert bundle_report["reportId"] not in sent_ids, "the bundle's reports must not be sent"
    assert members["status.txt"].startswith("till-3\nhealthy")
    assert len(read_history(StateDirectory(tmp_path / "state"))) == len(request_ids)
