"""Reads small files such as those of procfs, sysfs and /etc."""

from pathlib import Path

from collectors.shared.text import clean_text, decode

SMALL_MAX_BYTES = 64 * 1024


def read_bytes(path: Path, max_bytes: int = SMALL_MAX_BYTES) -> bytes:
    """Return the first ``max_bytes`` of a file. Raises OSError."""
    with path.open("rb") as file:
        return file.read(max_bytes)


def read_text(path: Path) -> str:
    """Return the text of a small file. Raises OSError."""
    return decode(read_bytes(path))


def text_or_empty(path: Path) -> str:
    """Return the text of a small file, or "" if it is missing or unreadable."""
    try:
        return read_text(path)
    except OSError:
        return ""


def read_line(path: Path) -> str | None:
    """Return the value of a file with one value, or None if it is missing, empty or unreadable."""
    return clean_text(text_or_empty(path)) or None


def read_number(path: Path) -> int | None:
    """Return the integer in a file, or None if the file is missing or has another content."""
    return whole_number(read_line(path))


def whole_number(text: str | None) -> int | None:
    """Return the integer that a text consists of. Return None for all other texts."""
    if text is None or len(text) > 18:  # numbers of 18 digits fit a 64-bit integer
        return None
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() else None


def children(directory: Path, limit: int = 256) -> list[Path]:
    """Return the entries of a directory in the order of their names, at most ``limit``.

    Returns [] if the directory does not exist or cannot be read.
    """
    try:
        return sorted(directory.iterdir())[:limit]
    except OSError:
        return []
