"""A release with tiny packages, and a git repository with its source."""

import io
import json
import marshal
import os
import struct
import subprocess
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from release import NOTES, PROVENANCE
from release.building import collect
from release.checksums import PRINCIPAL, digest, sign, write_sums
from release.clean_root import LISTS, Root
from release.provenance import statement
from release.source import Source, read_source

VERSION: Final = "1.2.3"
CHANGELOG: Final = (
    f"# Changes\n\n## {VERSION} - 2026-11-23\n\n- First.\n\n## 1.2.2 - 2026-01-01\n\n- Old.\n"
)
METADATA: Final = (
    "Metadata-Version: 2.4\nName: venue-agent\nRequires-Dist: h11<1\n"
    "Requires-Dist: mypy; extra == 'dev'\nRequires-Dist: alembic; extra == 'controlplane'\n"
)


@dataclass(frozen=True, slots=True)
class TinyRelease:
    """A release in ``directory``, with the repository of its source.

    ``key`` is the private key that signs it. ``signers`` is a file of allowed signers
    (ssh-keygen(1)) with the public key.
    """

    directory: Path
    checkout: Path
    source: Source
    key: Path
    signers: Path

    def sign_again(self) -> None:
        """Make checksums and signature match the present files."""
        write_sums(self.directory)
        sign(self.directory, self.key)


def make_repository(directory: Path, files: dict[str, str]) -> None:
    """Create a git repository with one commit, which has the tag of `VERSION`."""
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git(directory, "init", "--quiet")
    git(directory, "add", "--all")
    git(directory, "commit", "--quiet", "--message", "release")
    git(directory, "tag", f"v{VERSION}")


def git(directory: Path, *words: str) -> None:
    names = ("GIT_AUTHOR", "GIT_COMMITTER")
    identities = {f"{name}_{part}": "me@localhost" for name in names for part in ("NAME", "EMAIL")}
    environment = {**os.environ, **identities, "GIT_CONFIG_GLOBAL": "/dev/null"}
    subprocess.run(("git", "-C", str(directory), *words), check=True, env=environment)


def make_key(path: Path) -> None:
    words = ("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "tests", "-f", str(path))
    subprocess.run(words, check=True)


def make_tiny_release(place: Path) -> TinyRelease:
    """Create packages, their bills of materials, provenance, checksums and signature."""
    wheels = place / "wheels"
    wheels.mkdir()
    (wheels / "h11-0.16.0-py3-none-any.whl").write_bytes(b"a wheel")
    entry = f"h11==0.16.0 \\\n    --hash=sha256:{digest(wheels / 'h11-0.16.0-py3-none-any.whl')}\n"
    files = {
        "agent/__init__.py": f'__version__ = "{VERSION}"\n',
        "CHANGELOG.md": CHANGELOG,
        **{f"requirements/{name}": entry for name in LISTS},
    }
    checkout = place / "checkout"
    checkout.mkdir()
    make_repository(checkout, files)
    source = read_source(checkout, "HEAD")
    make_packages(place / "dist")
    directory = place / "release"
    packages = collect(place / "dist", directory, source)
    (directory / NOTES).write_text(source.notes)
    facts = {"python": "3.11.2", "mirror": "m", "created": "2026-11-23T00:00:00Z", "packages": []}
    document = statement(
        source, directory, Root(place, facts), wheels, bundled=set(),
        rebuildable={path.name for path in packages}, parameters={"targets": ["deb"]},
    )  # fmt: skip
    (directory / PROVENANCE).write_text(json.dumps(document))
    key, signers = place / "key", place / "allowed_signers"
    make_key(key)
    signers.write_text(f"{PRINCIPAL} {Path(f'{key}.pub').read_text()}")
    tiny = TinyRelease(directory, checkout, source, key, signers)
    tiny.sign_again()
    return tiny


def make_packages(dist: Path) -> None:
    """Write a Debian package, its program's bill of materials, a wheel and a container file."""
    dist.mkdir()
    (dist / "venue-agent_1.2.3_amd64.deb").write_bytes(deb())
    (dist / "venue-agent.cdx.json").write_text(json.dumps(bill_of_program()))
    with zipfile.ZipFile(dist / "venue_agent-1.2.3-py3-none-any.whl", "w") as wheel:
        wheel.writestr("agent/__init__.py", "")
        wheel.writestr("venue_agent-1.2.3.dist-info/METADATA", METADATA)
    (dist / "Containerfile").write_text("FROM docker.io/library/debian:12-slim\n")
    (dist / "SHA256SUMS").write_text("of another directory\n")


def bill_of_program() -> dict[str, object]:
    """Return what packaging/sbom.py writes about the program of `deb`."""

    def evidence(name: str) -> dict[str, object]:
        return {"occurrences": [{"location": name}]}

    application = {"type": "application", "name": "venue-agent", "evidence": evidence("agent")}
    library = {"type": "library", "bom-ref": "pkg:pypi/h11@0.16.0", "name": "h11"}
    return {
        "bomFormat": "CycloneDX",
        "metadata": {"component": application},
        "components": [{**library, "evidence": evidence("h11")}],
    }


def deb(*modules: str) -> bytes:
    """Return a Debian package whose program contains `agent.cli`, h11 and ``modules``."""
    code = frozen_program("agent.cli", "h11", *modules)
    members = {
        "debian-binary": b"2.0\n",
        "control.tar.xz": _tar({"./control": b"Package: venue-agent\n"}),
        "data.tar.xz": _tar({"./usr/lib/venue-agent/venue-agent": code}),
    }
    package = b"!<arch>\n"
    for name, content in members.items():
        header = f"{name:16}{0:<12}{0:<6}{0:<6}{'100644':8}{len(content):<10}`\n"
        package += header.encode() + content + b"\n" * (len(content) % 2)
    return package


def frozen_program(*modules: str) -> bytes:
    """Return a program of PyInstaller: a bootloader, followed by the archive of its modules."""
    toc = marshal.dumps([(name, (0, 0, 0)) for name in modules])
    pyz = b"PYZ\0" + b"\0" * 4 + struct.pack("!I", 12) + toc
    # 32 is the size of the entry, 88 the size of the cookie, and 311 means Python 3.11.
    entry = struct.pack("!IIIIBc", 32, 0, len(pyz), len(pyz), 0, b"z") + b"PYZ.pyz".ljust(14, b"\0")
    length = len(pyz) + len(entry) + 88
    cookie = struct.pack(
        "!8sIIII64s", b"MEI\014\013\012\013\016", length, len(pyz), len(entry), 311, b"python"
    )
    return b"\x7fELF bootloader" + pyz + entry + cookie


def _tar(files: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:xz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()
