"""Which machine this is: its name for the service and a fingerprint against cloned disks."""

import hashlib
import platform
import sys
from pathlib import Path

from agent.wire.vocabulary import Platform

_SALT = b"venue-agent machine fingerprint v1\0"
_PLATFORMS: dict[str, Platform] = {"linux": "linux", "darwin": "macos", "win32": "windows"}


def service_platform() -> Platform:
    """Return this operating system in the service's words."""
    return _PLATFORMS.get(sys.platform, "linux")


def system_release_arch() -> tuple[str, str, str]:
    """Return the system's name, its release and the processor's architecture."""
    return platform.system(), platform.release(), platform.machine()


def host_name() -> str:
    """Return what this machine is called, or nothing."""
    return platform.node()


def fingerprint(machine_id_file: Path = Path("/etc/machine-id")) -> str | None:
    """Return a hash that differs on another installation of the system, or None.

    Salted and hashed, because the machine id itself is confidential (machine-id(5)). Hardware
    is left out: a new mainboard or network card is still the same device.
    """
    identifier = _windows_machine_guid() if sys.platform == "win32" else _read(machine_id_file)
    if not identifier:
        return None
    return hashlib.sha256(_SALT + identifier.encode()).hexdigest()


def _read(path: Path) -> str | None:
    try:
        return path.read_text().strip() or None
    except (OSError, UnicodeDecodeError):
        return None


def _windows_machine_guid() -> str | None:
    if sys.platform == "win32":
        import winreg

        path = r"SOFTWARE\Microsoft\Cryptography"
        try:
            with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, path) as key:
                return str(winreg.QueryValueEx(key, "MachineGuid")[0])
        except OSError:
            return None
    return None
