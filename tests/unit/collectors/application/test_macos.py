"""Parsing the output of macOS programs, in the formats of several versions."""

import contextlib
import json
import platform
import plistlib
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.application.deadline import Deadline
from collectors.application.macos import commands, dhcp, profiler, readers
from collectors.application.readers.network.interfaces import Links, Wireless, dhcp_fields
from collectors.shared.host import operating_system
from collectors.shared.run_command import Output
from collectors.shared.text import decode
from tests.sizes import examples
from tests.unit.collectors.application.fixtures import by_key, fixture, values
from tests.unit.collectors.application.linux.test_disks import json_values

DEADLINE = Deadline.after(3600)

FILES = {
    "SPUSBDataType": "usb.json",
    "SPUSBHostDataType": "usb-host.json",
    "SPBluetoothDataType": "bluetooth.json",
    "SPHardwareDataType": "hardware.json",
    "SPDisplaysDataType": "displays.json",
    "SPAirPortDataType": "airport.json",
    "SPNVMeDataType": "nvme.json",
}


def profile(data_type: str, _: Deadline) -> bytes:
    if data_type == "SPSerialATADataType":
        return b'{"SPSerialATADataType":[]}'
    return fixture(f"macos/{FILES[data_type]}")


def test_usb_devices_are_parsed_up_to_macos_15() -> None:
    hub, printer = profiler.parse_usb(fixture("macos/usb.json"))
    assert (hub.vendor_id, hub.speed_megabits) == (0x05E3, 480.0)
    assert (printer.vendor_id, printer.product_id, printer.product) == (0x04B8, 0x0E15, "TM-T20II")
    assert printer.local_id == "0x01130000"


def test_usb_devices_are_parsed_from_macos_26() -> None:
    (scanner,) = profiler.parse_usb(fixture("macos/usb-host.json"))
    assert (scanner.vendor_id, scanner.vendor) == (0x05E0, "Symbol Technologies")
    assert scanner.speed_megabits == 12.0


def test_usb_devices_of_macos_26_are_read_if_python_was_built_for_an_older_macos(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "SystemVersionPlatform.plist"
    file.write_bytes(plistlib.dumps({"ProductName": "macOS", "ProductVersion": "26.1"}))
    monkeypatch.setattr(platform, "mac_ver", lambda: ("16.0", ("", "", ""), "arm64"))
    assert operating_system.macos_version(file) == "26.1"
    assert operating_system.macos_version(tmp_path / "missing") == "16.0"
    file.write_bytes(b"<plist>")
    assert operating_system.macos_version(file) == "16.0"
    monkeypatch.setattr(readers, "macos_version", lambda: "26.1")
    reading = readers.read_usb(DEADLINE, profile)
    assert by_key(reading)["peripherals.usbCount"].value == 1


def test_usb_facts_are_read() -> None:
    reading = readers.read_usb(DEADLINE, profile)
    assert by_key(reading)["peripherals.usbCount"].value == 2
    assert values(reading.peripherals[1].fields)["usb.guess"] == "printer"


def test_bluetooth_facts_are_read() -> None:
    reading = readers.read_bluetooth(DEADLINE, profile)
    assert values(reading.fields) == {
        "peripherals.bluetoothCount": 2,
        "peripherals.bluetoothPowered": True,
    }
    keyboard, phone = reading.peripherals
    facts = values(keyboard.fields)
    assert facts["bluetooth.name"] == "Magic Keyboard"
    assert facts["bluetooth.batteryFraction"] == 0.91
    assert facts["bluetooth.signalDbm"] == -49
    assert "bluetooth.name" not in values(phone.fields)
    assert "Anna" not in repr(reading)


def test_bluetooth_devices_are_parsed_up_to_macos_11() -> None:
    mouse = {
        "device_addr": "11-22-33-44-55-66",
        "device_isconnected": "attrib_Yes",
        "device_ispaired": "attrib_Yes",
        "device_minorClassOfDevice_string": "Mouse",
        "device_batteryPercent": "80%",
        "device_RSSI": -47,
    }
    titles = [{"Mouse": mouse}, {"Seen": {**mouse, "device_ispaired": "attrib_No"}}]
    entry = {"local_device_title": {"general_power": "attrib_On"}, "device_title": titles}
    is_on, (result,) = profiler.parse_bluetooth(
        json.dumps({"SPBluetoothDataType": [entry]}).encode()
    )
    assert is_on
    assert (result.address, result.kind, result.connected) == ("11-22-33-44-55-66", "mouse", True)
    assert (result.battery_fraction, result.signal_dbm) == (0.8, -47)


@pytest.mark.parametrize(
    ("minor", "major", "is_personal"),
    [
        ("Smart Phone", "Phone", True),
        ("Laptop", "Computer", True),
        ("Modem", "Phone", True),
        ("Hands-Free Device", "Audio", True),
        ("Uncategorized", "Unknown", True),
        ("Keyboard", "Peripheral", False),
    ],
)
def test_personal_devices_are_recognised_up_to_macos_11(
    minor: str, major: str, is_personal: bool
) -> None:
    properties = {
        "device_minorClassOfDevice_string": minor,
        "device_majorClassOfDevice_string": major,
    }
    data = {"SPBluetoothDataType": [{"device_title": [{"Anna": properties}]}]}
    _, (device,) = profiler.parse_bluetooth(json.dumps(data).encode())
    assert device.is_personal == is_personal


@pytest.mark.parametrize(
    ("levels", "fraction"),
    [
        ({"Left": "55%", "Right": "60%", "Case": "20%"}, 0.55),
        ({"Right": "60%"}, 0.6),
        ({"Case": "20%"}, 0.2),
        ({}, None),
    ],
)
def test_battery_levels_of_bluetooth_devices_are_parsed(
    levels: dict[str, str], fraction: float | None
) -> None:
    properties = {f"device_batteryLevel{part}": level for part, level in levels.items()}
    for list_name, expected in (("device_connected", fraction), ("device_not_connected", None)):
        data = {"SPBluetoothDataType": [{list_name: [{"Buds": properties}]}]}
        _, (device,) = profiler.parse_bluetooth(json.dumps(data).encode())
        assert device.battery_fraction == expected


@pytest.mark.parametrize(
    ("speed", "megabits"),
    [("1.5 Mb/s", 1.5), ("1,5 Mb/s", 1.5), ("20 Gb/s", 20000.0), ("super_speed_plus_by_2", 20000)],
)
def test_speeds_of_usb_devices_are_parsed(speed: str, megabits: float) -> None:
    entry = {"_name": "Mouse", "vendor_id": "0x046d", "device_speed": speed}
    (mouse,) = profiler.parse_usb(json.dumps({"SPUSBDataType": [entry]}).encode())
    assert mouse.speed_megabits == megabits


def test_usb_placeholders_of_macos_are_ignored() -> None:
    entry = {"vendor_id": "apple_vendor_id", "product_id": "0x8600", "serial_num": "Not Provided"}
    (device,) = profiler.parse_usb(json.dumps({"SPUSBDataType": [entry]}).encode())
    assert (device.vendor_id, device.product_id, device.serial) == (0x05AC, 0x8600, None)
    old = {  # on the oldest versions of macOS, each key has a letter as prefix
        f"{letter}_{key}": value
        for letter, (key, value) in zip(("b", "a", "d"), entry.items(), strict=True)
    }
    assert profiler.parse_usb(json.dumps({"SPUSBDataType": [old]}).encode()) == (device,)


@pytest.mark.parametrize(
    ("machine_name", "form"),
    [
        ("Mac Studio", "desktop"),
        ("Mac mini", "mini-pc"),
        ("MacBook Pro", "laptop"),
        ("iMac Pro", "all-in-one"),
        ("Mac Pro", "tower"),
        ("Unknown", None),
    ],
)
def test_the_form_factor_is_parsed_and_an_unknown_chip_is_unsupported_on_macos(
    machine_name: str, form: str | None
) -> None:
    entry = {"machine_name": machine_name, "chip_type": "Unknown"}
    data = json.dumps({"SPHardwareDataType": [entry]}).encode()
    fields = by_key(readers.read_hardware(DEADLINE, lambda _type, _deadline: data))
    assert fields["hardware.formFactor"].value == form
    assert fields["hardware.cpuModel"].status == "unsupported"


def test_hardware_facts_are_read_on_macos() -> None:
    facts = values(readers.read_hardware(DEADLINE, profile).fields)
    assert facts["hardware.model"] == "Mac14,3"
    assert facts["hardware.cpuModel"] == "Apple M2"
    assert facts["hardware.formFactor"] == "mini-pc"


def test_display_facts_are_read() -> None:
    facts = values(readers.read_displays(DEADLINE, profile).fields)
    assert facts["display.count"] == 1
    assert facts["display.0.preferredMode"] == "1920 x 1080 @ 60.00Hz"


def test_drive_facts_are_read() -> None:
    facts = values(readers.read_drives(DEADLINE, profile).fields)
    assert facts["disk.drive.disk0.health"] == "good"
    assert facts["disk.drive.disk0.sizeBytes"] == 251000193024


def test_wifi_facts_are_parsed_on_macos() -> None:
    interfaces = profiler.parse_airport(fixture("macos/airport.json"))
    assert interfaces["en1"] == Wireless(
        "Venue", -55, "a4:b1:c2:d3:e4:f5", "5 GHz", 44, 866, reason="macOS does not report it"
    )
    assert (interfaces["en2"].ssid, interfaces["en2"].status) == (None, "permission-denied")
    assert interfaces["awdl0"].status == "not-applicable"


GERMAN_PORTS = """
Hardware Port: Ethernet
Device: en0
Ethernet Address: 00:00:5e:00:53:01

Hardware Port: WLAN
Device: en1
Ethernet Address: 00:00:5e:00:53:02
"""


def read_links(
    monkeypatch: pytest.MonkeyPatch, ports: str, profile: readers.ReadProfile = profile
) -> Links:
    monkeypatch.setattr(commands, "run_program", lambda *_, deadline: ports)
    monkeypatch.setattr(dhcp, "read_dhcp", lambda *_: {})
    return readers.read_links(("en0", "en1", "lo0"), DEADLINE, profile)


def test_wifi_is_recognised_in_every_language_of_the_system(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    types = {"lo0": "loopback", "en0": "ethernet", "en1": "wifi"}
    assert read_links(monkeypatch, GERMAN_PORTS).types == types
    arabic = GERMAN_PORTS.replace("WLAN", "\u0648\u0627\u064a")
    assert read_links(monkeypatch, arabic).types == types


def test_a_timeout_of_system_profiler_affects_only_the_facts_about_wifi(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def time_out(*_: object) -> bytes:
        raise TimeoutError("system_profiler did not answer before the deadline")

    links = read_links(monkeypatch, GERMAN_PORTS, time_out)
    assert links.types == {"lo0": "loopback", "en0": "ethernet", "en1": "wifi"}
    assert set(links.wireless) == {"en1"}
    assert links.wireless["en1"].status == "collection-failed"


PACKET = Output(0, fixture("macos/ipconfig-getpacket.txt"), b"")


def store_lease(directory: Path, address: str, start: datetime) -> Path:
    """Write a lease as configd stores it. Times in a property list are in UTC."""
    lease = {"IPAddress": address, "LeaseLength": 3600, "LeaseStartDate": start}
    (directory / f"{address}.plist").write_bytes(plistlib.dumps(lease))
    return directory


def test_a_lease_on_macos_has_a_server_and_times(tmp_path: Path) -> None:
    store_lease(tmp_path, "192.168.1.21", datetime(2026, 11, 23, 16, tzinfo=UTC))
    store_lease(tmp_path, "192.168.1.20", datetime(2026, 11, 23, 15, tzinfo=UTC))
    leases = dhcp.read_dhcp(["en0"], DEADLINE, lambda *_: PACKET, tmp_path)
    assert values(dhcp_fields(leases["en0"], ["192.168.1.20/24"])) == {
        "interface.ipv4Assignment": "DHCP",
        "interface.dhcpServer": "192.168.1.1",
        "interface.dhcpLeaseObtainedAt": "2026-11-23T15:00:00+00:00",
        "interface.dhcpLeaseExpiresAt": "2026-11-23T16:00:00+00:00",
    }


def test_only_the_times_are_missing_without_a_stored_lease(tmp_path: Path) -> None:
    lease = dhcp.parse_packet(PACKET, tmp_path)
    assert (lease.is_used, lease.server, lease.obtained_at) == (True, "192.168.1.1", None)
    assert lease.reason == "macOS has stored no lease of this address"
    gone = dhcp.parse_packet(PACKET, tmp_path / "gone")
    assert gone.reason == "the stored leases cannot be read: No such file or directory"


def test_an_interface_without_a_dhcp_packet_has_a_static_address(tmp_path: Path) -> None:
    assert dhcp.parse_packet(Output(1, b"", b""), tmp_path).is_used is False
    for status in (b"not found", b"interface doesn't exist"):
        error = b"ipconfig_get_packet(en6) failed: " + status + b"\n"
        assert dhcp.parse_packet(Output(1, b"", error), tmp_path).is_used is False
    inform = PACKET.data.replace(b"yiaddr = 192.168.1.20", b"yiaddr = 0.0.0.0")
    assert dhcp.parse_packet(Output(0, inform, b""), tmp_path).is_used is False
    leases = dhcp.read_dhcp(["en9"], DEADLINE, lambda *_: Output(1, b"", b"no interface"), tmp_path)
    assert (leases["en9"].is_used, leases["en9"].status) == (None, "collection-failed")


@given(st.binary(max_size=300))
def test_any_packet_and_stored_lease_is_parsed_or_ignored(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "en0.plist").write_bytes(data)
        dhcp.parse_packet(PACKET, Path(directory))
    dhcp.parse_packet(Output(0, PACKET.data[:40] + data, b""), Path("/nowhere"))


def test_no_serial_number_is_reported_on_macos() -> None:
    readings = [
        reader(DEADLINE, profile)
        for reader in (
            readers.read_usb,
            readers.read_bluetooth,
            readers.read_hardware,
            readers.read_displays,
            readers.read_drives,
        )
    ]
    assert "MACSERIAL" not in repr(readings)


def test_output_of_macos_commands_is_parsed() -> None:
    servers = commands.parse_name_servers(decode(fixture("macos/scutil-dns.txt")))
    assert servers == ("192.168.1.1", "fe80::1%en0")
    ports = commands.parse_hardware_ports(decode(fixture("macos/hardware-ports.txt")))
    assert ports == {"en0": "ethernet", "en1": "wifi", "bridge0": "bridge"}
    version = commands.parse_sw_vers("ProductName:\t\tmacOS\nProductVersion:\t\t15.5\n")
    assert version == {"ProductName": "macOS", "ProductVersion": "15.5"}


def test_name_servers_for_single_domains_and_interfaces_are_left_out() -> None:
    text = """DNS configuration

resolver #1
  search domain[0] : vpn.example
  nameserver[0] : 10.8.0.1
  if_index : 22 (utun4)
  flags    : Supplemental, Request A records, Request AAAA records
  order    : 101400

resolver #2
  search domain[0] : venue.example
  nameserver[0] : 192.168.1.1
  if_index : 14 (en0)
  flags    : Request A records
  reach    : 0x00020002 (Reachable,Directly Reachable Address)
  order    : 200000

resolver #3
  domain   : test
  nameserver[0] : 127.0.0.1
  flags    : Request A records

DNS configuration (for scoped queries)

resolver #1
  nameserver[0] : 192.168.7.1
  if_index : 15 (en1)
  flags    : Scoped, Request A records
"""
    assert commands.parse_name_servers(text) == ("192.168.1.1",)


def test_the_locale_is_read_from_the_system_settings_and_not_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LANG", "C.UTF-8")  # as launchd sets it for the agent
    assert by_key(readers.read_regional_settings(DEADLINE, tmp_path))["os.locale"].value is None
    preferences = tmp_path / "Library/Preferences/.GlobalPreferences.plist"
    preferences.parent.mkdir(parents=True)
    preferences.write_bytes(plistlib.dumps({"AppleLocale": "de_AT"}, fmt=plistlib.FMT_BINARY))
    fields = by_key(readers.read_regional_settings(DEADLINE, tmp_path))
    assert fields["os.locale"].value == "de_AT"
    preferences.write_bytes(b"malformed")
    assert by_key(readers.read_regional_settings(DEADLINE, tmp_path))["os.locale"].value is None


def test_facts_about_services_are_read() -> None:
    jobs = commands.parse_launchctl(decode(fixture("macos/launchctl-list.txt")))
    fields = {field.key: field for field in readers.service_fields(jobs)}
    assert fields["service.timeSync.state"].value == "running"
    assert fields["service.printSpooler.state"].value == "waiting"
    assert fields["service.bluetooth.state"].status == "unsupported"


@given(st.text())
def test_any_output_of_macos_commands_is_parsed(text: str) -> None:
    commands.parse_sw_vers(text)
    commands.parse_name_servers(text)
    commands.parse_hardware_ports(text)
    tuple(readers.service_fields(commands.parse_launchctl(text)))


@given(st.binary())
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    read_all_of(data)


NAMES = (
    "_items _name vendor_id product_id serial_num device_speed USBDeviceKeyVendorID "
    "controller_properties device_connected device_not_connected device_batteryLevelMain "
    "device_title local_device_title device_RSSI "
    "spdisplays_ndrvs spairport_airport_interfaces spairport_current_network_information "
    "bsd_name smart_status size_in_bytes machine_model"
).split()
entries = st.recursive(
    json_values,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4)
    ),
    max_leaves=6,
)


@settings(max_examples=examples(50))
@given(st.sampled_from(sorted(FILES)), entries)
def test_any_structure_of_the_output_is_read_or_refused(data_type: str, entry: object) -> None:
    read_all_of(json.dumps({data_type: [entry]}).encode())


def test_deeply_nested_usb_devices_are_ignored() -> None:
    data: object = {"vendor_id": "0x1"}
    for _ in range(100):
        data = {"_items": [data]}
    assert profiler.parse_usb(json.dumps({"SPUSBDataType": [data]}).encode()) == ()


def read_all_of(data: bytes) -> None:
    for reader in (
        readers.read_usb,
        readers.read_bluetooth,
        readers.read_hardware,
        readers.read_displays,
        readers.read_drives,
    ):
        with contextlib.suppress(ValueError):
            reader(DEADLINE, lambda _type, _deadline: data)
    with contextlib.suppress(ValueError):
        profiler.parse_airport(data)
