"""Boots a container with a real systemd and verifies the Debian package in it.

Needs root, systemd-nspawn and the package that `make test-deb` builds. By default, the container's
root is an overlay over the root of this machine. The `python` programs are deleted in the overlay.
With ``--root``, the root is a directory that debootstrap has created. Neither the machine nor that
directory is changed. The container's only network is loopback. After the run, nothing of the
container remains.

Usage: python -m tests.packaging.verify_systemd [--root DIR] [--keep DIR] [--facts]
"""

import argparse
import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.paths import ROOT

PACKAGES = ROOT / "build/test-debs"
UNIT = ROOT / "agent/adapters/service_manager/venue-agent.service"
EXPOSURE_MAX = 1.6
"""Maximum exposure of the unit (`exposure`)."""
LANDLOCK = ("landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self")
"""The system calls of Landlock."""
BOOT_AND_VERIFY_WITHIN_S = 3600
BOOT_WITHIN_S = 600
LOCK = Path("/run/lock/venue-agent-container")
"""Only one container is booted at a time: two would use the same control groups."""
CHECK_UNIT = """\
[Unit]
Description=Verify the package
After=multi-user.target
[Service]
Type=oneshot
WorkingDirectory={root}
Environment=PYTHONDONTWRITEBYTECODE=1 ARGS={arguments}
ExecStart={python} -m {module} $ARGS
ExecStopPost=/bin/systemctl --no-block exit $EXIT_STATUS
StandardOutput=file:/results/out.txt
StandardError=file:/results/err.txt
TimeoutStartSec={verify_within_s}
"""


def exposure(unit: Path = UNIT) -> float:
    """Return the unit's exposure according to systemd-analyze, from 0 (safest) to 10."""
    words = ("systemd-analyze", "security", "--offline=yes", "--no-pager", str(unit))
    output = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    return float(output.rpartition(f"{unit.name}: ")[2].split()[0])


@contextlib.contextmanager
def overlay_of_this_machine(place: Path) -> Iterator[Path]:
    """Mount a temporary overlay whose lower layer is `/`, and adapt it. Yield its mount point."""
    memory, merged = place / "memory", place / "merged"
    memory.mkdir()
    merged.mkdir()
    _run("mount", "-t", "tmpfs", "-o", "size=1500m", "venue-agent-test", str(memory))
    try:
        (memory / "upper").mkdir()
        (memory / "work").mkdir()
        layers = f"lowerdir=/,upperdir={memory}/upper,workdir={memory}/work"
        _run("mount", "-t", "overlay", "-o", layers, "venue-agent-test", str(merged))
        try:
            for name in ("etc/machine-id", "etc/hostname"):
                (merged / name).unlink(missing_ok=True)
            (merged / "etc/machine-id").touch()
            # A machine may forbid packages to start services, as build machines do. The container
            # must permit it.
            (merged / "usr/sbin/policy-rc.d").unlink(missing_ok=True)
            # The container must not start the services that this machine starts at boot.
            for name in ("multi-user", "default", "timers"):
                target = merged / f"etc/systemd/system/{name}.target.wants"
                shutil.rmtree(target, ignore_errors=True)
            # Remove state directories that commands of root created on this machine.
            for name in ("venue-agent", "venue-control"):
                shutil.rmtree(merged / "var/lib" / name, ignore_errors=True)
            _hide_python(merged)
            yield merged
        finally:
            _run("umount", str(merged))
    finally:
        _run("umount", str(memory))


def _hide_python(root: Path) -> None:
    for folder in ("usr/bin", "usr/local/bin"):
        for program in (root / folder).glob("python*"):
            program.unlink()


def boot(
    root: Path,
    results: Path,
    arguments: str,
    *,
    is_overlay: bool,
    module: str = "tests.packaging.inside_systemd",
    within_s: int = BOOT_AND_VERIFY_WITHIN_S,
) -> int:
    """Boot the container and run the module in it. Return the exit code of the module.

    If ``root`` is not an overlay, the container gets a temporary overlay over it.
    """
    check = results / "check.service"
    python = ROOT / ".venv/bin/python"
    unit = CHECK_UNIT.format(
        root=ROOT,
        python=python,
        module=module,
        arguments=arguments,
        verify_within_s=within_s - BOOT_WITHIN_S,
    )
    check.write_text(unit)
    volatile = () if is_overlay else ("--volatile=overlay",)
    words = (
        "systemd-nspawn", "-q", "-D", str(root), *volatile, "--register=no", "--keep-unit",
        f"--machine=venue-agent-test-{os.getpid()}", "--private-network", "--console=read-only",
        f"--bind={results}:/results", f"--bind-ro={ROOT}:{ROOT}",
        f"--bind-ro={sys.base_prefix}:{sys.base_prefix}",
        f"--bind-ro={check}:/run/systemd/system/check.service",
        # The collector restricts itself with Landlock, whose system calls nspawn's default filter
        # refuses.
        f"--system-call-filter={' '.join(LANDLOCK)}",
        "--boot", "systemd.wants=check.service", "systemd.log_color=0",
    )  # fmt: skip
    with (results / "boot.log").open("wb") as log, LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            return subprocess.run(
                words, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                timeout=within_s, check=False,
            ).returncode  # fmt: skip
        except subprocess.TimeoutExpired:
            return 124  # as timeout(1) does


def copy_package(
    results: Path, pattern: str = "venue-agent_*.deb", directory: Path = PACKAGES
) -> None:
    """Copy the only package in a directory that matches ``pattern`` to ``results``/first.deb."""
    files = sorted(directory.glob(pattern))
    if len(files) != 1:
        raise SystemExit(
            f"exactly one {directory}/{pattern} is required:"
            " run `make test-deb` or `make test-service-deb`"
        )
    shutil.copy(files[0], results / "first.deb")


def make_upgrade(results: Path, *, name: str = "next.deb", number: int = 99) -> None:
    """Create a second package of the same program. ``number`` is the first part of its version.

    If ``name`` is ``broken.deb``, the program is replaced by one that does not start.
    """
    with tempfile.TemporaryDirectory() as directory:
        tree = Path(directory)
        _run("dpkg-deb", "-R", str(results / "first.deb"), str(tree))
        control = tree / "DEBIAN/control"
        control.write_text(control.read_text().replace("\nVersion: ", f"\nVersion: {number}."))
        if name == "broken.deb":
            (tree / "usr/lib/venue-agent/venue-agent").write_text("#!/bin/sh\nexit 1\n")
        _run("dpkg-deb", "--root-owner-group", "-Znone", "-b", str(tree), str(results / name))


def _run(*words: str) -> None:
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


def main() -> int:
    parser = argparse.ArgumentParser(description="Verify the package under a real systemd.")
    parser.add_argument("--root", type=Path, help="root directory that debootstrap created")
    parser.add_argument("--keep", type=Path, help="directory for the reports")
    parser.add_argument(
        "--facts",
        action="store_true",
        help="also run `collect` outside of the unit, to compare its reports with the unit's",
    )
    options = parser.parse_args()
    if os.geteuid() != 0:
        raise SystemExit("a container needs root: run it with sudo")
    score = exposure()
    sys.stdout.write(f"exposure {score} (at most {EXPOSURE_MAX})\n")
    if score > EXPOSURE_MAX:
        return 1
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="venue-agent-systemd-") as directory:
        place = Path(directory)
        results = place / "results"
        results.mkdir()
        copy_package(results)
        make_upgrade(results)
        make_upgrade(results, name="broken.deb", number=100)
        with contextlib.ExitStack() as stack:
            root = options.root or stack.enter_context(overlay_of_this_machine(place))
            arguments = "--facts" if options.facts else "--no-facts"
            code = boot(root, results, arguments, is_overlay=options.root is None)
        for name in ("out.txt", "err.txt"):
            if (results / name).exists():
                sys.stdout.write((results / name).read_text())
        if options.keep:
            shutil.copytree(results, options.keep, dirs_exist_ok=True)
        if code != 0 and not (results / "out.txt").exists():
            sys.stdout.write((results / "boot.log").read_text(errors="replace")[-4000:])
    sys.stdout.write(json.dumps({"exit": code, "seconds": round(time.monotonic() - began, 1)}))
    sys.stdout.write("\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
