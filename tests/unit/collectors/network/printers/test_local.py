"""Tests of printers on USB and serial ports (in a simulated sysfs), of the addresses of configured
printers, and of the resolution of host names.
"""

import threading
import time
from dataclasses import replace
from pathlib import Path

from collectors.contract import ConfiguredPrinter
from collectors.network.observations import KnownPrinter
from collectors.network.printers.configured import configured_printer
from collectors.network.printers.host_names import resolve_hosts, with_literal_addresses
from collectors.network.printers.serial_ports import (
    is_port_present,
    read_serial_printers,
    with_serial,
)
from collectors.network.printers.usb import UsbPrinter, read_usb_printers, with_usb

EPSON = UsbPrinter("1-1.2", "EPSON", "TM-T20II", "J5XX", "04b8", "0e15", "/dev/usb/lp0")
QUEUE = KnownPrinter(id="cups:till", name="till", transport="usb", source="cups")


def usb_device(root: Path, bus_id: str, interface_class: str = "07", **attributes: str) -> Path:
    """Write a USB device with one interface to sysfs. Return the folder of the interface.

    The interface class 07 is a printer.
    """
    device = root / "bus/usb/devices" / bus_id
    interface = device.with_name(f"{bus_id}:1.0")
    for folder in (device, interface):
        folder.mkdir(parents=True)
    (interface / "bInterfaceClass").write_text(interface_class + "\n")
    for name, value in attributes.items():
        (device / name).write_text(value + "\n")
    return interface


def test_only_printers_are_read_from_usb(tmp_path: Path):
    interface = usb_device(
        tmp_path,
        "1-1.2",
        manufacturer="EPSON",
        product="TM-T20II",
        serial="J5XX",
        idVendor="04b8",
        idProduct="0e15",
    )
    (interface / "usbmisc/lp0").mkdir(parents=True)
    usb_device(tmp_path, "1-2", "03", product="Keyboard")
    assert read_usb_printers(tmp_path) == (EPSON,)


def test_device_id_is_read_from_sysfs(tmp_path: Path):
    interface = usb_device(tmp_path, "1-5", manufacturer="Star Micronics", serial="00000000")
    (interface / "ieee1284_id").write_text("MFG:Star;CMD:STAR;MDL:TSP143 (STR_T-001);SN:77;\n")
    (result,) = read_usb_printers(tmp_path) or ()
    assert result.models[0] == "Star TSP143 (STR_T-001)"
    assert result.serials == frozenset()
    (interface / "ieee1284_id").write_text("MFG:Star;MDL:mC-Print3;SN:2550121;\n")
    (result,) = read_usb_printers(tmp_path) or ()
    assert result.serials == frozenset({"2550121"})


def test_a_hostile_usb_name_is_cleaned(tmp_path: Path):
    usb_device(tmp_path, "1-3", manufacturer="\x1b[2J", product="P\x00\x07\u202e" * 500)
    (printer,) = read_usb_printers(tmp_path) or ()
    assert printer.maker == "[2J"
    assert set(printer.model) == {"P", " "}


def test_missing_sysfs_leaves_usb_queues_unchanged(tmp_path: Path):
    assert read_usb_printers(tmp_path) is None
    assert with_usb([QUEUE], None) == (QUEUE,)


def test_a_usb_queue_is_matched_with_its_printer_by_serial_number():
    (printer,) = with_usb([replace(QUEUE, serial="J5XX")], [EPSON])
    assert (printer.present, printer.address) == (True, "/dev/usb/lp0")
    assert printer.presence_reason == (
        "plugged in by USB as /dev/usb/lp0, recognised by serial number J5XX"
    )


def test_a_usb_queue_without_its_printer_is_reported_as_not_present():
    (printer, other) = with_usb([replace(QUEUE, serial="GONE")], [EPSON])
    assert printer.present is False
    assert printer.presence_reason == (
        "no USB printer with serial number GONE is plugged in and switched on"
    )
    assert (other.id, other.source, other.present) == ("usb:J5XX", "usb", True)


def test_queue_without_serial_number_is_matched_by_an_unambiguous_model():
    queue = replace(QUEUE, make_model="Epson TM-T20II")
    (printer,) = with_usb([queue], [EPSON])
    assert printer.present
    twin = replace(EPSON, bus_id="1-1.3", serial=None)
    printer, *others = with_usb([queue], [EPSON, twin])
    assert printer.present is None
    assert "several plugged-in USB printers match" in (printer.presence_reason or "")
    assert [other.present for other in others] == [True, True]
    assert all("not known" in (other.presence_reason or "") for other in others)


def test_serial_ports_of_receipt_printers_are_recognised(tmp_path: Path):
    for name, vendor, product in (
        ("ttyUSB0", "04b8", "TM-T20II"),
        ("ttyACM1", "2341", "Arduino"),
        ("ttyACM2", "ffff", "POS Receipt Printer"),
    ):
        device = tmp_path / f"devices/usb1/{name}-usb"
        port = device / "1-1:1.0" / name
        port.mkdir(parents=True)
        (device / "idVendor").write_text(vendor)
        (device / "manufacturer").write_text("Maker")
        (device / "product").write_text(product)
        (device / "serial").write_text("S1")
        entry = tmp_path / "class/tty" / name
        entry.mkdir(parents=True)
        (entry / "device").symlink_to(port)
    (tmp_path / "class/tty/ttyS0").mkdir()
    printers = read_serial_printers(tmp_path)
    assert [(printer.id, printer.name, printer.serial) for printer in printers] == [
        ("serial:/dev/ttyACM2", "Maker POS Receipt Printer", "S1"),
        ("serial:/dev/ttyUSB0", "Maker TM-T20II", "S1"),
    ]
    assert [printer.address for printer in printers] == ["/dev/ttyACM2", "/dev/ttyUSB0"]
    assert read_serial_printers(tmp_path / "none") == ()


def test_serial_printers_are_present_if_their_port_exists(tmp_path: Path):
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/ttyS0").touch()
    entries = [
        configured_printer(ConfiguredPrinter("a", "A", "serial", "/dev/ttyS0")),
        configured_printer(ConfiguredPrinter("b", "B", "serial", "/dev/ttyS9")),
        configured_printer(ConfiguredPrinter("c", "C", "serial", "COM3")),
    ]
    used = KnownPrinter("serial:/dev/ttyS0", "Known", "serial", "serial", "/dev/ttyS0")
    new = KnownPrinter(
        "serial:/dev/ttyUSB0", "New", "serial", "serial", "/dev/ttyUSB0", serial="S1", present=True
    )
    printers = with_serial(entries, [used, new], lambda path: is_port_present(path, tmp_path))
    assert [printer.present for printer in printers] == [True, False, None, True]
    assert printers[1].presence_reason == "serial port /dev/ttyS9 does not exist"
    assert (printers[3].id, printers[3].serial) == ("serial:/dev/ttyUSB0", "S1")


def test_a_configured_printer_may_have_a_mac_or_no_address():
    by_mac = configured_printer(ConfiguredPrinter("m", "M", "network", "00-1B-A9-12-34-56"))
    assert (by_mac.mac_address, by_mac.host) == ("00:1b:a9:12:34:56", None)
    bare = configured_printer(ConfiguredPrinter("n", "N"))
    assert (bare.address, bare.host) == (None, None)


def test_host_names_are_resolved_to_addresses():
    hosts = ("192.168.1.50", "till.lan", "brn1.local", "gone.lan", "localhost")
    known = [replace(QUEUE, id=h, transport="network", host=h) for h in hosts]
    table = {"till.lan": ("192.168.1.60",)}

    def resolve(name: str) -> tuple[str, ...]:
        if name not in table:
            raise OSError("unknown")
        return table[name]

    literal = with_literal_addresses(known)
    resolved_hosts = resolve_hosts(literal, time.monotonic() + 60, resolve)
    assert [resolved_host.addresses for resolved_host in resolved_hosts] == [
        ("192.168.1.50",),
        ("192.168.1.60",),
        (),
        (),
        ("127.0.0.1",),
    ]


def test_resolving_a_name_ends_at_the_deadline():
    release = threading.Event()

    def slow(name: str) -> tuple[str, ...]:
        release.wait(5)
        return ("192.168.1.1",)

    known = [replace(QUEUE, transport="network", host="slow.lan")]
    assert resolve_hosts(known, 0.0, slow)[0].addresses == ()
    release.set()
