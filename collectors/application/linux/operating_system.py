"""The Linux distribution, the time of the last start, and whether a restart is pending."""

import os
import platform
import re
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from collectors.application.deadline import Deadline
from collectors.application.source import Fields, Origin, source
from collectors.contract import Field
from collectors.shared.sysfs import children, read_line, read_text, text_or_empty, whole_number

KERNEL: Final = Origin("kernel")
OS_RELEASE: Final = Origin("os-release")
BOOT_CLOCK: Final = Origin("CLOCK_BOOTTIME")
PSTORE: Final = Origin("pstore")
REBOOT_REQUIRED: Final = Origin("/run/reboot-required")

_ASSIGNMENT = re.compile(r"^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)=(.*)$")
_REBOOT_RECORDERS: Final = (
    "etc/kernel/postinst.d/unattended-upgrades",
    "etc/kernel/postinst.d/update-notifier",
    "etc/kernel/postinst.d/reboot-notifier",
    "usr/share/update-notifier/notify-reboot-required",
)
"""Programs that create /run/reboot-required when an update requires a restart."""
_WATCHDOG_BITS: Final = ((0x20, "watchdog"), (0x01, "overheating"), (0x10, "power-failure"))
"""Bits of a watchdog's boot status. Each bit stands for a reason why the machine restarted. The
bits are WDIOF_CARDRESET, WDIOF_OVERHEAT and WDIOF_POWERUNDER of linux/watchdog.h."""


def parse_assignments(text: str) -> dict[str, str]:
    """Read the ``NAME=value`` lines of a shell-like file (os-release(5), locale.conf(5))."""
    assignments = {}
    for line in text.splitlines()[:1000]:
        match = _ASSIGNMENT.match(line)
        if match:
            assignments[match[1]] = match[2].strip().strip("\"'")
    return assignments


@source("system", OS_RELEASE, "os.name", "os.version", "os.build", "os.kernel", "os.architecture")
def read_system(_: Deadline, root: Path) -> Fields:
    release = _release(root)
    version = release.get("VERSION") or release.get("VERSION_ID")
    build = release.get("BUILD_ID") or release.get("IMAGE_VERSION")
    build = build or _debian_release(root)
    no_version = "a rolling distribution has no version"
    no_build = "this distribution has no build numbers"
    yield OS_RELEASE.fact("os.name", release.get("NAME"), "the system does not name itself")
    yield OS_RELEASE.fact("os.version", version, no_version, "not-applicable")
    yield OS_RELEASE.fact("os.build", build, no_build, "not-applicable")
    yield from kernel_fields()


def kernel_fields() -> Fields:
    uname = Origin("uname")
    yield uname.available("os.kernel", f"{platform.system()} {platform.release()}")
    yield uname.available("os.architecture", platform.machine())


@source("boot", KERNEL, "os.bootTime", "os.uptimeSeconds", "os.lastBootReason", "os.pendingReboot")
def read_boot(_: Deadline, root: Path) -> Fields:
    uptime = time.clock_gettime(time.CLOCK_BOOTTIME)
    booted_at = datetime.fromtimestamp(time.time() - uptime, UTC).isoformat(timespec="seconds")
    yield BOOT_CLOCK.available("os.bootTime", booted_at)
    yield BOOT_CLOCK.available("os.uptimeSeconds", int(uptime))
    yield boot_reason(root)
    yield pending_reboot(root)


def boot_reason(root: Path) -> Field:
    """Return why the machine restarted, from records of the kernel that survive a restart.

    The records are pstore, which keeps the log of a kernel crash, and the watchdog's status.
    """
    key = "os.lastBootReason"
    if any(entry.name.startswith("dmesg-") for entry in children(root / "sys/fs/pstore")):
        return PSTORE.available(key, "kernel-crash")
    for device in children(root / "sys/class/watchdog"):
        status = read_line(device / "bootstatus")
        for bit, reason in _WATCHDOG_BITS:
            if (whole_number(status) or 0) & bit:
                return Origin("watchdog").available(key, reason)
    return PSTORE.unsupported(key, "there is no record of a kernel crash or of the watchdog")


def pending_reboot(root: Path) -> Field:
    """Return whether an update requires a restart.

    Some packages of Debian and related distributions create /run/reboot-required if an update
    requires a restart. Raspberry Pi OS does not install these packages. Without them, a missing
    file has no meaning.
    """
    key = "os.pendingReboot"
    if (root / "run/reboot-required").exists():
        return REBOOT_REQUIRED.available(key, True)
    if any((root / path).exists() for path in _REBOOT_RECORDERS):
        return REBOOT_REQUIRED.available(key, False)
    return REBOOT_REQUIRED.unsupported(key, "this system does not record it")


@source("regional settings", Origin("/etc"), "os.timeZone", "os.locale")
def read_regional_settings(_: Deadline, root: Path) -> Fields:
    yield Origin("/etc/localtime").fact("os.timeZone", time_zone(root), "no time zone is set")
    yield Origin("locale.conf").fact("os.locale", locale_name(root), "no locale is set")


def time_zone(root: Path) -> str | None:
    """Return the IANA name of the time zone, from the link /etc/localtime (localtime(5))."""
    try:
        target = str((root / "etc/localtime").readlink())
    except OSError:
        return read_line(root / "etc/timezone")
    return target.partition("zoneinfo/")[2] or read_line(root / "etc/timezone")


def locale_name(root: Path) -> str | None:
    for path in ("etc/locale.conf", "etc/default/locale"):
        settings = parse_assignments(text_or_empty(root / path))
        if name := settings.get("LC_ALL") or settings.get("LANG"):
            return name
    return os.environ.get("LC_ALL") or os.environ.get("LANG")


def _debian_release(root: Path) -> str | None:
    """Return the point release of Debian from /etc/debian_version, such as 12.11.

    On Ubuntu and on unreleased versions of Debian, this file contains a codename instead, such as
    bookworm/sid. Then the result is None.
    """
    text = read_line(root / "etc/debian_version")
    return text if text and text[0].isdigit() else None


def _release(root: Path) -> dict[str, str]:
    for name in ("etc/os-release", "usr/lib/os-release"):
        try:
            return parse_assignments(read_text(root / name))
        except OSError:
            continue
    return {}
