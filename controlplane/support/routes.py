"""Where the operations of support live: paths below the service's base address."""

from typing import Final

PREFIX: Final = "/api/public/v1/support/"

CONTACT: Final = PREFIX + "contact"
INSPECT: Final = PREFIX + "inspect"
CONFIRM: Final = PREFIX + "confirm"
DISCONNECT: Final = PREFIX + "disconnect"
