"""Creates the fields of the snapshot from the PowerShell scripts MACHINE and ADAPTERS."""

import platform
import re
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

from collectors.application.deadline import Deadline
from collectors.application.foreign_json import Object, flag, number, text
from collectors.application.readers.network import interfaces
from collectors.application.readers.network.interfaces import Dhcp, Links, Wireless
from collectors.application.readers.network.name_servers import ANSWERS_KEY, WAIT_S, answers_field
from collectors.application.readers.network.resolver import (
    PROXY_KEYS,
    proxy_fields,
    servers_field,
)
from collectors.application.readers.resources import PSUTIL, memory_size_field
from collectors.application.readers.services import service_keys
from collectors.application.source import Fields, Origin, Reading, Unreadable, source, status_of
from collectors.application.windows import powershell, wlan
from collectors.application.windows.script import (
    CIM,
    NOT_REPORTED,
    SCRIPT_S,
    FieldGroup,
    Section,
    Sections,
    field_group,
    keys_of,
    read_groups,
    read_sections,
    section,
)
from collectors.shared.addresses import plain_address
from collectors.shared.host.resolv_conf import name_servers

_FORMS: Final = {1: "desktop", 2: "laptop", 3: "desktop", 4: "server", 8: "tablet"}
"""Form factors by Win32_ComputerSystem.PCSystemType."""
_SHUTDOWNS: Final = {41: "power-failure-or-crash", 1074: "restart", 6008: "unexpected-shutdown"}
"""Reasons of the last restart, by the event ids of Kernel-Power, User32 and EventLog."""
_HEALTH: Final = {"Healthy": "good", "Warning": "warning", "Unhealthy": "failing"}
_SITE_LOCAL = re.compile(r"fe[c-f][0-9a-f]:", re.IGNORECASE)
"""Addresses that are not name servers. If no name server is set, Windows lists the site-local
addresses fec0:0:0:ffff::1 to ::3, which RFC 3879 has deprecated.
"""
_LISTED_MAX: Final = 16
"""Maximum number of drives, and of screens and video adapters with details."""
_SERVICES: Final = {"printSpooler": "Spooler", "timeSync": "W32Time", "bluetooth": "bthserv"}


@source("interfaces", PSUTIL, *interfaces.read_interfaces.keys, limit_s=SCRIPT_S)
def read_interfaces(deadline: Deadline) -> Reading:
    return interfaces.read_interfaces(deadline, _read_links)


def parse_link_types(sections: Sections) -> dict[str, str]:
    """Return the types of the adapters. The keys are the names of the adapters."""
    types = {}
    for row in section(sections, "adapters").rows:
        name, medium = text(row, "Name"), (text(row, "Medium") or "").lower()
        if name is not None:
            # Most VPN adapters do not report that they are virtual. They report that they have no
            # hardware.
            virtual = flag(row, "Virtual") is True or flag(row, "HardwareInterface") is False
            types[name] = _link_type(medium, is_virtual=virtual)
    return types


def parse_default_routes(sections: Sections) -> frozenset[str] | None:
    """Return the names of the adapters with a default route; None if this is unknown."""
    routes = sections.get("routes")
    if routes is None or routes.error is not None:
        return None
    return frozenset(name for row in routes.rows if (name := text(row, "InterfaceAlias")))


def parse_dhcp(sections: Sections) -> dict[str, Dhcp]:
    """Return the DHCP configurations of the adapters. The keys are the names of the adapters."""
    rows = section(sections, "dhcp").rows
    configurations = {number(row, "InterfaceIndex"): row for row in rows}
    dhcp_by_name = {}
    for adapter in section(sections, "adapters").rows:
        name, index = text(adapter, "Name"), number(adapter, "InterfaceIndex")
        if name is not None and index in configurations:
            dhcp_by_name[name] = _dhcp(configurations[index])
    return dhcp_by_name


def _dhcp(row: Object) -> Dhcp:
    obtained, expires = (
        None if timestamp is None else timestamp.timestamp()
        for timestamp in (_parse_utc(text(row, name)) for name in ("Obtained", "Expires"))
    )
    server = plain_address(text(row, "DHCPServer") or "")
    return Dhcp(flag(row, "DHCPEnabled"), server, obtained, expires, reason=NOT_REPORTED)


def _parse_utc(text_value: str | None) -> datetime | None:
    try:
        return datetime.strptime(text_value or "", "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    except ValueError:
        return None


def _read_links(_names: tuple[str, ...], deadline: Deadline) -> Links:
    sections = read_sections(powershell.ADAPTERS, deadline)
    types = parse_link_types(sections)
    wireless = wireless_of(sections, types)
    return Links(types, wireless, parse_default_routes(sections), _dhcp_or_reason(sections, types))


def wireless_of(
    sections: Sections,
    types: Mapping[str, str],
    read: Callable[[], Mapping[uuid.UUID, Wireless]] = wlan.read_wireless,
) -> dict[str, Wireless]:
    """Return the networks of the adapters of the type "wifi". The keys are the adapters' names."""
    names = [name for name, kind in types.items() if kind == "wifi"]
    try:
        networks = read() if names else {}
    except OSError as error:
        status, reason = status_of(error)
        return dict.fromkeys(names, Wireless(status=status, reason=reason))
    by_name = {}
    for row in section(sections, "adapters").rows:
        name = text(row, "Name")
        with suppress(ValueError):
            guid = uuid.UUID(text(row, "InterfaceGuid") or "")
            if name in names and guid in networks:
                by_name[name] = networks[guid]
    return {name: by_name.get(name, Wireless(reason=NOT_REPORTED)) for name in names}


def _dhcp_or_reason(sections: Sections, names: Iterable[str]) -> dict[str, Dhcp]:
    try:
        return parse_dhcp(sections)
    except Unreadable as error:
        return dict.fromkeys(names, Dhcp(status=error.status, reason=error.reason))


@field_group("os.name", "os.version", "os.build", "os.kernel", "os.architecture")
def _system(sections: Sections) -> Fields:
    row = section(sections, "os").first
    extra = sections.get("build", Section()).first
    release = " ".join(
        part for part in (text(row, "Version"), text(extra, "DisplayVersion")) if part
    )
    patch = number(extra, "UBR")
    build = text(row, "BuildNumber")
    yield CIM.fact("os.name", text(row, "Caption"))
    yield CIM.fact("os.version", release)
    yield CIM.fact("os.build", f"{build}.{patch}" if build and patch else build)
    yield Origin("platform").available("os.kernel", f"{platform.system()} {platform.version()}")
    yield CIM.fact("os.architecture", text(row, "OSArchitecture"))


@field_group("os.bootTime", "os.uptimeSeconds")
def _boot(sections: Sections) -> Fields:
    boot_text = text(section(sections, "os").first, "BootedAt") or ""
    booted_at = datetime.strptime(boot_text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    yield CIM.available("os.bootTime", booted_at.isoformat())
    yield CIM.available("os.uptimeSeconds", max(0, int(time.time() - booted_at.timestamp())))


@field_group("os.lastBootReason")
def _shutdown(sections: Sections) -> Fields:
    cause = _SHUTDOWNS.get(number(section(sections, "shutdown").first, "Id") or 0)
    origin = Origin("System log", "the System log does not report it")
    yield origin.fact("os.lastBootReason", cause)


@field_group("os.pendingReboot")
def _reboot(sections: Sections) -> Fields:
    pending = flag(section(sections, "reboot").first, "Pending")
    yield Origin("registry").fact("os.pendingReboot", pending, NOT_REPORTED)


@field_group("os.timeZone", "os.locale")
def _regional_settings(sections: Sections) -> Fields:
    row = section(sections, "region").first
    yield Origin("Get-TimeZone").fact("os.timeZone", text(row, "TimeZone"), NOT_REPORTED)
    yield Origin("Get-WinSystemLocale").fact("os.locale", text(row, "Locale"), NOT_REPORTED)


@field_group("hardware.maker", "hardware.model", "hardware.formFactor", "hardware.firmware")
def _machine(sections: Sections) -> Fields:
    row = section(sections, "computer").first
    firmware = sections.get("firmware", Section()).first
    form = _FORMS.get(number(row, "PCSystemType") or 0)
    yield CIM.fact("hardware.maker", text(row, "Manufacturer"))
    yield CIM.fact("hardware.model", text(row, "Model"))
    yield CIM.fact("hardware.formFactor", form)
    yield CIM.fact("hardware.firmware", text(firmware, "SMBIOSBIOSVersion"))


@field_group("hardware.cpuModel", "hardware.physicalCores", "hardware.logicalCores")
def _processor(sections: Sections) -> Fields:
    sockets = section(sections, "processor")
    yield CIM.fact("hardware.cpuModel", text(sockets.first, "Name"))
    yield CIM.fact("hardware.physicalCores", _sum(sockets, "NumberOfCores"))
    yield CIM.fact("hardware.logicalCores", _sum(sockets, "NumberOfLogicalProcessors"))


def _sum(answer: Section, name: str) -> int | None:
    """Return the sum of a value over all rows, or None if no row has it."""
    return sum(number(row, name) or 0 for row in answer.rows) or None


@field_group("hardware.memoryBytes")
def _memory(_: Sections) -> Fields:
    yield memory_size_field()


@field_group("display.count", "display.connectors")
def _screens(sections: Sections) -> Fields:
    active = [row for row in section(sections, "screens").rows if flag(row, "Active") is not False]
    models = tuple(text(row, "Model") or "screen" for row in active)
    yield CIM.available("display.count", len(active))
    yield CIM.available("display.connectors", models)
    for index, row in enumerate(active[:_LISTED_MAX]):
        yield CIM.fact(f"display.{index}.maker", text(row, "Maker"))
        yield CIM.fact(f"display.{index}.model", text(row, "Model"))
    for index, row in enumerate(sections.get("video", Section()).rows[:_LISTED_MAX]):
        size = [number(row, f"Current{side}Resolution") for side in ("Horizontal", "Vertical")]
        if all(size):
            yield CIM.available(f"display.adapter.{index}.mode", f"{size[0]}x{size[1]}")


@field_group("disk.drives")
def _drives(sections: Sections) -> Fields:
    rows = section(sections, "drives").rows[:_LISTED_MAX]
    names = tuple(text(row, "DeviceId") or str(index) for index, row in enumerate(rows))
    yield CIM.available("disk.drives", names)
    for name, row in zip(names, rows, strict=True):
        prefix = f"disk.drive.{name}"
        media = text(row, "Media")
        rotates = {"HDD": True, "SSD": False, "SCM": False}.get(media or "")
        health = _HEALTH.get(text(row, "Health") or "")
        yield CIM.fact(f"{prefix}.model", text(row, "FriendlyName"))
        yield CIM.fact(f"{prefix}.sizeBytes", number(row, "Size"))
        yield CIM.fact(f"{prefix}.rotational", rotates)
        yield CIM.fact(f"{prefix}.health", health)


@field_group(*service_keys(_SERVICES))
def _services(sections: Sections) -> Fields:
    rows = {text(row, "Name"): row for row in section(sections, "services").rows}
    for role, service in _SERVICES.items():
        keys, row = service_keys((role,)), rows.get(service)
        if row is None:
            yield from CIM.all_absent(keys, "not-applicable", "the service is not installed")
            continue
        name, state, start, since, restarts = keys
        yield CIM.available(name, service)
        yield CIM.fact(state, (text(row, "State") or "").lower())
        yield CIM.fact(start, (text(row, "StartMode") or "").lower())
        yield CIM.fact(since, None)
        yield CIM.fact(restarts, None)


@field_group("network.dnsServers")
def _name_servers(sections: Sections) -> Fields:
    yield servers_field(parse_name_servers(sections), CIM)


def parse_name_servers(sections: Sections) -> tuple[str, ...]:
    addresses = (text(row, "Address") or "" for row in section(sections, "nameServers").rows)
    return name_servers(address for address in addresses if not _SITE_LOCAL.match(address))


@field_group(*PROXY_KEYS)
def _proxy(_: Sections) -> Fields:
    return proxy_fields()


def _link_type(medium: str, *, is_virtual: bool) -> str:
    if "802.11" in medium:
        return "wifi"
    if "bluetooth" in medium:
        return "bluetooth"
    if is_virtual:
        return "virtual"
    return "ethernet" if "802.3" in medium else "other"


GROUPS: Final = (
    _system,
    _boot,
    _shutdown,
    _reboot,
    _regional_settings,
    _machine,
    _processor,
    _memory,
    _screens,
    _drives,
    _services,
    _name_servers,
    _proxy,
)


@source("machine", CIM, *keys_of(GROUPS), ANSWERS_KEY, limit_s=SCRIPT_S + WAIT_S)
def read_machine(deadline: Deadline, service_url: str) -> Reading:
    def answers(sections: Sections) -> Fields:
        yield answers_field(parse_name_servers(sections), service_url, deadline)

    groups = (*GROUPS, FieldGroup((ANSWERS_KEY,), answers))
    return read_groups(groups, read_sections(powershell.MACHINE, deadline.sooner(SCRIPT_S)))
