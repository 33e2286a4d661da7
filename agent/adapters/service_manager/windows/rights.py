"""Evaluates Windows security descriptors: who can change a file. Runs on any operating system.

Sources: "Well-known SIDs", "File Access Rights Constants" and "ACE_HEADER" of Microsoft's Win32
documentation, and [MS-DTYP] 2.4.4.1 for the types of access control entries.
"""

from dataclasses import dataclass
from typing import Final

SYSTEM: Final = "S-1-5-18"
ADMINISTRATORS: Final = "S-1-5-32-544"
TRUSTED_INSTALLER: Final = "S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464"
TRUSTED: Final = frozenset({SYSTEM, ADMINISTRATORS, TRUSTED_INSTALLER})

_OWNER_PLACEHOLDERS: Final = frozenset({"S-1-3-0", "S-1-3-1", "S-1-3-4"})
"""SIDs that give no rights to further users. CREATOR OWNER and CREATOR GROUP apply to new files
only. OWNER RIGHTS applies to the owner, whom `untrusted_account` checks separately."""

RIGHTS_TO_WRITE: Final = {
    "FILE_WRITE_DATA, FILE_ADD_FILE": 0x0002,
    "FILE_APPEND_DATA, FILE_ADD_SUBDIRECTORY": 0x0004,
    "FILE_WRITE_EA": 0x0010,
    "FILE_DELETE_CHILD": 0x0040,
    "FILE_WRITE_ATTRIBUTES": 0x0100,
    "DELETE": 0x0001_0000,
    "WRITE_DAC": 0x0004_0000,
    "WRITE_OWNER": 0x0008_0000,
    "GENERIC_ALL": 0x1000_0000,
    "GENERIC_WRITE": 0x4000_0000,
}
RIGHTS_TO_REPLACE: Final = {
    name: RIGHTS_TO_WRITE[name]
    for name in ("FILE_DELETE_CHILD", "DELETE", "WRITE_DAC", "WRITE_OWNER", "GENERIC_ALL")
}
"""Rights on a directory that allow a user to rename or delete its content. They do not include the
right to add files, which every user has in ProgramData and in the root of a drive."""

ALLOWED_TYPES: Final = frozenset({0x00, 0x05, 0x09, 0x0B})
"""ACCESS_ALLOWED_ACE, and its variants for objects and with conditions. Entries that deny access
are ignored. They can only remove rights, so ignoring them is safe."""
INHERIT_ONLY: Final = 0x08
"""Flag of an entry that applies to the content of a directory, and not to the directory itself."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of an access control list: the rights ``mask`` of the account ``sid``.

    ``kind`` and ``flags`` come from the header of the entry.
    """

    kind: int
    flags: int
    mask: int
    sid: str


@dataclass(frozen=True, slots=True)
class Security:
    """Owner and access control list of a file. ``owner`` is a SID.

    ``entries`` is None if the file has no list. Everyone then has full access.
    """

    owner: str
    entries: tuple[Entry, ...] | None


def untrusted_account(security: Security, *, is_parent: bool = False) -> str | None:
    """Return the SID of the first account outside of TRUSTED that owns or can change the file.

    Returns None if there is no such account. With ``is_parent``, ``security`` belongs to a
    directory above the files of the service. Every account may add files to such a directory. The
    function then returns an account that owns it, or that can rename or delete its content.
    """
    if security.owner not in TRUSTED:
        return security.owner
    if security.entries is None:
        return "S-1-1-0"  # Everyone
    rights = RIGHTS_TO_REPLACE if is_parent else RIGHTS_TO_WRITE
    mask = sum(rights.values())
    for entry in security.entries:
        applies_here = entry.kind in ALLOWED_TYPES and not entry.flags & INHERIT_ONLY
        is_untrusted = entry.sid not in TRUSTED | _OWNER_PLACEHOLDERS
        if applies_here and is_untrusted and entry.mask & mask:
            return entry.sid
    return None
