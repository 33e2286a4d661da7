"""What is written in a secret's place."""

from typing import Final

MASK: Final = "***"
