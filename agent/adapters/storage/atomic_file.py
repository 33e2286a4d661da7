"""Replaces files atomically: after a power loss, a file has its old or its new content.

The temporary file is synced before it is renamed, and the directory afterwards. rename(2) alone
does not guarantee that the content is written first (fsync(2), notes).
"""

import contextlib
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

PRIVATE = 0o600
PAUSES_S: Final = (0.01, 0.02, 0.04, 0.08, 0.16) if os.name == "nt" else ()
"""Pauses between the attempts to replace a file on Windows. Windows refuses this while another
program reads the file, such as `venue-agent status` or a virus scanner."""


def write_atomically(
    path: Path, content: bytes, mode: int = PRIVATE, *, durably: bool = True
) -> None:
    """Replace the content of ``path``. On Windows, ``mode`` has no effect.

    Raises OSError. The file then has its old content, or its new content if only the sync of the
    directory failed.

    With ``durably=False`` nothing is synced. This reduces the wear of flash disks, but after a
    power loss the content is undefined.
    """
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            if os.name == "posix":
                os.fchmod(file.fileno(), mode)
            file.write(content)
            file.flush()
            if durably:
                os.fsync(file.fileno())
        replace_with_retries(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)  # noqa: PTH108
        raise
    if durably:
        sync_directory(path.parent)


def replace_with_retries(
    source: str,
    target: Path,
    pauses_s: tuple[float, ...] = PAUSES_S,
    sleep: Callable[[float], None] = time.sleep,
    replace: Callable[[str, Path], None] = os.replace,
) -> None:
    """Rename ``source`` to ``target``. If this is refused, try again after each pause."""
    for pause_s in pauses_s:
        try:
            replace(source, target)
        except PermissionError:
            sleep(pause_s)
        else:
            return
    replace(source, target)


def sync_directory(directory: Path) -> None:
    """Make renames and new files in ``directory`` durable, if the platform supports it."""
    if os.name != "posix":
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
