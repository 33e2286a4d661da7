"""Writes the winget manifests of a version of the MSI package.

Source: the JSON schemas of manifests 1.10.0 in the repository microsoft/winget-cli.
`winget install --manifest DIRECTORY` installs the package from these manifests. They need not
be published in a package repository.

Usage: python packaging/windows/winget.py VERSION MSI URL OUTPUT_DIR
"""

import hashlib
import json
import sys
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parent))
from build_msi import NAME, PUBLISHER, UPGRADE_CODE, braced, numeric_version, product_code

IDENTIFIER: Final = "VenueAgent.VenueAgent"
MANIFEST_VERSION: Final = "1.10.0"
LOCALE: Final = "en-US"
LICENSE: Final = "Apache-2.0"
DESCRIPTION: Final = "Remote control and diagnostics of venue machines"

Manifest = dict[str, object]


def manifests(version: str, msi: Path, url: str) -> dict[str, Manifest]:
    """Return the manifests by file name. ``url`` is the address of the package."""
    identity = {"PackageIdentifier": IDENTIFIER, "PackageVersion": version}
    code = braced(product_code(version))
    installer: Manifest = {
        **identity,
        "InstallerType": "msi",
        "Scope": "machine",
        "InstallModes": ["silent", "silentWithProgress"],
        "UpgradeBehavior": "install",
        "ElevationRequirement": "elevationRequired",
        "Installers": [
            {
                "Architecture": "x64",
                "InstallerUrl": url,
                "InstallerSha256": hashlib.sha256(msi.read_bytes()).hexdigest().upper(),
                "ProductCode": code,
                "AppsAndFeaturesEntries": [
                    {
                        "DisplayName": NAME,
                        "Publisher": PUBLISHER,
                        "DisplayVersion": numeric_version(version),
                        "ProductCode": code,
                        "UpgradeCode": braced(UPGRADE_CODE),
                        "InstallerType": "msi",
                    }
                ],
            }
        ],
    }
    locale: Manifest = {
        **identity,
        "PackageLocale": LOCALE,
        "Publisher": PUBLISHER,
        "PackageName": NAME,
        "License": LICENSE,
        "ShortDescription": DESCRIPTION,
    }
    return {
        f"{IDENTIFIER}.yaml": _with_type({**identity, "DefaultLocale": LOCALE}, "version"),
        f"{IDENTIFIER}.installer.yaml": _with_type(installer, "installer"),
        f"{IDENTIFIER}.locale.{LOCALE}.yaml": _with_type(locale, "defaultLocale"),
    }


def _with_type(manifest: Manifest, kind: str) -> Manifest:
    return {**manifest, "ManifestType": kind, "ManifestVersion": MANIFEST_VERSION}


def main() -> int:
    version, msi, url, output = sys.argv[1], Path(sys.argv[2]), sys.argv[3], Path(sys.argv[4])
    output.mkdir(parents=True, exist_ok=True)
    for name, manifest in manifests(version, msi, url).items():
        # JSON is valid YAML.
        (output / name).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
