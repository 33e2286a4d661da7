"""The health of a device. Clients of the service import it without the database."""

from typing import Literal

Health = Literal["healthy", "warning", "broken", "offline", "never-connected", "revoked"]
"""The health of a device. Every device has exactly one."""
