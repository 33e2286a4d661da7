"""The name of a machine, from its install id."""

import re
from typing import Final

from agent.presentation.plain_text import shorten

_NO_NAME: Final = re.compile(
    r"(unenrolled)?|(install-)?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE
)
"""Matches an install id that is not a name: the device is not enrolled, or its id was generated
because the host had no name."""


def machine_name(install_id: str) -> str | None:
    """Return the install id as a title; None if it is not a name."""
    return None if _NO_NAME.fullmatch(install_id) else shorten(install_id)
