"""Amounts of minor units as people write them: ``12.50 AED``, ``1250 JPY``, ``1.250 BHD``.

The decimals are those of ISO 4217, by which the service counts. CLDR, and what builds on it, shows
fewer of some currencies (two of IQD's three are never coined) and would be wrong by powers of ten.
"""

from typing import Final

_DECIMALS: Final = {
    **dict.fromkeys(
        (
            "BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG", "RWF", "UGX", "UYI",
            "VND", "VUV", "XAF", "XOF", "XPF",
        ),
        0,
    ),
    **dict.fromkeys(("BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"), 3),
    **dict.fromkeys(("CLF", "UYW"), 4),
}  # fmt: skip
"""ISO 4217, list one, of 2025-05-12: all that have another number than two."""
_COMMON: Final = 2


def amount_in_words(minor_units: int, currency: str) -> str:
    """Return the amount with the currency's decimals, without its name: ``-12.50``."""
    decimals = _DECIMALS.get(currency, _COMMON)
    sign = "-" if minor_units < 0 else ""
    whole, part = divmod(abs(minor_units), 10**decimals)
    return f"{sign}{whole}" + (f".{part:0{decimals}}" if decimals else "")


def money_in_words(minor_units: int, currency: str) -> str:
    return f"{amount_in_words(minor_units, currency)} {currency}"
