"""Paths of the operations of support, below the base address of the service."""

from typing import Final

PREFIX: Final = "/api/public/v1/support/"

CONTACT: Final = PREFIX + "contact"
INSPECT: Final = PREFIX + "inspect"
CONFIRM: Final = PREFIX + "confirm"
DISCONNECT: Final = PREFIX + "disconnect"
