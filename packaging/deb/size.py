"""Prints the components of a Debian package, each with its size and the reason why it is included.

A component is compressed alone to find its share. The sum of all components is a little larger than
the package, because the package also compresses what several components have in common.

Usage: python packaging/deb/size.py PACKAGE.deb ONEDIR
ONEDIR is the PyInstaller directory of the same build. Its program contains the Python modules.
"""

import lzma
import subprocess
import sys
import tarfile
from collections import defaultdict
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

from PyInstaller.archive.readers import CArchiveReader

STANDARD = "Python's standard library"
OTHERS = "other libraries"
REASONS = {
    "agent, collectors, controlplane": "the program itself",
    "agent/presentation/hosts/makers.bin": "names of the makers of devices, by MAC address",
    "libpython": "the Python interpreter; the machine needs no Python of its own",
    STANDARD: "what the program and its libraries import",
    "libcrypto, libssl": "TLS of Python's module ssl",
    "libsqlite3": "the journal, the outbox and the record; the service's default database",
    "cryptography": "the device's Ed25519 key and X.509 certificates; it has its own OpenSSL",
    "pydantic, pydantic_core": "models of messages, state and configuration",
    "zeroconf": "mDNS: printers and other devices on the network",
    "psutil": "facts about system, disks and processes",
    "apscheduler": "the timers of heartbeats and scheduled reports",
    "httpx2, httpcore2": "HTTP",
    "jinja2": "web pages of reports and of the console",
    "rich": "tables in the terminal",
    "pysnmp, pyasn1": "SNMP queries to printers",
    "anyio": "imported by the HTTP client and by the service's framework",
    "websockets": "the protocol of the browser's DevTools",
    "idna": "host names with characters outside ASCII",
    "sqlalchemy": "queries of the service",
    "alembic": "migrations of the service's database",
    "uvloop": "the service's event loop",
    "psycopg, psycopg_binary": "PostgreSQL",
    "authlib": "sign-in with OAuth and OpenID Connect",
    "mcp": "the Model Context Protocol",
    "starlette, uvicorn": "the service's web framework and server",
    "argon2": "hashes of passwords",
    "tzdata": "time zones, because a machine can lack them",
    "documents": "manual pages and documents in /usr/share",
    OTHERS: "imported by the libraries above",
}
"""Each component and why it is needed. A name with commas is a row of several components."""
_ROW_OF = {part.strip(): row for row in REASONS for part in row.split(",")}


def contents(package: Path, program: Path) -> Iterator[tuple[str, bytes]]:
    """Yield each part of the package: its component and its bytes.

    Each module in ``program``, the executable, is a part of its own.
    """
    command = ("dpkg-deb", "--fsys-tarfile", str(package))
    archive = subprocess.run(command, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=BytesIO(archive)) as tar:
        for member in tar:
            file = tar.extractfile(member) if member.isfile() else None
            if file is None:
                continue
            if member.name.endswith(f"/lib/{program.name}/{program.name}"):
                yield from _modules(program)
            else:
                yield component_of(member.name), file.read()


def _modules(program: Path) -> Iterator[tuple[str, bytes]]:
    reader = CArchiveReader(str(program))
    modules = reader.open_embedded_archive("PYZ.pyz")
    for name in modules.toc:
        yield _row_of_module(name.partition(".")[0]), modules.extract(name, raw=True) or b""


def component_of(path: str) -> str:
    """Return the row of REASONS that a file of the package belongs to."""
    _, inside, name = path.partition("/_internal/")
    if not inside:
        return "documents"
    if name.endswith("hosts/makers.bin"):
        return _ROW_OF["agent/presentation/hosts/makers.bin"]
    first = name.partition("/")[0]
    if first.startswith(("python3.", "base_library")):
        return STANDARD
    return _row_of_module(first.partition("-")[0].partition(".")[0])


def _row_of_module(first: str) -> str:
    if first in sys.stdlib_module_names or first.startswith("_sysconfigdata"):
        return STANDARD
    for name in (first, first.rstrip("0123456789_.")):
        if name in _ROW_OF:
            return _ROW_OF[name]
    return _ROW_OF["libpython"] if first.startswith("libpython") else OTHERS


def table(package: Path, program: Path) -> Iterator[str]:
    """Yield the lines of the table, in Markdown."""
    parts: dict[str, list[bytes]] = defaultdict(list)
    for component, content in contents(package, program):
        parts[component].append(content)
    packed = {name: len(lzma.compress(b"".join(each))) for name, each in parts.items()}
    total = sum(packed.values())
    unpacked = sum(len(content) for each in parts.values() for content in each)
    yield "| component | unpacked, KiB | share of the package | why |"
    yield "|---|--:|--:|---|"
    for name in sorted(packed, key=packed.__getitem__, reverse=True):
        kib = sum(map(len, parts[name])) // 1024
        yield f"| {name} | {kib:,} | {100 * packed[name] / total:.1f} % | {REASONS[name]} |"
    size = package.stat().st_size / 2**20
    yield f"| all | {unpacked // 1024:,} | {size:.1f} MiB | |"


def main() -> int:
    package, onedir = Path(sys.argv[1]), Path(sys.argv[2])
    for line in table(package, onedir / onedir.name):
        sys.stdout.write(f"{line}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
