"""Reads the files inside packages, without installing anything and without other programs."""

import hashlib
import io
import lzma
import re
import stat
import struct
import tarfile
import zipfile
import zlib
from pathlib import Path
from typing import Final

Contents = dict[str, bytes]

_AR_MAGIC: Final = b"!<arch>\n"
_AR_HEADER: Final = 60
_RPM_LEAD: Final = 96
_RPM_HEADER: Final = struct.Struct(">4s4xII")
_RPM_MAGIC: Final = b"\x8e\xad\xe8\x01"
_DAMAGED: Final = (
    OSError, EOFError, tarfile.TarError, zipfile.BadZipFile, lzma.LZMAError, zlib.error,
    struct.error,
    RuntimeError,  # an encrypted file, or an unknown compression, in a ZIP file
)  # fmt: skip
_CPIO_HEADER: Final = 110
_CPIO_MAGIC: Final = b"070701"


def can_be_read(name: str) -> bool:
    """Return whether `contents` can read the package with this file name."""
    return name.endswith((".deb", ".rpm", ".whl", ".zip", ".tar.gz"))


def contents(package: Path) -> Contents:
    """Return the content of each regular file in a package, by its path in the package.

    Raises:
        ValueError: The file is damaged, or is no package of a known kind.
    """
    name = package.name
    try:
        if name.endswith(".deb"):
            return _deb(package.read_bytes())
        if name.endswith(".rpm"):
            return _cpio(lzma.decompress(_rpm_payload(package.read_bytes())))
        if name.endswith((".whl", ".zip")):
            with zipfile.ZipFile(package) as archive:
                files = [info for info in archive.infolist() if not info.is_dir()]
                return {info.filename: archive.read(info) for info in files}
        if name.endswith(".tar.gz"):
            return _tar(package.read_bytes(), "gz")
    except _DAMAGED as error:
        raise ValueError(f"cannot be unpacked: {error}") from error
    raise ValueError("a package of an unknown kind")


def digests(files: Contents) -> dict[str, str]:
    """Return the SHA-256 of each file."""
    return {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}


def _deb(data: bytes) -> Contents:
    """Read both archives of a Debian package (deb(5)). Control files get the prefix DEBIAN/."""
    files: Contents = {}
    for name, member in _ar(data).items():
        if name.startswith(("control.tar", "data.tar")):
            prefix = "DEBIAN/" if name.startswith("control") else ""
            compression = {"xz": "xz", "gz": "gz"}.get(name.rpartition(".")[2], "")
            files_inside = _tar(member, compression)
            files |= {prefix + path: content for path, content in files_inside.items()}
    return files


def _ar(data: bytes) -> dict[str, bytes]:
    """Return the members of an ar(5) archive."""
    if not data.startswith(_AR_MAGIC):
        raise ValueError("not an ar archive")
    members, offset = {}, len(_AR_MAGIC)
    while offset + _AR_HEADER <= len(data):
        header = data[offset : offset + _AR_HEADER]
        size = int(header[48:58])
        offset += _AR_HEADER
        members[header[:16].decode().strip().rstrip("/")] = data[offset : offset + size]
        offset += size + size % 2  # members are padded to an even size
    return members


def _rpm_payload(data: bytes) -> bytes:
    """Return the compressed archive of an RPM package, which follows the lead and two headers.

    Source: https://rpm-software-management.github.io/rpm/manual/format_v4.html
    """
    offset = _RPM_LEAD
    for boundary in (8, 1):  # only the first header, of the signatures, is padded
        magic, entries, size = _RPM_HEADER.unpack_from(data, offset)
        if magic != _RPM_MAGIC:
            raise ValueError("not an RPM package")
        offset += _RPM_HEADER.size + 16 * entries + size  # an entry of the index has 16 bytes
        offset += -offset % boundary
    return data[offset:]


def _cpio(data: bytes) -> Contents:
    """Return the regular files in a cpio(5) archive of the format "newc".

    Each name ends with a zero byte. Names and contents are padded to a multiple of four bytes.
    """
    files: Contents = {}
    by_inode: dict[int, list[str]] = {}  # hard links: only the last one has the content
    offset = 0
    while True:
        header = data[offset : offset + _CPIO_HEADER]
        if len(header) < _CPIO_HEADER or not header.startswith(_CPIO_MAGIC):
            raise ValueError("not a cpio archive")
        numbers = [int(text, 16) for text in re.findall(rb"(?s).{8}", header[6:])]
        inode, mode, links, size, name_size = (numbers[at] for at in (0, 1, 4, 6, 11))
        start = offset + _CPIO_HEADER
        name = data[start : start + name_size - 1].decode().removeprefix("./")
        if name == "TRAILER!!!":
            return files
        start += name_size + -(start + name_size) % 4
        if stat.S_ISREG(mode):
            files[name] = data[start : start + size]
            if links > 1:
                names = by_inode.setdefault(inode, [])
                names.append(name)
                files.update(dict.fromkeys(names, files[name]))
        offset = start + size + -size % 4


def _tar(data: bytes, compression: str) -> Contents:
    files: Contents = {}
    with tarfile.open(fileobj=io.BytesIO(data), mode=f"r:{compression}") as archive:  # type: ignore[call-overload]
        for member in archive:
            if member.isfile():
                file = archive.extractfile(member)
                files[member.name.removeprefix("./")] = file.read() if file else b""
    return files
