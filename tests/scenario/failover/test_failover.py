"""Tests that the service survives the loss of a host, and of its database server.

`make test-failover` runs the same drill with more devices, and checks how long each recovery takes.
"""

import json
import subprocess
import sys

import pytest

from tests.paths import ROOT

DEVICES = 6
WITHIN_S = 1500
RECOVERIES = {"host lost", "database restarted", "primary replaced"}


@pytest.mark.large
@pytest.mark.needs("postgresql", "veth", "other-user")
def test_nothing_that_the_service_accepted_is_lost() -> None:
    drill = (sys.executable, "-m", "tests.scenario.failover.drill", "--devices", str(DEVICES))
    process = subprocess.run(
        drill, cwd=ROOT, capture_output=True, text=True, check=False, timeout=WITHIN_S
    )
    assert process.returncode == 0, process.stdout + process.stderr
    result = json.loads(process.stdout)
    assert result["faults"] == []
    assert result["seconds"].keys() == RECOVERIES
    assert result["accepted"] > DEVICES
