"""This machine: its platform, and a fingerprint that reveals cloned disks."""

import hashlib
import sys
from pathlib import Path

from agent.wire.vocabulary import Platform

_SALT = b"venue-agent machine fingerprint v1\0"
_PLATFORMS: dict[str, Platform] = {"linux": "linux", "darwin": "macos", "win32": "windows"}


def service_platform() -> Platform:
    """Return this operating system in the contract's terms."""
    return _PLATFORMS.get(sys.platform, "linux")


def fingerprint(machine_id_file: Path = Path("/etc/machine-id")) -> str | None:
    """Return a hash that identifies this installation of the system, or None.

    It is a salted hash, because the machine id itself is confidential (machine-id(5)). Hardware is
    not included: with a new mainboard or network card it is still the same device.
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
