"""The facts about USB devices and screens, and the probable kind of a device."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.application.deadline import Deadline
from collectors.application.linux import displays, usb
from collectors.application.linux.edid import Screen, parse_edid
from collectors.application.readers.peripherals import UsbDevice, guess_kind, usb_reading
from collectors.application.source import Origin
from tests.unit.collectors.application.fixtures import by_key, values, write_files

DEADLINE = Deadline.after(3600)

USB = "sys/bus/usb/devices"


def usb_tree(root: Path) -> Path:
    """Write the sysfs files of a printer and a barcode scanner below ``root``. Return ``root``."""
    write_files(
        root,
        {
            f"{USB}/usb1/idVendor": "1d6b\n",
            f"{USB}/1-1/idVendor": "04b8\n",
            f"{USB}/1-1/idProduct": "0e15\n",
            f"{USB}/1-1/manufacturer": "EPSON\n",
            f"{USB}/1-1/product": "TM-T20II\x1b[2J\n",
            f"{USB}/1-1/serial": "LINUXSERIAL3\n",
            f"{USB}/1-1/speed": "12\n",
            f"{USB}/1-1/bDeviceClass": "00\n",
            f"{USB}/1-1:1.0/bInterfaceClass": "07\n",
            f"{USB}/1-1.2/idVendor": "05f9\n",
            f"{USB}/1-1.2/idProduct": "zzzz\n",
            f"{USB}/1-1.2:1.0/bInterfaceClass": "03\n",
            f"{USB}/1-1.2:1.0/0003:05F9:2204.0001/report_descriptor": b"\x05\x8c\x09\x02\xa1\x01",
        },
    )
    (root / USB / "1-1:1.0/driver").symlink_to("../../../../bus/usb/drivers/usblp")
    return root


def test_usb_facts_are_read(tmp_path: Path) -> None:
    reading = usb.read_usb(DEADLINE, usb_tree(tmp_path))
    assert by_key(reading)["peripherals.usbCount"].value == 2
    printer, scanner = reading.peripherals
    facts = values(printer.fields)
    assert printer.id == "usb-1-1"
    assert facts["usb.vendorId"] == "04b8"
    assert facts["usb.product"] == "TM-T20II [2J"
    assert facts["usb.classes"] == ("printer",)
    assert facts["usb.drivers"] == ("usblp",)
    assert facts["usb.guess"] == "printer"
    assert facts["usb.serialFingerprint"] != "LINUXSERIAL3"
    assert values(scanner.fields)["usb.guess"] == "barcode-scanner"
    assert "usb.productId" not in values(scanner.fields)
    assert "LINUXSERIAL3" not in repr(reading)


def test_usb_facts_of_a_machine_without_usb_are_not_applicable(tmp_path: Path) -> None:
    assert usb.read_usb(DEADLINE, tmp_path).fields[0].status == "not-applicable"


@pytest.mark.parametrize(
    ("device", "kind"),
    [
        (UsbDevice("1", classes=(0x03, 0x07)), "printer"),
        (UsbDevice("1", classes=(0x0B,)), "card-reader"),
        (UsbDevice("1", usage_pages=(0x01, 0x8D)), "scale"),
        (UsbDevice("1", usage_pages=(0x8E,)), "card-reader"),
        (UsbDevice("1", product="Handheld Barcode Scanner"), "barcode-scanner"),
        (UsbDevice("1", vendor_id=0x11CA), "payment-terminal"),
        (UsbDevice("1", vendor_id=0x04B8, product="Perfection Scanner"), "barcode-scanner"),
        (UsbDevice("1", vendor_id=0x1234, classes=(0x03,)), None),
        (UsbDevice("1", product="Display Camera"), "camera"),
        (UsbDevice("1", product="Keyboard Hub", classes=(0x09,)), "hub"),
        (UsbDevice("1", product="Keyboard Hub"), "hub"),
    ],
)
def test_the_kind_of_a_usb_device_is_guessed(device: UsbDevice, kind: str | None) -> None:
    assert guess_kind(device) == kind


@given(st.binary())
def test_any_bytes_are_parsed_as_a_descriptor(data: bytes) -> None:
    page = usb.parse_usage_page(data)
    assert page is None or 0 <= page <= 0xFFFF


def edid(name: bytes = b"E022\n") -> bytes:
    """Return the EDID base block of a touch screen by ELO. It contains a serial number."""
    block = bytearray(128)
    block[:8] = b"\x00\xff\xff\xff\xff\xff\xff\x00"
    block[8:10] = ((5 << 10) | (12 << 5) | 15).to_bytes(2, "big")
    block[21:23] = bytes([48, 27])
    block[54:72] = b"\x00\x00\x00\xff\x00SCREENSERIAL\n"
    block[72:90] = (b"\x00\x00\x00\xfc\x00" + name).ljust(18, b" ")
    return bytes(block)


def test_edid_is_parsed() -> None:
    assert parse_edid(edid()) == Screen("ELO", "E022")
    assert parse_edid(b"") is None


def name_of_screen(*descriptors: bytes) -> str | None:
    """Return the name of a screen with these display descriptors. Each begins with its tag byte."""
    block = bytearray(edid())
    for offset, descriptor in zip((54, 72, 90, 108), (*descriptors, b"", b"", b""), strict=False):
        block[offset : offset + 18] = (b"\0\0\0" + descriptor).ljust(18, b" ")
    screen = parse_edid(bytes(block))
    assert screen is not None
    return screen.name


@pytest.mark.parametrize(
    ("descriptors", "name"),
    [
        ((b"\xfc\0LCD Till Scre", b"\xfc\0e\n"), "LCD Till Scree"),
        ((b"\xfc\0Till\n", b"\xfc\0Screen 19\n"), "Till Screen 19"),
        ((b"\xfc\0T19\n", b"\xfc\0T19\n"), "T19"),
        ((b"\xfc\0\n", b"\xfc\0T19\n"), "T19"),
        ((b"\xfc\0" + bytes(13), b"\xfe\0PANEL\n", b"\xfe\0P156-A1\n"), "PANEL P156-A1"),
        ((b"\xfe\0P156-A1-PANEL", b"\xfe\0P156-A1\n"), "P156-A1-PANEL P156-A1"),
        ((b"\xfe\0P/N12\x80P156A1\n",), "P/N12"),
        ((b"\xfe\0\x01\x02\x03garbage\n",), None),
        ((b"\xfc HDMI\n",), "HDMI"),
        ((b"\xff\0SCREENSERIAL\n",), None),
    ],
)
def test_names_of_screens_are_parsed(descriptors: tuple[bytes, ...], name: str | None) -> None:
    assert name_of_screen(*descriptors) == name


@given(st.binary(max_size=200), st.binary(max_size=13))
def test_the_parser_of_edid_accepts_any_bytes(data: bytes, name: bytes) -> None:
    parse_edid(data)
    parse_edid(edid(name))


def test_display_facts_are_read(tmp_path: Path) -> None:
    card = "sys/class/drm/card0-HDMI-A-1"
    root = write_files(
        tmp_path,
        {
            "sys/class/drm/card0/dev": "226:0\n",
            f"{card}/status": "connected\n",
            f"{card}/enabled": "enabled\n",
            f"{card}/dpms": "Off\n",
            f"{card}/modes": "1920x1080\n1280x720\n",
            f"{card}/edid": edid(),
            "sys/class/drm/card0-DP-1/status": "disconnected\n",
        },
    )
    reading = displays.read_displays(DEADLINE, root)
    assert values(reading.fields) == {
        "display.count": 1,
        "display.connectors": ("DP-1", "HDMI-A-1"),
        "display.HDMI-A-1.preferredMode": "1920x1080",
        "display.HDMI-A-1.enabled": True,
        "display.HDMI-A-1.power": "Off",
        "display.HDMI-A-1.maker": "ELO",
        "display.HDMI-A-1.model": "E022",
    }
    assert "SCREENSERIAL" not in repr(reading)


def test_display_facts_without_a_screen_output_are_not_applicable(tmp_path: Path) -> None:
    fields = displays.read_displays(DEADLINE, tmp_path).fields
    assert {field.status for field in fields} == {"not-applicable"}


def test_usb_devices_beyond_the_limit_are_counted() -> None:
    reading = usb_reading([UsbDevice(str(number)) for number in range(130)], Origin("sysfs usb"))
    assert values(reading.fields) == {"peripherals.usbCount": 130}
    assert len(reading.peripherals) == 128
    assert reading.limitations == ("USB devices beyond the limit of 128, not listed: 2",)
