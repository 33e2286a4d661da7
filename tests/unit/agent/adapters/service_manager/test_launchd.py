"""Tests of the service under launchd, with a fake launchctl that follows launchctl(1)."""

import plistlib
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.adapters.service_manager.contract import NotPermitted, ServiceManagerError
from agent.adapters.service_manager.launchd import (
    LABEL,
    TARGET,
    LaunchdService,
    daemon_plist,
    parse_print,
)
from tests.unit.agent.adapters.service_manager.completed_process import completed_process
from tests.unit.agent.adapters.service_manager.plist_lint import lint

PROGRAM = ("/usr/local/lib/venue-agent/venue-agent",)
RUNNING = f"""\
{TARGET} = {{
	active count = 1
	path = /Library/LaunchDaemons/{LABEL}.plist
	type = LaunchDaemon
	state = running

	program = /usr/local/lib/venue-agent/venue-agent
	runs = 1
	pid = 4711
	immediate reason = speculative
	last exit code = (never exited)
	sockets = {{
	}}

	resource coalition = {{
		ID = 1296
		type = resource
		state = active
		active count = 1
		name = {LABEL}
	}}

	jetsam coalition = {{
		ID = 1297
		type = jetsam
		state = active
		active count = 1
		name = {LABEL}
	}}
}}
"""


@dataclass
class FakeLaunchd:
    """A fake launchctl. It lists the service for ``polls_until_gone`` polls after `bootout`."""

    polls_until_gone: int = 0
    is_disabled: bool = False
    is_loaded: bool = False
    polls_left: int = 0
    calls: list[str] = field(default_factory=list)

    def run(self, *words: str) -> CompletedProcess[str]:
        verb = words[1]
        self.calls.append(verb)
        if verb == "print":
            return self._print()
        if verb == "enable":
            self.is_disabled = False
        elif verb == "bootstrap":
            if self.is_disabled:
                return completed_process(5, stderr="Bootstrap failed: 5: Input/output error\n")
            self.is_loaded = True
        elif verb == "bootout":
            self.polls_left = self.polls_until_gone
            self.is_loaded = self.polls_left > 0
            return completed_process(
                36 if self.polls_left else 0, stderr="Operation now in progress\n"
            )
        return completed_process(0)

    def _print(self) -> CompletedProcess[str]:
        if not self.is_loaded:
            return completed_process(
                113, stderr=f'Could not find service "{LABEL}" in domain for system\n'
            )
        if self.polls_left:
            self.polls_left -= 1
            self.is_loaded = self.polls_left > 0
        return completed_process(0, RUNNING)


def service_in(root: Path, launchd: FakeLaunchd, *, is_root: bool = True) -> LaunchdService:
    config = root / "etc/venue-agent/config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.touch()
    return LaunchdService(PROGRAM, launchd.run, root, lambda: is_root, sleep=lambda s: None)


def test_start_enables_a_disabled_service_before_the_bootstrap(tmp_path: Path) -> None:
    launchd = FakeLaunchd(is_disabled=True)
    service = service_in(tmp_path, launchd)
    service.install()
    service.start()
    assert launchd.calls.index("enable") < launchd.calls.index("bootstrap")
    assert service.state().activity == "running"
    assert service.state().pid == 4711


def test_uninstall_unloads_the_service_and_keeps_the_configuration(tmp_path: Path) -> None:
    launchd = FakeLaunchd(polls_until_gone=5)
    service = service_in(tmp_path, launchd)
    service.install()
    service.start()
    service.uninstall()
    assert not launchd.is_loaded
    assert not service.state().is_installed
    assert service.paths.config.exists()


def test_stopping_a_service_that_stays_loaded_raises_an_error(tmp_path: Path) -> None:
    launchd = FakeLaunchd(polls_until_gone=10_000)
    service = service_in(tmp_path, launchd)
    service.install()
    service.start()
    with pytest.raises(ServiceManagerError, match="still loaded after 20 s"):
        service.stop()


def test_every_service_action_can_be_repeated(tmp_path: Path) -> None:
    launchd = FakeLaunchd()
    service = service_in(tmp_path, launchd)
    for action in (
        service.stop, service.uninstall, service.install, service.install, service.start,
        service.start, service.restart, service.stop, service.stop, service.uninstall,
    ):  # fmt: skip
        action()
    assert launchd.calls.count("bootstrap") == 2


@pytest.mark.parametrize("action", ["install", "uninstall", "start", "stop"])
def test_service_actions_without_permission_change_nothing(tmp_path: Path, action: str) -> None:
    launchd = FakeLaunchd()
    with pytest.raises(NotPermitted, match="needs root"):
        getattr(service_in(tmp_path, launchd, is_root=False), action)()
    assert launchd.calls == []


def test_the_lint_accepts_our_property_list() -> None:
    document = daemon_plist(PROGRAM, "/etc/venue-agent/config.toml")
    assert lint(document) == ()
    assert plistlib.loads(document)["ProgramArguments"][1:3] == ["run", "--config"]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"KeepAllive": True}, "KeepAllive: unknown key"),
        ({"ThrottleInterval": "10"}, "ThrottleInterval: is of the wrong type, str"),
        ({"ExitTimeOut": True}, "ExitTimeOut: is of the wrong type, bool"),
        ({"KeepAlive": {"OnExit": True}}, "KeepAlive.OnExit: unknown key"),
        ({"SoftResourceLimits": {"Files": 3}}, "SoftResourceLimits.Files: unknown key"),
        ({"OnDemand": False}, "OnDemand: obsolete, or only for debugging"),
        ({"ProcessType": "background"}, "ProcessType: unknown value"),
        ({"UserName": "venue"}, "UserName: a daemon that is not root needs"),
        ({"ProgramArguments": ["venue-agent"]}, "Program: an absolute path is required"),
        ({"Label": ""}, "Label: is required"),
    ],
)
def test_the_lint_reports_a_wrong_key_or_value(change: dict[str, object], problem: str) -> None:
    plist = plistlib.loads(daemon_plist(PROGRAM, "/etc/venue-agent/config.toml"))
    result = lint(plistlib.dumps(plist | change))
    assert any(line.startswith(problem) for line in result), result


@given(st.binary())
def test_lint_reports_any_invalid_document(document: bytes) -> None:
    assert lint(document) != ()


@given(st.text())
def test_any_output_of_launchctl_gives_a_state(text: str) -> None:
    assert parse_print(text, is_installed=True).activity in {"running", "stopped", "failed"}


def test_a_daemon_that_exited_with_an_error_is_failed() -> None:
    stopped = RUNNING.replace("state = running", "state = not running")
    assert parse_print(stopped, is_installed=True).activity == "stopped"
    failed = stopped.replace("(never exited)", "2")
    assert parse_print(failed, is_installed=True).detail == "last exit code 2"


@pytest.mark.parametrize(
    "end",
    [
        "last terminating signal = Killed: 9",
        "last exit reason = OS_REASON_CODESIGNING",
        "last exit code = 78: EX_CONFIG",
    ],
)
def test_a_service_that_ended_abnormally_has_failed_until_it_runs_again(end: str) -> None:
    text = RUNNING.replace("state = running", "state = spawn scheduled")
    state = parse_print(text.replace("last exit code = (never exited)", end), is_installed=True)
    assert (state.activity, state.detail) == ("failed", end.replace(" = ", " "))
    restarted = RUNNING.replace("last exit code = (never exited)", end)
    assert parse_print(restarted, is_installed=True).activity == "running"
