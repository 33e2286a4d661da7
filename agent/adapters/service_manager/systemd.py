"""The service under systemd.

The Debian and RPM packages contain the unit file. Without a package, this module writes it.
Sources: systemctl(1) `show`, systemd.unit(5) for the directories, sysusers.d(5).
"""

import re
import shlex
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from agent.adapters.service_manager import posix
from agent.adapters.service_manager.commands import run_checked
from agent.adapters.service_manager.contract import Activity, ServiceManagerError, ServiceState
from agent.presentation.plain_text import plain

UNIT: Final = "venue-agent.service"
KEY_UNITS: Final = ("venue-agent-key.path", "venue-agent-key.service")
"""The units that restart the agent when the file of the API key has changed."""
USER: Final = "venue-agent"
SYSUSERS: Final = "venue-agent.sysusers"
BACKOFF: Final = "venue-agent-backoff.conf"
"""A drop-in file for the unit. It makes the waits between restarts longer each time."""
RESOURCES: Final = Path(__file__).parent
"""The folder that contains the units, SYSUSERS and BACKOFF."""

_PACKAGE_FOLDERS = ("usr/lib/systemd/system", "lib/systemd/system")
"""The folders in which packages install the unit."""
_OWN_UNITS = "etc/systemd/system"
_OWN_SYSUSERS = "etc/sysusers.d/venue-agent.conf"
_BACKOFF_DROP_IN = f"{_OWN_UNITS}/{UNIT}.d/10-backoff.conf"
_BACKOFF_SINCE = 254
"""The first version of systemd that supports the settings of BACKOFF."""
_OWN_FILES: Final = {
    **{f"{_OWN_UNITS}/{name}": name for name in KEY_UNITS},
    _OWN_SYSUSERS: SYSUSERS,
}
"""The other files that are installed with the unit. The keys are paths relative to the root, the
values are names of files in RESOURCES."""
_COMMENT_FIELD = 4
"""Index of the comment field in a line of passwd(5). The fields home and shell follow it."""
_CONFIG_MODE = 0o640

_PROPERTIES = "LoadState,UnitFileState,ActiveState,MainPID,StatusText,NRestarts"
_ACTIVITIES: Final[Mapping[str, Activity]] = {
    "active": "running",
    "reloading": "running",
    "activating": "starting",
    "deactivating": "stopping",
    "failed": "failed",
}


@dataclass
class SystemdService(posix.PosixService):
    """The agent as a systemd service. ``give_to_group`` changes the group of a file."""

    give_to_group: Callable[[Path, str], None] = lambda path, group: shutil.chown(path, group=group)

    state_path: ClassVar = "var/lib/venue-agent"
    has_key_path_in_config: ClassVar = False

    def prepare(self) -> None:
        self.require_rights()
        posix.require_safe_configuration(self.paths, self.owners)
        if not self._is_packaged():
            posix.require_safe_program(posix.require_reachable(self.command_line), self.owners)

    def protect(self, file: Path) -> None:
        if file == self.paths.config:
            self.give_to_group(file, USER)
            file.chmod(_CONFIG_MODE)

    def install(self) -> None:
        self.require_rights()
        is_changed = self._write_backoff()
        if not self._is_packaged():
            is_changed = self._write_units() or is_changed
        if is_changed:
            run_checked(self.run, "systemctl", "daemon-reload")
        run_checked(self.run, "systemctl", "--quiet", "enable", UNIT)
        run_checked(self.run, "systemctl", "--quiet", "enable", "--now", KEY_UNITS[0])

    def uninstall(self) -> None:
        self.require_rights()
        state = self.state()
        if state.is_installed:
            run_checked(self.run, "systemctl", "--quiet", "disable", "--now", KEY_UNITS[0])
            run_checked(self.run, "systemctl", "--quiet", "disable", "--now", UNIT)
            self.run("systemctl", "reset-failed", UNIT)
        if self._remove_own_files():
            run_checked(self.run, "systemctl", "daemon-reload")

    def purge(self) -> tuple[str, ...]:
        """Delete the service's user and group, if `install` created them.

        A user that a package created is kept: `apt purge` removes it, and RPM packages never remove
        their user. A user whose comment, home or shell differs from the file SYSUSERS was not
        created by the agent, and is kept as well.
        """
        self.require_rights()
        if self._is_packaged() or self._account("passwd")[_COMMENT_FIELD:] != _expected_account():
            return ()
        run_checked(self.run, "userdel", USER)
        # userdel also deletes the group, depending on login.defs(5).
        if self._account("group"):
            run_checked(self.run, "groupdel", USER)
        return (f"the user {USER}",)

    def _account(self, database: str) -> list[str]:
        """Return the fields of USER's entry in a getent(1) database; [] if there is no entry.

        ``database`` is "passwd" for the user, or "group" for the group with the same name.
        """
        output = self.run("getent", database, USER)
        return output.stdout.strip().split(":") if output.returncode == 0 else []

    def start(self) -> None:
        self._start_by("start")

    def restart(self) -> None:
        self._start_by("restart")

    def stop(self) -> None:
        self.require_rights()
        if self.state().is_installed:
            run_checked(self.run, "systemctl", "stop", UNIT)

    def state(self) -> ServiceState:
        output = run_checked(self.run, "systemctl", "show", UNIT, f"--property={_PROPERTIES}")
        return state_of(parse_properties(output.stdout))

    def _start_by(self, verb: str) -> None:
        self.require_rights()
        self._require_startable(is_installed=self.state().is_installed)
        output = self.run("systemctl", verb, UNIT)
        if output.returncode != 0:
            reason = self._last_log_line() or output.stderr.strip()
            raise ServiceManagerError(f"the service does not start: {reason}")

    def _last_log_line(self) -> str:
        output = self.run(
            "journalctl", "--lines=1", "--output=cat", "--quiet", "--no-pager",
            f"_SYSTEMD_UNIT={UNIT}",
        )  # fmt: skip
        lines = [line for line in output.stdout.splitlines() if line.strip()]
        return plain(lines[-1]) if lines else ""

    def _is_packaged(self) -> bool:
        return any((self.file_system / folder / UNIT).exists() for folder in _PACKAGE_FOLDERS)

    def _write_units(self) -> bool:
        command_line = posix.require_reachable(self.command_line)
        unit = self.file_system / _OWN_UNITS / UNIT
        changes = [posix.write_if_changed(unit, unit_text(command_line).encode())]
        changes += [self._write_resource(path, name) for path, name in _OWN_FILES.items()]
        run_checked(self.run, "systemd-sysusers", str(self.file_system / _OWN_SYSUSERS))
        return any(changes)

    def _write_backoff(self) -> bool:
        version = parse_version(run_checked(self.run, "systemctl", "--version").stdout)
        return version >= _BACKOFF_SINCE and self._write_resource(_BACKOFF_DROP_IN, BACKOFF)

    def _write_resource(self, path: str, resource: str) -> bool:
        return posix.write_if_changed(self.file_system / path, (RESOURCES / resource).read_bytes())

    def _remove_own_files(self) -> bool:
        """Remove the files that `install` wrote. Return whether there were any."""
        relative_paths = (f"{_OWN_UNITS}/{UNIT}", _BACKOFF_DROP_IN, *_OWN_FILES)
        paths = (self.file_system / path for path in relative_paths)
        existing_files = [path for path in paths if path.is_file()]
        for path in existing_files:
            path.unlink()
        for path in (self.file_system / _BACKOFF_DROP_IN, self.file_system / _OWN_SYSUSERS):
            if path.parent.is_dir() and not any(path.parent.iterdir()):
                path.parent.rmdir()
        return bool(existing_files)


def unit_text(command_line: tuple[str, ...]) -> str:
    """Return the unit file, with ``command_line`` instead of the packaged program."""
    text = (RESOURCES / UNIT).read_text()
    quoted_words = " ".join(_quoted(word) for word in command_line)
    return text.replace("ExecStart=/usr/bin/venue-agent", f"ExecStart={quoted_words}", 1)


def _expected_account() -> list[str]:
    """Return the comment, home and shell that the file SYSUSERS defines for the service's user."""
    (line,) = (
        line for line in (RESOURCES / SYSUSERS).read_text().splitlines() if line.startswith("u ")
    )
    return shlex.split(line)[3:]  # without the type, name and id


def parse_properties(text: str) -> dict[str, str]:
    """Parse the output of `systemctl show`: lines `Name=value`. Other lines are ignored."""
    pairs = (line.partition("=") for line in text.splitlines())
    return {name: value for name, equals, value in pairs if equals}


def state_of(properties: Mapping[str, str]) -> ServiceState:
    """Convert the properties of the unit to a ServiceState."""
    activity = _ACTIVITIES.get(properties.get("ActiveState", ""), "stopped")
    is_up = activity not in {"stopped", "failed"}
    return ServiceState(
        is_installed=properties.get("LoadState") == "loaded",
        starts_at_boot=properties.get("UnitFileState") == "enabled",
        activity=activity,
        pid=_number(properties.get("MainPID")) or None,
        # After the service has ended, systemd still returns its last status text.
        detail=properties.get("StatusText", "") if is_up else "",
        restarts=_number(properties.get("NRestarts")),
    )


def parse_version(text: str) -> int:
    """Parse `systemctl --version`, such as ``systemd 252 (252.39-1~deb12u2)``.

    Returns 0 if the output has a different form.
    """
    match = re.match(r"systemd (\d{1,6})\b", text)
    return int(match[1]) if match else 0


def _number(text: str | None) -> int | None:
    return int(text) if text and re.fullmatch(r"[0-9]{1,11}", text) else None


def _quoted(word: str) -> str:
    """Quote a word for ExecStart= (systemd.service(5), "Command lines")."""
    escaped_word = (
        word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    )
    return f'"{escaped_word}"' if escaped_word != word or " " in word else word
