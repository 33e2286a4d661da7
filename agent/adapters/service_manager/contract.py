"""The interface that systemd, launchd and the Windows service manager have for the agent."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agent.errors import AgentError, NotVisible

Activity = Literal["running", "starting", "stopping", "stopped", "failed"]


class ServiceManagerError(AgentError):
    """The service manager failed. The message is one line for users."""


class NotPermitted(ServiceManagerError, NotVisible):
    """This user lacks the rights to change services."""


@dataclass(frozen=True, slots=True)
class ServiceState:
    """The state of the service, as its manager reports it.

    ``detail`` is the manager's own short text, such as systemd's status line; it is empty if it
    describes an earlier run. ``restarts`` counts automatic restarts since the last start; it is
    None if the manager does not count them.
    """

    is_installed: bool
    starts_at_boot: bool = False
    activity: Activity = "stopped"
    pid: int | None = None
    detail: str = ""
    restarts: int | None = None


@dataclass(frozen=True, slots=True)
class ServicePaths:
    """Paths of the service's files.

    ``names_the_key_file``: the daemon reads the key file itself, so the configuration must name
    it. systemd passes the key as a credential instead.
    """

    config: Path
    api_key: Path
    state: Path
    names_the_key_file: bool


class ServiceManager(ABC):
    """Every action can be repeated. All except `state` raise NotPermitted without rights."""

    @property
    @abstractmethod
    def paths(self) -> ServicePaths: ...

    @abstractmethod
    def require_rights(self) -> None:
        """Raise NotPermitted if this process may not change services."""

    @abstractmethod
    def prepare(self) -> None:
        """Check, before anything is written, that no other user can change the program or has
        created files that the service would use. Create the directories of `paths` with
        restricted access, where files inherit their access rights from them.

        Raises:
            ServiceManagerError: with the fix.
        """

    @abstractmethod
    def protect(self, file: Path) -> None:
        """Make a file of the configuration readable by administrators and the service only."""

    @abstractmethod
    def install(self) -> None:
        """Register the service and enable it at boot, without starting it."""

    @abstractmethod
    def uninstall(self) -> None:
        """Stop and unregister the service. State and configuration stay."""

    def purge(self) -> tuple[str, ...]:
        """Delete what `install` created besides files, such as a user account.

        Call it after `uninstall`, when the files are deleted. Returns descriptions of what was
        deleted.
        """
        return ()

    @abstractmethod
    def start(self) -> None:
        """Start the service, and return when it reports that it is ready."""

    @abstractmethod
    def stop(self) -> None:
        """Stop the service, and return when its processes have ended."""

    def restart(self) -> None:
        """Stop the service if it runs, then start it."""
        self.stop()
        self.start()

    @abstractmethod
    def state(self) -> ServiceState:
        """Return the present state of the service."""

    def _require_startable(self, *, is_installed: bool) -> None:
        if not is_installed:
            raise ServiceManagerError(
                "the service is not installed: run `venue-agent service install`"
            )
        if not self.paths.config.exists():
            raise ServiceManagerError(f"not started: {self.paths.config} does not exist")
