"""The directories of the system's own programs, which only its owner may write.

A caller's PATH and the current directory are never searched: a command that runs as root would
run the programs of other users. The agent finds its programs here, too.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

POSIX_DIRECTORIES: Final = ("/usr/bin", "/usr/sbin", "/bin", "/sbin")
"""Not /usr/local: on Intel Macs and some distributions others than root may write there."""

POWERSHELL_DIRECTORY: Final = "WindowsPowerShell\\v1.0"
"""Below the system directory, which is C:\\Windows\\System32 on most machines."""

INHERITED: Final = frozenset(
    {
        "HOME", "LANG", "LC_CTYPE", "TZ", "TEMP", "TMP", "SYSTEMROOT", "WINDIR", "SYSTEMDRIVE",
        "PROGRAMDATA", "PROGRAMFILES", "USERPROFILE",
    }
)  # fmt: skip
"""The variables that a process started here inherits. Variables that change what a loader or an
interpreter loads are left out, and so are bus addresses: those with ``unixexec:`` run a program."""

_PATH_MAX = 32_768


def system_directories() -> tuple[str, ...]:
    """Return the directories, in the order in which they are searched."""
    if sys.platform == "win32":
        system = windows_system_directory()
        return (system, f"{system}\\{POWERSHELL_DIRECTORY}")
    return POSIX_DIRECTORIES


def find_program(name: str) -> str | None:
    """Return the absolute path of a program by its name; None where it is not installed."""
    file_name = f"{name}.exe" if sys.platform == "win32" and "." not in name else name
    for directory in system_directories():
        path = Path(directory, file_name)
        if path.is_file() and os.access(path, os.X_OK):
            return str(path)
    return None


def program_environment(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return what a program gets of ``environ``, with a PATH of system directories, and in the
    C locale, so that it speaks English."""
    return {**inherited(environ), "LC_ALL": "C"}


def inherited(environ: Mapping[str, str]) -> dict[str, str]:
    """Return what any process started here gets of ``environ``, and a PATH."""
    kept = {k: v for k, v in environ.items() if k.upper() in INHERITED}
    return {**kept, "PATH": os.pathsep.join(system_directories())}


def neutral_directory() -> str:
    """Return a directory to start a process in: only the system's owner may write there."""
    return windows_system_directory() if sys.platform == "win32" else "/"


def use_system_programs_only() -> None:
    """Give this process a PATH of system directories: libraries find programs by it."""
    os.environ["PATH"] = os.pathsep.join(system_directories())


def windows_system_directory() -> str:
    """Ask Windows, not the environment, for it (GetSystemDirectoryW). Raises OSError."""
    if sys.platform == "win32":
        import ctypes  # only here

        buffer = ctypes.create_unicode_buffer(_PATH_MAX)
        length = ctypes.windll.kernel32.GetSystemDirectoryW(buffer, _PATH_MAX)
        if 0 < length < _PATH_MAX:
            return buffer.value
    raise OSError("the system directory is not known")
