"""Builds packages in a container: a minimal Debian without a network.

The root directory is made once by debootstrap, brought up to date with Debian's security updates,
and kept. Wheels are downloaded outside the container, and their hashes are checked.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from release import ReleaseError
from release.source import Source

RELEASE: Final = "bookworm"
PACKAGES: Final = (
    "ca-certificates",
    "python3",
    "python3-venv",
    "libpython3.11",
    "make",
    "binutils",
)
DEFAULT_MIRROR: Final = "http://deb.debian.org/debian"
LISTS: Final = ("package.txt", "service-package.txt", "build.txt")
"""The lists in ``requirements`` that the packages are built with."""
SOURCE_IN_CONTAINER: Final = "/build/venue-agent"
_QUERY: Final = "${Package} ${Version} ${Architecture}\n"
_PRINT_VERSION: Final = "import platform; print(platform.python_version())"


@dataclass(frozen=True, slots=True)
class Root:
    """The directory of a minimal Debian, and the packages in it.

    Attributes:
        facts: ``mirror``, ``created`` (a UTC time), ``wanted`` (the names in `PACKAGES`),
            ``python`` (a version), and ``packages``: the name, version, architecture and SHA-256 of
            each installed package.
    """

    directory: Path
    facts: dict[str, Any]


def prepare_root(cache: Path, mirror: str) -> Root:
    """Return the root in the directory ``cache``.

    The root is created if it does not exist yet, or if its mirror or `PACKAGES` have changed.

    Raises:
        ReleaseError: A program failed, or this process does not run as root.
    """
    if os.geteuid() != 0:
        raise ReleaseError("A clean build needs root privileges. Run the command with sudo.")
    directory, facts_file = cache / "root", cache / "root.json"
    if facts_file.exists() and directory.exists():
        facts = json.loads(facts_file.read_text())
        if facts["mirror"] == mirror and facts["wanted"] == list(PACKAGES):
            return Root(directory, facts)
    facts_file.unlink(missing_ok=True)
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    _bootstrap(directory, mirror)
    facts = {
        "mirror": mirror,
        "created": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "wanted": list(PACKAGES),
        "python": _run("chroot", directory, "python3", "-c", _PRINT_VERSION).strip(),
        "packages": _installed_packages(directory),
    }
    shutil.rmtree(directory / "var/cache/apt/archives")
    shutil.rmtree(directory / "var/lib/apt/lists")
    facts_file.write_text(json.dumps(facts, indent=1) + "\n")
    return Root(directory, facts)


def _bootstrap(directory: Path, mirror: str) -> None:
    arguments = ("--variant=minbase", f"--include={','.join(PACKAGES)}", RELEASE, directory, mirror)
    # The mounts of debootstrap disappear with its mount namespace, even if it is killed.
    _run("unshare", "--mount", "debootstrap", *arguments)
    base = mirror.rstrip("/")
    if "/archive/debian/" in base:  # snapshot.debian.org
        security = base.replace("/archive/debian/", "/archive/debian-security/")
    else:
        security = f"{base}-security"
    lines = (
        f"deb {base} {RELEASE} main",
        f"deb {base} {RELEASE}-updates main",
        f"deb {security} {RELEASE}-security main",
    )
    (directory / "etc/apt/sources.list").write_text("".join(f"{line}\n" for line in lines))
    apt = ("chroot", directory, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq")
    # The index of an archive snapshot may have expired. Without this option, apt would refuse it.
    _run(*apt, "-o", "Acquire::Check-Valid-Until=false", "update")
    _run(*apt, "--yes", "dist-upgrade")


def _installed_packages(directory: Path) -> list[dict[str, str]]:
    output = _run("chroot", directory, "dpkg-query", "--show", "--showformat", _QUERY)
    packages = []
    for line in sorted(output.splitlines()):
        name, version, architecture = line.split()
        file = f"{name}_{version.replace(':', '%3a')}_{architecture}.deb"
        content = (directory / "var/cache/apt/archives" / file).read_bytes()
        packages.append(
            {
                "name": name,
                "version": version,
                "architecture": architecture,
                "sha256": hashlib.sha256(content).hexdigest(),
            }
        )
    return packages


def packages_containing(root: Root, paths: set[str]) -> set[str]:
    """Return the names of the Debian packages in the root that contain one of the paths."""
    # Debian links /lib to /usr/lib, and some packages list their files in /lib.
    candidates = paths | {path.removeprefix("/usr") for path in paths}
    return {
        file.name.partition(".list")[0].partition(":")[0]
        for file in (root.directory / "var/lib/dpkg/info").glob("*.list")
        if not candidates.isdisjoint(file.read_text().splitlines())
    }


def download_wheels(source: Source, python: str, target: Path) -> None:
    """Download the wheels of `LISTS` for a version of Python, and check their hashes."""
    target.mkdir(parents=True, exist_ok=True)
    for name in LISTS:
        requirements = target.parent / name
        requirements.write_text(source.text(f"requirements/{name}"))
        version = ".".join(python.split(".")[:2])
        _run(
            sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "download",
            "--only-binary=:all:", "--python-version", version, "--dest", target,
            "--require-hashes", "--requirement", requirements,
        )  # fmt: skip


def build(root: Root, tree: Path, wheels: Path, epoch: int, targets: list[str]) -> None:
    """Run ``make`` with the targets in a container without a network.

    Args:
        tree: the source, which is at `SOURCE_IN_CONTAINER` inside the container.
        epoch: the value of SOURCE_DATE_EPOCH.

    Raises:
        ReleaseError: A target failed. The message ends with its output.
    """
    environment = {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": "/wheels",
        "SOURCE_DATE_EPOCH": str(epoch),
        "LANG": "C.UTF-8",
    }
    _run(
        "systemd-nspawn", "--quiet", f"--directory={root.directory}", "--volatile=overlay",
        "--register=no", "--keep-unit", f"--machine=venue-agent-release-{os.getpid()}",
        "--private-network", "--console=pipe", f"--bind={tree}:{SOURCE_IN_CONTAINER}",
        f"--bind-ro={wheels}:/wheels", f"--chdir={SOURCE_IN_CONTAINER}",
        *(f"--setenv={name}={value}" for name, value in environment.items()),
        "make", "PYTHON=/usr/bin/python3", *targets,
    )  # fmt: skip


def _run(*command: str | Path) -> str:
    done = subprocess.run(
        [str(argument) for argument in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, errors="replace", check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise ReleaseError(f"{command[0]} ended with {done.returncode}:\n{done.stdout[-4000:]}")
    return done.stdout
