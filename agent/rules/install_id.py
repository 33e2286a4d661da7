"""The name by which people know a machine: what its `legacyInstallId` is at the first start."""

import re
from typing import Final
from uuid import UUID

from agent.rules.reports.fit import clip
from agent.wire import limits

_DOMAINS_OF_NO_PLACE: Final = (".localdomain", ".local", ".lan", ".home")
_NOBODYS: Final = re.compile(r"(localhost\d?|\(none\))?", re.IGNORECASE)
"""What a system is called that nobody named: hostname(7), and the kernel's own default."""
_MARK_LENGTH: Final = 5


def install_id_for(host_name: str, unique: UUID, *, taken: str | None = None) -> str:
    """Return the host's name, or one that is made of ``unique`` where the host has none.

    ``taken`` is the name of the machine that this one was copied from: where nobody gave the copy
    another, four digits tell the two apart.
    """
    name = " ".join(clip(host_name.strip(), limits.LEGACY_INSTALL_ID_MAX).split())
    for domain in _DOMAINS_OF_NO_PLACE:
        name = name.removesuffix(domain)
    if _NOBODYS.fullmatch(name):
        return f"install-{unique}"
    if name == taken:
        room = limits.LEGACY_INSTALL_ID_MAX - _MARK_LENGTH
        return f"{clip(name, room)}-{unique.hex[: _MARK_LENGTH - 1]}"
    return name
