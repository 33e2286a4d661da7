"""Reads the files inside packages, without installing anything and without other programs."""

import hashlib
import io
import lzma
import tarfile
import zipfile
from pathlib import Path
from typing import Final

Contents = dict[str, bytes]

_AR_MAGIC: Final = b"!<arch>\n"
_AR_HEADER: Final = 60


def can_be_read(name: str) -> bool:
    """Return whether `contents` can read the package with this file name."""
    return name.endswith((".deb", ".whl", ".zip", ".tar.gz"))


def contents(package: Path) -> Contents:
    """Return the content of each regular file in a package, by its path in the package.

    Raises:
        ValueError: The file is not such a package.
    """
    name = package.name
    try:
        if name.endswith(".deb"):
            return _deb(package.read_bytes())
        if name.endswith((".whl", ".zip")):
            with zipfile.ZipFile(package) as archive:
                files = [info for info in archive.infolist() if not info.is_dir()]
                return {info.filename: archive.read(info) for info in files}
        if name.endswith(".tar.gz"):
            return _tar(package.read_bytes(), "gz")
    except (OSError, EOFError, tarfile.TarError, zipfile.BadZipFile, lzma.LZMAError) as error:
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
            inside = _tar(member, compression)
            files |= {prefix + path: content for path, content in inside.items()}
    return files


def _ar(data: bytes) -> dict[str, bytes]:
    """Return the members of an ar(5) archive."""
    if not data.startswith(_AR_MAGIC):
        raise ValueError("not an ar archive")
    members, place = {}, len(_AR_MAGIC)
    while place + _AR_HEADER <= len(data):
        header = data[place : place + _AR_HEADER]
        size = int(header[48:58])
        place += _AR_HEADER
        members[header[:16].decode().strip().rstrip("/")] = data[place : place + size]
        place += size + size % 2
    return members


def _tar(data: bytes, compression: str) -> Contents:
    files: Contents = {}
    with tarfile.open(fileobj=io.BytesIO(data), mode=f"r:{compression}") as archive:  # type: ignore[call-overload]
        for member in archive:
            if member.isfile():
                inside = archive.extractfile(member)
                files[member.name.removeprefix("./")] = inside.read() if inside else b""
    return files
