"""The service under the Windows service control manager (SCM)."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Final, Protocol

from agent.adapters.service_manager.contract import (
    Activity,
    NotPermitted,
    Places,
    ServiceManagerError,
    ServiceState,
)
from agent.adapters.service_manager.program import packaged_for_windows
from agent.adapters.service_manager.windows.places import require_safe_program, take_directory
from agent.adapters.service_manager.windows.rights import Security

NAME: Final = "venue-agent"
HOST_WORD: Final = "windows-service"
"""The word that makes the packaged executable a service (packaging/entry.py)."""
CHANGED_WITHIN_S: Final = 30.0
NEVER_STARTED: Final = 1077
"""ERROR_SERVICE_NEVER_STARTED: the "exit code" of a service that has not run since it was made."""
LOOK_EVERY_S: Final = 0.2
LOG_NAME: Final = "agent.log"


class Status(IntEnum):
    """SERVICE_STATUS.dwCurrentState."""

    STOPPED = 1
    START_PENDING = 2
    STOP_PENDING = 3
    RUNNING = 4
    CONTINUE_PENDING = 5
    PAUSE_PENDING = 6
    PAUSED = 7


_ACTIVITIES: Final[dict[Status, Activity]] = {
    Status.START_PENDING: "starting",
    Status.STOP_PENDING: "stopping",
    Status.RUNNING: "running",
    Status.CONTINUE_PENDING: "running",
    Status.PAUSE_PENDING: "running",
    Status.PAUSED: "running",
}


@dataclass(frozen=True, slots=True)
class Definition:
    """What the SCM is told of the service.

    ``restart_delays_ms``: how long it waits before each restart of a service that failed; the
    last one holds for all later failures, and the count begins anew after ``reset_after_s``.
    """

    command_line: str
    name: str = NAME
    display_name: str = "Venue agent"
    description: str = "Remote control and diagnostics of this machine."
    starts_delayed: bool = True
    restart_delays_ms: tuple[int, ...] = (1_000, 10_000, 60_000)
    reset_after_s: int = 86_400


@dataclass(frozen=True, slots=True)
class Query:
    """``exit_code`` is the Win32 code of the last end; 0 after a clean one."""

    status: Status
    pid: int = 0
    exit_code: int = 0
    starts_at_boot: bool = True


class ServiceControl(Protocol):
    """The calls of the Windows API this needs. Each raises ServiceManagerError."""

    def is_administrator(self) -> bool: ...

    def query(self) -> Query | None:
        """Return the service's state; None when there is no such service."""
        ...

    def create(self, definition: Definition) -> None: ...

    def change(self, definition: Definition) -> None: ...

    def delete(self) -> None: ...

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def add_event_source(self) -> None: ...

    def remove_event_source(self) -> None: ...

    def is_alive(self, pid: int) -> bool:
        """Tell whether a process has not ended yet."""
        ...

    def protect(self, path: Path) -> None:
        """Leave rights on a file, or a directory with all in it, to SYSTEM and the administrators
        only."""
        ...

    def make_closed(self, directory: Path) -> None:
        """Make a directory with such rights from its first moment; it must not exist yet."""
        ...

    def security(self, path: Path) -> Security:
        """Return who owns a file and who has which rights on it; links are not followed."""
        ...

    def name_of(self, sid: str) -> str:
        """Return an account's name, or the SID where it has none."""
        ...


@dataclass(frozen=True, slots=True)
class WindowsService:
    """``sleep`` waits between two looks at a service that is changing."""

    control: ServiceControl
    command_line: tuple[str, ...]
    program_data: Path
    sleep: Callable[[float], None]
    definition: Definition = field(init=False)

    def __post_init__(self) -> None:
        words = (*self.command_line, HOST_WORD)
        object.__setattr__(self, "definition", Definition(command_line=quoted(words)))

    @property
    def places(self) -> Places:
        home = self.program_data / "venue-agent"
        return Places(home / "config.toml", home / "api-key", home, names_the_key_file=True)

    def require_rights(self) -> None:
        if not self.control.is_administrator():
            raise NotPermitted("changing the service needs an administrator")

    def prepare(self) -> None:
        """Close the directory: in ProgramData every user may read and add files by default, and
        the key and the identity are to lie here. One that somebody else made is not taken over."""
        self.require_rights()
        packaged_for_windows(self.command_line)
        require_safe_program(self.control, Path(self.command_line[0]))
        take_directory(self.control, self.places.state)

    def protect(self, file: Path) -> None:
        self.control.protect(file)

    def install(self) -> None:
        self.require_rights()
        packaged_for_windows(self.command_line)
        if self.control.query() is None:
            self.control.create(self.definition)
        else:
            self.control.change(self.definition)
        self.control.add_event_source()

    def uninstall(self) -> None:
        self.require_rights()
        if self.control.query() is not None:
            self.stop()
            self.control.delete()
            # A service that somebody still looks at (services.msc) is only marked for deletion.
            self._wait(lambda query: query is None, "is still there: close services.msc")
        self.control.remove_event_source()

    def purge(self) -> tuple[str, ...]:
        """There is nothing: the service runs as an account of the system."""
        return ()

    def start(self) -> None:
        self.require_rights()
        query = self.control.query()
        if query is None:
            raise ServiceManagerError(
                "the service is not installed: run `venue-agent service install`"
            )
        if not self.places.config.exists():
            raise ServiceManagerError(f"not started: there is no {self.places.config}")
        if query.status in {Status.RUNNING, Status.START_PENDING}:
            return
        self.control.start()
        self._wait(
            lambda now: now is None or now.status is not Status.START_PENDING, "is slow to start"
        )
        now = self.control.query()
        if now is None or now.status is not Status.RUNNING:
            code = f" with exit code {now.exit_code}" if now else ""
            raise ServiceManagerError(f"the service ended at once{code}: see {self._log}")

    def stop(self) -> None:
        self.require_rights()
        query = self.control.query()
        if query is None or query.status is Status.STOPPED:
            return
        if query.status is Status.START_PENDING:
            # It takes no request to stop before it runs.
            self._wait(lambda now: now is None or now.status is not query.status, "does not start")
        if query.status is not Status.STOP_PENDING:
            self.control.stop()
        self._wait(lambda now: now is None or now.status is Status.STOPPED, "does not stop")
        # It says so a moment before its process ends and lets go of its files.
        self._wait(lambda _: not self.control.is_alive(query.pid), "is stopped but does not end")

    def restart(self) -> None:
        self.stop()
        self.start()

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

    @property
    def _log(self) -> Path:
        return self.places.state / LOG_NAME

    def _wait(self, is_done: Callable[[Query | None], bool], complaint: str) -> None:
        for _ in range(round(CHANGED_WITHIN_S / LOOK_EVERY_S)):
            if is_done(self.control.query()):
                return
            self.sleep(LOOK_EVERY_S)
        raise ServiceManagerError(f"the service {complaint} (waited {CHANGED_WITHIN_S:.0f} s)")


def quoted(words: tuple[str, ...]) -> str:
    """Join words to a command line. The program is always quoted: an unquoted path with a space
    lets a file such as C:\\Program.exe take the service over."""
    program, *rest = words
    return " ".join((f'"{program}"', *(f'"{word}"' if " " in word else word for word in rest)))
