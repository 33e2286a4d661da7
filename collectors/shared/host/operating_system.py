"""The version of the operating system, for the report."""

import platform
import sys
from pathlib import Path
from typing import Final

MACOS_VERSION: Final = Path("/System/Library/CoreServices/.SystemVersionPlatform.plist")
"""The file with the true version of macOS. On macOS 26, `platform.mac_ver` returns 16.0 if this
Python was built for an older macOS."""


def read_os_version() -> str | None:
    """Return the version as the system writes it ("Debian GNU/Linux 12 (bookworm)", "14.5").

    Returns None if it is not known.
    """
    if sys.platform == "darwin":
        return macos_version()
    if sys.platform == "win32":
        return platform.version() or None
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return platform.release() or None
    return release.get("PRETTY_NAME") or platform.release() or None


def macos_version(file: Path = MACOS_VERSION) -> str | None:
    """Return the version of macOS, such as "26.1", or None if it is not known."""
    import plistlib  # only macOS needs it

    try:
        version = plistlib.loads(file.read_bytes())["ProductVersion"]
    except Exception:  # noqa: BLE001 - plistlib raises many types for a malformed file
        version = None
    return version if isinstance(version, str) else platform.mac_ver()[0] or None
