"""What every service manager does for the agent, in the same words."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from agent.errors import AgentError, NotVisible

Activity = Literal["running", "starting", "stopping", "stopped", "failed"]


class ServiceManagerError(AgentError):
    """The service manager did not do what was asked; one line for people."""


class NotPermitted(ServiceManagerError, NotVisible):
    """The person at the keyboard has not the rights this needs."""


@dataclass(frozen=True, slots=True)
class ServiceState:
    """What the manager says of the service now.

    ``detail`` is the manager's own short text (systemd: the daemon's status line), empty where it
    would be of the past. ``restarts`` counts those the manager made by itself since the service
    was last started; None where it does not count.
    """

    is_installed: bool
    starts_at_boot: bool = False
    activity: Activity = "stopped"
    pid: int | None = None
    detail: str = ""
    restarts: int | None = None


@dataclass(frozen=True, slots=True)
class Places:
    """Where the service's files lie. ``names_the_key_file``: the daemon reads the key file
    itself, so that the configuration must name it; systemd hands the key over instead."""

    config: Path
    api_key: Path
    state: Path
    names_the_key_file: bool


class ServiceManager(Protocol):
    """Every action may be repeated. All but `state` raise NotPermitted without rights."""

    @property
    def places(self) -> Places: ...

    def require_rights(self) -> None:
        """Raise NotPermitted, in one line, when this process may not change services."""
        ...

    def prepare(self) -> None:
        """See, before anything is written, that nobody else could change the program or has laid
        out what the service would take over; raises ServiceManagerError with the fix. Make the
        directories of `places` closed to others, where files take rights from them."""
        ...

    def protect(self, file: Path) -> None:
        """Make a file of the configuration readable by administrators and the service only."""
        ...

    def install(self) -> None:
        """Register the service and have it start at boot; does not start it."""
        ...

    def uninstall(self) -> None:
        """Stop it and return when it is gone. State and configuration stay."""
        ...

    def purge(self) -> tuple[str, ...]:
        """Delete what installing made on this machine beside its files, after `uninstall` and
        when the files are gone; return what was deleted, in words."""
        ...

    def start(self) -> None:
        """Return when the service says that it is ready."""
        ...

    def stop(self) -> None:
        """Return when its processes have ended."""
        ...

    def restart(self) -> None:
        """Stop it if it runs, then start it."""
        ...

    def state(self) -> ServiceState: ...
