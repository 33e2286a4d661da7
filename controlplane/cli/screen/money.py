"""Formats amounts in minor units as text: ``12.50 AED``, ``1250 JPY``, ``1.250 BHD``.

The number of decimals is defined by ISO 4217, as in the service. CLDR, and libraries that use it,
define fewer decimals for some currencies, for example 0 instead of 3 for IQD. With the decimals
of CLDR, the text for such an amount would be wrong by a factor of 1000.
"""

from typing import Final

from controlplane.retail.models import Money

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
"""The currencies whose number of decimals is not two (ISO 4217, list one, of 2025-05-12)."""
_COMMON: Final = 2


def format_amount(minor_units: int, currency: str) -> str:
    """Return the amount with the currency's decimals, without its code: ``-12.50``."""
    decimals = _DECIMALS.get(currency, _COMMON)
    sign = "-" if minor_units < 0 else ""
    whole, part = divmod(abs(minor_units), 10**decimals)
    return f"{sign}{whole}" + (f".{part:0{decimals}}" if decimals else "")


def format_money(minor_units: int, currency: str) -> str:
    return f"{format_amount(minor_units, currency)} {currency}"


def minor_units(money: Money | None) -> str | None:
    """Return the amount in minor units, as in the API."""
    return None if money is None else str(money.value)
