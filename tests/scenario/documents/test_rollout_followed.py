"""Follows docs/rollout.md: every command of `venue-control` works as it is written."""

import json
import subprocess
import sys
from typing import Any

import pytest

from agent import __version__
from tests.lab import namespaces
from tests.paths import ROOT

pytestmark = [pytest.mark.large, pytest.mark.needs("network-namespace")]


def follow() -> list[dict[str, Any]]:
    command = (sys.executable, "-m", "tests.scenario.documents.rollout")
    result = subprocess.run(
        (*namespaces.entering(), *command), cwd=ROOT, capture_output=True, timeout=900, check=False
    )
    assert result.returncode == 0, result.stderr.decode()[-3000:]
    steps: list[dict[str, Any]] = json.loads(result.stdout)
    return steps


def test_a_fleet_is_rolled_out_with_the_commands_of_the_document() -> None:
    steps = follow()
    failed_steps = [step for step in steps if step["code"]]
    assert failed_steps == []
    assert steps[0]["output"] == "wrote 120 keys and manifest.csv to keys\n"
    by_command = {step["command"]: step for step in steps}
    request = next(command for command in by_command if command.startswith("venue-control request"))
    assert __version__ in request
    assert "1 completed" in by_command[request]["output"] + by_command[request]["errors"]
    assert any(command.startswith("venue-control keys revoke") for command in by_command)
