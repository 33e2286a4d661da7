"""Lists the Python modules inside a program that PyInstaller built.

The file of such a program ends with an archive, which contains a second archive with the modules
(PYZ).
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
    cookie_position = program.rfind(_MAGIC)
    if cookie_position < 0:
        raise ValueError("not a program of PyInstaller")
    try:
        _, length, toc_position, toc_length, _, _ = _COOKIE.unpack_from(program, cookie_position)
        start = cookie_position + _COOKIE.size - length
        toc = program[start + toc_position : start + toc_position + toc_length]
        offset = 0
        names: set[str] = set()
        while offset < len(toc):
            size, position, stored_size, _, _, kind = _ENTRY.unpack_from(toc, offset)
            if kind == _KIND_OF_PYZ:
                names |= _modules(program[start + position : start + position + stored_size])
            if size < _ENTRY.size:
                raise ValueError("an invalid program of PyInstaller: an entry is too short")
            offset += size
    except (struct.error, EOFError, TypeError) as error:
        raise ValueError(f"an invalid program of PyInstaller: {error}") from error
    return frozenset(name.partition(".")[0] for name in names)


def _modules(archive: bytes) -> set[str]:
    if not archive.startswith(_PYZ):
        raise ValueError("not an archive of modules")
    (toc_position,) = struct.unpack_from("!I", archive, 8)
    return {name for name, _ in marshal.loads(archive[toc_position:])}  # noqa: S302 - signed data only
