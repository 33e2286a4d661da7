"""Boots a container with a real systemd and verifies the service's Debian package in it.

A real PostgreSQL and a real agent also run in the container. Needs root, systemd-nspawn and the
package that `make test-service-deb` builds. As in `verify_systemd`, the container's root is an
overlay over the root of this machine, and its only network is loopback. If this machine lacks
PostgreSQL, the package postgresql is installed into the overlay. This needs the package index.

Usage: python -m tests.packaging.service.verify_service [--all]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.packaging.verify_systemd import (
    boot,
    copy_package,
    exposure,
    make_upgrade,
    overlay_of_this_machine,
)
from tests.paths import ROOT

UNIT = ROOT / "controlplane/service/venue-control.service"
EXPOSURE_MAX = 1.5
"""Maximum exposure of the unit (`exposure` of `verify_systemd`)."""
WITHIN_S = 3600
PREPARE = "apt-get -qq update && apt-get -qq install --yes --no-install-recommends postgresql"


def provide_postgresql(root: Path) -> None:
    """Make `apt-get install postgresql` succeed in a root without a network.

    This installs the package in the root if it is missing, and deletes apt's package lists. Without
    the lists apt knows only the installed version. With the lists it could try to download a newer
    version.
    """
    query = ("dpkg-query", f"--admindir={root}/var/lib/dpkg", "-Wf", "${Status}", "postgresql")
    status = subprocess.run(query, capture_output=True, text=True, check=False).stdout
    if status != "install ok installed":
        no_start = root / "usr/sbin/policy-rc.d"
        no_start.write_text("#!/bin/sh\nexit 101\n")
        no_start.chmod(0o755)
        words = (
            "systemd-nspawn", "-q", "-D", str(root), "--register=no", "--keep-unit", "--pipe",
            f"--machine=venue-postgresql-{os.getpid()}",
            "--setenv=DEBIAN_FRONTEND=noninteractive", "sh", "-c", PREPARE,
        )  # fmt: skip
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise SystemExit(f"PostgreSQL cannot be installed:\n{done.stdout}{done.stderr}")
        no_start.unlink()
    for file in (root / "var/lib/apt/lists").iterdir():
        if file.is_file():
            file.unlink()


def main() -> int:
    parser = argparse.ArgumentParser(description="Verify the service's package under systemd.")
    parser.add_argument("--all", action="store_true", help="run every step, not the short form")
    options = parser.parse_args()
    if os.geteuid() != 0:
        raise SystemExit("a container needs root: run it with sudo")
    score = exposure(UNIT)
    sys.stdout.write(f"exposure {score} (at most {EXPOSURE_MAX})\n")
    if score > EXPOSURE_MAX:
        return 1
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="venue-control-systemd-") as directory:
        place = Path(directory)
        results = place / "results"
        results.mkdir()
        copy_package(results, "venue-control_*.deb")
        if options.all:
            make_upgrade(results)
        with overlay_of_this_machine(place) as root:
            provide_postgresql(root)
            module = "tests.packaging.service.inside_service"
            form = "--all" if options.all else "--short"
            code = boot(root, results, form, is_overlay=True, module=module, within_s=WITHIN_S)
        for name in ("out.txt", "err.txt"):
            if (results / name).exists():
                sys.stdout.write((results / name).read_text())
        if code != 0 and not (results / "out.txt").exists():
            sys.stdout.write((results / "boot.log").read_text(errors="replace")[-4000:])
    sys.stdout.write(json.dumps({"exit": code, "seconds": round(time.monotonic() - began, 1)}))
    sys.stdout.write("\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
