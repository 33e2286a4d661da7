"""Installs and controls the service under systemd.

The Debian and RPM packages contain the unit. Without a package, this module writes the unit.

Source: systemctl(1) `show`, systemd.service(5), sysusers.d(5).
"""

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from controlplane.client.errors import AccessDeniedError, CommandError
from controlplane.service.paths import OPTIONS, RESOURCES, STATE, SYSUSERS, UNIT, USER
from controlplane.service.program import command_line, quote, require_safe_program

COMMAND_TIMEOUT_S: Final = 930
"""Timeout of a systemctl command. It is longer than the TimeoutStartSec of the unit."""
_PACKAGE_UNIT_DIRECTORIES: Final = ("usr/lib/systemd/system", "lib/systemd/system")
_OWN_UNIT: Final = f"etc/systemd/system/{UNIT}"
_OWN_SYSUSERS: Final = "etc/sysusers.d/venue-control.conf"
_PROPERTIES: Final = "LoadState,UnitFileState,ActiveState,MainPID,StatusText,NRestarts"
_OPTIONS_MODE: Final = 0o640
"""Other users may not read the options, because they may contain the password of a database."""
_ACTIVITIES: Final = {
    "active": "running",
    "reloading": "running",
    "activating": "starting",
    "deactivating": "stopping",
    "failed": "failed",
}


Output = subprocess.CompletedProcess[str]
Run = Callable[..., Output]
"""Runs a command line and waits for its end."""


@dataclass(frozen=True, slots=True)
class ServiceState:
    """The state of the service according to systemd.

    ``activity`` is running, starting, stopping, failed or stopped. ``pid`` is 0 without a process.
    ``detail`` is the status text that the service sent to systemd. ``restarts`` is the number of
    automatic restarts by systemd.
    """

    is_installed: bool
    starts_at_boot: bool
    activity: str
    pid: int
    detail: str
    restarts: int


class SystemdService:
    """Installs, starts and stops the service.

    The methods are idempotent. They raise CommandError.

    Args:
        root: The root directory of the file system.
        owner: The id of the user who may own the program, besides root.
    """

    def __init__(
        self,
        run: Run,
        command_line: tuple[str, ...],
        *,
        root: Path = Path("/"),
        owner: int = 0,
    ) -> None:
        self._run = run
        self._command_line = command_line
        self._root = root
        self._owner = owner
        self.options = root / OPTIONS.relative_to("/")
        self.state_directory = root / STATE.relative_to("/")

    @property
    def is_packaged(self) -> bool:
        return any((self._root / each / UNIT).exists() for each in _PACKAGE_UNIT_DIRECTORIES)

    def install(self, options: str) -> bool:
        """Write the files that are missing or outdated, and enable the service to start at boot.

        Returns:
            Whether ``options`` were written. An existing options file is kept.
        """
        self._require_consistent_units()
        if not self.is_packaged:
            require_safe_program(Path(self._command_line[0]), self._owner)
            sysusers = self._root / _OWN_SYSUSERS
            is_changed = _write_if_different(sysusers, (RESOURCES / SYSUSERS).read_text())
            if is_changed or not self._has_account():
                self._run_checked("systemd-sysusers", str(sysusers))
            if _write_if_different(self._root / _OWN_UNIT, unit_text(self._command_line)):
                self._run_checked("systemctl", "daemon-reload")
        is_written = not self.options.exists()
        if is_written:
            self.options.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            _write_if_different(self.options, options, _OPTIONS_MODE)
        # Root writes the file, and the service reads it.
        self._run_checked("chgrp", USER, str(self.options))
        self.options.chmod(_OPTIONS_MODE)
        self._run_checked("systemctl", "--quiet", "enable", UNIT)
        return is_written

    def start(self) -> None:
        if not self.state().is_installed:
            raise CommandError(
                "the service is not installed", "Install it with `venue-control service install`."
            )
        output = self._run("systemctl", "start", UNIT)
        if output.returncode != 0:
            raise CommandError(
                f"the service does not start: {self._last_error() or output.stderr.strip()}",
                f"Check its options in {self.options} and its log: journalctl -u {UNIT} -n 50",
            )

    def stop(self) -> None:
        if self.state().is_installed:
            self._run_checked("systemctl", "stop", UNIT)

    def uninstall(self) -> None:
        """Stop the service and disable the start at boot. State and options are kept."""
        if self.state().is_installed:
            self._run_checked("systemctl", "--quiet", "disable", "--now", UNIT)
            self._run("systemctl", "reset-failed", UNIT)
        own_files = (self._root / _OWN_UNIT, self._root / _OWN_SYSUSERS)
        present = [path for path in own_files if path.is_file()]
        for path in present:
            path.unlink()
            if path == self._root / _OWN_SYSUSERS:
                with contextlib.suppress(OSError):  # the directory may have other files
                    path.parent.rmdir()
        if present:
            self._run_checked("systemctl", "daemon-reload")

    def purge(self) -> None:
        """Delete state and options after `uninstall`. Without the package, also delete the user."""
        for directory in (self.state_directory, self.options.parent):
            shutil.rmtree(directory, ignore_errors=True)
        if not self.is_packaged and self._has_account():
            self._run_checked("userdel", USER)

    def state(self) -> ServiceState:
        output = self._run_checked("systemctl", "show", UNIT, f"--property={_PROPERTIES}")
        lines = (line.partition("=") for line in output.stdout.splitlines())
        properties = {name: value for name, _, value in lines}
        activity = _ACTIVITIES.get(properties.get("ActiveState", ""), "stopped")
        return ServiceState(
            is_installed=properties.get("LoadState") == "loaded",
            starts_at_boot=properties.get("UnitFileState") == "enabled",
            activity=activity,
            pid=int(properties.get("MainPID") or 0),
            detail=properties.get("StatusText", "") if activity == "running" else "",
            restarts=int(properties.get("NRestarts") or 0),
        )

    def _require_consistent_units(self) -> None:
        own_unit = self._root / _OWN_UNIT
        if own_unit.is_symlink():
            raise CommandError(
                f"{own_unit} is a link to {own_unit.readlink()}: the unit is masked, or belongs to"
                " a different program",
                f"If the link is not needed, run systemctl unmask {UNIT}, then install again.",
            )
        if own_unit.exists() and self.is_packaged:
            raise CommandError(
                f"{own_unit} hides the unit of the installed package",
                "Remove it with `venue-control service uninstall`, then install again.",
            )
        first_line = (RESOURCES / UNIT).read_text().partition("\n")[0]
        if own_unit.exists() and not own_unit.read_text().startswith(first_line):
            raise CommandError(
                f"{own_unit} exists and was not written by this command",
                "Move the file away, then install again.",
            )

    def _has_account(self) -> bool:
        return self._run("getent", "passwd", USER).returncode == 0

    def _last_error(self) -> str:
        output = self._run(
            "journalctl", "--lines=20", "--output=cat", "--quiet", "--no-pager",
            f"_SYSTEMD_UNIT={UNIT}",
        )  # fmt: skip
        lines = [line for line in output.stdout.splitlines() if line.startswith("venue-control")]
        return lines[-1].partition(": ")[2] if lines else ""

    def _run_checked(self, *words: str) -> Output:
        output = self._run(*words)
        if output.returncode != 0:
            error_lines = (output.stderr or output.stdout).strip().splitlines()
            reason = error_lines[-1] if error_lines else f"exit code {output.returncode}"
            raise CommandError(f"{' '.join(words)}: {reason}")
        return output


def unit_text(command: tuple[str, ...]) -> str:
    """Return the unit with ``command`` instead of the packaged program."""
    text = (RESOURCES / UNIT).read_text()
    words = " ".join(quote(word) for word in command)
    return text.replace("ExecStart=/usr/bin/venue-control", f"ExecStart={words}", 1)


def local_service() -> SystemdService:
    """Return the service of this machine. Raises CommandError if systemd is not the init system."""
    # sd_booted(3): this directory exists exactly when systemd is the init system.
    if sys.platform != "linux" or not Path("/run/systemd/system").is_dir():
        raise CommandError(
            "this machine does not run systemd, the only supported service manager",
            "Configure your service manager to run `venue-control serve` and to restart it.",
        )
    return SystemdService(_run_here, command_line())


def require_root() -> None:
    if os.geteuid() != 0:
        raise AccessDeniedError(
            "changes of the service require root", "Run the command with sudo or as root."
        )


def _run_here(*words: str) -> Output:
    program = shutil.which(words[0], path="/usr/sbin:/usr/bin:/sbin:/bin")
    if program is None:
        raise CommandError(f"{words[0]} is not installed")
    try:
        return subprocess.run(
            (program, *words[1:]),
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=COMMAND_TIMEOUT_S,
            stdin=subprocess.DEVNULL,
            env={"LC_ALL": "C.UTF-8", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
            cwd="/",
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise CommandError(f"{words[0]} did not end within {COMMAND_TIMEOUT_S} s") from None


def _write_if_different(path: Path, text: str, mode: int = 0o644) -> bool:
    """Write ``text`` to a file, unless the file has this content. Return whether it was written."""
    if path.is_file() and path.read_text() == text:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    new_file = path.with_name(f".{path.name}.new")
    new_file.touch(mode=0o600)
    new_file.write_text(text)
    new_file.chmod(mode)
    new_file.replace(path)
    return True
