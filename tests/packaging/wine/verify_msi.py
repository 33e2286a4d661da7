"""Verifies the MSI package of the agent under Wine.

Builds the program with PyInstaller as `verify_wine` does, unless it already exists. By default only
a short verification runs: it installs the package with a configuration, waits for the first report,
and uninstalls the package.

Needs the Debian packages of `wine.PACKAGES` and of `PACKAGES` in this module. The first run
also downloads Python packages from the package index.
Usage: python -m tests.packaging.wine.verify_msi [--all]
"""

import argparse
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from tests.packaging.local_service import local_service
from tests.packaging.wine.msi_checks import MsiChecks
from tests.packaging.wine.windows_checks import print_ok
from tests.packaging.wine.windows_package import build_package
from tests.packaging.wine.wine import CACHE, Wine, fresh_wine, prepare, run_isolated

PACKAGES: Final = ("wixl", "msitools", "osslsigncode")
PREFIX: Final = CACHE / "msi-prefix"


def verify(wine: Wine, *, is_short: bool) -> None:
    """Run the checks with the program of this source tree."""
    build_package(wine)
    work = CACHE / "msi"
    with tempfile.TemporaryDirectory() as folder, local_service(Path(folder)) as service:
        MsiChecks(wine, service, None, work, is_short=is_short).run()


def main() -> int:
    parser = argparse.ArgumentParser(description="Verify the MSI package under Wine.")
    parser.add_argument("--all", action="store_true", help="run all steps")
    options = parser.parse_args()
    for tool in ("wixl", "msibuild", *(("osslsigncode",) if options.all else ())):
        if shutil.which(tool) is None:
            raise SystemExit(f"{tool} is missing. Install {' '.join(PACKAGES)}.")
    if (code := run_isolated("tests.packaging.wine.verify_msi", prepare)) is not None:
        return code
    began = time.monotonic()
    shutil.rmtree(PREFIX, ignore_errors=True)
    with fresh_wine(PREFIX) as wine:
        print_ok(f"a new Windows in {time.monotonic() - began:.1f} s")
        verify(wine, is_short=not options.all)
    sys.stdout.write(json.dumps({"seconds": round(time.monotonic() - began, 1)}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
