"""Links, FIFOs, directories and foreign files in place of each state file, for each verb.

The table itself is played by `hostile_state`, which root starts; see there.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.scenario.hostile_state import FILES, PLANTS, SERVICE, VERBS

REPOSITORY = Path(__file__).parents[2]
LIBRARIES = Path(pytest.__file__).parents[1]
ENVIRONMENT = {
    "PATH": os.defpath,
    "PYTHONPATH": f"{REPOSITORY}{os.pathsep}{LIBRARIES}",
    "PYTHONDONTWRITEBYTECODE": "1",
}


def _why_not() -> str | None:
    """Return why the table cannot be played here."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return "only root can act as the service's user: run it with sudo"
    try:
        done = subprocess.run(["unshare", "--net", "true"], capture_output=True, check=False)
    except FileNotFoundError:
        return "unshare is missing: install util-linux"
    if done.returncode:
        return f"no network namespace can be made: {done.stderr.decode().strip()}"
    return None if _python() else "no Python that other users can read: install python3"


def _python() -> str | None:
    """Return a Python of this version that the service's user can run with our libraries."""
    here = f"python{sys.version_info.major}.{sys.version_info.minor}"
    probe = "import agent.app, cryptography, rich"
    for python in (sys.executable, f"/usr/bin/{here}", f"/usr/local/bin/{here}"):
        try:
            done = subprocess.run(
                [python, "-c", probe], user=SERVICE, group=SERVICE, extra_groups=(), cwd="/",
                env=ENVIRONMENT, capture_output=True, check=False,
            )  # fmt: skip
        except OSError:
            continue
        if done.returncode == 0:
            return python
    return None


@pytest.fixture
def home() -> Iterator[Path]:
    """A directory that the service's user can reach, which pytest's own are not."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        yield Path(directory)


@pytest.mark.parametrize(
    "verbs", ["status,history", "enroll", "run", "doctor", "collect", "check,show,service"]
)
def test_nothing_outside_is_touched_or_told(verbs: str, home: Path) -> None:
    if reason := _why_not():
        pytest.skip(reason)
    python = _python() or ""
    _play(("unshare", "--net", python, "-m", "tests.scenario.hostile_state"), home, "root", verbs)


@pytest.mark.skipif(os.geteuid() == 0, reason="root plays more than this, above")
@pytest.mark.parametrize("verbs", ["status,history", "enroll", "run", "collect", "check,show"])
def test_nor_by_an_ordinary_user(verbs: str, home: Path) -> None:
    _play((sys.executable, "-m", "tests.scenario.hostile_state"), home, "owner", verbs)


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
