"""The version of the operating system, for the report."""

import platform
import sys


def read_os_version() -> str | None:
    """Return the version as the system writes it ("Debian GNU/Linux 12 (bookworm)", "14.5").

    Returns None if it is not known.
    """
    if sys.platform == "darwin":
        return platform.mac_ver()[0] or None
    if sys.platform == "win32":
        return platform.version() or None
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return platform.release() or None
    return release.get("PRETTY_NAME") or platform.release() or None
