"""Checks, with the imports of a real daemon, that an idle daemon does not load certain modules."""

import re
import sys
from pathlib import Path

import pytest

from tests.fakes.strict_service import StrictService
from tests.scenario.agent_process import running_agent, write_config

IMPORT_LINE = re.compile(r"^import time:\s+\d+ \|\s+\d+ \|\s+([\w.]+)$", re.MULTILINE)

NEVER = {
    "zeroconf": "runs in the collector's process",
    "rich": "is for output to users",
    "jinja2": "is for output to users",
    "html": "uses memory for a table of 2,231 character names",
    "agent.presentation": "is for output to users",
    "agent.cli.collect": "is only for `venue-agent collect`",
    "agent.cli.doctor": "is only for `venue-agent doctor`",
    "agent.cli.status": "is only for `venue-agent status`",
    "agent.wire.operator_operations": "is the operator's part of the contract",
    "apscheduler.triggers.cron": "is only for scheduled reports, and the test has none",
    "controlplane": "is a different program",
    "collectors.network": "runs in the collector's process",
    "collectors.application": "runs in the collector's process",
}
"""Modules that a daemon never loads, with the reason."""
if sys.platform == "linux":  # elsewhere, the recorder reads the link with psutil and netifaces
    NEVER["psutil"] = NEVER["netifaces"] = "runs in the collector's process"
PARSER_MODULES = {"agent.presentation", "agent.presentation.command_line"}
"""Modules of agent.presentation that the daemon needs to parse its command line."""
ONLY_WHILE_ENROLLING = {"cryptography": "is only needed to sign the challenge of an enrollment"}
"""Modules that a daemon loads only if it must enroll, with the reason."""


async def _imports_of_a_daemon(config: Path, service: StrictService) -> set[str]:
    service.heartbeats = 0
    (config.parent / "agent.log").unlink(missing_ok=True)
    async with running_agent(config) as agent:
        await service.until(lambda: service.heartbeats > 1 and "onCommands" in service.calls)
        assert await agent.stop() == 0
    return set(IMPORT_LINE.findall(agent.log))


def _loaded_modules(imports: set[str], name: str) -> set[str]:
    return {module for module in imports if module == name or module.startswith(f"{name}.")}


async def test_idle_daemon_loads_no_module_that_it_does_not_need(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPROFILEIMPORTTIME", "1")
    async with StrictService() as service:
        config = write_config(tmp_path, service.base_url)
        enrolling = await _imports_of_a_daemon(config, service)
        idle = await _imports_of_a_daemon(config, service)
    assert _loaded_modules(enrolling, "cryptography"), "the import log has an unexpected format"
    assert _loaded_modules(idle, "httpx2")
    for name in NEVER:
        assert not _loaded_modules(enrolling | idle, name) - PARSER_MODULES, name
    for name in ONLY_WHILE_ENROLLING:
        assert not _loaded_modules(idle, name)
