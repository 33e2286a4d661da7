"""Runs system_profiler(8) and parses its output.

The output is a JSON object that has a list for each requested data type. Most values are strings.
The output also has the machine's name, serial number and UUID. They are not reported.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from collectors.application.deadline import Deadline
from collectors.application.foreign_json import (
    Object,
    hexadecimal,
    load_object,
    number,
    objects,
    text,
)
from collectors.application.readers.network.interfaces import NOT_CONNECTED, Wireless
from collectors.application.readers.peripherals import BluetoothDevice, UsbDevice
from collectors.application.source import Origin
from collectors.shared.run_command import run_command

NOT_REPORTED: Final = "macOS does not report it"
SYSTEM_PROFILER: Final = Origin("system_profiler", NOT_REPORTED)
PROFILE_S: Final = 8.0
"""Time limit of a run. On a cold start, system_profiler takes seconds for USB and Wi-Fi."""

DEPTH_MAX: Final = 16
ENTRIES_MAX: Final = 1024
DEVICES_MAX: Final = 16

_PERSONAL = re.compile(
    r"phone|computer|desktop|laptop|tablet|head|hands|watch|wearable|cellular|uncat|unknown|misc",
    re.IGNORECASE,
)
"""Kinds of Bluetooth devices whose names often contain a user's name, such as phones. These names
are left out of the report. So is the name of a device that reports no kind.
"""
_APPLE: Final = 0x05AC
_PLACEHOLDERS: Final = frozenset({"Not Provided", "Unknown"})
_LETTER = re.compile(r"^[a-z]_")
_PERCENT = re.compile(r"\s*(\d{1,3})\s*%?\s*")
_BATTERIES: Final = (
    ("device_batteryLevelMain",),
    ("device_batteryPercent",),
    ("device_batteryLevelLeft", "device_batteryLevelRight"),
    ("device_batteryLevelCase",),
)
_FORMS: Final = {
    "MacBook": "laptop", "iMac": "all-in-one", "Mac mini": "mini-pc", "Mac Studio": "desktop",
    "Mac Pro": "tower",
}  # fmt: skip
_DBM = re.compile(r"\s*(-\d{1,3})\s*dBm")
_CHANNEL = re.compile(r"(\d{1,3}) \((2|5|6)GHz")
_BANDS: Final = {"2": "2.4 GHz", "5": "5 GHz", "6": "6 GHz"}
_MAC = re.compile(r"[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}")
_SPEED = re.compile(r"(\d{1,5}(?:[.,]\d)?)\s*(Mb|Gb|M|G)", re.IGNORECASE)
_USB_SPEEDS: Final = {
    "full_speed": 12.0,
    "low_speed": 1.5,
    "high_speed": 480.0,
    "super_speed": 5000.0,
    "super_speed_plus": 10000.0,
    "super_speed_plus_by_2": 20000.0,
}
"""The speeds that USB defines, in Mbit/s, by the names that system_profiler uses."""


def read_profile(data_type: str, deadline: Deadline) -> bytes:
    output = run_command(("system_profiler", "-json", data_type), deadline.at)
    if output.exit_code != 0:
        raise ValueError(f"system_profiler ended with {output.exit_code}")
    return output.data


def entries_of(data: bytes, *data_types: str) -> list[Object]:
    """Return the entries of the first of ``data_types`` that is present.

    Raises ValueError if none is present, or if ``data`` is not a JSON object.
    """
    profile = load_object(data, SYSTEM_PROFILER.name)
    for data_type in data_types:
        if isinstance(profile.get(data_type), list):
            return list(objects(profile[data_type]))[:ENTRIES_MAX]
    raise ValueError("system_profiler did not list the requested data type")


def walk(entries: object, depth: int = 0) -> Iterator[Object]:
    """Yield every entry and, recursively, the entries in its ``_items``."""
    if depth >= DEPTH_MAX:
        return
    for entry in objects(entries if isinstance(entries, list) else []):
        yield entry
        yield from walk(entry.get("_items"), depth + 1)


def parse_usb(data: bytes) -> tuple[UsbDevice, ...]:
    """Read SPUSBDataType (up to macOS 15) or SPUSBHostDataType (from macOS 26 on)."""
    devices: list[UsbDevice] = []
    for usb_entry in walk(entries_of(data, "SPUSBDataType", "SPUSBHostDataType")):
        # On the oldest versions of macOS, each key has a letter as prefix: b_vendor_id.
        entry = {_LETTER.sub("", key): value for key, value in usb_entry.items()}
        vendor = text(entry, "vendor_id", "USBDeviceKeyVendorID")
        if vendor is None or len(devices) >= ENTRIES_MAX:
            continue
        devices.append(_usb_device(entry, vendor))
    return tuple(devices)


def parse_bluetooth(data: bytes) -> tuple[bool | None, tuple[BluetoothDevice, ...]]:
    """Read SPBluetoothDataType. Return whether the radio is on, and the paired devices.

    Up to macOS 11, the devices are in ``device_title``, and the values have different names.
    """
    is_powered: bool | None = None
    devices: list[BluetoothDevice] = []
    for entry in entries_of(data, "SPBluetoothDataType"):
        for controller in objects(entry.get("controller_properties")):
            is_powered = text(controller, "controller_state") == "attrib_on"
        for controller in objects(entry.get("local_device_title")):
            is_powered = text(controller, "general_power") == "attrib_On"
        for name, connected in (("device_connected", True), ("device_not_connected", False)):
            for title, properties in _named_devices(entry.get(name)):
                devices.append(_bluetooth_device(title, properties, connected=connected))
        for title, properties in _named_devices(entry.get("device_title")):
            if text(properties, "device_ispaired") != "attrib_No":
                connected = text(properties, "device_isconnected") == "attrib_Yes"
                devices.append(_bluetooth_device(title, properties, connected=connected))
    return is_powered, tuple(devices[:ENTRIES_MAX])


def parse_hardware(data: bytes) -> Object:
    """Return the entry of SPHardwareDataType, without values that identify the machine."""
    entries = entries_of(data, "SPHardwareDataType")
    kept_keys = ("machine_model", "machine_name", "chip_type", "cpu_type", "boot_rom_version")
    entry = entries[0] if entries else {}
    return {name: value for name in kept_keys if (value := _known(entry, name))}


def form_factor(machine_name: str) -> str | None:
    """Return the form factor of a Mac in the terms of SMBIOS, or None if the name is unknown."""
    return next((form for name, form in _FORMS.items() if machine_name.startswith(name)), None)


def parse_displays(data: bytes) -> tuple[tuple[str, str], ...]:
    """Return the name and resolution of each switched-on screen in SPDisplaysDataType."""
    return tuple(
        (
            text(screen, "_name") or "screen",
            text(screen, "_spdisplays_resolution", "_spdisplays_pixels") or "",
        )
        for card in entries_of(data, "SPDisplaysDataType")
        for screen in objects(card.get("spdisplays_ndrvs", []))
        if text(screen, "spdisplays_online") != "spdisplays_no"
    )[:DEVICES_MAX]


def parse_airport(data: bytes) -> dict[str, Wireless]:
    """Return the Wi-Fi network of each interface in SPAirPortDataType, by interface name.

    From macOS 14 on, macOS redacts the name of the network for programs without location rights.
    """
    networks = {}
    for entry in entries_of(data, "SPAirPortDataType"):
        for interface in objects(entry.get("spairport_airport_interfaces", [])):
            name = text(interface, "_name")
            network = next(objects(interface.get("spairport_current_network_information")), {})
            if name is not None:
                networks[name] = _wireless(network)
    return networks


def parse_drives(data: bytes, data_type: str) -> tuple[Object, ...]:
    """Return the name, model, size and SMART status of each drive.

    ``data_type`` is SPNVMeDataType or SPSerialATADataType.
    """
    drives = []
    for entry in walk(entries_of(data, data_type)):
        name = text(entry, "bsd_name")
        if name is not None and re.fullmatch(r"disk\d{1,3}", name):
            kept_keys = ("device_model", "smart_status", "size_in_bytes")
            drives.append({"bsd_name": name, **{key: entry.get(key) for key in kept_keys}})
    return tuple(drives[:DEVICES_MAX])


def _known(entry: Object, *names: str) -> str | None:
    """Return the value of the first key in ``names`` that has a text.

    Returns None if no key has one, or if macOS marks the value as unknown.
    """
    value = text(entry, *names)
    return None if value in _PLACEHOLDERS else value


def _named_devices(value: object) -> Iterator[tuple[str, Object]]:
    """Yield the devices of a list of ``{name: properties}``."""
    for entry in objects(value):
        yield from ((name, device) for name, device in entry.items() if isinstance(device, dict))


def _usb_device(entry: Object, vendor: str) -> UsbDevice:
    vendor_match = re.search(r"\(([^)]{1,128})\)", vendor)
    location = text(entry, "location_id", "USBKeyLocationID") or ""
    maker = _known(entry, "manufacturer", "USBDeviceKeyVendorName")
    return UsbDevice(
        local_id=location.partition("/")[0].strip() or "unknown",
        vendor_id=_APPLE if vendor == "apple_vendor_id" else hexadecimal(vendor),
        product_id=hexadecimal(text(entry, "product_id", "USBDeviceKeyProductID")),
        vendor=maker or (vendor_match[1] if vendor_match else None),
        product=text(entry, "_name"),
        speed_megabits=_speed(text(entry, "device_speed", "USBDeviceKeyLinkSpeed")),
        serial=_known(entry, "serial_num", "USBDeviceKeySerialNumber"),
    )


def _bluetooth_device(name: str, properties: Object, *, connected: bool) -> BluetoothDevice:
    kind = text(properties, "device_minorType", "device_minorClassOfDevice_string")
    major = text(properties, "device_majorClassOfDevice_string")
    rssi = properties.get("device_rssi", properties.get("device_RSSI"))
    signal = _DBM.match(f"{rssi} dBm")
    return BluetoothDevice(
        address=text(properties, "device_address", "device_addr") or name,
        name=name,
        kind=kind.lower() if kind else None,
        connected=connected,
        # For a device that is not connected, macOS reports an outdated charge.
        battery_fraction=_battery(properties) if connected else None,
        signal_dbm=int(signal[1]) if signal else None,
        is_personal=kind is None or _PERSONAL.search(f"{kind} {major}") is not None,
    )


def _battery(properties: Object) -> float | None:
    """Return the charge of a device from 0 to 1, or None if it is unknown.

    For two earbuds, return the lower charge. If only the charge of their case is known, return it.
    """
    for names in _BATTERIES:
        matches = (_PERCENT.fullmatch(str(properties.get(name, ""))) for name in names)
        if levels := [min(100, int(match[1])) / 100 for match in matches if match]:
            return min(levels)
    return None


def _wireless(network: Object) -> Wireless:
    name = text(network, "_name")
    signal = _DBM.match(text(network, "spairport_signal_noise") or "")
    channel = _CHANNEL.match(text(network, "spairport_network_channel") or "")
    known = Wireless(
        ssid=name,
        signal_dbm=int(signal[1]) if signal else None,
        access_point=_bssid(text(network, "spairport_network_bssid")),
        band=_BANDS.get(channel[2]) if channel else None,
        channel=int(channel[1]) if channel else None,
        rate_megabits=number(network, "spairport_network_rate"),
        status="not-applicable" if not network else "unsupported",
        reason=NOT_CONNECTED if not network else NOT_REPORTED,
    )
    if name is not None and "redacted" in name:
        reason = "macOS reports it only to programs with location services"
        return replace(known, ssid=None, status="permission-denied", reason=reason)
    return known


def _bssid(text: str | None) -> str | None:
    return text.lower() if text and _MAC.fullmatch(text) else None


def _speed(text: str | None) -> float | None:
    if text in _USB_SPEEDS:
        return _USB_SPEEDS[text]
    match = _SPEED.search(text or "")
    if match is None:
        return None
    # The decimal separator is that of the system's language.
    return float(match[1].replace(",", ".")) * (1000 if match[2].lower().startswith("g") else 1)
