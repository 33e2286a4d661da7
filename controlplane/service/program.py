"""The program of the service: its command line, and a check that other users cannot change it."""

import stat
import sys
from collections.abc import Iterator
from os import stat_result
from pathlib import Path
from typing import Final

from controlplane.client.errors import CommandError

_HOMES: Final = (Path("/home"), Path("/root"))
"""Directories that the unit hides from the service (ProtectHome=)."""
_FIX: Final = "Install venue-control from its package, or into /opt as root."


def command_line() -> tuple[str, ...]:
    """Return the command line of this program."""
    if getattr(sys, "frozen", False):
        return (str(Path(sys.executable).resolve()),)
    # Isolated (-I): the current directory and PYTHONPATH cannot change what the service runs.
    return (sys.executable, "-I", "-m", "controlplane")


def require_safe_program(program: Path, owner: int) -> None:
    """Check that the service can reach its program, and that only root and ``owner`` can change it.

    Other users who can change it would have access to all reports and keys. Raises CommandError.
    """
    for path in (program, program.resolve()):
        if any(path.is_relative_to(home) for home in _HOMES):
            raise CommandError(
                f"the service cannot reach {path}, which is in a home directory", _FIX
            )
    if unsafe := next(_writable_by_others(program, owner), None):
        raise CommandError(f"not installed: users other than root can change {unsafe}", _FIX)


def quote(word: str) -> str:
    """Quote a word for ExecStart= (systemd.service(5), "Command lines")."""
    escaped_word = (
        word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    )
    return f'"{escaped_word}"' if escaped_word != word or " " in word else word


def _writable_by_others(program: Path, owner: int) -> Iterator[Path]:
    """Yield the files and directories that other users can change.

    Checks the program, all files of its package and its virtual environment, the directories of
    ``sys.path``, and every directory on the paths to these. For a frozen program, checks all files
    in its directory instead.
    """
    if getattr(sys, "frozen", False):
        own_directories, import_directories = [program.resolve().parent], []
    else:
        own_directories = [Path(sys.prefix)] if sys.prefix != sys.base_prefix else []
        own_directories.append(Path(__file__).parents[1])
        import_directories = [Path(entry) for entry in sys.path if entry]
    present = {
        path.resolve() for path in (program, *own_directories, *import_directories) if path.exists()
    }
    paths = present.union(*(path.parents for path in present))
    yield from (path for path in sorted(paths) if _is_writable_by_others(path.lstat(), owner))
    for directory in own_directories:
        yield from (
            path for path in directory.rglob("*") if _is_writable_by_others(path.lstat(), owner)
        )


def _is_writable_by_others(status: stat_result, owner: int) -> bool:
    if status.st_uid not in {0, owner}:
        return True
    is_writable = bool(status.st_mode & (stat.S_IWGRP | stat.S_IWOTH))
    return is_writable and not stat.S_ISLNK(status.st_mode) and not status.st_mode & stat.S_ISVTX
