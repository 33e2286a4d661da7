"""Tests that a collector started by root becomes an ordinary user, and stays root if it cannot."""

import json
import os
import pwd
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agent.adapters.service_manager import systemd
from collectors.unprivileged import SERVICE_USER, is_mapped, ordinary_account
from tests.fakes.collectors.command import ROOT

LEAVE = """
import json, os, sys
from collectors.sandbox import module_directories
from collectors.unprivileged import leave_root
sys.path.insert(0, sys.argv[1])
import early
reason = None
try:
    leave_root((*module_directories(), sys.argv[1]))
except OSError as error:
    reason = error.strerror
from early import late
import fractions  # a module of the standard library that nothing has loaded yet
print(json.dumps({"users": [*os.getresuid(), *os.getresgid()], "reason": reason,
                  "late": late.VALUE, "loaded_early": "fractions" in early.LOADED}))
"""
CONFINE = """
import json, os, sys
from collectors import sandbox
def refuse():
    raise OSError(38, "this kernel has no seccomp filters")
if len(sys.argv) > 1:
    sandbox.filter_this_thread = refuse
print(json.dumps({"state": sandbox.confine_this_process().state, "uid": os.geteuid()}))
"""


def run(program: str, *words: str | Path, prefix: tuple[str, ...] = ()) -> tuple[Any, str]:
    """Return the JSON that a program printed, and its stderr."""
    result = subprocess.run(
        [*prefix, sys.executable, "-I", "-c", program, *map(str, words)],
        capture_output=True, text=True, check=False, timeout=60, cwd=ROOT,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout), result.stderr


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """Return the directory with the modules of a program. Only root can reach this directory."""
    tmp_path.chmod(0o700)
    package = tmp_path / "modules/early"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("import sys\nLOADED = set(sys.modules)\n")
    (package / "late.py").write_text("VALUE = 7\n")
    for path in (package.parent, package):
        path.chmod(0o755)
    for path in package.iterdir():
        path.chmod(0o644)
    return package.parent


@pytest.mark.needs("other-user")
def test_modules_that_only_root_can_reach_can_be_loaded_after_leave_root(program: Path) -> None:
    result, _ = run(LEAVE, program)
    assert result["reason"] is None
    assert 0 not in result["users"]
    assert (result["late"], result["loaded_early"]) == (7, False)


@pytest.mark.needs("other-user")
def test_the_collector_stays_root_if_the_user_cannot_read_the_program(program: Path) -> None:
    (program / "early/__init__.py").chmod(0o600)
    result, _ = run(LEAVE, program)
    assert result["users"] == [0] * 6
    assert result["reason"].startswith("the user ")
    assert "cannot read the program's file /proc/self/fd/" in result["reason"]


@pytest.mark.needs("landlock", "user-namespace")
def test_the_collector_stays_root_in_a_namespace_that_maps_no_other_user() -> None:
    result, errors = run(CONFINE, prefix=("unshare", "--user", "--map-root-user"))
    assert (result, errors) == ({"state": "confined", "uid": 0}, "")


@pytest.mark.needs("landlock")
def test_a_missing_system_call_filter_is_reported_and_landlock_still_confines() -> None:
    result, errors = run(CONFINE, "refuse")
    assert result["state"] == "confined"
    reason = "this kernel has no seccomp filters"
    assert errors == f"the collector runs without a filter of system calls: {reason}\n"


# ------------------------------------------------------------------ which user


def account(name: str, uid: int) -> pwd.struct_passwd:
    return pwd.struct_passwd((name, "x", uid, uid, "", "/", "/bin/false"))


@pytest.mark.parametrize(
    ("accounts", "expected"),
    [
        ({"venue-agent": 847, "nobody": 65534}, "venue-agent"),
        ({"nobody": 65534}, "nobody"),
        ({"venue-agent": 0, "nobody": 65534}, "nobody"),
    ],
)
def test_the_user_of_the_service_is_preferred_to_the_user_nobody(
    accounts: dict[str, int], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pwd, "getpwnam", lambda name: account(name, accounts[name]))
    monkeypatch.setattr(os, "getgrouplist", lambda _name, gid: [gid])
    assert ordinary_account().name == expected
    assert SERVICE_USER == systemd.USER


def test_the_error_names_both_users_if_neither_exists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pwd, "getpwnam", {}.__getitem__)
    with pytest.raises(OSError, match="there is no user venue-agent and no user nobody"):
        ordinary_account()


def test_a_user_is_mapped_only_if_a_range_of_the_uid_map_contains_its_id() -> None:
    assert is_mapped(65534, "         0          0 4294967295\n")
    assert is_mapped(65534, "0 1000 1\n1 100000 65536\n")
    assert not is_mapped(65534, "         0       1000          1\n")
