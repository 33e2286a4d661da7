"""The default of a machine's `legacyInstallId` at the first start."""

import re
from typing import Final
from uuid import UUID

from agent.rules.reports.fit import clip
from agent.wire import limits

_LOCAL_DOMAINS: Final = (".localdomain", ".local", ".lan", ".home")
_DEFAULT_NAMES: Final = re.compile(r"(localhost\d?|\(none\))?", re.IGNORECASE)
"""Host names of a machine that nobody named: ``localhost``, and ``(none)`` of the Linux kernel."""
_MARK_LENGTH: Final = 5
"""Length of the hyphen and the four digits that are appended to the name of a copied machine."""


def install_id_for(host_name: str, unique: UUID, *, taken_id: str | None = None) -> str:
    """Return the host name, or a name made from ``unique`` if nobody named the host.

    ``taken_id`` is the install id of the machine from which this machine's disk was copied, if any.
    If it equals the host name, a hyphen and four hexadecimal digits are appended.
    """
    name = " ".join(clip(host_name.strip(), limits.LEGACY_INSTALL_ID_MAX).split())
    for domain in _LOCAL_DOMAINS:
        name = name.removesuffix(domain)
    if _DEFAULT_NAMES.fullmatch(name):
        return f"install-{unique}"
    if name == taken_id:
        name_max = limits.LEGACY_INSTALL_ID_MAX - _MARK_LENGTH
        return f"{clip(name, name_max)}-{unique.hex[: _MARK_LENGTH - 1]}"
    return name
