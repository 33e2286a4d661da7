"""Facts about this machine: its platform, a fingerprint, and counters of its kernel."""

import hashlib
import sys
from pathlib import Path
from typing import Final

from agent.wire.vocabulary import Platform

CUPS: Final = Path("/run/cups")
"""The folder with the socket of CUPS, the print spooler."""

_SALT = b"venue-agent machine fingerprint v1\0"
_PLATFORMS: dict[str, Platform] = {"linux": "linux", "darwin": "macos", "win32": "windows"}


def service_platform() -> Platform:
    """Return the contract's name of this operating system. Unknown systems count as Linux."""
    return _PLATFORMS.get(sys.platform, "linux")


def fingerprint(machine_id_file: Path = Path("/etc/machine-id")) -> str | None:
    """Return a hash that identifies this installation of the operating system.

    Returns None if the machine id cannot be read.

    The machine id is hashed with a salt, because it is confidential (machine-id(5)). The hash does
    not depend on hardware: a machine with a new mainboard or network card is the same device.
    """
    identifier = _windows_machine_guid() if sys.platform == "win32" else _read(machine_id_file)
    if not identifier:
        return None
    return hashlib.sha256(_SALT + identifier.encode()).hexdigest()


def boot_id() -> str | None:
    """Return an id that changes with each start of the operating system; None if there is none."""
    return _read(Path("/proc/sys/kernel/random/boot_id"))


def memory_kills() -> int | None:
    """Return how many programs the kernel has ended since its start, because memory ran out.

    Returns None if the kernel does not count them (Linux 4.13 and later do).
    """
    lines = (_read(Path("/proc/vmstat")) or "").splitlines()
    counts = (line.split()[1] for line in lines if line.startswith("oom_kill "))
    return next((int(count) for count in counts if count.isdecimal()), None)


def thermal_throttles(folder: Path = Path("/sys/devices/system/cpu")) -> int | None:
    """Return how often the processor was slowed down because of heat, since the system's start.

    This is the highest counter of a core or package. Returns None if the kernel has no such
    counters: it has them only for x86 processors from Intel.
    """
    counters = folder.glob("cpu[0-9]*/thermal_throttle/*_throttle_count")
    values = (_read(counter) or "" for counter in counters)
    return max((int(value) for value in values if value.isdecimal()), default=None)


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
