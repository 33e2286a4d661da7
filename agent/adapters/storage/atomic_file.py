"""Files that are either the old or the new content after a power loss, never a mixture.

The temporary file is synced before the rename and the directory after it, as rename(2) alone
orders nothing on disk (fsync(2), notes).
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
"""Windows forbids to replace a file that somebody reads: `venue-agent status` and virus scanners do
so for a moment."""


def write_atomically(
    path: Path, content: bytes, mode: int = PRIVATE, *, durably: bool = True
) -> None:
    """Replace ``path`` by ``content``. Raises OSError; ``path`` is then as it was.

    Not ``durably`` is for what is worth nothing after a power loss: no sync, no wear of a flash
    disk, and after a power loss any content.
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
        replace_patiently(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)  # noqa: PTH108
        raise
    if durably:
        sync_directory(path.parent)


def replace_patiently(
    source: str,
    target: Path,
    pauses_s: tuple[float, ...] = PAUSES_S,
    sleep: Callable[[float], None] = time.sleep,
    replace: Callable[[str, Path], None] = os.replace,
) -> None:
    """Rename ``source`` to ``target``, trying again after each pause while that is refused."""
    for pause_s in pauses_s:
        try:
            replace(source, target)
        except PermissionError:
            sleep(pause_s)
        else:
            return
    replace(source, target)


def sync_directory(directory: Path) -> None:
    """Make renames and new files in ``directory`` durable, where the platform can."""
    if os.name != "posix":
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
