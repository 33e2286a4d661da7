"""Check digits of barcodes (GS1 General Specifications, section 7.9)."""

from collections.abc import Mapping
from itertools import cycle
from typing import Final

LENGTHS: Final[Mapping[str, int]] = {"ean_8": 8, "ean_13": 13, "itf_14": 14, "upc_a": 12}
"""Number of digits of each kind of code that has a check digit."""


def check_digit(digits: str) -> str:
    """Return the check digit that follows ``digits``."""
    # From the right, the weights are 3, 1, 3 and so on.
    weighted_digits = (
        int(digit) * weight for digit, weight in zip(reversed(digits), cycle((3, 1)), strict=False)
    )
    return str(-sum(weighted_digits) % 10)


def mistake_in(kind: str, value: str) -> str | None:
    """Describe the mistake in a code. Return None for a valid code and for an unknown kind.

    The contract limits only the length of a code, so a code with a mistake is not refused.
    """
    length = LENGTHS.get(kind)
    if length is None:
        return None
    if len(value) != length or not (value.isascii() and value.isdecimal()):
        return f"must have {length} digits"
    if value[-1] != check_digit(value[:-1]):
        return f"must end with its check digit, which is {check_digit(value[:-1])}"
    return None
