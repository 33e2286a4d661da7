"""The program that the service starts: which words, and whether others could change it."""

import stat
import sys
from collections.abc import Iterator
from os import stat_result
from pathlib import Path
from typing import Final

from controlplane.client.errors import CommandError

_HOMES: Final = (Path("/home"), Path("/root"))
_ELSEWHERE: Final = "Install venue-control from its package, or into /opt as root."


def command_line() -> tuple[str, ...]:
    """Return the words that start this very program."""
    if getattr(sys, "frozen", False):
        return (str(Path(sys.executable).resolve()),)
    # Isolated (-I): neither the current directory nor PYTHONPATH says what is run as the service.
    return (sys.executable, "-I", "-m", "controlplane")


def require_safe_program(program: Path, owner: int) -> None:
    """Raise CommandError where the service could not reach it, or others than root and ``owner``
    could change what it runs: they would have all reports and keys."""
    for path in (program, program.resolve()):
        if any(path.is_relative_to(home) for home in _HOMES):
            raise CommandError(
                f"{path} lies in a home directory, which the service cannot reach", _ELSEWHERE
            )
    if found := next(_open_to_others(program, owner), None):
        raise CommandError(f"not installed: {found} may be changed by others than root", _ELSEWHERE)


def quoted(word: str) -> str:
    """Quote a word for ExecStart= (systemd.service(5), "Command lines")."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"' if escaped != word or " " in word else word


def _open_to_others(program: Path, owner: int) -> Iterator[Path]:
    """Yield what others could change of it, of where it imports from, and on the way."""
    if getattr(sys, "frozen", False):
        whole, imported = [program.resolve().parent], []
    else:
        whole = [Path(sys.prefix)] if sys.prefix != sys.base_prefix else []
        whole.append(Path(__file__).parents[1])
        imported = [Path(entry) for entry in sys.path if entry]
    present = {place.resolve() for place in (program, *whole, *imported) if place.exists()}
    ways = {way for place in present for way in (place, *place.parents)}
    yield from (way for way in sorted(ways) if _is_open(way.lstat(), owner))
    for directory in whole:
        yield from (path for path in directory.rglob("*") if _is_open(path.lstat(), owner))


def _is_open(status: stat_result, owner: int) -> bool:
    if status.st_uid not in {0, owner}:
        return True
    is_writable = bool(status.st_mode & (stat.S_IWGRP | stat.S_IWOTH))
    return is_writable and not stat.S_ISLNK(status.st_mode) and not status.st_mode & stat.S_ISVTX
