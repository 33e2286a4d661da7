"""Builds the container image and runs it, both as an ordinary user with rootless podman.

The user exists only in this run's namespaces: copies of /etc/passwd and similar files, with this
user added, are mounted over the originals. The only network is loopback. The first run creates an
archive of the base image with debootstrap, in build/container. The base image has the packages of
``debian:12-slim``, and more documentation.

Needs root, podman, uidmap, crun, slirp4netns, netavark, debootstrap and the package that
`make test-service-deb` builds.
Usage: python -m tests.packaging.container.verify_container
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.packaging.container.inside_container import STEPS, User
from tests.packaging.verify_bare import cached, mirror, run
from tests.paths import ROOT

CACHE: Final = ROOT / "build/container"
PACKAGES: Final = ROOT / "build/test-debs"
RELEASE: Final = "bookworm"
PROGRAMS: Final = ("podman", "newuidmap", "crun", "slirp4netns", "debootstrap")
CHECKOUT: Final = ("Makefile", "packaging", "agent/__init__.py")
"""What `make container-image` reads."""
MODULE: Final = "tests.packaging.container.verify_container"


def base_image() -> Path:
    """Return an archive of a minimal Debian. Create it if it does not exist."""
    with cached(CACHE / "base", f"{RELEASE} minbase") as directory:
        if directory is not None:
            root = directory / "root"
            # The mounts of debootstrap disappear with its mount namespace, even if it is killed.
            words = ("--variant=minbase", RELEASE, root, mirror())
            run("unshare", "--mount", "debootstrap", *words)
            omitted = ("./dev/*", "./var/cache/apt/archives/*", "./var/lib/apt/lists/*")
            excludes = (f"--exclude={pattern}" for pattern in omitted)
            run("tar", "-C", root, *excludes, "-cf", directory / "base.tar", ".")
            shutil.rmtree(root)
    return CACHE / "base/base.tar"


def copy_checkout(place: Path) -> None:
    """Copy the files that `make container-image` reads, and the package, to ``place``."""
    for name in CHECKOUT:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, place / name)
    packages = sorted(PACKAGES.glob("venue-control_*.deb"))
    if len(packages) != 1:
        raise SystemExit(
            f"{PACKAGES} must contain exactly one venue-control_*.deb: run `make test-service-deb`"
        )
    (place / "dist/service").mkdir(parents=True)
    shutil.copy(packages[0], place / "dist/service")


@contextmanager
def control_group() -> Iterator[Path]:
    """Yield a new control group. At the end it must have no processes."""
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, mount_point, kind, *_ = line.split()
        if kind == "cgroup2":
            break
    else:
        raise SystemExit("this machine has no control groups of version 2")
    group = Path(mount_point) / f"venue-control-test-{os.getpid()}"
    group.mkdir()
    try:
        yield group
    finally:
        for path in (*sorted(group.rglob("*/"), reverse=True), group):
            if path.is_dir():
                path.rmdir()


def outside(directory: Path) -> int:
    """Start this module in namespaces of its own. Return its exit code."""
    place = directory / "home/checkout"
    place.mkdir(parents=True)
    copy_checkout(place)
    shutil.copy(base_image(), directory / "home/base.tar")
    with control_group() as group:
        # Join the control group first: a control group namespace begins at the group of the
        # process that creates it.
        script = f'echo $$ > {group}/cgroup.procs && exec "$@"'
        namespaces = (
            "unshare", "--mount", "--propagation=shared", "--pid", "--cgroup", "--net", "--fork",
            "--kill-child", "--mount-proc", "--",
        )  # fmt: skip
        loopback = (sys.executable, "-I", str(ROOT / "tests/lab/loopback.py"))
        module = (sys.executable, "-m", MODULE, "--inside", str(directory))
        return subprocess.run(
            ("sh", "-c", script, "sh", *namespaces, *loopback, *module),
            stdin=subprocess.DEVNULL, check=False,
        ).returncode  # fmt: skip


def inside(directory: Path) -> int:
    """Prepare the namespaces like an ordinary machine, and run the steps."""
    user = User(directory / "home")
    user.create(directory / "etc")
    # crun refuses a machine with both versions of control groups.
    run("umount", "--recursive", "/sys/fs/cgroup")
    run("mount", "-t", "cgroup2", "none", "/sys/fs/cgroup")
    user.give_to_user("/sys/fs/cgroup")
    for name, step in STEPS:
        began = time.monotonic()
        try:
            step(user)
        except (AssertionError, OSError, subprocess.SubprocessError, TimeoutError) as error:
            sys.stdout.write(f"FAILED {name}: {error}\n{getattr(error, 'stderr', None) or ''}\n")
            return 1
        sys.stdout.write(f"ok {name} ({time.monotonic() - began:.1f} s)\n")
        sys.stdout.flush()
    return 0


def main() -> int:
    if sys.argv[1:2] == ["--inside"]:
        return inside(Path(sys.argv[2]))
    if os.geteuid() != 0:
        raise SystemExit("this test creates a user in namespaces: run it with sudo")
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        raise SystemExit(
            f"missing programs: {', '.join(missing)}. Install them: apt-get install"
            " --no-install-recommends podman uidmap crun slirp4netns netavark debootstrap"
        )
    began = time.monotonic()
    # podman unpacks the image in this directory, so its file system must support overlays.
    with tempfile.TemporaryDirectory(prefix="venue-container-", dir="/var/tmp") as name:
        directory = Path(name)
        directory.chmod(0o755)
        code = outside(directory)
    took_s = round(time.monotonic() - began, 1)
    sys.stdout.write(json.dumps({"exit": code, "seconds": took_s}) + "\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
