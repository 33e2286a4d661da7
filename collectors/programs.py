"""Finds programs in the system's own directories, to which only an administrator can write.

The PATH of the environment and the current directory are never searched. Otherwise a command that
runs as root could run a program of another user. The agent uses this module, too.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

POSIX_DIRECTORIES: Final = ("/usr/bin", "/usr/sbin", "/bin", "/sbin")
"""/usr/local is left out: on Intel Macs and some distributions, users other than root can write
there."""

POWERSHELL_DIRECTORY: Final = "WindowsPowerShell\\v1.0"
"""The path relative to the system directory, which is C:\\Windows\\System32 on most machines."""

INHERITED: Final = frozenset(
    {
        "HOME", "LANG", "LC_CTYPE", "TZ", "TEMP", "TMP", "SYSTEMROOT", "WINDIR", "SYSTEMDRIVE",
        "PROGRAMDATA", "PROGRAMFILES", "USERPROFILE",
    }
)  # fmt: skip
"""The variables that a child process inherits. Variables that change what a loader or interpreter
loads are left out. D-Bus addresses are left out because an address with ``unixexec:`` runs a
program."""

_PATH_MAX = 32_768


def system_directories() -> tuple[str, ...]:
    """Return the directories of the system's programs, in the order in which they are searched."""
    if sys.platform == "win32":
        system = windows_system_directory()
        return (system, f"{system}\\{POWERSHELL_DIRECTORY}")
    return POSIX_DIRECTORIES


def find_program(name: str) -> str | None:
    """Return the absolute path of a program, or None if it is not installed."""
    file_name = f"{name}.exe" if sys.platform == "win32" and "." not in name else name
    for directory in system_directories():
        path = Path(directory, file_name)
        if path.is_file() and os.access(path, os.X_OK):
            return str(path)
    return None


def program_environment(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return `inherited_environment` with the C locale, so that program output is in English."""
    return {**inherited_environment(environ), "LC_ALL": "C"}


def inherited_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of ``environ`` that a child process inherits, and a PATH of system
    directories."""
    variables = {k: v for k, v in environ.items() if k.upper() in INHERITED}
    return {**variables, "PATH": os.pathsep.join(system_directories())}


def neutral_directory() -> str:
    """Return the working directory for child processes. Only an administrator can write there."""
    return windows_system_directory() if sys.platform == "win32" else "/"


def use_system_programs_only() -> None:
    """Give this process a PATH of system directories, because libraries find programs by PATH."""
    os.environ["PATH"] = os.pathsep.join(system_directories())


def windows_system_directory() -> str:
    """Return the system directory from Windows (GetSystemDirectoryW), not from the environment.

    Raises OSError if Windows does not return it, and on other systems.
    """
    if sys.platform == "win32":
        import ctypes  # imported here, because only Windows needs it

        buffer = ctypes.create_unicode_buffer(_PATH_MAX)
        length = ctypes.windll.kernel32.GetSystemDirectoryW(buffer, _PATH_MAX)
        if 0 < length < _PATH_MAX:
            return buffer.value
    raise OSError("the system directory is not known")
