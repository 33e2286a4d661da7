"""The common interface to systemd, launchd and the Windows service manager."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agent.errors import AgentError, NotVisible

Activity = Literal["running", "starting", "stopping", "stopped", "failed"]


class ServiceManagerError(AgentError):
    """The service manager failed. The message is for users."""


class NotPermitted(ServiceManagerError, NotVisible):
    """This user lacks the rights to change services."""


@dataclass(frozen=True, slots=True)
class ServiceState:
    """The state of the service, as its manager reports it.

    ``detail`` is a short text, such as systemd's status line or the last exit code.
    ``restarts`` counts the automatic restarts since the last start that was not automatic. It is
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

    ``has_key_path_in_config``: the configuration must contain the path of the key file, because the
    daemon reads the file itself. systemd passes the key as a credential instead.
    """

    config: Path
    api_key: Path
    state: Path
    has_key_path_in_config: bool


class ServiceManager(ABC):
    """Manages the service. Every action can be repeated.

    An action raises NotPermitted if it needs rights that this process lacks. `state` needs none.
    """

    @property
    @abstractmethod
    def paths(self) -> ServicePaths: ...

    @abstractmethod
    def require_rights(self) -> None:
        """Raise NotPermitted if this process is not permitted to change services."""

    @abstractmethod
    def prepare(self) -> None:
        """Check that the service can be installed safely. Call this before any file is written.

        Another user must not be able to change the program, and must not have created files that
        the service would use. On Windows, this also creates the directory of `paths` with
        restricted access, because files inherit their access rights from it.

        Raises:
            ServiceManagerError: the service cannot be installed safely. The message has the fix.
        """

    @abstractmethod
    def protect(self, file: Path) -> None:
        """Permit only administrators and the service to read a configuration file."""

    @abstractmethod
    def install(self) -> None:
        """Register the service, and enable its start at boot. Does not start it."""

    @abstractmethod
    def uninstall(self) -> None:
        """Stop and unregister the service. Keeps its state and configuration."""

    def purge(self) -> tuple[str, ...]:
        """Delete what `install` created and `uninstall` keeps, such as a user account.

        Call this after `uninstall`, once the state and the configuration are deleted. Returns a
        description of each deleted object.
        """
        return ()

    @abstractmethod
    def start(self) -> None:
        """Start the service, and return when it reports that it is ready."""

    @abstractmethod
    def stop(self) -> None:
        """Stop the service, and return when its processes have ended."""

    def restart(self) -> None:
        """Stop the service if it is running, and start it."""
        self.stop()
        self.start()

    @abstractmethod
    def state(self) -> ServiceState:
        """Return the current state of the service."""

    def _require_startable(self, *, is_installed: bool) -> None:
        if not is_installed:
            raise ServiceManagerError(
                "the service is not installed: run `venue-agent service install`"
            )
        if not self.paths.config.exists():
            raise ServiceManagerError(
                f"not started: {self.paths.config} does not exist: run `venue-agent service"
                " install` with --base-url, --location and --api-key-file"
            )
