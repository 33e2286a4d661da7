"""Which operating system this is, for the report."""

import platform
import sys


def read_os_version() -> str | None:
    """Return the version in its usual form ("Debian GNU/Linux 12 (bookworm)", "14.5"); or None."""
    if sys.platform == "darwin":
        return platform.mac_ver()[0] or None
    if sys.platform == "win32":
        return platform.version() or None
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return platform.release() or None
    return release.get("PRETTY_NAME") or platform.release() or None
