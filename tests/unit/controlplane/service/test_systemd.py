"""Tests of `venue-control service`. A fake records its system commands and does not run them."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from controlplane.cli.main import build_parser, main
from controlplane.cli.service import describe, install_and_start, options_text
from controlplane.client.errors import CommandError, UsageError
from controlplane.service.paths import RESOURCES, UNIT
from controlplane.service.program import quote, require_safe_program
from controlplane.service.systemd import Output, ServiceState, SystemdService, unit_text
from controlplane.settings import Settings

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the test uses POSIX users")
EXPOSURE_MAX = 1.5
"""The highest permitted exposure level of `systemd-analyze security`. 10 is the worst level."""
UNIT_PROPERTIES = (
    "LoadState=loaded\nUnitFileState=enabled\nActiveState=active\nMainPID=12\nNRestarts=1\n"
)


def output(code: int, stdout: str = "", stderr: str = "") -> Output:
    return Output((), code, stdout, stderr)


class FakeSystem:
    """Records commands. ``answers`` maps the first two words of a command to its output."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, ...]] = []
        self.answers = {
            "systemctl show": output(
                0, UNIT_PROPERTIES + "StatusText=listening on http://127.0.0.1:8470"
            ),
            "getent passwd": output(2),
        }

    def __call__(self, *words: str) -> Output:
        self.calls.append(words)
        return self.answers.get(" ".join(words[:2]), output(0))

    def changes(self) -> list[str]:
        """Return all commands except those that read the state of the unit or of the user."""
        return [" ".join(words) for words in self.calls if words[1] not in {"show", "passwd"}]


@pytest.fixture
def system() -> FakeSystem:
    return FakeSystem()


@pytest.fixture
def service(system: FakeSystem, tmp_path: Path) -> SystemdService:
    program = tmp_path / "opt/venue-control"
    program.parent.mkdir()
    program.touch(mode=0o755)
    return SystemdService(system, (str(program),), root=tmp_path, owner=os.getuid())


@pytest.fixture(autouse=True)
def _skip_the_check_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip the check of who can change the program. Its result depends on the test directory."""
    monkeypatch.setattr("controlplane.service.systemd.require_safe_program", lambda *_: None)


def test_only_the_first_installation_writes_the_unit_and_the_options(
    service: SystemdService, system: FakeSystem, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install_and_start(service, "--port 1\n", has_options=True)
    unit = tmp_path / "etc/systemd/system" / UNIT
    assert f"ExecStart={tmp_path}/opt/venue-control serve @" in unit.read_text()
    assert service.options.read_text() == "--port 1\n"
    assert stat.S_IMODE(service.options.stat().st_mode) == 0o640
    assert [words.split()[0:2] for words in system.changes()] == [
        ["systemd-sysusers", f"{tmp_path}/etc/sysusers.d/venue-control.conf"],
        ["systemctl", "daemon-reload"], ["chgrp", "venue-control"], ["systemctl", "--quiet"],
        ["systemctl", "start"],
    ]  # fmt: skip
    system.calls.clear()
    system.answers["getent passwd"] = output(0, "venue-control:x:1:")
    capsys.readouterr()
    install_and_start(service, "--port 2\n", has_options=True)
    assert service.options.read_text() == "--port 1\n"
    assert "is kept" in capsys.readouterr().out
    assert not [words for words in system.changes() if "daemon-reload" in words]


def test_the_unit_of_the_package_is_not_changed(
    service: SystemdService, system: FakeSystem, tmp_path: Path
) -> None:
    package_unit = tmp_path / "usr/lib/systemd/system" / UNIT
    package_unit.parent.mkdir(parents=True)
    package_unit.touch()
    assert service.install("")
    assert not (tmp_path / "etc/systemd/system").exists()
    assert not [words for words in system.changes() if "sysusers" in words]


@pytest.mark.parametrize("case", ["masked", "hides the unit of the package", "of another program"])
def test_an_unusable_unit_is_refused_before_anything_is_written(
    service: SystemdService, system: FakeSystem, tmp_path: Path, case: str
) -> None:
    unit = tmp_path / "etc/systemd/system" / UNIT
    unit.parent.mkdir(parents=True)
    if case == "masked":
        unit.symlink_to("/dev/null")
    else:
        unit.write_text("[Unit]\n")
    if case == "hides the unit of the package":
        package_unit = tmp_path / "usr/lib/systemd/system" / UNIT
        package_unit.parent.mkdir(parents=True)
        package_unit.touch()
    with pytest.raises(CommandError) as refused:
        service.install("")
    assert refused.value.hint
    assert system.changes() == []
    assert not service.options.exists()


def test_a_failed_start_prints_the_last_log_lines(
    service: SystemdService, system: FakeSystem
) -> None:
    system.answers["systemctl start"] = output(1, "", "Job failed")
    message = "usage: …\nvenue-control serve: error: unrecognized arguments: --wrokers\n"
    system.answers["journalctl --lines=20"] = output(0, message)
    with pytest.raises(CommandError, match="unrecognized arguments: --wrokers") as refused:
        service.start()
    assert "journalctl" in refused.value.hint
    system.answers["journalctl --lines=20"] = output(0, "")
    with pytest.raises(CommandError, match="Job failed"):
        service.start()


def test_uninstall_removes_the_unit_and_purge_removes_options_data_and_user(
    service: SystemdService, system: FakeSystem, tmp_path: Path
) -> None:
    service.install("")
    service.state_directory.mkdir(parents=True)
    system.calls.clear()
    service.uninstall()
    assert service.options.exists()
    disabled, *others = system.changes()
    assert disabled.startswith("systemctl --quiet disable")
    assert [words.split()[1] for words in others] == ["reset-failed", "daemon-reload"]
    system.answers["getent passwd"] = output(0, "venue-control:x:1:")
    service.purge()
    assert system.changes()[-1] == "userdel venue-control"
    remaining = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert remaining == [tmp_path / "opt/venue-control"]
    assert not service.state_directory.exists()


def test_a_service_that_is_not_installed_is_not_started(
    service: SystemdService, system: FakeSystem
) -> None:
    system.answers["systemctl show"] = output(0, "LoadState=not-found\nActiveState=inactive\n")
    with pytest.raises(CommandError, match="not installed"):
        service.start()
    service.stop()
    service.uninstall()
    assert system.changes() == []
    assert describe(service.state())[0].endswith("not installed")


def test_the_status_describes_a_running_and_a_failed_service() -> None:
    state = ServiceState(
        is_installed=True, starts_at_boot=True, activity="running", pid=12,
        detail="listening on http://127.0.0.1:8470", restarts=2,
    )  # fmt: skip
    assert describe(state) == [
        "service   installed, starts at boot",
        "now       running (process 12)",
        "detail    listening on http://127.0.0.1:8470",
        "restarts  2 by systemd",
    ]
    failed = ServiceState(True, False, "failed", 0, "", 0)
    assert describe(failed)[-1].startswith("→ find out why")


def test_a_program_that_other_users_can_change_is_refused(tmp_path: Path) -> None:
    program = tmp_path / "venue-control"
    program.touch()
    tmp_path.chmod(0o777)
    with pytest.raises(CommandError, match=r"users other than root can change|home directory"):
        require_safe_program(program, os.getuid())


@pytest.mark.parametrize(
    ("word", "line"), [("a", "a"), ("a b", '"a b"'), ("50%", '"50%%"'), ('"$x\\', '"\\"$$x\\\\"')]
)
def test_words_are_quoted_for_systemd(word: str, line: str) -> None:
    assert quote(word) == line


def test_the_shipped_options_are_the_defaults_and_commented_options_are_valid(
    tmp_path: Path,
) -> None:
    shipped_options = build_parser().parse_args(["serve", f"@{RESOURCES / 'serve.conf'}"])
    assert vars(shipped_options) == vars(build_parser().parse_args(["serve"]))
    all_options = tmp_path / "serve.conf"
    text = (RESOURCES / "serve.conf").read_text()
    all_options.write_text(text.replace("\n#--", "\n--"))
    options = build_parser().parse_args(["serve", f"@{all_options}"])
    assert (options.workers, options.keep_reports) == (4, 180 * 86400)
    assert options.database == "postgresql+psycopg:///venue?host=/var/run/postgresql"


def test_options_become_lines_and_invalid_options_are_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = options_text(["--workers", "4", "--keep-reports=30d"])
    assert text.splitlines()[-2:] == ["--workers 4", "--keep-reports=30d"]
    with pytest.raises(SystemExit):
        options_text(["--wrokers", "4"])
    assert "did you mean '--workers'" in capsys.readouterr().err
    with pytest.raises(UsageError):
        options_text(["--tracker-url", "nonsense"])


def test_a_dry_run_prints_the_unit_and_the_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["service", "install", "--dry-run", "--", "--workers", "2"]) == 0
    output = capsys.readouterr().out
    assert "ExecStart=" in output
    assert output.endswith("--workers 2\n")


def test_platforms_other_than_linux_get_a_two_line_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert main(["service", "status"]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 2


def test_the_unit_permits_enough_open_files_for_a_fleet() -> None:
    (files,) = [
        int(line.partition("=")[2])
        for line in (RESOURCES / UNIT).read_text().splitlines()
        if line.startswith("LimitNOFILE=")
    ]
    assert files > Settings().streams_max + 10_000


def test_the_unit_permits_a_lower_priority() -> None:
    """Passwords and large bodies are processed with a lower priority (setpriority(2))."""
    filters = [
        line.partition("=")[2]
        for line in (RESOURCES / UNIT).read_text().splitlines()
        if line.startswith("SystemCallFilter=")
    ]
    assert filters[-1] == "setpriority"  # after the filter that refuses @resources


@pytest.mark.needs("systemd-analyze")
def test_the_unit_is_sandboxed_and_systemd_finds_no_fault(tmp_path: Path) -> None:
    unit = tmp_path / UNIT
    text = unit_text((sys.executable, "-m", "controlplane"))
    unit.write_text(text.replace("Documentation=", "# "))

    def run_systemd_analyze(*words: str) -> str:
        result = subprocess.run(
            ("systemd-analyze", *words), capture_output=True, text=True, check=True
        )
        return result.stdout + result.stderr

    report = run_systemd_analyze("security", "--offline=yes", "--no-pager", str(unit))
    assert float(report.rpartition(f"{UNIT}: ")[2].split()[0]) <= EXPOSURE_MAX
    assert run_systemd_analyze("verify", str(unit)) == ""
