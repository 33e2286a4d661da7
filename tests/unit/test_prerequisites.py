"""A test whose prerequisites are missing is skipped. If `CI` is set, the test fails, unless
`TESTS_WITHOUT` names the missing prerequisites.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab.namespaces import entering, failure_of
from tests.paths import ROOT
from tests.prerequisites import (
    RequiredButMissing,
    Skipped,
    declared_but_present,
    declared_missing,
    demand,
    missing,
)

TEST_WITH_PREREQUISITE = """
import pytest

@pytest.fixture
def fixture():
    raise AssertionError("no fixture may be created for a test that is skipped")

@pytest.mark.needs("veth")
def test_with_prerequisite(fixture):
    pass
"""


def only_tap_is_missing(name: str) -> str | None:
    return "needs tap: install iproute2 (ip: not found)" if name == "tap" else None


def test_an_available_prerequisite_skips_no_test() -> None:
    demand("veth", environment={"CI": "1"}, reason_of=only_tap_is_missing)


@pytest.mark.parametrize("environment", [{}, {"CI": ""}, {"CI": "1", "TESTS_WITHOUT": "veth tap"}])
def test_a_test_without_its_prerequisite_is_skipped(environment: dict[str, str]) -> None:
    with pytest.raises(Skipped, match="install iproute2"):
        demand("veth", "tap", environment=environment, reason_of=only_tap_is_missing)


@pytest.mark.parametrize("without", ["", "veth peers"])
def test_in_ci_a_missing_prerequisite_that_is_not_declared_fails_the_test(without: str) -> None:
    environment = {"CI": "true", "TESTS_WITHOUT": without}
    with pytest.raises(RequiredButMissing, match=r"install iproute2 .* is skipped only if"):
        demand("tap", environment=environment, reason_of=only_tap_is_missing)


def test_an_unknown_prerequisite_is_refused() -> None:
    with pytest.raises(ValueError, match="taps"):
        declared_missing({"TESTS_WITHOUT": "tap taps"})


def test_declaring_an_available_prerequisite_as_missing_is_detected() -> None:
    assert declared_but_present({"TESTS_WITHOUT": "tap veth"}, only_tap_is_missing) == ("veth",)
    assert declared_but_present({}, only_tap_is_missing) == ()


def test_the_reason_of_a_skip_has_the_fix_and_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    reason = missing.__wrapped__("systemd-analyze")
    assert reason == (
        "needs systemd-analyze: install systemd 250 or later"
        " (systemd-analyze: No such file or directory)"
    )


@pytest.mark.medium
@pytest.mark.parametrize(
    ("environment", "code", "message"),
    [
        ({}, 0, r"^SKIPPED \[1\] .*: needs veth: install iproute2.*unshare: No such file"),
        ({"CI": "1"}, 1, r"^ERROR .*::test_with_prerequisite - Failed: needs veth: "),
        pytest.param(
            {"CI": "1", "TESTS_WITHOUT": "veth"},
            0,
            r"^SKIPPED \[1\] .*: needs veth: ",
            marks=pytest.mark.large,
        ),
        pytest.param(
            {"CI": "1", "TESTS_WITHOUT": "vet"},
            4,
            r"^ERROR: TESTS_WITHOUT names \['vet'\]",
            marks=pytest.mark.large,
        ),
    ],
)
def test_pytest_skips_or_fails_tests_that_lack_a_prerequisite(
    tmp_path: Path, environment: dict[str, str], code: int, message: str
) -> None:
    (tmp_path / "test_sample.py").write_text(TEST_WITH_PREREQUISITE)
    configuration = (
        "-c",
        str(ROOT / "pyproject.toml"),
        f"--rootdir={tmp_path}",
        "-p",
        "tests.conftest",
    )
    inherited = {k: v for k, v in os.environ.items() if k not in {"CI", "TESTS_WITHOUT"}}
    without_tools = {"PATH": "/nonexistent", "PYTHONPATH": str(ROOT), "COLUMNS": "400"}
    result = subprocess.run(
        (sys.executable, "-m", "pytest", *configuration, "-p", "no:cacheprovider", str(tmp_path)),
        capture_output=True, text=True, check=False, timeout=120, cwd=tmp_path,
        env={**inherited, **without_tools, **environment},
    )  # fmt: skip
    assert result.returncode == code, result.stdout + result.stderr
    assert re.search(message, result.stdout + result.stderr, re.MULTILINE), (
        result.stdout + result.stderr
    )


CONNECT_OVER_LOOPBACK = """
import socket
server = socket.create_server(("127.0.0.1", 0))
socket.create_connection(server.getsockname(), 5)
print([name for _, name in socket.if_nameindex()])
"""


@pytest.mark.needs("network-namespace")
def test_a_new_network_namespace_has_only_loopback_and_it_is_up() -> None:
    command = (sys.executable, "-c", CONNECT_OVER_LOOPBACK)
    result = subprocess.run((*entering(), *command), capture_output=True, check=True, text=True)
    assert result.stdout == "['lo']\n"


def test_a_failing_command_is_reported_by_its_last_line() -> None:
    assert failure_of("true") is None
    assert failure_of("sh", "-c", "echo first >&2; echo last >&2; echo >&2; exit 3") == "last"
    assert failure_of("sh", "-c", "exit 3") == "exit 3"
    assert failure_of("no-such-program") == "no-such-program: No such file or directory"
