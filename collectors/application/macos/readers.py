"""The sources of macOS. They create the fields of the snapshot from the output of programs."""

import os
import plistlib
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

import psutil

from collectors.application.deadline import Deadline
from collectors.application.foreign_json import Object, number, text
from collectors.application.linux import displays, hardware, operating_system
from collectors.application.macos import commands, dhcp, profiler
from collectors.application.macos.profiler import NOT_REPORTED, PROFILE_S, SYSTEM_PROFILER
from collectors.application.readers import clock
from collectors.application.readers.network import interfaces, resolver
from collectors.application.readers.network.interfaces import Links, Wireless
from collectors.application.readers.peripherals import (
    BLUETOOTH_KEYS,
    USB_KEYS,
    bluetooth_reading,
    usb_reading,
)
from collectors.application.readers.resources import PSUTIL, memory_size_field
from collectors.application.readers.services import service_keys
from collectors.application.source import Fields, Origin, Reading, source, status_of
from collectors.contract import Field
from collectors.shared.host.operating_system import macos_version
from collectors.shared.sysfs import SMALL_MAX_BYTES, read_bytes

ReadProfile = Callable[[str, Deadline], bytes]

JOBS: Final = {
    "printSpooler": "org.cups.cupsd",
    "timeSync": "com.apple.timed",
    "bluetooth": "com.apple.bluetoothd",
}
"""The launchd job of each role."""
SW_VERS: Final = Origin("sw_vers", NOT_REPORTED)
BOOT_TIME: Final = Origin("kern.boottime")
SCUTIL: Final = Origin("scutil")
LAUNCHD: Final = Origin("launchd")
_PREFERENCES: Final = "Library/Preferences/.GlobalPreferences.plist"
"""The file with the preferences of the system, relative to the root directory."""
_USB_HOST_SINCE: Final = 26
"""The version of macOS from which on SPUSBDataType is empty."""


@source("system", SW_VERS, *operating_system.read_system.keys)
def read_system(deadline: Deadline) -> Fields:
    names = commands.parse_sw_vers(commands.run_program("sw_vers", deadline=deadline))
    yield SW_VERS.fact("os.name", names.get("ProductName"))
    yield SW_VERS.fact("os.version", names.get("ProductVersion"))
    yield SW_VERS.fact("os.build", names.get("BuildVersion"))
    yield from operating_system.kernel_fields()


@source("boot", BOOT_TIME, *operating_system.read_boot.keys)
def read_boot(_: Deadline) -> Fields:
    booted_s = psutil.boot_time()
    timestamp = datetime.fromtimestamp(booted_s, UTC).isoformat(timespec="seconds")
    yield BOOT_TIME.available("os.bootTime", timestamp)
    yield BOOT_TIME.available("os.uptimeSeconds", max(0, int(time.time() - booted_s)))
    yield Origin("macOS").unsupported("os.lastBootReason", NOT_REPORTED)
    yield Origin("macOS").unsupported("os.pendingReboot", NOT_REPORTED)


@source("regional settings", Origin("/etc"), *operating_system.read_regional_settings.keys)
def read_regional_settings(_: Deadline, root: Path = Path("/")) -> Fields:
    """Read the settings of the system from its files.

    The environment variables are not read, because those of a service may have another locale.
    """
    zone = operating_system.time_zone(root)
    yield Origin("/etc/localtime").fact("os.timeZone", zone, "no time zone is set")
    yield Origin("AppleLocale").fact("os.locale", _locale(root / _PREFERENCES), NOT_REPORTED)


def _locale(preferences: Path) -> str | None:
    try:
        locale = plistlib.loads(read_bytes(preferences, SMALL_MAX_BYTES))["AppleLocale"]
    except Exception:  # noqa: BLE001 - plistlib raises many types for a malformed file
        return None
    return locale if isinstance(locale, str) else None


@source("clock", Origin("ntp_adjtime"), *clock.read_clock.keys)
def read_clock(deadline: Deadline) -> Reading:
    query = partial(clock.adjtimex, "ntp_adjtime")
    return clock.read_clock(deadline, Path("/"), query, system_setter="timed")


@source(
    "hardware",
    SYSTEM_PROFILER,
    *hardware.read_machine.keys,
    *hardware.read_processor.keys,
    limit_s=PROFILE_S,
)
def read_hardware(deadline: Deadline, profile: ReadProfile = profiler.read_profile) -> Fields:
    entry = profiler.parse_hardware(profile("SPHardwareDataType", deadline))
    form = profiler.form_factor(text(entry, "machine_name") or "")
    yield SYSTEM_PROFILER.available("hardware.maker", "Apple")
    yield _entry_fact("hardware.model", entry, "machine_model")
    yield SYSTEM_PROFILER.fact("hardware.formFactor", form)
    yield _entry_fact("hardware.firmware", entry, "boot_rom_version")
    yield _entry_fact("hardware.cpuModel", entry, "chip_type", "cpu_type")
    yield PSUTIL.fact("hardware.physicalCores", psutil.cpu_count(logical=False), NOT_REPORTED)
    yield PSUTIL.available("hardware.logicalCores", os.cpu_count() or 1)
    yield memory_size_field()


@source("displays", SYSTEM_PROFILER, *displays.read_displays.keys, limit_s=PROFILE_S)
def read_displays(deadline: Deadline, profile: ReadProfile = profiler.read_profile) -> Fields:
    screens = profiler.parse_displays(profile("SPDisplaysDataType", deadline))
    yield SYSTEM_PROFILER.available("display.count", len(screens))
    yield SYSTEM_PROFILER.available("display.connectors", tuple(name for name, _ in screens))
    for index, (name, resolution) in enumerate(screens):
        prefix = f"display.{index}"
        yield SYSTEM_PROFILER.fact(f"{prefix}.preferredMode", resolution)
        yield SYSTEM_PROFILER.fact(f"{prefix}.model", name)


@source("drives", SYSTEM_PROFILER, "disk.drives", limit_s=PROFILE_S)
def read_drives(deadline: Deadline, profile: ReadProfile = profiler.read_profile) -> Fields:
    kinds = ("SPNVMeDataType", "SPSerialATADataType")
    drives = [
        drive for kind in kinds for drive in profiler.parse_drives(profile(kind, deadline), kind)
    ]
    yield SYSTEM_PROFILER.available("disk.drives", tuple(str(d["bsd_name"]) for d in drives))
    for drive in drives:
        prefix = f"disk.drive.{drive['bsd_name']}"
        yield SYSTEM_PROFILER.fact(f"{prefix}.model", text(drive, "device_model"))
        yield SYSTEM_PROFILER.fact(f"{prefix}.sizeBytes", number(drive, "size_in_bytes"))
        yield SYSTEM_PROFILER.fact(f"{prefix}.health", _health(drive))


@source("interfaces", PSUTIL, *interfaces.read_interfaces.keys, limit_s=PROFILE_S)
def read_interfaces(deadline: Deadline) -> Reading:
    return interfaces.read_interfaces(deadline, read_links)


def read_links(
    names: tuple[str, ...], deadline: Deadline, profile: ReadProfile = profiler.read_profile
) -> Links:
    ports = commands.run_program("networksetup", "-listallhardwareports", deadline=deadline)
    types = {name: "loopback" for name in names if name.startswith("lo")}
    hardware_types = commands.parse_hardware_ports(ports)
    leases = dhcp.read_dhcp(hardware_types, deadline)
    try:
        wireless = profiler.parse_airport(profile("SPAirPortDataType", deadline))
    except (OSError, ValueError) as error:
        # system_profiler needs seconds for Wi-Fi. If it is late, only its own facts are missing.
        status, reason = status_of(error)
        wi_fi = (name for name, kind in hardware_types.items() if kind == "wifi")
        wireless = dict.fromkeys(wi_fi, Wireless(status=status, reason=reason))
    types |= hardware_types
    # networksetup writes the names of ports in the language of the system, so `hardware_types` may
    # not show that an interface is Wi-Fi. system_profiler shows it in every language.
    types |= {name: "wifi" for name in wireless if name in hardware_types}
    return Links(types, wireless, dhcp=leases)


@source("resolver", SCUTIL, *resolver.read_resolver.keys, limit_s=resolver.RESOLVER_S)
def read_resolver(deadline: Deadline, service_url: str) -> Reading:
    return resolver.read_resolver(deadline, name_servers, service_url, SCUTIL)


def name_servers(deadline: Deadline) -> tuple[str, ...]:
    return commands.parse_name_servers(commands.run_program("scutil", "--dns", deadline=deadline))


@source("services", LAUNCHD, *service_keys(JOBS))
def read_services(deadline: Deadline) -> Fields:
    output = commands.run_program("launchctl", "list", deadline=deadline)
    return service_fields(commands.parse_launchctl(output))


def service_fields(jobs: dict[str, bool]) -> Fields:
    """Yield the fields of the services. ``jobs`` maps each job of launchd to whether it runs.

    A job that does not run gets the state "waiting". This is normal: for example, launchd starts
    cupsd on demand.
    """
    for role, label in JOBS.items():
        keys = service_keys((role,))
        if label not in jobs:
            reason = "launchd does not show it to this account"
            yield from LAUNCHD.all_absent(keys, "unsupported", reason)
            continue
        name, state, *other_keys = keys
        yield LAUNCHD.available(name, label)
        yield LAUNCHD.available(state, "running" if jobs[label] else "waiting")
        yield from LAUNCHD.all_absent(other_keys, "unsupported", NOT_REPORTED)


@source("usb", SYSTEM_PROFILER, *USB_KEYS, limit_s=PROFILE_S)
def read_usb(deadline: Deadline, profile: ReadProfile = profiler.read_profile) -> Reading:
    version = macos_version() or ""
    is_new_format = int(version.partition(".")[0] or 0) >= _USB_HOST_SINCE
    data = profile("SPUSBHostDataType" if is_new_format else "SPUSBDataType", deadline)
    return usb_reading(profiler.parse_usb(data), SYSTEM_PROFILER)


@source("bluetooth", SYSTEM_PROFILER, *BLUETOOTH_KEYS, limit_s=PROFILE_S)
def read_bluetooth(deadline: Deadline, profile: ReadProfile = profiler.read_profile) -> Reading:
    is_on, devices = profiler.parse_bluetooth(profile("SPBluetoothDataType", deadline))
    key, reason = "peripherals.bluetoothPowered", "macOS lists no Bluetooth controller"
    powered = SYSTEM_PROFILER.fact(key, is_on, reason)
    return bluetooth_reading(devices, powered, SYSTEM_PROFILER)


def _entry_fact(key: str, answer: Object, *names: str) -> Field:
    return SYSTEM_PROFILER.fact(key, text(answer, *names))


def _health(drive: Object) -> str | None:
    status = text(drive, "smart_status")
    return {"Verified": "good", "Failing": "failing"}.get(status or "")
