"""`venue-agent demo` where it cannot be played; `make demo` plays it."""

import argparse
from pathlib import Path

import pytest

from agent.cli import demo
from agent.errors import AgentError


def test_without_the_service_it_says_what_to_install_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "SERVICE_NEEDS", ("controlplane", "venue_agent_nonexistent"))
    home = tmp_path / "demo"
    with pytest.raises(AgentError, match=r"pip install 'venue-agent\[controlplane\]'"):
        demo.run(argparse.Namespace(dir=home, lan=False, keep=False))
    assert not home.exists()
