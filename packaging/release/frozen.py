"""Lists the Python modules inside a program that PyInstaller built.

Such a program ends with an archive, which contains a second archive with the modules (PYZ).
Source: PyInstaller, "Advanced Topics", "The Bootstrap Process in Detail" and
PyInstaller/archive/writers.py.
"""

import marshal
import struct
from typing import Final

_MAGIC: Final = b"MEI\014\013\012\013\016"
_COOKIE: Final = struct.Struct("!8sIIII64s")
_ENTRY: Final = struct.Struct("!IIIIBc")
_PYZ: Final = b"PYZ\0"
_KIND_OF_PYZ: Final = b"z"


def top_level_modules(program: bytes) -> frozenset[str]:
    """Return the names of the top-level modules and packages.

    Raises:
        ValueError: The bytes are no program of PyInstaller.
    """
    place = program.rfind(_MAGIC)
    if place < 0:
        raise ValueError("not a program of PyInstaller")
    try:
        _, length, toc_place, toc_length, _, _ = _COOKIE.unpack_from(program, place)
        start = place + _COOKIE.size - length
        toc = program[start + toc_place : start + toc_place + toc_length]
        offset = 0
        names: set[str] = set()
        while offset < len(toc):
            size, where, stored, _, _, kind = _ENTRY.unpack_from(toc, offset)
            if kind == _KIND_OF_PYZ:
                names |= _modules(program[start + where : start + where + stored])
            offset += size
    except (struct.error, EOFError, TypeError) as error:
        raise ValueError(f"an invalid program of PyInstaller: {error}") from error
    return frozenset(name.partition(".")[0] for name in names)


def _modules(archive: bytes) -> set[str]:
    if not archive.startswith(_PYZ):
        raise ValueError("not an archive of modules")
    (place,) = struct.unpack_from("!I", archive, 8)
    return {name for name, _ in marshal.loads(archive[place:])}  # noqa: S302 - signed data only
