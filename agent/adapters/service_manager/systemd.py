"""The service under systemd. Its unit comes with the Debian package, or is written here.

Source: systemctl(1) `show`, systemd.unit(5) for the directories, sysusers.d(5).
"""

import os
import re
import shlex
import shutil
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Final

from agent.adapters.service_manager.commands import Commands, checked
from agent.adapters.service_manager.contract import (
    Activity,
    NotPermitted,
    Places,
    ServiceManagerError,
    ServiceState,
)
from agent.adapters.service_manager.places_on_posix import (
    ROOTS,
    require_roots_configuration,
    require_safe_program,
)
from agent.adapters.service_manager.program import reachable_by_a_service
from agent.adapters.storage.atomic_file import write_atomically
from agent.presentation.plain_text import plain

UNIT: Final = "venue-agent.service"
KEY_UNITS: Final = ("venue-agent-key.path", "venue-agent-key.service")
USER: Final = "venue-agent"
SYSUSERS: Final = "venue-agent.sysusers"
BACKOFF: Final = "venue-agent-backoff.conf"
RESOURCES: Final = Path(__file__).parent

_PACKAGED = ("usr/lib/systemd/system", "lib/systemd/system")
_OWN_UNITS = "etc/systemd/system"
_OWN_SYSUSERS = "etc/sysusers.d/venue-agent.conf"
_BACKOFF_DROP_IN = f"{_OWN_UNITS}/{UNIT}.d/10-backoff.conf"
_BACKOFF_SINCE = 254
_DESCRIPTION = 4
"""Where the comment stands in a line of passwd(5); home and shell come after it."""
_READABLE = 0o644
_CONFIG_MODE = 0o640

_PROPERTIES = (
    "LoadState,UnitFileState,ActiveState,MainPID,StatusText,NRestarts,Result,ConditionResult"
)
_ACTIVITIES: Final[Mapping[str, Activity]] = {
    "active": "running",
    "reloading": "running",
    "activating": "starting",
    "deactivating": "stopping",
    "failed": "failed",
}


class SystemdService:
    """``root`` is where the file system begins; ``is_root`` tells of the rights of this process;
    ``give_to_group`` makes a file the service's group's; ``owners`` are the users whose files the
    service may trust."""

    def __init__(
        self,
        commands: Commands,
        command_line: tuple[str, ...],
        *,
        root: Path = Path("/"),
        is_root: Callable[[], bool] = lambda: os.geteuid() == 0,
        give_to_group: Callable[[Path, str], None] = lambda path, group: shutil.chown(
            path, group=group
        ),
        owners: Collection[int] = ROOTS,
    ) -> None:
        self._commands = commands
        self._command_line = command_line
        self._root = root
        self._is_root = is_root
        self._give_to_group = give_to_group
        self._owners = owners

    @property
    def places(self) -> Places:
        return Places(
            config=self._root / "etc/venue-agent/config.toml",
            api_key=self._root / "etc/venue-agent/api-key",
            state=self._root / "var/lib/venue-agent",
            names_the_key_file=False,
        )

    def require_rights(self) -> None:
        if not self._is_root():
            raise NotPermitted("changing the service needs root")

    def prepare(self) -> None:
        """See that what the service is to use is root's alone."""
        self.require_rights()
        require_roots_configuration(self.places, self._owners)
        if not self._is_packaged():
            require_safe_program(reachable_by_a_service(self._command_line), self._owners)

    def protect(self, file: Path) -> None:
        if file == self.places.config:
            self._give_to_group(file, USER)
            file.chmod(_CONFIG_MODE)

    def install(self) -> None:
        self.require_rights()
        changed = self._write_backoff()
        if not self._is_packaged():
            changed = self._write_units() or changed
        if changed:
            checked(self._commands, "systemctl", "daemon-reload")
        checked(self._commands, "systemctl", "--quiet", "enable", UNIT)
        checked(self._commands, "systemctl", "--quiet", "enable", "--now", KEY_UNITS[0])

    def uninstall(self) -> None:
        self.require_rights()
        state = self.state()
        if state.is_installed:
            checked(self._commands, "systemctl", "--quiet", "disable", "--now", KEY_UNITS[0])
            checked(self._commands, "systemctl", "--quiet", "disable", "--now", UNIT)
            self._commands.run("systemctl", "reset-failed", UNIT)
        if self._remove_own_files():
            checked(self._commands, "systemctl", "daemon-reload")

    def purge(self) -> tuple[str, ...]:
        """Delete the user and its group, if they are what our sysusers line makes.

        Those of a package are left to it, and a user of that name who was made otherwise is not
        ours.
        """
        self.require_rights()
        if self._is_packaged() or self._account("passwd")[_DESCRIPTION:] != _described_account():
            return ()
        checked(self._commands, "userdel", USER)
        # userdel takes the group along where login.defs(5) says so.
        if self._account("group"):
            checked(self._commands, "groupdel", USER)
        return (f"the user {USER}",)

    def _account(self, database: str) -> list[str]:
        """Return the fields of our line in a database of getent(1); none where there is none."""
        output = self._commands.run("getent", database, USER)
        return output.stdout.strip().split(":") if output.code == 0 else []

    def start(self) -> None:
        self._act("start")

    def restart(self) -> None:
        self._act("restart")

    def stop(self) -> None:
        self.require_rights()
        if self.state().is_installed:
            checked(self._commands, "systemctl", "stop", UNIT)

    def state(self) -> ServiceState:
        output = checked(self._commands, "systemctl", "show", UNIT, f"--property={_PROPERTIES}")
        return state_of(parse_properties(output.stdout))

    def _act(self, verb: str) -> None:
        self.require_rights()
        if not self.state().is_installed:
            raise ServiceManagerError(
                "the service is not installed: run `venue-agent service install`"
            )
        if not self.places.config.exists():
            raise ServiceManagerError(f"not started: there is no {self.places.config}")
        output = self._commands.run("systemctl", verb, UNIT)
        if output.code != 0:
            raise ServiceManagerError(
                "the service does not start; its last words: "
                + (self._last_words() or output.stderr.strip())
            )

    def _last_words(self) -> str:
        """Return what the agent said last, by the journal."""
        output = self._commands.run(
            "journalctl", "--lines=1", "--output=cat", "--quiet", "--no-pager",
            f"_SYSTEMD_UNIT={UNIT}",
        )  # fmt: skip
        lines = [line for line in output.stdout.splitlines() if line.strip()]
        return plain(lines[-1]) if lines else ""

    def _is_packaged(self) -> bool:
        return any((self._root / place / UNIT).exists() for place in _PACKAGED)

    def _write_units(self) -> bool:
        command_line = reachable_by_a_service(self._command_line)
        texts = {self._root / _OWN_UNITS / UNIT: unit_text(command_line)}
        for name in KEY_UNITS:
            texts[self._root / _OWN_UNITS / name] = (RESOURCES / name).read_text()
        sysusers = self._root / _OWN_SYSUSERS
        texts[sysusers] = (RESOURCES / SYSUSERS).read_text()
        changed = [_write_if_other(path, text) for path, text in texts.items()]
        checked(self._commands, "systemd-sysusers", str(sysusers))
        return any(changed)

    def _write_backoff(self) -> bool:
        version = parse_version(checked(self._commands, "systemctl", "--version").stdout)
        if version < _BACKOFF_SINCE:
            return False
        return _write_if_other(self._root / _BACKOFF_DROP_IN, (RESOURCES / BACKOFF).read_text())

    def _remove_own_files(self) -> bool:
        own = [self._root / _OWN_UNITS / name for name in (UNIT, *KEY_UNITS)]
        present = [
            path
            for path in (*own, self._root / _BACKOFF_DROP_IN, self._root / _OWN_SYSUSERS)
            if path.is_file()
        ]
        for path in present:
            path.unlink()
        for made_for_it in (_BACKOFF_DROP_IN, _OWN_SYSUSERS):
            directory = (self._root / made_for_it).parent
            if directory.is_dir() and not any(directory.iterdir()):
                directory.rmdir()
        return bool(present)


def unit_text(command_line: tuple[str, ...]) -> str:
    """Return the unit that starts ``command_line`` in place of the packaged program."""
    text = (RESOURCES / UNIT).read_text()
    quoted = " ".join(_quoted(word) for word in command_line)
    return text.replace("ExecStart=/usr/bin/venue-agent", f"ExecStart={quoted}", 1)


def _described_account() -> list[str]:
    """Return comment, home and shell of the user that our sysusers.d(5) line describes."""
    (line,) = (
        line for line in (RESOURCES / SYSUSERS).read_text().splitlines() if line.startswith("u ")
    )
    return shlex.split(line)[3:]


def parse_properties(text: str) -> dict[str, str]:
    """Read `systemctl show`: one Name=value a line; what is no such line is left out."""
    pairs = (line.partition("=") for line in text.splitlines())
    return {name: value for name, equals, value in pairs if equals}


def state_of(properties: Mapping[str, str]) -> ServiceState:
    """Tell the state from a unit's properties."""
    activity = _ACTIVITIES.get(properties.get("ActiveState", ""), "stopped")
    is_there = activity not in {"stopped", "failed"}
    return ServiceState(
        is_installed=properties.get("LoadState") == "loaded",
        starts_at_boot=properties.get("UnitFileState") == "enabled",
        activity=activity,
        pid=_number(properties.get("MainPID")) or None,
        # systemd keeps the last words of a service that has ended: they would pass for the present.
        detail=properties.get("StatusText", "") if is_there else "",
        restarts=_number(properties.get("NRestarts")),
    )


def parse_version(text: str) -> int:
    """Read `systemctl --version`, such as ``systemd 252 (252.39-1~deb12u2)``; 0 if it is not."""
    found = re.match(r"systemd (\d{1,6})\b", text)
    return int(found[1]) if found else 0


def _number(text: str | None) -> int | None:
    is_number = text is not None and text.isascii() and text.isdigit()
    return int(text or "") if is_number and len(text or "") < 12 else None


def _quoted(word: str) -> str:
    """Quote a word for ExecStart= (systemd.service(5), "Command lines")."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"' if escaped != word or " " in word else word


def _write_if_other(path: Path, text: str) -> bool:
    if path.is_file() and path.read_text() == text:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, text.encode(), _READABLE)
    return True
