"""Runs each verb with a hostile object, such as a link or a FIFO, in place of each state file.

`state.py` defines and runs the cells: the combinations of verb, file and object. A medium run tests
each verb with each file that it reads, and uses each object at least once. A large run tests every
combination.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import sizes
from tests.scenario.hostile.state import FILES, PLANTERS, READS, VERBS, cells
from tests.scenario.security.shared_python import ENVIRONMENT, shared_python

STEP = sizes.amount(medium=len(PLANTERS), large=1)
"""The argument ``step`` of `cells`, for the size of this run."""


@pytest.fixture
def home() -> Iterator[Path]:
    """A directory that the service's user can enter, unlike the directories that pytest creates."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        yield Path(directory)


@pytest.mark.needs("other-user", "network-namespace", "shared-python")
@pytest.mark.parametrize(
    "verbs", ["status,history,printers,enroll", "run,doctor", "collect,check,show,service"]
)
def test_no_verb_that_root_runs_changes_or_discloses_a_file_outside_the_state_directory(
    verbs: str, home: Path
) -> None:
    command = ("unshare", "--net", shared_python(), "-m", "tests.scenario.hostile.state")
    _play(command, home, "root", verbs)


@pytest.mark.needs("ordinary-user")
@pytest.mark.parametrize("verbs", ["status,history,printers,enroll", "run,collect,check,show"])
def test_no_verb_that_a_user_runs_changes_or_discloses_a_file_outside_the_state_directory(
    verbs: str, home: Path
) -> None:
    _play((sys.executable, "-m", "tests.scenario.hostile.state"), home, "owner", verbs)


def _play(command: tuple[str, ...], home: Path, caller: str, verbs: str) -> None:
    result = subprocess.run(
        [*command, str(home), caller, str(STEP), verbs],
        env=ENVIRONMENT, cwd="/", capture_output=True, text=True, timeout=1800, check=False,
    )  # fmt: skip
    assert result.stderr == ""
    *problems, last = (json.loads(line) for line in result.stdout.splitlines())
    assert problems == []
    assert last == {"played": len(list(cells(verbs.split(","), STEP)))}


def test_a_medium_run_has_each_verb_with_the_files_that_it_reads_and_each_planted_object() -> None:
    medium_cells = list(cells(VERBS, len(PLANTERS)))
    verbs_with_files = {(verb, name) for verb, name, _ in medium_cells}
    assert verbs_with_files >= {(verb, name) for verb in READS for name in READS[verb]}
    assert {verb for verb, _ in verbs_with_files} == set(VERBS)
    assert {name for _, name in verbs_with_files} == set(FILES)
    assert {planter for _, _, planter in medium_cells} == set(PLANTERS)


def test_a_large_run_has_each_verb_with_each_file_and_each_planted_object() -> None:
    assert set(cells(VERBS, 1)) == {(v, n, p) for v in VERBS for n in FILES for p in PLANTERS}


def test_the_cells_include_the_main_verbs_that_read_the_state() -> None:
    assert set(VERBS) >= {"status", "history", "doctor", "enroll", "run", "collect", "service"}
