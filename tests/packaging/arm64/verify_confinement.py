"""Tests the collector's confinement on a real arm64 kernel, which qemu-system emulates.

The emulated machine boots Debian's arm64 kernel. Its root directory is in memory: a copy of the
root directory ``builder`` that `packaging/arm64/roots.py` creates, with this checkout and the
package of `make deb-arm64`. The emulated machine runs `collect application` of the packaged
program, and `tests/scenario/security/test_confinement.py`. The test that compares the application's
facts is left out, because the emulated processor is too slow for the time limits of the collector.

Needs root, qemu-system-arm, cpio, and what `verify_arm64` needs. Uses a few minutes of processor
time.
Usage: python -m tests.packaging.arm64.verify_confinement
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from tests.packaging.arm64.verify_arm64 import ROOTS, package
from tests.packaging.verify_bare import run
from tests.paths import ROOT

CACHE: Final = Path(os.environ.get("ARM64_CACHE", "/var/cache/venue-agent-arm64"))
KERNEL: Final = CACHE / "kernel"
BUILDER: Final = CACHE / "builder"
DOWNLOAD: Final = (
    "apt-get -qq update && cd /kernel && apt-get -qq download"
    " $(apt-cache depends linux-image-cloud-arm64 | sed -n 's/.*Depends: //p' | head -n1)"
)
CHECKOUT: Final = ("agent", "collectors", "tests")
LIBRARIES: Final = ("pytest", "_pytest", "py", "pluggy", "iniconfig", "packaging")
"""The libraries of the tests. All are pure Python, so the files of the host also work on arm64."""
OMITTED_DIRECTORIES: Final = (
    "usr/share/doc", "usr/share/man", "usr/share/locale", "var/cache", "var/lib/apt",
)  # fmt: skip
LOG: Final = ROOT / "build/arm64/confinement.log"
WITHIN_S: Final = 3600
MEMORY_MIB: Final = 3072
QEMU: Final = (
    "qemu-system-aarch64", "-machine", "virt", "-cpu", "cortex-a72", "-smp", "2",
    "-m", str(MEMORY_MIB), "-nographic", "-no-reboot", "-nic", "none",
)  # fmt: skip
# The kernel panics when this script ends. With `panic=-1` it then reboots at once, and with
# `-no-reboot` qemu ends instead.
INIT: Final = """\
#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mount -t securityfs securityfs /sys/kernel/security
mkdir -p /dev/shm /dev/pts
for place in /tmp /run /dev/shm; do mount -t tmpfs tmpfs $place; done
chmod 1777 /tmp /dev/shm
cd /checkout
python3 -I tests/lab/loopback.py true
echo "RESULT machine $(uname -srm), LSM $(cat /sys/kernel/security/lsm)"
PYTHONPATH=/libraries PYTHONDONTWRITEBYTECODE=1 /opt/package-venv/bin/python -m pytest \\
    -c /dev/null --rootdir=/checkout --noconftest -p no:cacheprovider -W ignore -q -rs --tb=short \\
    --color=no -k "not facts or network" tests/scenario/security/test_confinement.py
echo "RESULT pytest $?"
export VENUE_AGENT_APPLICATION__MAX_DURATION_SECONDS=120
venue-agent collect application --json > /tmp/report.json 2> /tmp/errors
echo "RESULT collect $?"
lines=$(cat /tmp/report.json /tmp/errors | grep -c "without a filter\\|was not confined")
echo "RESULT unconfined $lines"
echo "RESULT end"
"""
EXPECTED: Final = (
    r"RESULT machine Linux \S+ aarch64, LSM \S*landlock",
    r"(?m)^\d+ passed(, \d+ deselected)? in ",  # no test was skipped
    r"RESULT pytest 0\b",
    r"RESULT collect 0\b",
    r"RESULT unconfined 0\b",
    r"RESULT end",
)


def kernel() -> Path:
    """Return Debian's arm64 kernel. Download its package if it is missing."""
    KERNEL.mkdir(parents=True, exist_ok=True)
    if not list(KERNEL.glob("boot/vmlinuz-*")):
        shell = ("--", "sh", "-c", DOWNLOAD)
        run(sys.executable, ROOTS, "bare", f"--bind={KERNEL}:/kernel", *shell)
        (package,) = KERNEL.glob("linux-image-*.deb")
        run("dpkg-deb", "--extract", package, KERNEL)
    return min(KERNEL.glob("boot/vmlinuz-*"))


def make_root(place: Path) -> Path:
    """Return the root directory as an archive, which the kernel unpacks into memory."""
    run(sys.executable, ROOTS, "builder", "--", "true")
    root, archive = place / "root", place / "root.cpio"
    run("cp", "--archive", "--reflink=auto", BUILDER, root)
    for name in OMITTED_DIRECTORIES:
        shutil.rmtree(root / name, ignore_errors=True)
    for name in CHECKOUT:
        ignored = shutil.ignore_patterns("__pycache__", "fixtures")
        shutil.copytree(ROOT / name, root / "checkout" / name, ignore=ignored)
    for name in LIBRARIES:
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        file, libraries = Path(spec.origin), root / "libraries"
        libraries.mkdir(exist_ok=True)
        if file.name == "__init__.py":
            shutil.copytree(file.parent, libraries / name)
        else:
            shutil.copy(file, libraries)
    (site_packages,) = root.glob("opt/package-venv/lib/python3.*/site-packages")
    # The tests start Python with -I, which ignores PYTHONPATH.
    (site_packages / "checkout.pth").write_text("/checkout\n")
    run("dpkg-deb", "--extract", package(), root)
    # The package's scripts create this link. They do not run here.
    (root / "usr/lib/venue-agent.current").symlink_to("venue-agent")
    (root / "init").write_text(INIT)
    (root / "init").chmod(0o755)
    with archive.open("wb") as output:
        names = subprocess.run(("find", ".", "-print0"), cwd=root, capture_output=True, check=True)
        words = ("cpio", "--null", "--create", "--format=newc", "--quiet", "--owner=+0:+0")
        subprocess.run(words, cwd=root, input=names.stdout, stdout=output, check=True)
    return archive


def main() -> int:
    if os.geteuid() != 0:
        raise SystemExit("this test needs root: run it with sudo")
    for program in (QEMU[0], "cpio"):
        if shutil.which(program) is None:
            raise SystemExit(f"{program} is missing: apt-get install qemu-system-arm cpio")
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="venue-arm64-", dir="/var/tmp") as name:
        boot = ("-kernel", kernel(), "-initrd", make_root(Path(name)))
        options = ("-append", "console=ttyAMA0 quiet panic=-1 rdinit=/init")
        done = subprocess.run(
            (*QEMU, *boot, *options), stdin=subprocess.DEVNULL, capture_output=True, text=True,
            errors="replace", timeout=WITHIN_S, check=False,
        )  # fmt: skip
    output = done.stdout.replace("\r", "")
    LOG.parent.mkdir(parents=True, exist_ok=True)
    LOG.write_text(output)
    missing = [each for each in EXPECTED if re.search(each, output) is None]
    if missing:
        sys.stdout.write(f"{LOG} has the output. Missing: {'; '.join(missing)}\n")
    for line in re.findall(r"^(?:RESULT .*|\d+ passed.*)$", output, re.MULTILINE):
        sys.stdout.write(f"{line}\n")
    sys.stdout.write(f"{time.monotonic() - began:.0f} s\n")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
