"""Links, FIFOs, directories and foreign files in place of each state file, for each verb.

The table itself is played by `hostile_state`, which root starts; see there.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.scenario.hostile.state import FILES, PLANTS, VERBS
from tests.scenario.security.shared_python import ENVIRONMENT, shared_python


@pytest.fixture
def home() -> Iterator[Path]:
    """A directory that the service's user can reach, which pytest's own are not."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        yield Path(directory)


@pytest.mark.needs("other-user", "network-namespace", "shared-python")
@pytest.mark.parametrize(
    "verbs", ["status,history", "enroll", "run", "doctor", "collect", "check,show,service"]
)
def test_nothing_outside_is_touched_or_told(verbs: str, home: Path) -> None:
    python = shared_python()
    _play(("unshare", "--net", python, "-m", "tests.scenario.hostile.state"), home, "root", verbs)


@pytest.mark.needs("ordinary-user")
@pytest.mark.parametrize("verbs", ["status,history", "enroll", "run", "collect", "check,show"])
def test_nor_by_an_ordinary_user(verbs: str, home: Path) -> None:
    _play((sys.executable, "-m", "tests.scenario.hostile.state"), home, "owner", verbs)


def _play(command: tuple[str, ...], home: Path, caller: str, verbs: str) -> None:
    done = subprocess.run(
        [*command, str(home), caller, verbs],
        env=ENVIRONMENT, cwd="/", capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    *wrong, last = (json.loads(line) for line in done.stdout.splitlines())
    assert wrong == []
    assert last == {"played": len(FILES) * len(PLANTS) * len(verbs.split(","))}


def test_every_verb_on_the_state_is_in_the_table() -> None:
    assert set(VERBS) >= {"status", "history", "doctor", "enroll", "run", "collect", "service"}
