"""Measures how long it takes to install both packages and to get the first report in the console.

Boots the container of `verify_service`, without PostgreSQL. Needs root, systemd-nspawn, Chromium
and the packages in dist/ and dist/service.

Usage: python -m tests.packaging.service.first_device
"""

import os
import shutil
import sys
import tempfile
from pathlib import Path

from tests.packaging.verify_systemd import boot, copy_package, overlay_of_this_machine
from tests.paths import ROOT

MODULE = "tests.packaging.service.inside_first_device"


def main() -> int:
    if os.geteuid() != 0:
        raise SystemExit("a container needs root: run it with sudo")
    with tempfile.TemporaryDirectory(prefix="venue-first-device-") as directory:
        place = Path(directory)
        results = place / "results"
        results.mkdir()
        for name, folder in (("venue-control", "dist/service"), ("venue-agent", "dist")):
            copy_package(results, f"{name}_*.deb", ROOT / folder)
            shutil.move(results / "first.deb", results / f"{name}.deb")
        with overlay_of_this_machine(place) as root:
            code = boot(root, results, "", is_overlay=True, module=MODULE)
        for name in ("out.txt", "err.txt"):
            if (results / name).exists():
                sys.stdout.write((results / name).read_text())
    load = " ".join(f"{each:.1f}" for each in os.getloadavg())
    sys.stdout.write(f"load of this machine: {load} on {os.cpu_count()} CPUs\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
