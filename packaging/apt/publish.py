"""Adds Debian packages to a signed apt repository: a directory that a static web server can serve.

The directory keeps older packages and older indices, so that a client that has read an older index
can still download all files that this index names. The signed index, InRelease, is replaced last.
See docs/repositories.md.

Usage: python packaging/apt/publish.py --key KEY --url URL --output DIR [--valid-days N] PACKAGE...
"""

import argparse
import datetime
import hashlib
import lzma
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from email.utils import format_datetime, parsedate_to_datetime
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from openpgp import Key, find_key

SUITE = "stable"
COMPONENT = "main"
ORIGIN = "venue-agent"
"""Clients name this origin to permit automatic upgrades."""


def add_to_pool(packages: Iterable[Path], pool: Path) -> None:
    """Copy the packages to ``pool``. Raises SystemExit if a published package would change: clients
    that have its old hash would refuse it.
    """
    for package in packages:
        published = pool / package.name.partition("_")[0] / package.name
        if not published.exists():
            published.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(package, published)
        elif published.read_bytes() != package.read_bytes():
            raise SystemExit(
                f"{package.name} is already published with other content."
                " Build the change with a new version."
            )


def architectures_in(pool: Path) -> list[str]:
    """Return the architectures of the packages in ``pool``."""
    return sorted({path.stem.rpartition("_")[2] for path in pool.rglob("*.deb")})


def write_index(folder: Path, package_list: str) -> dict[str, bytes]:
    """Write the list of packages, plain and compressed, each under its name and under its hash.

    Returns the contents by name.
    """
    content = package_list.encode()
    files = {"Packages": content, "Packages.xz": lzma.compress(content, preset=9)}
    by_hash = folder / "by-hash/SHA256"
    by_hash.mkdir(parents=True, exist_ok=True)
    for data in files.values():
        _replace(by_hash / hashlib.sha256(data).hexdigest(), data)
    for name, data in files.items():
        _replace(folder / name, data)
    return files


def release_text(
    indices: Mapping[str, bytes],
    architectures: Iterable[str],
    now: datetime.datetime,
    valid_days: int | None = None,
) -> str:
    """Return the text of the Release file, without a signature.

    Args:
        indices: content of each index, by its path below dists/SUITE.
        valid_days: days until clients refuse this file. None: they never refuse it.
    """
    lines = [
        f"Origin: {ORIGIN}",
        f"Label: {ORIGIN}",
        f"Suite: {SUITE}",
        f"Codename: {SUITE}",
        f"Date: {_date(now)}",
        *([f"Valid-Until: {_date(now + datetime.timedelta(valid_days))}"] if valid_days else []),
        f"Architectures: {' '.join(architectures)}",
        f"Components: {COMPONENT}",
        "Acquire-By-Hash: yes",
        "SHA256:",
    ]
    for path, content in sorted(indices.items()):
        lines.append(f" {hashlib.sha256(content).hexdigest()} {len(content)} {path}")
    return "\n".join(lines) + "\n"


def sources_text(url: str, architectures: Iterable[str], key: Key) -> str:
    """Return the file for /etc/apt/sources.list.d, with the public key in it."""
    # In this format (deb822), an empty line of a value is written as a dot.
    block = "\n".join(f" {line or '.'}" for line in key.armored.strip().splitlines())
    return (
        f"# Key: {key.fingerprint}\n"
        f"Types: deb\nURIs: {url}\nSuites: {SUITE}\nComponents: {COMPONENT}\n"
        f"Architectures: {' '.join(architectures)}\nSigned-By:\n{block}\n"
    )


def publish(
    packages: Iterable[Path], output: Path, url: str, key: Key, valid_days: int | None = None
) -> None:
    add_to_pool(packages, output / "pool")
    architectures = architectures_in(output / "pool")
    suite = output / "dists" / SUITE
    indices = {}
    for architecture in architectures:
        path = f"{COMPONENT}/binary-{architecture}"
        package_list = subprocess.run(
            ("apt-ftparchive", "--arch", architecture, "packages", "pool"),
            cwd=output, capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        contents = write_index(suite / path, package_list)
        indices.update({f"{path}/{file}": content for file, content in contents.items()})
    text = release_text(indices, architectures, next_date(suite / "Release"), valid_days)
    _replace(output / "venue-agent.sources", sources_text(url, architectures, key).encode())
    _replace(suite / "Release", text.encode())
    key.sign_detached(suite / "Release", suite / "Release.gpg.new")
    key.clear_sign(suite / "Release", suite / "InRelease.new")
    for name in ("Release.gpg", "InRelease"):
        (suite / f"{name}.new").replace(suite / name)


def next_date(published: Path) -> datetime.datetime:
    """Return the date of the next index: now, or one second after the published index.

    apt ignores an index whose date, in seconds, is before that of the index it already has.
    """
    now = datetime.datetime.now(datetime.UTC)
    if not published.exists():
        return now
    (date,) = re.findall("^Date: (.*)$", published.read_text(), re.MULTILINE)
    return max(now, parsedate_to_datetime(date) + datetime.timedelta(seconds=1))


def _date(time: datetime.datetime) -> str:
    return format_datetime(time.replace(microsecond=0), usegmt=True)


def _replace(path: Path, content: bytes) -> None:
    """Write a file so that a web server never serves a part of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.new")
    new.write_bytes(content)
    new.replace(path)


def main() -> int:
    parser = argparse.ArgumentParser(description="Publish packages in a signed apt repository.")
    parser.add_argument("--key", required=True, help="fingerprint of the signing key")
    parser.add_argument("--url", required=True, help="address of the published directory")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--valid-days", type=int, help="days until clients refuse the index")
    parser.add_argument("packages", type=Path, nargs="+")
    options = parser.parse_args()
    if shutil.which("apt-ftparchive") is None:
        raise SystemExit("apt-ftparchive is missing: install the package apt-utils.")
    key = find_key(options.key)
    publish(options.packages, options.output, options.url, key, options.valid_days)
    sys.stdout.write(f"{options.output}: signed with {key.fingerprint}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
