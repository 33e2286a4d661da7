"""Makes releases and verifies them. docs/release.md describes both.

The verification needs only the standard library, so that a release can be verified without an
installation. The targets of packaging/release.mk set PYTHONPATH to the folder `packaging`.
"""

import re
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]

SUMS: Final = "SHA256SUMS"
SIGNATURE: Final = "SHA256SUMS.sig"
PROVENANCE: Final = "provenance.json"
NOTES: Final = "RELEASE-NOTES.md"
BILL_SUFFIX: Final = ".cdx.json"


def normalize(name: str) -> str:
    """Return the normalized name of a Python package (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


class ReleaseError(Exception):
    """A release cannot be made or verified. The message is one or two plain lines."""
