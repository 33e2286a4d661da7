"""Every number of the retail document, named once (contract: Limits, Resources, Authentication).

Lengths of strings are characters, lengths of arrays are items.
"""

from typing import Final

EXTERNAL_ID_MIN: Final = 4
EXTERNAL_ID_MAX: Final = 128
EXTERNAL_DEPTH_MAX: Final = 32
"""Lists and objects of external data within each other: ours, the document names none."""

GOOD_NAME_MIN: Final = 2
GOOD_NAME_MAX: Final = 128
DESCRIPTION_MIN: Final = 2
DESCRIPTION_MAX: Final = 1024
VARIATIONS_MIN: Final = 1
VARIATIONS_MAX: Final = 150
VARIATION_NAME_MAX: Final = 128
IMAGE_URL_MAX: Final = 2048
CODES_MAX: Final = 20
CODE_MIN: Final = 4
CODE_MAX: Final = 128

UOM_NAME_MIN: Final = 2
UOM_NAME_MAX: Final = 32
UOM_SYMBOL_MIN: Final = 1
UOM_SYMBOL_MAX: Final = 16
EXPONENT_MAX: Final = 3

FEE_NAME_MIN: Final = 2
FEE_NAME_MAX: Final = 64
PERCENTAGE_MAX: Final = 100

SALE_NUMBER_MAX: Final = 36
TICKET_NUMBER_MAX: Final = 16
COMMENT_MAX: Final = 1024
POSITION_NAME_MAX: Final = 512

AMOUNT_MAX: Final = 2**63 - 1
CURSOR_MAX: Final = 128
PAGE_SIZE: Final = 20
ACCESS_TOKEN_S: Final = 3600

CURRENCY: Final = "AED"
"""The only one that the document has. What was sold in another is not to be had here."""
