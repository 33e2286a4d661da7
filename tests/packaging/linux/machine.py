"""A bare Debian with a real systemd. Its package managers use a web server at `REPOSITORY_HOST`,
the host name of the package repository in the documents.
"""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.packaging.verify_bare import cached, make_root, mirror, run
from tests.packaging.verify_systemd import boot
from tests.paths import ROOT

PACKAGE_ROOT: Final = ROOT / "build/package-root"
RELEASE: Final = "bookworm"
SYSTEM: Final = (
    "systemd", "systemd-sysv", "dbus", "libnss-systemd", "sudo", "curl", "ca-certificates",
)  # fmt: skip
CLIENTS: Final = (
    "unattended-upgrades", "rpm", "dnf", "policycoreutils", "selinux-policy-default", "setools",
)  # fmt: skip
"""dnf and rpm are packages of Debian. The machine has no packages of Red Hat."""
REPOSITORY_HOST: Final = "packages.example.com"
"""The host of the repository, as in README.md and docs/install.md."""
WITHIN_S: Final = 1800


def prepare() -> Path:
    """Return the root directory of the machine. It is created once."""
    with cached(PACKAGE_ROOT, f"{RELEASE} {SYSTEM} {CLIENTS}") as directory:
        if directory is not None:
            _create(directory)
    return PACKAGE_ROOT


def _create(directory: Path) -> None:
    make_root(RELEASE, directory)
    shutil.copy("/etc/resolv.conf", directory / "etc/resolv.conf")
    (directory / "etc/apt/sources.list").write_text(f"deb {mirror()} {RELEASE} main\n")
    for action, names in (("update", ()), ("install", (*SYSTEM, *CLIENTS)), ("clean", ())):
        words = ("apt-get", "-qq", "--yes", "--no-install-recommends", action, *names)
        run("unshare", "--mount", "env", "DEBIAN_FRONTEND=noninteractive", "chroot", directory,
            *words)  # fmt: skip
    # No package index is reachable from the machine, and no timer may lock the package manager.
    (directory / "etc/apt/sources.list").write_text("")
    shutil.rmtree(directory / "var/lib/apt/lists")
    shutil.rmtree(directory / "etc/systemd/system/timers.target.wants", ignore_errors=True)
    (directory / "etc/machine-id").write_text("")


@contextlib.contextmanager
def signing_key(place: Path, name: str = "packages@example.com") -> Iterator[str]:
    """Create a GnuPG home with a key in ``place``. Until the `with` statement ends, GnuPG uses this
    home. Yield the fingerprint of the key.
    """
    home = place / f"gnupg-{name.partition('@')[0]}"
    home.mkdir(mode=0o700)
    old_home = os.environ.get("GNUPGHOME")
    os.environ["GNUPGHOME"] = str(home)
    words = ("gpg", "--batch", "--quiet", "--passphrase", "", "--quick-generate-key")
    try:
        run(*words, f"Venue packages <{name}>", "rsa3072", "sign", "never")
        key_list = subprocess.run(
            ("gpg", "--batch", "--with-colons", "--list-keys"),
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        yield next(line.split(":")[9] for line in key_list.splitlines() if line.startswith("fpr"))
    finally:
        subprocess.run(("gpgconf", "--kill", "all"), check=False)
        if old_home is None:
            del os.environ["GNUPGHOME"]
        else:
            os.environ["GNUPGHOME"] = old_home


def make_certificate(results: Path) -> None:
    """Create a certificate for the repository's host. The machine trusts it."""
    run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
        "-subj", f"/CN={REPOSITORY_HOST}", "-addext", f"subjectAltName=DNS:{REPOSITORY_HOST}",
        "-keyout", results / "tls.key", "-out", results / "tls.crt")  # fmt: skip


@contextlib.contextmanager
def scratch(name: str) -> Iterator[Path]:
    """Yield a temporary directory. Raises SystemExit if this process does not run as root."""
    if os.geteuid() != 0:
        raise SystemExit("a container needs root: run it with sudo")
    with tempfile.TemporaryDirectory(prefix=f"venue-agent-{name}-") as directory:
        yield Path(directory)


def boot_and_report(module: str, results: Path) -> int:
    """Run a module in the machine and print its output. Return its exit code."""
    code = boot(prepare(), results, "", is_overlay=False, module=module, within_s=WITHIN_S)
    for name in ("out.txt", "err.txt"):
        if (results / name).exists():
            sys.stdout.write((results / name).read_text())
    if code != 0 and not (results / "out.txt").exists():
        sys.stdout.write((results / "boot.log").read_text(errors="replace")[-4000:])
    return code
