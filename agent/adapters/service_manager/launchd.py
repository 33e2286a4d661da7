"""The service under launchd: a LaunchDaemon in the system domain.

Source: launchctl(1). `enable` comes before `bootstrap`, since an earlier `disable` outlives
reboots and reinstalls and would make the bootstrap fail.
"""

import os
import re
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Final

from agent.adapters.service_manager.commands import Commands, checked
from agent.adapters.service_manager.contract import (
    NotPermitted,
    Places,
    ServiceManagerError,
    ServiceState,
)
from agent.adapters.service_manager.places_on_posix import (
    ROOTS,
    require_roots_configuration,
    require_roots_state,
    require_safe_program,
)
from agent.adapters.service_manager.plist import LABEL, daemon_plist
from agent.adapters.storage.atomic_file import write_atomically

TARGET: Final = f"system/{LABEL}"
GONE_WITHIN_S: Final = 20.0
LOOK_EVERY_S: Final = 0.2
_READABLE = 0o644
_PRIVATE = 0o600


class LaunchdService:
    """``sleep`` waits between two looks at a service that is on its way out; ``owners`` are the
    users whose files the service may trust."""

    def __init__(
        self,
        commands: Commands,
        command_line: tuple[str, ...],
        sleep: Callable[[float], None],
        *,
        root: Path = Path("/"),
        is_root: Callable[[], bool] = lambda: os.geteuid() == 0,
        owners: Collection[int] = ROOTS,
    ) -> None:
        self._commands = commands
        self._command_line = command_line
        self._sleep = sleep
        self._root = root
        self._is_root = is_root
        self._owners = owners

    @property
    def places(self) -> Places:
        return Places(
            config=self._root / "etc/venue-agent/config.toml",
            api_key=self._root / "etc/venue-agent/api-key",
            state=self._root / "Library/Application Support/venue-agent",
            names_the_key_file=True,
        )

    def require_rights(self) -> None:
        if not self._is_root():
            raise NotPermitted("changing the service needs root")

    def prepare(self) -> None:
        """See that what the service, which runs as root, is to use is root's alone."""
        self.require_rights()
        require_roots_configuration(self.places, self._owners)
        require_roots_state(self.places, self._owners)
        require_safe_program(self._command_line, self._owners)

    def protect(self, file: Path) -> None:
        file.chmod(_PRIVATE)

    def install(self) -> None:
        self.require_rights()
        document = daemon_plist(self._command_line, "/etc/venue-agent/config.toml")
        if self._plist.is_file() and self._plist.read_bytes() == document:
            checked(self._commands, "launchctl", "enable", TARGET)
            return
        if self._is_loaded():
            self._bootout()
        self._plist.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self._plist, document, _READABLE)
        checked(self._commands, "launchctl", "enable", TARGET)

    def uninstall(self) -> None:
        self.require_rights()
        if self._is_loaded():
            self._bootout()
        self._plist.unlink(missing_ok=True)

    def purge(self) -> tuple[str, ...]:
        """There is nothing: the daemon runs as root."""
        return ()

    def start(self) -> None:
        self.require_rights()
        if not self._plist.is_file():
            raise ServiceManagerError(
                "the service is not installed: run `venue-agent service install`"
            )
        if not self.places.config.exists():
            raise ServiceManagerError(f"not started: there is no {self.places.config}")
        checked(self._commands, "launchctl", "enable", TARGET)
        if not self._is_loaded():
            # RunAtLoad starts it.
            checked(self._commands, "launchctl", "bootstrap", "system", str(self._plist))
        elif self.state().activity != "running":
            checked(self._commands, "launchctl", "kickstart", TARGET)

    def stop(self) -> None:
        """Take it out of the domain: launchd would start a merely killed one again."""
        self.require_rights()
        if self._is_loaded():
            self._bootout()

    def restart(self) -> None:
        self.stop()
        self.start()

    def state(self) -> ServiceState:
        is_installed = self._plist.is_file()
        output = self._commands.run("launchctl", "print", TARGET)
        if output.code != 0:
            return ServiceState(is_installed, starts_at_boot=is_installed)
        return parse_print(output.stdout, is_installed=is_installed)

    @property
    def _plist(self) -> Path:
        return self._root / f"Library/LaunchDaemons/{LABEL}.plist"

    def _is_loaded(self) -> bool:
        return self._commands.run("launchctl", "print", TARGET).code == 0

    def _bootout(self) -> None:
        """Stop it and wait until it is gone. `bootout` may say "in progress" (36) and go on."""
        output = self._commands.run("launchctl", "bootout", TARGET)
        for _ in range(round(GONE_WITHIN_S / LOOK_EVERY_S)):
            if not self._is_loaded():
                return
            self._sleep(LOOK_EVERY_S)
        raise ServiceManagerError(
            f"the service is still there after {GONE_WITHIN_S:.0f} s: {output.stderr.strip()}"
        )


def parse_print(text: str, *, is_installed: bool) -> ServiceState:
    """Read `launchctl print`. Its form is not promised, so only three plain lines are used."""
    values = dict(re.findall(r"^\s*(state|pid|last exit code) = (.{1,200})$", text, re.MULTILINE))
    is_running = values.get("state") == "running"
    pid = values.get("pid", "")
    last = values.get("last exit code", "")
    has_failed = not is_running and last not in {"", "0", "(never exited)"}
    return ServiceState(
        is_installed=is_installed,
        starts_at_boot=is_installed,
        activity="running" if is_running else "failed" if has_failed else "stopped",
        pid=int(pid) if is_running and re.fullmatch(r"[0-9]{1,9}", pid) else None,
        detail=f"last exit code {last}" if has_failed else "",
    )
