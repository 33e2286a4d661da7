"""Tests of the Windows service. A fake service manager has the states of the real one."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest

from agent.adapters.service_manager.contract import NotPermitted, ServiceManagerError
from agent.adapters.service_manager.windows.api import QueryResult, Status, optional_settings
from agent.adapters.service_manager.windows.host import (
    CONTROL_INTERROGATE,
    CONTROL_SHUTDOWN,
    CONTROL_STOP,
    BoundedLog,
    Host,
    ReadyNotifier,
)
from agent.adapters.service_manager.windows.rights import SYSTEM, Security
from agent.adapters.service_manager.windows.service import WindowsService, join_command_line

PROGRAM = (r"C:\Program Files\venue-agent\venue-agent.exe",)


@dataclass
class FakeControl:
    """A fake service manager. The start, the stop or the deletion of the service is complete after
    ``polls_per_change`` polls.
    """

    polls_per_change: int = 3
    is_admin: bool = True
    command_line: str | None = None
    status: Status = Status.STOPPED
    exit_code: int = 0
    has_event_source: bool = False
    protected: list[Path] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    can_start: bool = True
    polls_until_gone: int = 2
    """Calls of `is_alive` until the process of the service has ended."""
    owner: str = SYSTEM
    """The owner of all existing files."""
    _until_change: int = 0
    _goal: Status | None = None
    _is_deleted: bool = False

    def is_administrator(self) -> bool:
        return self.is_admin

    def query(self) -> QueryResult | None:
        if self._until_change:
            self._until_change -= 1
        elif self._is_deleted:
            self.command_line, self._is_deleted = None, False
        elif self._goal is not None:
            self.status, self._goal = self._goal, None
        if self.command_line is None:
            return None
        pid = 0 if self.status is Status.STOPPED else 812
        return QueryResult(self.status, pid, self.exit_code)

    def create(self, command_line: str) -> None:
        self.calls.append("create")
        self.command_line = command_line

    def change(self, command_line: str) -> None:
        self.calls.append("change")
        self.command_line = command_line

    def delete(self) -> None:
        self._is_deleted, self._until_change = True, self.polls_per_change

    def start(self) -> None:
        self.calls.append("start")
        if self.status is Status.STOP_PENDING:
            return  # ERROR_SERVICE_ALREADY_RUNNING
        goal = Status.RUNNING if self.can_start else Status.STOPPED
        self.status, self._goal = Status.START_PENDING, goal
        self._until_change = self.polls_per_change

    def stop(self) -> None:
        self.calls.append("stop")
        self.status, self._goal = Status.STOP_PENDING, Status.STOPPED
        self._until_change = self.polls_per_change

    def add_event_source(self) -> None:
        self.has_event_source = True

    def remove_event_source(self) -> None:
        self.has_event_source = False

    def is_alive(self, pid: int) -> bool:
        assert pid == 812
        self.polls_until_gone -= 1
        return self.polls_until_gone >= 0

    def protect(self, path: Path) -> None:
        self.protected.append(path)

    def create_protected(self, directory: Path) -> None:
        directory.mkdir()
        self.protected.append(directory)

    def security(self, path: Path) -> Security:
        return Security(self.owner if path.exists() else SYSTEM, ())

    def name_of(self, sid: str) -> str:
        return sid


def service_in(program_data: Path, control: FakeControl) -> WindowsService:
    config = program_data / "venue-agent/config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.touch()
    return WindowsService(control, PROGRAM, program_data, lambda seconds: None)


def test_service_starts_delayed_and_restarts_after_failures() -> None:
    api = SimpleNamespace(
        SC_ACTION_RESTART=1,
        SERVICE_CONFIG_DESCRIPTION=1,
        SERVICE_CONFIG_FAILURE_ACTIONS=2,
        SERVICE_CONFIG_DELAYED_AUTO_START_INFO=3,
        SERVICE_CONFIG_FAILURE_ACTIONS_FLAG=4,
    )
    settings = optional_settings(api)
    assert settings[3] is settings[4] is True
    assert settings[2]["Actions"] == [(1, 1_000), (1, 10_000), (1, 60_000)]


def test_a_windows_service_is_installed_started_stopped_and_removed(tmp_path: Path) -> None:
    control = FakeControl()
    service = service_in(tmp_path, control)
    service.install()
    service.install()
    assert control.calls == ["create", "change"]
    assert control.command_line == f'"{PROGRAM[0]}" windows-service'
    assert control.has_event_source
    service.start()
    service.start()
    assert service.state().pid == 812
    service.stop()
    service.stop()
    service.uninstall()
    service.uninstall()
    assert control.command_line is None
    assert not control.has_event_source
    assert control.calls == ["create", "change", "start", "stop"]
    assert service.paths.config.exists()


def test_the_key_directory_is_protected_before_it_contains_a_file(tmp_path: Path) -> None:
    control = FakeControl()
    service = service_with_program_in(tmp_path, control)
    service.prepare()
    assert control.protected == [service.paths.api_key.parent]
    assert list(control.protected[0].iterdir()) == []


def service_with_program_in(directory: Path, control: FakeControl) -> WindowsService:
    """Return a service whose program exists, because `prepare` checks it."""
    program = directory / "program/venue-agent.exe"
    program.parent.mkdir()
    (directory / "data").mkdir()
    program.touch()
    return WindowsService(control, (str(program),), directory / "data", lambda seconds: None)


def test_a_program_owned_by_another_user_is_refused_before_anything_is_written(
    tmp_path: Path,
) -> None:
    control = FakeControl(owner="S-1-5-21-1-2-3-1001")
    service = service_with_program_in(tmp_path, control)
    with pytest.raises(ServiceManagerError, match="belongs to S-1-5-21-1-2-3-1001"):
        service.prepare()
    assert control.protected == []
    assert not service.paths.state.exists()


def test_stop_returns_after_the_process_has_ended(tmp_path: Path) -> None:
    control = FakeControl(polls_until_gone=5)
    service = service_in(tmp_path, control)
    service.install()
    service.start()
    service.stop()
    assert control.polls_until_gone == -1


def test_stop_waits_until_a_starting_service_runs(tmp_path: Path) -> None:
    control = FakeControl()
    service = service_in(tmp_path, control)
    service.install()
    control.start()
    service.stop()
    assert control.status is Status.STOPPED
    assert control.calls == ["create", "start", "stop"]


def test_start_waits_until_a_stopping_service_has_ended(tmp_path: Path) -> None:
    control = FakeControl()
    service = service_in(tmp_path, control)
    service.install()
    service.start()
    control.stop()
    service.start()
    assert control.status is Status.RUNNING
    assert control.polls_until_gone < 0


def test_starting_a_service_that_ends_at_once_raises_an_error(tmp_path: Path) -> None:
    control = FakeControl(can_start=False, exit_code=2)
    service = service_in(tmp_path, control)
    service.install()
    with pytest.raises(
        ServiceManagerError, match=r"ended at once with exit code 2: see .*agent.log"
    ):
        service.start()


def test_only_the_packaged_program_becomes_a_service(tmp_path: Path) -> None:
    control = FakeControl()
    command = (r"C:\Users\a\venv\Scripts\python.exe", "-m", "agent")
    with pytest.raises(ServiceManagerError, match=r"venue-agent\.exe"):
        WindowsService(control, command, tmp_path, lambda seconds: None).install()
    assert control.calls == []


def test_a_service_that_has_never_run_has_not_failed(tmp_path: Path) -> None:
    control = FakeControl(exit_code=1077)  # ERROR_SERVICE_NEVER_STARTED
    service = service_in(tmp_path, control)
    service.install()
    assert service.state().activity == "stopped"


def test_uninstalling_a_service_that_another_program_holds_open_raises_an_error(
    tmp_path: Path,
) -> None:
    control = FakeControl()
    service = service_in(tmp_path, control)
    service.install()
    control.polls_per_change = 10_000
    with pytest.raises(ServiceManagerError, match=r"close services\.msc"):
        service.uninstall()


def test_a_service_that_ended_with_an_error_is_failed(tmp_path: Path) -> None:
    control = FakeControl(exit_code=2)
    service = service_in(tmp_path, control)
    service.install()
    assert service.state().activity == "failed"
    assert service.state().detail == "last exit code 2"


@pytest.mark.parametrize("action", ["install", "uninstall", "start", "stop"])
def test_service_actions_without_permission_change_nothing(tmp_path: Path, action: str) -> None:
    control = FakeControl(is_admin=False)
    with pytest.raises(NotPermitted, match="administrator"):
        getattr(service_in(tmp_path, control), action)()
    assert control.calls == []


def test_the_program_is_quoted_even_without_a_space() -> None:
    assert join_command_line(("C:\\agent.exe", "run", "a b")) == '"C:\\agent.exe" run "a b"'


@dataclass
class FakeScm:
    """A fake service control manager. It starts the service in a separate thread, as Windows does,
    and records the statuses that the service sets.
    """

    has_started_this_process: bool = True
    statuses: list[tuple[Status, int]] = field(default_factory=list)
    logged: list[str] = field(default_factory=list)
    control: Callable[[int], None] = lambda control: None

    def serve(self, on_start: Callable[[], None], on_control: Callable[[int], None]) -> None:
        if not self.has_started_this_process:
            raise OSError(1063, "The service process could not connect to the controller")
        self.control = on_control
        service = threading.Thread(target=on_start)
        service.start()
        service.join()

    def set_status(self, status: Status, *, exit_code: int = 0, wait_hint_ms: int = 0) -> None:
        self.statuses.append((status, exit_code))

    def log_error(self, text: str) -> None:
        self.logged.append(text)


def test_the_host_reports_its_status_before_it_starts_the_daemon() -> None:
    scm = FakeScm()
    statuses_at_start: list[tuple[Status, int]] = []

    def daemon(on_ready: Callable[[], None]) -> int:
        statuses_at_start.extend(scm.statuses)
        ReadyNotifier(on_ready).ready()
        on_ready()
        return 0

    assert Host(scm, daemon).run() == 0
    assert statuses_at_start == [(Status.START_PENDING, 0)]
    assert scm.statuses == [(Status.START_PENDING, 0), (Status.RUNNING, 0), (Status.STOPPED, 0)]


@pytest.mark.parametrize("control", [CONTROL_STOP, CONTROL_SHUTDOWN])
def test_repeated_stop_controls_request_one_stop(control: int) -> None:
    scm, request = FakeScm(), threading.Semaphore(0)

    def daemon(on_ready: Callable[[], None]) -> int:
        on_ready()
        scm.control(CONTROL_INTERROGATE)
        scm.control(control)
        scm.control(control)
        assert request.acquire(timeout=60)
        on_ready()  # called again after a reload, which must not set the status again
        return 0

    assert Host(scm, daemon, request_stop=request.release).run() == 0
    assert not request.acquire(blocking=False)
    assert [status for status, _ in scm.statuses] == [
        Status.START_PENDING, Status.RUNNING, Status.RUNNING, Status.STOP_PENDING, Status.STOPPED,
    ]  # fmt: skip


def test_a_daemon_that_does_not_stop_is_killed() -> None:
    scm, killed = FakeScm(), threading.Event()
    codes: list[int] = []

    def kill(code: int) -> None:
        codes.append(code)
        killed.set()

    def daemon(on_ready: Callable[[], None]) -> int:
        scm.control(CONTROL_STOP)
        assert killed.wait(5)
        return 0

    Host(scm, daemon, request_stop=lambda: None, kill=kill, stop_within_s=0.01).run()
    assert codes == [1]
    assert (Status.STOPPED, 1) in scm.statuses
    assert "did not stop" in scm.logged[0]


def test_the_host_ends_with_the_exit_code_of_the_daemon() -> None:
    scm = FakeScm()
    killed: list[int] = []
    assert Host(scm, lambda on_ready: 2, kill=killed.append).run() == 2
    assert killed == [2]
    assert scm.statuses == [(Status.START_PENDING, 0), (Status.STOPPED, 2)]
    assert "exit code 2" in scm.logged[0]


def test_a_windows_service_started_by_hand_raises_an_error() -> None:
    with pytest.raises(OSError, match="could not connect"):
        Host(FakeScm(has_started_this_process=False), lambda on_ready: 0).run()


def test_a_log_beyond_its_bound_is_rotated(tmp_path: Path) -> None:
    path, old = tmp_path / "agent.log", tmp_path / "agent.old.log"
    for line in ("one\n", "two\n", "three \ud800\n"):
        with BoundedLog(path, max_bytes=8) as log:
            assert log.write(line) == len(line)
    assert old.read_text() == "one\ntwo\n"
    assert path.read_text() == "three \\ud800\n"
    with BoundedLog(path, max_bytes=8) as log:
        log.write("longer than the bound\n")
        assert old.read_text() == "three \\ud800\n"
        log.write("four\n")
    assert path.read_text() == "four\n"


def test_a_log_that_cannot_be_rotated_is_truncated(tmp_path: Path) -> None:
    path = tmp_path / "agent.log"
    (tmp_path / "agent.old.log" / "in the way").mkdir(parents=True)
    with BoundedLog(path, max_bytes=4) as log:
        log.write("one\n")
        log.write("two\n")
    assert path.read_text() == "two\n"
