"""Tests `venue-control demo`: its output, its isolation, and that it leaves nothing when killed."""

import fcntl
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest

from controlplane.cli import main as service_program
from tests import sizes
from tests.paths import ROOT

IS_FULL = os.environ.get("DEMO_KILLS") == "full"
LINES_MAX = 24
COLUMNS = 80
DEMO = (sys.executable, "-I", "-m", "controlplane", "demo", "--dir")
# The command to which a test appends the arguments SIGNAL MARK COMMAND.
KILL_AND_REPORT = (sys.executable, "-m", "tests.scenario.demo.orphans")
# One case for each name: the demo is killed as soon as its directory has a file with this name.
# With the name "", it is killed at once.
KILL_AT = (
    "", "spooler.log", "api-key", "service.out", "agent.log", "state/agent.db", "state/status.json",
    "network.json", "application.html",
)  # fmt: skip
# The cases of KILL_AT that run without DEMO_KILLS=full.
FEW_KILLS = sizes.large_except(["api-key"], ["api-key", "state/agent.db"])

pytestmark = pytest.mark.lab


@contextmanager
def running(words: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        words, stdout=subprocess.PIPE, text=True, cwd=ROOT, start_new_session=True
    )
    with process:
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # its child processes are in this group


def is_free(lock: Path) -> bool:
    with lock.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
    return True


def check_nothing_is_left(outcome: dict[str, Any], home: Path) -> None:
    """Check that no process is left in the demo's network namespace, and that no lock is held."""
    assert outcome["in_its_namespace"] == []
    assert all(is_free(lock) for lock in home.glob("**/*.lock"))


def check_is_whole(database: Path) -> None:
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


@pytest.mark.needs("tap")
def test_a_demo_with_keep_prints_a_sign_in_link_and_runs_until_it_is_killed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home, mark = tmp_path / "demo", tmp_path / "kill"
    with running((*KILL_AND_REPORT, "SIGKILL", str(mark), *DEMO, str(home), "--keep")) as process:
        assert process.stdout is not None
        lines = []
        while "/#/sign-in/" not in (line := process.stdout.readline()):
            assert line, lines
            lines.append(line)
        check_printed_lines([*lines, line], home)
        check_the_link(line.strip())
        assert service_program.main(["demo", "--dir", str(home)]) == 1
        assert f"another demo uses {home}" in " ".join(capsys.readouterr().err.split())
        mark.write_text("now")
        outcome = json.loads(process.stdout.read())
    assert outcome["was_running"]
    assert outcome["had_namespace"]
    assert outcome["orphans"] >= 4
    check_nothing_is_left(outcome, home)
    for name in ("service.db", "state/agent.db"):
        check_is_whole(home / name)
    with closing(sqlite3.connect(home / "service.db")) as connection:
        assert connection.execute("SELECT count(*) FROM reports").fetchone() == (2,)
    print(f"the demo's {outcome['orphans']} processes ended in {outcome['gone_s']} s")


def check_printed_lines(lines: Sequence[str], home: Path) -> None:
    text = " ".join("".join(lines).split())
    assert len(lines) <= LINES_MAX
    # Each line ends with a line break. Lines with a path or link can be longer.
    assert all(len(line.rstrip("\n")) <= COLUMNS for line in lines if "/" not in line)
    assert "on a LAN behind a TAP device" in text
    assert "192.168.77.61" in text
    assert re.search(r"network report: \d+\.\d+ s, 13 hosts, \d+ endpoints", text)
    assert re.search(r"application snapshot: \d+\.\d+ s, \d+ read", text)
    for kind in ("network", "application"):
        assert f"Page: {home / f'{kind}.html'}\n" in lines
        assert "</html>" in (home / f"{kind}.html").read_text()


def check_the_link(link: str) -> None:
    """Check that the code in the link can be exchanged for a valid API key, and only once."""
    base_url, code = link.split("/#/sign-in/")
    with httpx2.Client(base_url=base_url, trust_env=False) as client:
        key = client.post("/console/sign-in", json={"code": code}).json()["key"]
        assert client.post("/console/sign-in", json={"code": code}).status_code == 404
        headers = {"Authorization": f"Bearer {key}"}
        path = "/api/public/v1/remoteControl/listDevices"
        assert client.post(path, json={}, headers=headers).status_code == 200


@pytest.mark.parametrize("file_name", KILL_AT if IS_FULL else FEW_KILLS)
def test_a_killed_demo_leaves_no_process_no_lock_and_no_damaged_database(
    tmp_path: Path, file_name: str
) -> None:
    home = tmp_path / "demo"
    signals = ("SIGKILL", "SIGHUP", "SIGTERM") if IS_FULL else ("SIGKILL",)
    for name in signals:
        mark = file_name and str(home / file_name)
        words = (*KILL_AND_REPORT, name, mark, *DEMO, str(home))
        result = subprocess.run(words, capture_output=True, text=True, check=True, cwd=ROOT)
        outcome = json.loads(result.stdout.splitlines()[-1])
        assert outcome["was_running"], result.stdout
        check_nothing_is_left(outcome, home)
        for database in home.glob("**/*.db"):
            check_is_whole(database)


def test_the_demo_refuses_a_directory_with_files_that_are_not_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    assert service_program.main(["demo", "--dir", str(tmp_path)]) == 1
    assert "has files that do not belong to a demo" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]
