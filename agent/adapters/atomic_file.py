"""Files that are either the old or the new content after a power loss, never a mixture.

The temporary file is synced before the rename and the directory after it, as rename(2) alone
orders nothing on disk (fsync(2), notes).
"""

import contextlib
import os
import tempfile
from pathlib import Path

PRIVATE = 0o600


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
        os.replace(temporary, path)  # noqa: PTH105 - the pair to mkstemp's name
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)  # noqa: PTH108
        raise
    if durably:
        sync_directory(path.parent)


def sync_directory(directory: Path) -> None:
    """Make renames and new files in ``directory`` durable, where the platform can."""
    if os.name != "posix":
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
