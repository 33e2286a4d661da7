"""The service under the Windows service control manager (SCM)."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agent.adapters.service_manager.contract import (
    Activity,
    NotPermitted,
    ServiceManager,
    ServiceManagerError,
    ServicePaths,
    ServiceState,
)
from agent.adapters.service_manager.windows import trusted_paths
from agent.adapters.service_manager.windows.api import QueryResult, Status, Win32ServiceControl

HOST_WORD: Final = "windows-service"
"""The argument with which the packaged executable runs as a service (packaging/entry.py)."""
CHANGE_TIMEOUT_S: Final = 30.0
"""Timeout for a change of the service's status."""
NEVER_STARTED: Final = 1077
"""ERROR_SERVICE_NEVER_STARTED: exit code of a service that has not run since it was created."""
POLL_EVERY_S: Final = 0.2
LOG_NAME: Final = "agent.log"

_ACTIVITIES: Final[dict[Status, Activity]] = {
    Status.START_PENDING: "starting",
    Status.STOP_PENDING: "stopping",
    Status.RUNNING: "running",
    Status.CONTINUE_PENDING: "running",
    Status.PAUSE_PENDING: "running",
    Status.PAUSED: "running",
}


@dataclass(frozen=True, slots=True)
class WindowsService(ServiceManager):
    """The agent as a Windows service. ``sleep`` waits between two polls of its status."""

    control: Win32ServiceControl
    command_line: tuple[str, ...]
    program_data: Path
    sleep: Callable[[float], None] = time.sleep

    @property
    def paths(self) -> ServicePaths:
        home = self.program_data / "venue-agent"
        return ServicePaths(
            home / "config.toml", home / "api-key", home, has_key_path_in_config=True
        )

    def require_rights(self) -> None:
        if not self.control.is_administrator():
            raise NotPermitted("changing the service needs an administrator")

    def prepare(self) -> None:
        """Check the program, and create the agent's directory with restricted access.

        The directory will contain the API key and the identity. In ProgramData, every user
        can read and add files by default. An existing directory that another user can change is an
        error.
        """
        self.require_rights()
        self._require_package()
        trusted_paths.require_safe_program(self.control, Path(self.command_line[0]))
        trusted_paths.prepare_directory(self.control, self.paths.state)

    def protect(self, file: Path) -> None:
        self.control.protect(file)

    def install(self) -> None:
        self.require_rights()
        self._require_package()
        register = self.control.create if self.control.query() is None else self.control.change
        register(join_command_line((*self.command_line, HOST_WORD)))
        self.control.add_event_source()

    def uninstall(self) -> None:
        self.require_rights()
        if self.control.query() is not None:
            self.stop()
            self.control.delete()
            # While another program, such as services.msc, has the service open, Windows only
            # marks it for deletion.
            self._wait(lambda query: query is None, "is still there: close services.msc")
        self.control.remove_event_source()

    def start(self) -> None:
        self.require_rights()
        query = self.control.query()
        self._require_startable(is_installed=query is not None)
        if query is None or query.status in {Status.RUNNING, Status.START_PENDING}:
            return
        if query.status is Status.STOP_PENDING:
            self.stop()  # Windows does not start a service that is still stopping
        self.control.start()
        self._wait(
            lambda new: new is None or new.status is not Status.START_PENDING, "is slow to start"
        )
        new = self.control.query()
        if new is None or new.status is not Status.RUNNING:
            code = f" with exit code {new.exit_code}" if new else ""
            log = self.paths.state / LOG_NAME
            raise ServiceManagerError(f"the service ended at once{code}: see {log}")

    def stop(self) -> None:
        self.require_rights()
        query = self.control.query()
        if query is None or query.status is Status.STOPPED:
            return
        if query.status is Status.START_PENDING:
            # A service accepts no request to stop before it runs.
            self._wait(lambda new: new is None or new.status is not query.status, "does not start")
        if query.status is not Status.STOP_PENDING:
            self.control.stop()
        self._wait(lambda new: new is None or new.status is Status.STOPPED, "does not stop")
        # The service reports that it has stopped shortly before its process ends.
        self._wait(
            lambda _: not self.control.is_alive(query.pid),
            "is stopped, but its process does not end",
        )

    def state(self) -> ServiceState:
        query = self.control.query()
        if query is None:
            return ServiceState(is_installed=False)
        has_failed = query.status is Status.STOPPED and query.exit_code not in {0, NEVER_STARTED}
        return ServiceState(
            is_installed=True,
            starts_at_boot=query.starts_at_boot,
            activity="failed" if has_failed else _ACTIVITIES.get(query.status, "stopped"),
            pid=query.pid or None,
            detail=f"last exit code {query.exit_code}" if has_failed else "",
        )

    def _require_package(self) -> None:
        """Raise ServiceManagerError unless this is the packaged program.

        Windows communicates with the process that it starts. The python.exe of a virtual
        environment starts another process, so it cannot be a service.
        """
        if len(self.command_line) > 1:
            raise ServiceManagerError(
                "on Windows only the packaged program can be a service:"
                " install venue-agent.exe from its zip"
            )

    def _wait(self, is_done: Callable[[QueryResult | None], bool], problem: str) -> None:
        for _ in range(round(CHANGE_TIMEOUT_S / POLL_EVERY_S)):
            if is_done(self.control.query()):
                return
            self.sleep(POLL_EVERY_S)
        raise ServiceManagerError(f"the service {problem} (waited {CHANGE_TIMEOUT_S:.0f} s)")


def join_command_line(words: tuple[str, ...]) -> str:
    """Join words to a command line. The program is always quoted.

    Without quotes, Windows could run C:\\Program.exe instead of a file in C:\\Program Files.
    """
    program, *arguments = words
    return " ".join((f'"{program}"', *(f'"{word}"' if " " in word else word for word in arguments)))
