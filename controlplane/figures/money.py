"""Calculates with whole minor units: rounding, tax in a price, and discounts split over lines.

Amounts that are rounded or split are 0 or more. Halves are rounded up, as on tills.

Texts such as ``12.50 AED`` and ``1250 JPY`` have the number of decimals that ISO 4217
defines. CLDR, and libraries that use it, define fewer decimals for some currencies, for example 0
instead of 3 for IQD. With the decimals of CLDR, the text would be wrong by a factor of 1000.
"""

from collections.abc import Sequence
from typing import Final

WHOLE_MILLI: Final = 100_000
"""100 % in thousandths of a percent."""
THOUSANDTHS: Final = 3
"""The exponent of thousandths: 10^-3."""


def divide(amount: int, divisor: int) -> int:
    """Return ``amount`` ÷ ``divisor``, rounded to a whole number. Halves are rounded up."""
    return (2 * amount + divisor) // (2 * divisor)


def price_of(unit_price: int, quantity: int, exponent: int) -> int:
    """Return the price of ``quantity`` × 10^-``exponent`` units."""
    if exponent <= 0:
        return int(unit_price * quantity * 10**-exponent)
    return divide(unit_price * quantity, 10**exponent)


def tax_within(amount: int, percentage_milli: int) -> int:
    """Return the tax in a price that includes tax. The rate is in thousandths of a percent."""
    return divide(amount * percentage_milli, WHOLE_MILLI + percentage_milli)


def milli(quantity: int, exponent: int) -> int:
    """Return ``quantity`` × 10^-``exponent`` in thousandths. ``exponent`` is at most 3."""
    return int(quantity * 10 ** (THOUSANDTHS - exponent))


def pieces(quantity: int, exponent: int) -> int:
    """Return the number of pieces of a line. A weighed or measured quantity is one piece."""
    return int(quantity * 10**-exponent) if exponent <= 0 else 1


def split(amount: int, weights: Sequence[int]) -> list[int]:
    """Split ``amount`` in proportion to ``weights``, into whole units.

    The parts with the largest remainders get one unit more. If all weights are 0, the first part
    gets the whole amount.
    """
    weight_sum = sum(weights)
    if not weights or amount == 0:
        return [0] * len(weights)
    if weight_sum == 0:
        return [amount, *[0] * (len(weights) - 1)]
    parts = [amount * weight // weight_sum for weight in weights]
    order = sorted(range(len(weights)), key=lambda i: (-(amount * weights[i] % weight_sum), i))
    for i in order[: amount - sum(parts)]:
        parts[i] += 1
    return parts


def percent(part: int, whole: int) -> float | None:
    """Return the share of ``part`` in percent, or None if the whole is 0."""
    return 100 * part / whole if whole else None


def ratio(amount: int, count: int) -> float | None:
    return amount / count if count else None


# ---------------------------------------------------------------------------- text

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
_DEFAULT_DECIMALS: Final = 2


def format_amount(minor_units: int, currency: str) -> str:
    """Return the amount with the currency's decimals, without its code: ``-12.50``."""
    decimals = _DECIMALS.get(currency, _DEFAULT_DECIMALS)
    sign = "-" if minor_units < 0 else ""
    units, part = divmod(abs(minor_units), 10**decimals)
    return f"{sign}{units}" + (f".{part:0{decimals}}" if decimals else "")


def format_money(minor_units: int, currency: str) -> str:
    return f"{format_amount(minor_units, currency)} {currency}"
