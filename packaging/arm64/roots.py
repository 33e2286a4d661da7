"""Runs a command in a throwaway copy of an arm64 Debian, which qemu-user emulates on this machine.

The root directories are created once, with debootstrap, in the directory ARM64_CACHE:

    bare      a minimal Debian with systemd's files, as on a small machine
    builder   also has Python, make, binutils and the libraries that build the package

The emulated programs use the kernel of this machine, but only system calls that qemu-user supports.
Needs root, debootstrap, systemd-nspawn and qemu-user-static.

Usage: python packaging/arm64/roots.py bare|builder [--bind FROM:TO] [--bind-ro FROM:TO]
           [--setenv NAME=VALUE] [--chdir DIR] -- COMMAND
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CACHE = Path(os.environ.get("ARM64_CACHE", "/var/cache/venue-agent-arm64"))
REQUIREMENTS = ROOT / "requirements/package.txt"
RELEASE = "bookworm"
MIRROR = "http://deb.debian.org/debian"
BARE_PACKAGES = ("systemd", "systemd-sysv", "init-system-helpers", "passwd")
BUILDER_PACKAGES = (
    "python3",
    "python3-venv",
    "libpython3.11",
    "binutils",
    "make",
    "ca-certificates",
)
PLATFORMS = ("manylinux2014_aarch64", *(f"manylinux_2_{minor}_aarch64" for minor in range(17, 36)))
PYTHON = "3.11"
ENVIRONMENT = "/opt/package-venv"
BINFMT = Path("/proc/sys/fs/binfmt_misc")
RULE = Path("/usr/lib/binfmt.d/qemu-aarch64.conf")


def register_qemu() -> None:
    """Register qemu-user for arm64 programs with the kernel. Raises SystemExit if it is missing."""
    if not RULE.exists():
        raise SystemExit("qemu-user is missing: apt-get install qemu-user-static")
    if not (BINFMT / "register").exists():
        run("mount", "-t", "binfmt_misc", "none", BINFMT)
    if not (BINFMT / "qemu-aarch64").exists():
        (BINFMT / "register").write_text(RULE.read_text())


def create(name: str, recipe: str, fill: Callable[[Path], None]) -> None:
    """Create and fill a directory, unless one was already created from the same recipe."""
    directory, marker = CACHE / name, CACHE / f"{name}.recipe"
    if marker.exists() and marker.read_text() == recipe and directory.exists():
        return
    sys.stderr.write(f"Creating {directory} (once; some minutes) ...\n")
    marker.unlink(missing_ok=True)
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    fill(directory)
    marker.write_text(recipe)


def prepare(name: str) -> Path:
    """Return the root directory ``bare`` or ``builder``. Create it if it does not exist."""
    register_qemu()
    CACHE.mkdir(parents=True, exist_ok=True)
    bare_recipe = f"{RELEASE} {' '.join(BARE_PACKAGES)}"
    create("bare", bare_recipe, _debootstrap)
    if name == "builder":
        create("wheels", _requirements_digest(), _download_wheels)
        recipe = f"{bare_recipe} {' '.join(BUILDER_PACKAGES)} {_requirements_digest()}"
        create("builder", recipe, _fill_builder)
    return CACHE / name


def _requirements_digest() -> str:
    return hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()


def _fill_builder(directory: Path) -> None:
    _debootstrap(directory, (*BARE_PACKAGES, *BUILDER_PACKAGES))
    _install_libraries(directory)


def _debootstrap(directory: Path, packages: tuple[str, ...] = BARE_PACKAGES) -> None:
    # debootstrap gets a mount namespace, so that its mounts disappear even if it is killed.
    options = ("--arch=arm64", "--foreign", "--variant=minbase", f"--include={','.join(packages)}")
    run("unshare", "--mount", "debootstrap", *options, RELEASE, directory, MIRROR)
    run("unshare", "--mount", "chroot", directory, "/debootstrap/debootstrap", "--second-stage")
    shutil.rmtree(directory / "var/cache/apt/archives", ignore_errors=True)


def _download_wheels(directory: Path) -> None:
    """Download the wheels of REQUIREMENTS for arm64, and check their hashes."""
    options = [f"--platform={platform}" for platform in PLATFORMS]
    run(
        sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "download",
        "--require-hashes", "--only-binary=:all:", "--implementation=cp",
        f"--python-version={PYTHON}", *options, f"--dest={directory}", "-r", REQUIREMENTS,
    )  # fmt: skip


def _install_libraries(root: Path) -> None:
    shutil.copy(REQUIREMENTS, root / "requirements.txt")
    pip = f"{ENVIRONMENT}/bin/python -m pip --quiet --disable-pip-version-check install"
    script = (
        f"python3 -m venv {ENVIRONMENT} && {pip} --no-index --find-links=/wheels --require-hashes"
        f" -r /requirements.txt && touch {ENVIRONMENT}/.installed"
    )
    command = nspawn(root, volatile=False)
    run(*command, "--private-network", f"--bind-ro={CACHE / 'wheels'}:/wheels", "sh", "-c", script)


def nspawn(root: Path, *, volatile: bool = True) -> tuple[str, ...]:
    """Return the beginning of a command line of systemd-nspawn, without the command.

    With ``volatile``, all changes are in memory and disappear at the end. The command uses the
    network of this machine.
    """
    return (
        "systemd-nspawn", "--quiet", f"--directory={root}", "--register=no", "--keep-unit",
        f"--machine=venue-arm64-{os.getpid()}", "--console=pipe", "--resolv-conf=off",
        *(("--volatile=overlay",) if volatile else ()),
    )  # fmt: skip


def run(*command: str | Path) -> None:
    """Run a program. Raises SystemExit with the end of its output if it fails."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0:
        output = done.stdout.decode(errors="replace")[-4000:]
        raise SystemExit(f"{command[0]} ended with {done.returncode}:\n{output}")


def main() -> int:
    parser = argparse.ArgumentParser(description="Run a command in an emulated arm64 Debian.")
    parser.add_argument("root", choices=("bare", "builder"))
    for option in ("--bind", "--bind-ro", "--setenv"):
        parser.add_argument(option, action="append", default=[])
    parser.add_argument("--chdir", default="/")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    if os.geteuid() != 0:
        raise SystemExit("Only root can run a command in the emulated Debian. Use sudo.")
    nspawn_options = (
        f"--{name}={value}"
        for name, values in (("bind", options.bind), ("bind-ro", options.bind_ro),
                             ("setenv", options.setenv))
        for value in values
    )  # fmt: skip
    command = (
        *nspawn(prepare(options.root)),
        *nspawn_options,
        f"--chdir={options.chdir}",
        *options.command,
    )
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
