"""Boots a container with a real systemd and proves the service's Debian package in it, with a real
PostgreSQL and a real agent.

Needs root, systemd-nspawn, PostgreSQL's package and the service's package in dist/service. As in
`prove_systemd` the root is an overlay over this machine's own, without a network but loopback.

Usage: python -m tests.packaging.service.prove_service
"""

import json
import os
import sys
import tempfile
import time
from pathlib import Path

from tests.packaging.prove_systemd import boot, exposure, make_upgrade, overlay_of_this_machine
from tests.paths import ROOT

UNIT = ROOT / "controlplane/service/venue-control.service"
EXPOSURE_MAX = 1.5
WITHIN_S = 570
"""It takes two minutes where nothing else runs."""


def main() -> int:
    if os.geteuid() != 0:
        raise SystemExit("a container needs root: run it with sudo")
    found = exposure(UNIT)
    sys.stdout.write(f"exposure {found} (at most {EXPOSURE_MAX})\n")
    if found > EXPOSURE_MAX:
        return 1
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="venue-control-systemd-") as directory:
        place = Path(directory)
        results = place / "results"
        results.mkdir()
        make_upgrade(results, "dist/service/venue-control_*.deb")
        with overlay_of_this_machine(place) as root:
            module = "tests.packaging.service.inside_service"
            code = boot(root, results, "--", is_overlay=True, module=module, within_s=WITHIN_S)
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
