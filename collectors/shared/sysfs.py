"""Small files of procfs, sysfs and /etc, below a root that tests may move."""

from pathlib import Path

from collectors.shared.text import clean_text, decode

SMALL_MAX_BYTES = 64 * 1024


def read_bytes(path: Path, max_bytes: int = SMALL_MAX_BYTES) -> bytes:
    """The first ``max_bytes`` of a file. Raises OSError."""
    with path.open("rb") as file:
        return file.read(max_bytes)


def read_text(path: Path) -> str:
    """A small file as text. Raises OSError."""
    return decode(read_bytes(path))


def read_line(path: Path) -> str | None:
    """A one-value file as one clean line; None where it is missing, empty or unreadable."""
    try:
        return clean_text(read_text(path)) or None
    except OSError:
        return None


def read_number(path: Path) -> int | None:
    """A one-number file; None where it holds no whole number of at most 18 digits."""
    return whole_number(read_line(path))


def whole_number(text: str | None) -> int | None:
    if text is None or len(text) > 18:  # what fits a 64-bit integer
        return None
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() else None


def children(directory: Path, limit: int = 256) -> list[Path]:
    """The entries of a directory by name, at most ``limit``; none where it does not exist."""
    try:
        return sorted(directory.iterdir())[:limit]
    except OSError:
        return []
