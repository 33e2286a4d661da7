"""Installs the agent from a signed apt repository in a container with a real systemd.

The first run creates the container's root directory in build/package-root with debootstrap. The
container's only network is loopback, where a web server offers the repository. The commands and
files are those of README.md and docs/install.md.

Needs root, debootstrap, systemd-nspawn, apt-utils, gpg and the package that `make test-deb` builds.
Usage: python -m tests.packaging.linux.verify_apt
"""

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from tests.packaging.linux.machine import (
    REPOSITORY_HOST,
    boot_and_report,
    make_certificate,
    scratch,
    signing_key,
)
from tests.packaging.verify_systemd import copy_package, make_upgrade
from tests.paths import ROOT

PUBLISH: Final = ROOT / "packaging/apt/publish.py"
URL: Final = f"https://{REPOSITORY_HOST}/apt"


def rename_package(package: Path) -> Path:
    """Rename a package file to NAME_VERSION_ARCHITECTURE.deb, the name of a built package."""
    query = ("dpkg-deb", "--show", "--showformat=${Package}_${Version}_${Architecture}.deb")
    name = subprocess.run((*query, package), capture_output=True, text=True, check=True).stdout
    return package.rename(package.with_name(name))


def publish(key: str, output: Path, *words: str | Path) -> None:
    subprocess.run(
        (sys.executable, PUBLISH, "--key", key, "--url", URL, "--output", output, *words),
        check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip


def flip_bit(file: Path) -> None:
    """Change one bit of a file."""
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def make_sites(results: Path, place: Path) -> None:
    """Create one copy of the repository for each of its states. The machine uses them in turn."""
    copy_package(results)
    make_upgrade(results)
    first, upgrade = rename_package(results / "first.deb"), rename_package(results / "next.deb")
    sites = results / "sites"

    def copy_site(name: str, source: str) -> Path:
        shutil.copytree(sites / source / "apt", sites / name / "apt")
        return sites / name / "apt"

    with signing_key(place, "other@example.com") as other:
        publish(other, sites / "another-key/apt", first, upgrade)
    with signing_key(place) as key:
        publish(key, sites / "first/apt", first)
        publish(key, copy_site("newer", "first"), upgrade)
        expiring = copy_site("expired", "newer")
        publish(key, expiring, "--valid-days", "-1", upgrade)
    flip_bit(copy_site("changed-package", "newer") / "pool/venue-agent" / upgrade.name)
    for path in (copy_site("changed-list", "newer") / "dists/stable/main").rglob("*"):
        if path.is_file():
            flip_bit(path)
    release = copy_site("changed-index", "newer") / "dists/stable/InRelease"
    release.write_text(release.read_text().replace("\nLabel: ", "\nLabel: x"))


def main() -> int:
    began = time.monotonic()
    with scratch("apt") as place:
        results = place / "results"
        results.mkdir()
        make_certificate(results)
        make_sites(results, place)
        code = boot_and_report("tests.packaging.linux.inside_apt", results)
    sys.stdout.write(json.dumps({"exit": code, "seconds": round(time.monotonic() - began, 1)}))
    sys.stdout.write("\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
