"""Compares names of printer models, which devices and drivers write differently. No I/O."""

import re

_NO_MODELS = frozenset(
    {
        "",
        "0",
        "01",
        "driverless",
        "gplghostscript",
        "ippeve",
        "ippeverywhere",
        "localrawprinter",
        "printer",
        "rawqueue",
        "unknown",
        "virtualprinter",
        # File servers of any make announce these models, so that a Mac shows a suitable icon.
        "xserve",
        "rackmac",
        "macsamba",
    }
)
"""Texts that are given instead of a model, reduced to letters and digits."""

# Parts of the names of drivers that are not made for one model.
_GENERIC_WORDS = (
    "generic",
    "universal",
    "localraw",
    "textonly",
    "remoteprinter",
    "globalprint",
    "classdriver",
    "9pin",
    "24pin",
)
_DRIVER_WORDS = re.compile(
    r" - ipp| - cups|, driverless|, using|,? hpcups| foomatic| series| ufr ?ii| \(?kpdl"
    r"| \(?pcl ?\d?| \(?postscript| ps3| xps| class driver| v(?:er)?\.? ?\d| \(?\d+ ?(?:dpi|mm)"
)
"""Matches the start of the text that a driver appends to the name of a model."""

_MODEL_NUMBERS = re.compile(r"\d{2,}")
_FAMILY_DIGITS = 3
_MAKERS = {
    "hewlett": "hp",
    "seiko": "epson",
    **dict.fromkeys(("bixolon", "brother", "canon", "citizen", "dell", "dymo", "epson", "hp")),
    **dict.fromkeys(("konica", "kyocera", "lexmark", "ncr", "oki", "pantum", "ricoh", "samsung")),
    **dict.fromkeys(("sewoo", "sharp", "star", "toshiba", "xerox", "zebra")),
}
"""Maps the first word of a maker's name to the maker's usual name. None means that the word itself
is the usual name."""


def is_no_model(text: str) -> bool:
    """Return whether a text is only a placeholder for a model."""
    return _alphanumeric(text.lower()) in _NO_MODELS


def plain_model(model: str | None) -> str:
    """Return a model reduced to letters and digits, without the text that drivers append.

    Returns "" if ``model`` names no specific model.
    """
    plain, whole = _alphanumeric(_without_driver(model)), _alphanumeric((model or "").lower())
    is_generic = (
        plain in _NO_MODELS or plain in _MAKERS or any(word in whole for word in _GENERIC_WORDS)
    )
    return "" if is_generic else plain


def is_other_model(one: str | None, other: str | None) -> bool:
    """Return whether two names certainly mean different models.

    If a name has no digit, the result is False, because it may be the name of a driver for many
    models. If both names have digits, the models differ if the makers differ, or if no number of
    one name is of the same family as a number of the other name (``TSP143`` is of the family
    ``TSP100``).
    """
    plain_names = (plain_model(one), plain_model(other))
    if is_same_plain_model(*plain_names) or not all(re.search(r"\d", text) for text in plain_names):
        return False
    texts = [_without_driver(text) for text in (one, other)]
    makers = [_maker(text) for text in texts]
    if None not in makers and makers[0] != makers[1]:
        return True
    numbers, other_numbers = (_MODEL_NUMBERS.findall(text) for text in texts)
    return bool(numbers and other_numbers) and not any(
        _is_one_family(a, b) for a in numbers for b in other_numbers
    )


def is_same_model(one: str | None, other: str | None) -> bool:
    """Return whether two names mean the same model. One of them may lack the maker's name."""
    return is_same_plain_model(plain_model(one), plain_model(other))


def is_same_plain_model(one: str, other: str) -> bool:
    """Return whether two results of `plain_model` mean the same model."""
    return bool(one and other) and (one.endswith(other) or other.endswith(one))


def _without_driver(model: str | None) -> str:
    return _DRIVER_WORDS.split(f" {(model or '').lower()}", maxsplit=1)[0]


def _alphanumeric(text: str) -> str:
    return "".join(character for character in text if character.isalnum())


def _maker(text: str) -> str | None:
    words = re.findall(r"[a-z]+", text)
    return next((_MAKERS[word] or word for word in words if word in _MAKERS), None)


def _is_one_family(one: str, other: str) -> bool:
    """Return whether two numbers are equal, or have the same length and the same first digit.

    Unequal numbers must have at least `_FAMILY_DIGITS` digits.
    """
    can_be_family = len(one) == len(other) and len(one) >= _FAMILY_DIGITS
    return one == other or (can_be_family and one[0] == other[0])
