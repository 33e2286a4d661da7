"""Tests of the service under systemd, with a fake systemctl that stores the state of one unit."""

import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.adapters.service_manager.commands import run_checked, run_program
from agent.adapters.service_manager.contract import (
    NotPermitted,
    ServiceManagerError,
    ServiceState,
)
from agent.adapters.service_manager.posix import require_reachable
from agent.adapters.service_manager.systemd import (
    RESOURCES,
    UNIT,
    SystemdService,
    parse_properties,
    parse_version,
    state_of,
    unit_text,
)
from tests.unit.agent.adapters.service_manager.completed_process import completed_process

OUR_USER = "venue-agent:x:997:997:Venue agent:/var/lib/venue-agent:/usr/sbin/nologin"
PROGRAM = ("/opt/venue-agent/bin/python", "-m", "agent")


@dataclass
class FakeSystemd:
    """A fake systemctl. ``root`` is the directory that contains the unit directories."""

    root: Path
    version: int = 252
    is_enabled: bool = False
    is_active: bool = False
    fails_at_start: bool = False
    user: str = ""
    """The user's line in /etc/passwd, which `systemd-sysusers` creates. Empty if no user exists."""
    group: str = ""
    userdel_deletes_the_group: bool = True
    calls: list[str] = field(default_factory=list)

    def run(self, *words: str) -> CompletedProcess[str]:
        self.calls.append(" ".join(word for word in words if word != "--quiet"))
        if words[0] == "systemctl":
            return self._systemctl([word for word in words[1:] if word != "--quiet"])
        if words[0] == "journalctl":
            return completed_process(0, "venue-agent: the configuration is wrong\n")
        return self._account(words)

    def _account(self, words: tuple[str, ...]) -> CompletedProcess[str]:
        if words[0] == "systemd-sysusers":
            self.user, self.group = self.user or OUR_USER, self.group or "venue-agent:x:997:"
        if words[0] == "userdel":
            self.user, self.group = "", "" if self.userdel_deletes_the_group else self.group
        if words[0] == "groupdel":
            self.group = ""
        if words[0] == "getent":
            line = {"passwd": self.user, "group": self.group}[words[1]]
            return completed_process(0 if line else 2, f"{line}\n" if line else "")
        return completed_process(0)

    @property
    def is_installed(self) -> bool:
        directories = ("etc/systemd/system", "usr/lib/systemd/system")
        return any((self.root / directory / UNIT).exists() for directory in directories)

    def _systemctl(self, words: list[str]) -> CompletedProcess[str]:
        verb = words[0]
        if verb == "--version":
            return completed_process(
                0, f"systemd {self.version} ({self.version}.1-1)\n+PAM +AUDIT\n"
            )
        if verb == "show":
            return completed_process(0, self._show())
        if words[-1] != UNIT:
            return completed_process(0)
        if not self.is_installed and verb in {"start", "stop", "restart", "enable"}:
            return completed_process(5, stderr=f"Unit {UNIT} not found.\n")
        if verb in {"start", "restart"} and self.fails_at_start:
            return completed_process(1, stderr="Job for venue-agent.service failed.\n")
        self.is_enabled = {"enable": True, "disable": False}.get(verb, self.is_enabled)
        stops = verb in {"stop", "disable"}
        self.is_active = (self.is_active or verb in {"start", "restart"}) and not stops
        return completed_process(0)

    def _show(self) -> str:
        return (
            f"MainPID={77 if self.is_active else 0}\n"
            f"LoadState={'loaded' if self.is_installed else 'not-found'}\n"
            f"ActiveState={'active' if self.is_active else 'inactive'}\n"
            f"UnitFileState={'enabled' if self.is_enabled else ''}\n"
            "StatusText=enrolled at loc-1; idle\nNRestarts=3\n"
        )


def service_in(systemd: FakeSystemd, *, is_root: bool = True) -> SystemdService:
    return SystemdService(
        PROGRAM,
        systemd.run,
        file_system=systemd.root,
        is_root=lambda: is_root,
        give_to_group=lambda path, group: None,
    )


def create_config(root: Path) -> None:
    (root / "etc/venue-agent").mkdir(parents=True)
    (root / "etc/venue-agent/config.toml").touch()


def test_uninstall_deletes_every_file_that_install_created(tmp_path: Path) -> None:
    systemd = FakeSystemd(tmp_path)
    service = service_in(systemd)
    create_config(tmp_path)
    before = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    assert service.state() == ServiceState(False, restarts=3)
    service.install()
    service.start()
    assert service.state() == ServiceState(True, True, "running", 77, "enrolled at loc-1; idle", 3)
    service.stop()
    assert service.state().activity == "stopped"
    service.uninstall()
    assert not service.state().is_installed
    assert not (tmp_path / "etc/sysusers.d").exists()
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == before


def test_every_service_action_can_be_repeated(tmp_path: Path) -> None:
    systemd = FakeSystemd(tmp_path)
    service = service_in(systemd)
    create_config(tmp_path)
    for action in (
        service.uninstall, service.stop, service.install, service.install, service.start,
        service.start, service.stop, service.stop, service.uninstall, service.uninstall,
    ):  # fmt: skip
        action()
    assert systemd.calls.count("systemctl daemon-reload") == 2


def test_a_packaged_unit_is_used_and_never_removed(tmp_path: Path) -> None:
    package_unit = tmp_path / "usr/lib/systemd/system" / UNIT
    package_unit.parent.mkdir(parents=True)
    package_unit.touch()
    service = service_in(FakeSystemd(tmp_path))
    service.install()
    assert not (tmp_path / "etc/systemd/system" / UNIT).exists()
    service.uninstall()
    assert package_unit.exists()


@pytest.mark.parametrize("userdel_deletes_the_group", [True, False])
def test_purge_deletes_the_user_that_install_made(
    tmp_path: Path, userdel_deletes_the_group: bool
) -> None:
    systemd = FakeSystemd(tmp_path, userdel_deletes_the_group=userdel_deletes_the_group)
    service = service_in(systemd)
    service.install()
    service.uninstall()
    assert systemd.user, "uninstall must keep the user, who owns the state files"
    assert service.purge() == ("the user venue-agent",)
    assert (systemd.user, systemd.group) == ("", "")
    assert service.purge() == ()


@pytest.mark.parametrize(
    "line",
    [
        "venue-agent:x:1000:1000:Venue agent,,,:/home/venue-agent:/bin/bash",
        OUR_USER.replace("/usr/sbin/nologin", "/bin/sh"),
        "",
        "venue-agent",
    ],
)
def test_purge_keeps_a_user_that_the_agent_did_not_create(tmp_path: Path, line: str) -> None:
    systemd = FakeSystemd(tmp_path, user=line)
    assert service_in(systemd).purge() == ()
    assert systemd.user == line


def test_purge_keeps_the_user_that_the_package_created(tmp_path: Path) -> None:
    package_unit = tmp_path / "usr/lib/systemd/system" / UNIT
    package_unit.parent.mkdir(parents=True)
    package_unit.touch()
    systemd = FakeSystemd(tmp_path, user=OUR_USER)
    assert service_in(systemd).purge() == ()
    assert systemd.user == OUR_USER


@pytest.mark.parametrize(("version", "has_backoff"), [(252, False), (254, True), (258, True)])
def test_restart_backoff_is_configured_if_systemd_supports_it(
    tmp_path: Path, version: int, has_backoff: bool
) -> None:
    service_in(FakeSystemd(tmp_path, version=version)).install()
    drop_in = tmp_path / f"etc/systemd/system/{UNIT}.d/10-backoff.conf"
    assert drop_in.exists() is has_backoff


@pytest.mark.parametrize("action", ["install", "uninstall", "purge", "start", "stop", "restart"])
def test_service_actions_without_permission_change_nothing(tmp_path: Path, action: str) -> None:
    systemd = FakeSystemd(tmp_path)
    with pytest.raises(NotPermitted, match="needs root"):
        getattr(service_in(systemd, is_root=False), action)()
    assert systemd.calls == []
    assert list(tmp_path.iterdir()) == []


def test_failed_start_reports_the_last_log_lines_of_the_agent(tmp_path: Path) -> None:
    service = service_in(FakeSystemd(tmp_path, fails_at_start=True))
    create_config(tmp_path)
    service.install()
    with pytest.raises(ServiceManagerError, match="the configuration is wrong"):
        service.start()


def test_start_without_configuration_or_installation_raises_an_error(tmp_path: Path) -> None:
    service = service_in(FakeSystemd(tmp_path))
    with pytest.raises(ServiceManagerError, match="service install"):
        service.start()
    service.install()
    with pytest.raises(ServiceManagerError, match=r"config\.toml does not exist"):
        service.start()


def test_a_program_in_a_home_directory_is_refused() -> None:
    with pytest.raises(ServiceManagerError, match="home directory"):
        require_reachable(("/root/.local/pipx/venvs/venue-agent/bin/python", "-m", "agent"))
    assert require_reachable(("/usr/bin/true",)) == ("/usr/bin/true",)


@given(st.lists(st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), min_size=1)))
def test_a_written_unit_differs_from_the_packaged_unit_only_in_the_program(
    words: list[str],
) -> None:
    written, packaged = unit_text((*PROGRAM, *words)), (RESOURCES / UNIT).read_text()
    differences = [
        (a, b) for a, b in zip(written.splitlines(), packaged.splitlines(), strict=True) if a != b
    ]
    assert len(differences) == 1
    assert differences[0][0].startswith("ExecStart=/opt/venue-agent/bin/python -m agent ")


@given(st.text())
def test_any_output_of_systemctl_gives_a_state(text: str) -> None:
    assert state_of(parse_properties(text)).activity in {
        "running", "starting", "stopping", "stopped", "failed",
    }  # fmt: skip
    assert parse_version(text) >= 0


@given(st.integers(0, 10**14))
def test_a_process_id_with_too_many_digits_is_ignored(number: int) -> None:
    state = state_of({"LoadState": "loaded", "MainPID": str(number)})
    assert state.pid == (number if 0 < number < 10**11 else None)


def analyze(*words: str) -> str:
    """Run systemd-analyze(1). Return its output and error output."""
    result = subprocess.run(("systemd-analyze", *words), capture_output=True, text=True, check=True)
    return result.stdout + result.stderr


@pytest.mark.needs("systemd-analyze")
def test_the_unit_is_sandboxed_and_systemd_finds_no_fault(tmp_path: Path) -> None:
    unit = tmp_path / UNIT
    # `verify` would report that the manual pages in Documentation= are not installed.
    unit.write_text(unit_text((sys.executable, "-m", "agent")).replace("Documentation=", "# "))
    report = analyze("security", "--offline=yes", "--no-pager", str(unit))
    exposure = float(report.rpartition(f"{UNIT}: ")[2].split()[0])  # from 0 to 10
    assert exposure <= 1.6
    assert analyze("verify", str(unit)) == ""


def test_failing_command_raises_an_error_with_its_output() -> None:
    output = run_program("echo", "hello")
    assert (output.returncode, output.stdout, output.stderr) == (0, "hello\n", "")
    with pytest.raises(ServiceManagerError, match="no venue-agent-nonexistent"):
        run_program("venue-agent-nonexistent")
    with pytest.raises(ServiceManagerError, match=r"^ls .*: .*No such file"):
        run_checked(run_program, "ls", "/nonexistent/venue-agent")
