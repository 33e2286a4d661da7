"""What support writes for merchants to read: short, and of one line."""

from typing import Final

from controlplane.client.errors import UsageError

WORDS_MAX: Final = 128


def words(text: str, what: str) -> str:
    """Return the text without space around it. Raises UsageError."""
    said = text.strip()
    if not 1 <= len(said) <= WORDS_MAX or not said.isprintable():
        raise UsageError(f"{what} has 1 to {WORDS_MAX} printable characters")
    return said
