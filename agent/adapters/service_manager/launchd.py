"""The service under launchd: a LaunchDaemon in the system domain.

Sources: launchctl(1), launchd.plist(5). `enable` is called before `bootstrap`, because `bootstrap`
fails for a disabled service. A service that was disabled once remains disabled after a reboot and
after a reinstallation.
"""

import plistlib
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from agent.adapters.service_manager import posix
from agent.adapters.service_manager.commands import run_checked
from agent.adapters.service_manager.contract import Activity, ServiceManagerError, ServiceState

LABEL: Final = "com.venue-agent.daemon"
LOG: Final = "/Library/Logs/venue-agent.log"
TARGET: Final = f"system/{LABEL}"
REMOVAL_TIMEOUT_S: Final = 20.0
"""Timeout for the removal of the service from the domain, in seconds."""
POLL_EVERY_S: Final = 0.2
_PRIVATE = 0o600
_EXIT_LINES: Final = ("last terminating signal", "last exit reason", "last exit code")
"""The lines of `launchctl print` about how the last process ended, in order of precedence."""
_CLEAN_EXITS: Final = frozenset({"0", "(never exited)"})
_LINE: Final = re.compile(rf"^\s*(state|pid|{'|'.join(_EXIT_LINES)}) = (.{{1,200}})$", re.MULTILINE)


@dataclass
class LaunchdService(posix.PosixService):
    """The agent as a LaunchDaemon. ``sleep`` waits between two polls of its status."""

    sleep: Callable[[float], None] = time.sleep
    state_path: ClassVar = "Library/Application Support/venue-agent"
    has_key_path_in_config: ClassVar = True

    def prepare(self) -> None:
        self.require_rights()
        posix.require_safe_configuration(self.paths, self.owners)
        posix.require_safe_state(self.paths, self.owners)
        posix.require_safe_program(self.command_line, self.owners)

    def protect(self, file: Path) -> None:
        file.chmod(_PRIVATE)

    def install(self) -> None:
        self.require_rights()
        document = daemon_plist(self.command_line, "/etc/venue-agent/config.toml")
        is_current = self._plist.is_file() and self._plist.read_bytes() == document
        if not is_current and self._is_loaded():
            self._bootout()
        posix.write_if_changed(self._plist, document)
        run_checked(self.run, "launchctl", "enable", TARGET)

    def uninstall(self) -> None:
        self.stop()
        self._plist.unlink(missing_ok=True)

    def start(self) -> None:
        self.require_rights()
        self._require_startable(is_installed=self._plist.is_file())
        run_checked(self.run, "launchctl", "enable", TARGET)
        if not self._is_loaded():
            # With RunAtLoad, `bootstrap` also starts the service.
            run_checked(self.run, "launchctl", "bootstrap", "system", str(self._plist))
        elif self.state().activity != "running":
            run_checked(self.run, "launchctl", "kickstart", TARGET)

    def stop(self) -> None:
        """Remove the service from the domain, because launchd would restart a killed process."""
        self.require_rights()
        if self._is_loaded():
            self._bootout()

    def state(self) -> ServiceState:
        is_installed = self._plist.is_file()
        output = self.run("launchctl", "print", TARGET)
        if output.returncode != 0:
            return ServiceState(is_installed, starts_at_boot=is_installed)
        return parse_print(output.stdout, is_installed=is_installed)

    @property
    def _plist(self) -> Path:
        return self.file_system / f"Library/LaunchDaemons/{LABEL}.plist"

    def _is_loaded(self) -> bool:
        return self.run("launchctl", "print", TARGET).returncode == 0

    def _bootout(self) -> None:
        """Remove the service from the domain, and wait until it is removed.

        The exit code is ignored: `bootout` can return 36, "in progress".
        """
        output = self.run("launchctl", "bootout", TARGET)
        for _ in range(round(REMOVAL_TIMEOUT_S / POLL_EVERY_S)):
            if not self._is_loaded():
                return
            self.sleep(POLL_EVERY_S)
        raise ServiceManagerError(
            f"the service is still loaded after {REMOVAL_TIMEOUT_S:.0f} s: {output.stderr.strip()}"
        )


def parse_print(text: str, *, is_installed: bool) -> ServiceState:
    """Parse `launchctl print`. Its format is not guaranteed, so only a few lines are used.

    The lines of the service come before those of its coalitions, which also have a ``state``. If a
    signal or the system ended the process, there is no line with an exit code.
    """
    values = dict(reversed(_LINE.findall(text)))  # the first line of each name
    is_running = values.get("state") == "running"
    pid = values.get("pid", "")
    exits = (name for name in _EXIT_LINES if values.get(name, "0") not in _CLEAN_EXITS)
    failure = None if is_running else next(exits, None)
    activity: Activity = "failed" if failure else "stopped"
    return ServiceState(
        is_installed=is_installed,
        starts_at_boot=is_installed,
        activity="running" if is_running else activity,
        pid=int(pid) if is_running and re.fullmatch(r"[0-9]{1,9}", pid) else None,
        detail=f"{failure} {values[failure]}" if failure else "",
    )


def daemon_plist(command_line: tuple[str, ...], config: str) -> bytes:
    """Return the property list of a LaunchDaemon that runs ``command_line``.

    The daemon runs as root in the system domain. In a user's session, Local Network privacy would
    restrict the agent to the gateway.
    """
    return plistlib.dumps(
        {
            "Label": LABEL,
            "ProgramArguments": [*command_line, "run", "--config", config],
            "RunAtLoad": True,
            # Exit code 2 means a wrong configuration, but launchd cannot exclude it from restarts.
            "KeepAlive": {"SuccessfulExit": False},
            "ThrottleInterval": 10,
            "ExitTimeOut": 15,
            "ProcessType": "Background",
            "LowPriorityIO": True,
            "Umask": 0o077,
            "StandardOutPath": LOG,
            "StandardErrorPath": LOG,
            "EnvironmentVariables": {"LANG": "C.UTF-8"},
            "SoftResourceLimits": {"NumberOfFiles": 1024},
        }
    )
