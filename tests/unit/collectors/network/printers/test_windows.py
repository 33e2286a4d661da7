"""Tests reading the printers of Windows, from recorded values of its spooler and registry."""

import ctypes
from collections.abc import Mapping

import pytest

from collectors.network.printers.windows import (
    SERIAL_PORTS,
    TCP_PORTS,
    WSD_DEVICES,
    WSD_PORTS,
    RegistryValue,
    read_key,
    read_windows_printers,
    url_host,
)
from collectors.shared.host.spooler_windows import (
    SpoolerPrinter,
    _PrinterInfo2,
    read_printer_info,
    read_spooler,
)

UUID = "cfe92100-67c4-11d4-a45f-9caed3b038b3"


def stopped_spooler() -> tuple[SpoolerPrinter, ...]:
    raise OSError(1722, "The RPC server is unavailable")


KEYS: dict[str, Mapping[str, RegistryValue]] = {
    rf"{TCP_PORTS}\IP_192.168.1.50": {
        "Protocol": 1,
        "HostName": "192.168.1.50",
        "IPAddress": "",
        "PortNumber": 9100,
    },
    rf"{TCP_PORTS}\bar": {
        "Protocol": 2,
        "HostName": "BRN001BA9123456",
        "PortNumber": 9100,
        "Queue": "lp",
    },
    rf"{WSD_PORTS}\WSD-1": {"Printer UUID": UUID},
    rf"{WSD_PORTS}\WSD-2": {"Printer UUID": f"urn:uuid:{UUID[:-1]}c"},
    rf"{WSD_DEVICES}\urn:uuid:{UUID}": {
        "LocationInformation": "http://192.168.1.61:80/WebServices/Device"
    },
    SERIAL_PORTS: {r"\Device\Serial0": "COM1"},
}
REGISTRY = KEYS.get  # returns the values of a registry key, or None


def read(*printers: SpoolerPrinter):
    return read_windows_printers(lambda: printers, REGISTRY)


def test_a_printer_on_a_standard_tcp_port_is_read():
    (result,) = read(SpoolerPrinter("Kitchen", "IP_192.168.1.50", "Brother HL-L2350DW")).printers
    assert (result.id, result.address) == ("windows:Kitchen", "192.168.1.50:9100")
    assert (result.host, result.port, result.make_model) == (
        "192.168.1.50",
        9100,
        "Brother HL-L2350DW",
    )


def test_a_printer_on_an_lpr_port_has_port_515_and_its_queue():
    (printer,) = read(SpoolerPrinter("Bar", "bar")).printers
    assert (printer.host, printer.port, printer.queue) == ("BRN001BA9123456", 515, "lp")


def test_printers_on_wsd_ports_have_their_uuid_and_last_address():
    located, unlocated = read(SpoolerPrinter("A", "WSD-1"), SpoolerPrinter("B", "WSD-2")).printers
    assert (located.uuid, located.host, located.address) == (UUID, "192.168.1.61", "192.168.1.61")
    assert (unlocated.uuid, unlocated.host) == (UUID[:-1] + "c", None)


def test_the_address_is_parsed_from_the_name_of_a_port_without_a_registry_key():
    (printer,) = read(SpoolerPrinter("X", "192.168.1.77")).printers
    assert printer.address == "192.168.1.77:9100"


def test_printers_on_local_ports_are_read():
    usb, com, missing, lpt = read(
        SpoolerPrinter("U", "USB001"),
        SpoolerPrinter("C", "COM1:"),
        SpoolerPrinter("M", "COM7:"),
        SpoolerPrinter("L", "LPT1:"),
    ).printers
    assert (usb.transport, usb.address, usb.present) == ("usb", "USB001", None)
    assert (com.transport, com.address, com.present) == ("serial", "COM1", True)
    assert (missing.present, lpt.present) == (False, None)


@pytest.mark.parametrize(
    ("port", "name", "transport"),
    [
        ("TMUSB001", "EPSON TM-T20II Receipt", "usb"),
        ("ESDPRT001", "USB TM-T60", "usb"),
        ("ESDPRT002", "Kitchen", "usb"),
        ("ESDPRT003", "TM-T88 serial", "serial"),
    ],
)
def test_printers_on_ports_of_epson_drivers_are_read(port: str, name: str, transport: str):
    (printer,) = read(SpoolerPrinter(name, port)).printers
    assert (printer.transport, printer.address, printer.host) == (transport, port, None)


@pytest.mark.parametrize(
    ("port", "expected"),
    [
        ("192.168.1.50:9101", ("192.168.1.50", 9101, None, "192.168.1.50:9101")),
        ("192.168.1.52_1", ("192.168.1.52", 9100, None, "192.168.1.52:9100")),
        ("IP_192.168.1.53_2", ("192.168.1.53", 9100, None, "192.168.1.53:9100")),
        (
            "http://192.168.1.54:631/ipp/print",
            ("192.168.1.54", 631, "ipp/print", "192.168.1.54:631"),
        ),
        ("http://[fe80::5]:631/ipp/print", ("fe80::5", 631, "ipp/print", "[fe80::5]:631")),
        ("http://user:secret@kitchen.lan/p", ("kitchen.lan", 80, "p", "kitchen.lan:80")),
        ("http://:x", (None, None, None, None)),
        ("bar printer", (None, None, None, "bar printer")),
    ],
)
def test_each_form_of_address_in_the_name_of_a_port_is_parsed(
    port: str, expected: tuple[object, ...]
):
    (printer,) = read(SpoolerPrinter("X", port)).printers
    assert (printer.host, printer.port, printer.queue, printer.address) == expected
    assert "secret" not in repr(printer)


def test_the_host_of_a_shared_printer_is_the_machine_that_shares_the_printer():
    printer, pdf = read(
        SpoolerPrinter(r"\\SRV\HP", r"\\SRV\HP"), SpoolerPrinter("P", r"\\SRV\PDF")
    ).printers
    assert pdf.host == "SRV"
    assert (printer.host, printer.address) == ("SRV", r"\\SRV\HP")


@pytest.mark.parametrize("port", ["USB001", "IP_192.168.1.50", "COM3:"])
def test_the_port_of_a_connected_printer_belongs_to_the_other_machine(port: str):
    (printer,) = read(SpoolerPrinter(r"\\OFFICE\Receipt", port)).printers
    assert (printer.transport, printer.host, printer.port) == ("network", "OFFICE", None)
    assert printer.address == r"\\OFFICE\Receipt"


def test_printers_on_virtual_ports_are_not_listed():
    names = (
        *("PORTPROMPT:", "nul:", "FILE:", "XPSPort:", "", "TS001", "CPW2:", "FOXIT_PDF:"),
        *("AD_Port", "RustDesk Printer"),
        *("PDFCreator:", r"Documents\*.pdf", r"C:\Users\a\out.prn", r"\\.\pipe\writer"),
    )
    assert read(*(SpoolerPrinter("P", name) for name in names)).printers == ()


def test_status_bits_are_converted_to_state_reasons():
    door_open, paper_out, paused = 0x400000, 0x10, 0x1
    status = door_open | paper_out | paused
    (printer,) = read(SpoolerPrinter("S", "USB001", status=status)).printers
    assert printer.is_queue_stopped
    assert printer.state_reasons == ("paused", "media-empty", "cover-open")
    work_offline = 0x400
    (offline,) = read(SpoolerPrinter("O", "USB001", attributes=work_offline)).printers
    assert (offline.is_queue_stopped, offline.state_reasons) == (True, ("offline-report",))


def test_the_status_server_unknown_gives_no_state_reason():
    server_unknown = 0x800000
    (printer,) = read(SpoolerPrinter("S", "USB001", status=server_unknown)).printers
    assert printer.state_reasons == ()


def test_a_stopped_spooler_is_a_failure_with_a_reason():
    known = read_windows_printers(stopped_spooler, REGISTRY)
    (failure,) = known.failures
    assert failure.reason == (
        "the print spooler does not answer (The RPC server is unavailable): start the service"
        " Print Spooler"
    )


def test_addresses_in_wsd_locations_are_parsed():
    assert url_host("http://192.168.1.61:80/WebServices/Device") == "192.168.1.61"
    assert url_host("https://printer.lan/x") == "printer.lan"
    assert url_host("http://[fe80::1%4]:5357/x") == "fe80::1"
    assert url_host("nothing") is None


def test_the_structures_of_winspool_are_parsed():
    buffer = ctypes.create_string_buffer(ctypes.sizeof(_PrinterInfo2) * 2)
    items = ctypes.cast(buffer, ctypes.POINTER(_PrinterInfo2 * 2)).contents
    items[0].printer_name, items[0].port_name, items[0].status = "Kitchen", "IP_1", 0x10
    items[1].attributes = 0x400
    assert read_printer_info(buffer, 2) == (
        SpoolerPrinter("Kitchen", "IP_1", status=0x10),
        SpoolerPrinter("", "", attributes=0x400),
    )
    assert read_printer_info(None, 0) == ()


def test_winspool_and_the_registry_are_unavailable_on_other_systems():
    assert read_key(TCP_PORTS) is None
    (failure,) = read_windows_printers(read_spooler, REGISTRY).failures
    assert "no Windows spooler" in failure.reason
