"""Keys for a rollout: a key file for each machine, named after its location, and a list of keys.

All files are first written to a temporary directory and synced. After the keys are in the database,
the directory is renamed to its final name. Every valid key is therefore in a file. If the keys
cannot be added to the database, the files are deleted.
"""

import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agent.presentation.report_csv import csv_of
from controlplane.accounts.keys import key_store
from controlplane.accounts.keys.key_store import NewKey
from controlplane.client.errors import CommandError, UsageError
from controlplane.storage.backup import sync_directory

MANIFEST: Final = "manifest.csv"
KEYS_MAX: Final = 10_000
LOCATIONS_FILE_MAX: Final = 4 * 1024 * 1024
_COLUMNS: Final = ("keyId", "hint", "locationId", "name", "file")
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9.-]+")


@dataclass(frozen=True, slots=True)
class KeyFile:
    key: NewKey
    file_name: str


def read_locations(path: str | None) -> list[str]:
    """Return the ids in a file, one on each line. Empty lines and comments (#) are ignored."""
    if path is None:
        return []
    try:
        with Path(path).open(encoding="utf-8-sig") as file:
            text = file.read(LOCATIONS_FILE_MAX + 1)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise UsageError(f"cannot read the locations from {path}: {reason}") from error
    if len(text) > LOCATIONS_FILE_MAX:
        raise UsageError(f"{path} is larger than 4 MiB, the maximum for a list of locations")
    lines = (line.strip() for line in text.splitlines())
    locations = [line for line in lines if line and not line.startswith("#")]
    if not locations:
        raise UsageError(f"{path} has no location")
    return locations


def plan_key_files(locations: Sequence[str], count: int, prefix: str) -> list[KeyFile]:
    """Return ``count`` new keys for each location. Each key is valid at its location only.

    If ``locations`` is empty, return ``count`` keys that are valid at all locations. With the
    prefix ``till``, the first key of ``loc-0001`` has the name ``till loc-0001-01`` and the file
    ``loc-0001-01.key``.
    """
    location_ids = list(dict.fromkeys(locations))
    total = max(1, len(location_ids)) * count
    if total > KEYS_MAX:
        raise UsageError(f"{total} keys are more than the maximum of {KEYS_MAX}")
    digits = max(2, len(str(count)))
    files: list[KeyFile] = []
    for location_id in location_ids or [""]:  # "" stands for all locations
        stem = _UNSAFE.sub("_", location_id).strip("._") or "key"
        for number in range(1, count + 1):
            name = " ".join(filter(None, (prefix, f"{location_id or 'key'}-{number:0{digits}}")))
            key = key_store.new_key(name=name, locations=[location_id] if location_id else [])
            files.append(KeyFile(key, f"{stem}-{number:0{digits}}.key"))
    (name, times), *_ = Counter(file.file_name.casefold() for file in files).most_common(1)
    if times > 1:
        raise UsageError(
            f"two locations would have the file {name}: their ids differ too little for two names"
            " of files",
            "Create their keys in two directories.",
        )
    return files


@contextmanager
def write_key_files(directory: Path, files: Sequence[KeyFile]) -> Iterator[None]:
    """Write the files to a temporary directory, and rename it after the `with` block.

    If the block raises an error, the files are deleted. Raises CommandError if ``directory`` is a
    link or not empty.
    """
    _require_new(directory)
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=f".{directory.name}-", dir=directory.parent))
    except OSError as error:
        raise _cannot_write(directory, error) from error
    try:
        _write_all(staging, files)
        yield
    except OSError as error:
        shutil.rmtree(staging, ignore_errors=True)
        raise _cannot_write(directory, error) from error
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise
    try:
        with suppress(FileNotFoundError):
            directory.rmdir()  # on Windows, a rename cannot replace an empty directory
        staging.rename(directory)
        sync_directory(directory.parent)
    except OSError as error:
        raise CommandError(
            f"the keys were created, but {directory} was not: {error.strerror}",
            f"The keys are in {staging}: move this directory.",
        ) from error


def _require_new(directory: Path) -> None:
    try:
        is_taken = directory.is_symlink() or any(directory.iterdir())
    except FileNotFoundError:
        return
    except OSError as error:
        raise UsageError(f"{directory} is not a directory: {error.strerror}") from error
    if is_taken:
        raise UsageError(
            f"{directory} is a link or not empty, and keys are not overwritten",
            "Use a new directory.",
        )


def _write_all(staging: Path, files: Sequence[KeyFile]) -> None:
    for file in files:
        _write(staging / file.file_name, f"{file.key.secret}\n")
    rows = [
        (
            str(file.key.id),
            f"…{file.key.hint}",  # `keys list` shows the same text
            ", ".join(file.key.locations),
            file.key.name,
            file.file_name,
        )
        for file in files
    ]
    _write(staging / MANIFEST, csv_of(_COLUMNS, rows))
    sync_directory(staging)


def _write(path: Path, text: str) -> None:
    """Write a new file that only its owner can read, and sync it."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
    with open(handle, "wb") as file:  # noqa: PTH123 - a handle, not a path
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())


def _cannot_write(directory: Path, error: OSError) -> CommandError:
    return CommandError(f"no key was created: cannot write to {directory}: {error.strerror}")
