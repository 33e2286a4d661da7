"""Limits of the retail API that several modules use (contract: Limits, Authentication).

The limits of fields are in `controlplane.retail.models`.
"""

from typing import Final

EXTERNAL_DEPTH_MAX: Final = 32
"""Maximum depth of lists and objects in external data. The contract does not limit it."""
CODES_MAX: Final = 20
"""Maximum number of codes (barcodes, for example) of a variation or of a line of a sale."""
VARIATIONS_MAX: Final = 150
"""Maximum number of variations of a good."""
CURSOR_MAX: Final = 128
PAGE_SIZE: Final = 20
ACCESS_TOKEN_S: Final = 3600
CURRENCY: Final = "AED"
"""The only currency of the contract. Sales in other currencies are not listed."""
