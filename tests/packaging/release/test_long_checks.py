"""Every check runs in CI or before a release. `long_checks` fails if one of its checks fails."""

import re
import subprocess
import sys
from pathlib import Path

from release.long_checks import CHECKS

from tests.paths import ROOT

MAKEFILES = (ROOT / "Makefile", *sorted((ROOT / "packaging").glob("*.mk")))
TARGET = re.compile(r"^([a-z0-9-]+):.*##", re.MULTILINE)
TARGET_NAME = re.compile(r"[a-z]+(?:-[a-z0-9]+)*")
RELEASE_MK = (ROOT / "packaging/release.mk").read_text()


def targets() -> set[str]:
    return {name for file in MAKEFILES for name in TARGET.findall(file.read_text())}


def test_every_check_is_a_target_of_make() -> None:
    assert {check.split()[0] for check in CHECKS} <= targets()
    assert len(set(CHECKS)) == len(CHECKS)


def test_every_test_target_runs_in_ci_or_before_a_release() -> None:
    in_ci = set(TARGET_NAME.findall((ROOT / ".ci/run").read_text()))
    before_a_release = {check.split()[0] for check in CHECKS}
    tests = {name for name in targets() if name.startswith("test-")}
    assert tests - in_ci - before_a_release == set()


def test_every_longer_form_of_a_test_runs_before_a_release() -> None:
    text = (ROOT / "docs/testing.md").read_text()
    # The last column of the table names the target that runs the longer form.
    longer = set(re.findall(r"\| `([a-z]+(?:-[a-z0-9]+)*)` \|$", text, re.MULTILINE))
    in_ci = {"test-packages"}
    measurements = {"bench-figures"}
    before_a_release = {check.split()[0] for check in CHECKS}
    assert len(longer) > 10
    assert longer - before_a_release - in_ci - measurements == set()


def test_every_target_that_builds_a_release_exists() -> None:
    target_lists = re.findall(r"^RELEASE_(?:MACHINE_)?TARGETS :=(.*)$", RELEASE_MK, re.MULTILINE)
    assert len(target_lists) == 2
    rules = {
        name for file in MAKEFILES for name in re.findall(r"^([a-z0-9-]+):", file.read_text(), re.M)
    }
    assert set(" ".join(target_lists).split()) <= rules


def test_the_run_continues_after_a_failed_check_and_then_fails(tmp_path: Path) -> None:
    makefile = tmp_path / "Makefile"
    makefile.write_text("broken:\n\t@echo the reason; false\ngood:\n\t@test $(ARGS) = --all\n")
    words = ("--makefile", str(makefile), "--logs", str(tmp_path / "logs"))
    run = (sys.executable, "-m", "release.long_checks", *words)
    environment = {"PYTHONPATH": str(ROOT / "packaging"), "PATH": "/usr/bin:/bin"}
    checks = ("broken", "good ARGS=--all")
    done = subprocess.run(
        (*run, *checks), capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 1
    assert "the reason" in done.stdout
    assert re.search(r"\nbroken +FAILED +\d+\.\d\n", done.stdout)
    assert re.search(r"\ngood ARGS=--all +ok +\d+\.\d\n1 of 2 checks passed\n$", done.stdout)
    done = subprocess.run(
        (*run, checks[1]), capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0
