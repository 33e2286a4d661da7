"""Verifies the agent on Windows under Wine: in a Windows CPython, then as the packaged service.

Each run creates a new Wine prefix, and runs the package in it as a service. It first builds the
package with PyInstaller, unless the package of these sources already exists. Downloads are made
first; after that the only network is loopback. Root is not needed if user namespaces are permitted.
The default is a short form, which omits the steps with the source tree that are repeated with the
packaged service. Both forms run the packaged service, because most Windows-specific code
belongs to the service.

Needs the Debian packages of `wine.PACKAGES`. The first run also needs the package index.
Usage: python -m tests.packaging.wine.verify_wine [--all] [--keep DIR]
"""

import argparse
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.packaging.local_service import local_service
from tests.packaging.wine.msi_checks import MsiChecks
from tests.packaging.wine.windows_checks import PROGRAMS, PackageChecks, SourceChecks, print_ok
from tests.packaging.wine.windows_package import build_package
from tests.packaging.wine.wine import CACHE, Wine, fresh_wine, prepare, run_isolated


def verify(wine: Wine, keep: Path | None, *, is_short: bool) -> None:
    """Run all checks. The checks of the source tree, of the zip and of the MSI package each use a
    new reference service, which has no devices of the other checks.
    """
    with tempfile.TemporaryDirectory() as folder, local_service(Path(folder)) as service:
        SourceChecks(wine, service, keep, is_short=is_short).run()
    package = build_package(wine)
    print_ok(f"the package: {package.name}, {package.stat().st_size / 2**20:.1f} MiB")
    with tempfile.TemporaryDirectory() as folder, local_service(Path(folder)) as service:
        PackageChecks(wine, service, keep, package).run()
    shutil.rmtree(wine.path(rf"{PROGRAMS}\venue-agent"))
    with tempfile.TemporaryDirectory() as folder, local_service(Path(folder)) as service:
        MsiChecks(wine, service, keep, CACHE / "msi", is_short=True).run()


def main() -> int:
    parser = argparse.ArgumentParser(description="Verify the agent on Windows under Wine.")
    parser.add_argument(
        "--all",
        action="store_true",
        help="run all steps, including those that the short form omits",
    )
    parser.add_argument("--keep", type=Path, help="directory for the collected reports")
    options = parser.parse_args()
    if (code := run_isolated("tests.packaging.wine.verify_wine", prepare)) is not None:
        return code
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    shutil.rmtree(CACHE / "prefix", ignore_errors=True)
    with fresh_wine(CACHE / "prefix") as wine:
        print_ok(f"a new Windows in {time.monotonic() - began:.1f} s")
        verify(wine, options.keep, is_short=not options.all)
    sys.stdout.write(json.dumps({"seconds": round(time.monotonic() - began, 1)}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
