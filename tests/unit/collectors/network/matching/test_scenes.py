"""Tests the sentences of the report for scenes with the data of real devices. A scene consists of
the device URI of a queue and the observations on the network.
"""

from dataclasses import replace

import pytest

from collectors.contract import Interface, InterfaceAddress, Printer
from collectors.network.correlate import correlate
from collectors.network.matching.match import match
from collectors.network.observations import Evidence, KnownPrinter, MdnsService
from collectors.network.printers.cups import queue_printer
from collectors.network.printers.host_names import with_literal_addresses
from collectors.network.printers.usb import UsbPrinter, with_usb
from collectors.network.scan.scan import ScannedHost
from collectors.shared.host.local_network import LocalInterface, LocalNetwork

UUID = "e3248000-80ce-11db-8000-001ba9123456"
MAC = "00:1b:a9:12:34:56"
OTHER_MAC = "02:00:00:00:00:61"
LAN = ("192.168.1.0/24",)
TILL = LocalNetwork(
    interfaces=(
        LocalInterface(
            Interface(
                name="eth0",
                mac_address="02:00:00:00:00:01",
                addresses=(InterfaceAddress("192.168.1.2", "ipv4", 24),),
            )
        ),
    )
)


def queue(
    uri: str, name: str = "kitchen", info: str = "", model: str | None = None
) -> KnownPrinter:
    printer = queue_printer(name, info, uri, model)
    assert printer is not None, f"{uri} is absent from the report"
    return with_literal_addresses([printer])[0]


def scanned_host(
    address: str, mac: str | None = None, *opened: int, refused: tuple[int, ...] = ()
) -> ScannedHost:
    return ScannedHost(address, mac_address=mac, open_ports=opened, refused_ports=refused)


def announcement(
    address: str, name: str, host: str = "", type_: str = "_ipp._tcp", **txt: str
) -> MdnsService:
    port = 8009 if type_ == "_googlecast._tcp" else 631
    return MdnsService(name, type_, host, (address,), port, tuple(txt.items()), "eth0")


def match_printers(
    *known: KnownPrinter,
    hosts: tuple[ScannedHost, ...] = (),
    services: tuple[MdnsService, ...] = (),
    evidence: tuple[Evidence, ...] = (),
) -> tuple[Printer, ...]:
    observed = correlate(
        local=TILL,
        scanned=hosts,
        services=services,
        evidence=evidence,
        scanned_networks=LAN,
    )
    return match(known, observed.without(TILL.own_addresses)).printers


def match_usb_printer(queue: KnownPrinter, *devices: UsbPrinter) -> Printer:
    (result,) = match_printers(*with_usb([queue], devices)[:1])
    return result


# ------------------------------------------------------------------ USB


STAR = UsbPrinter(
    "1-1",
    "Star Micronics",
    "Star USB Printer",
    path="/dev/usb/lp0",
    device_id="MFG:Star;CMD:STAR;MDL:TSP143 (STR_T-001);CLS:PRINTER;",
)


@pytest.mark.parametrize("model", [None, "Local Raw Printer", "Star TSP100 Cutter", "Bar till"])
def test_usb_queue_is_matched_by_the_model_in_its_uri_with_any_driver(model: str | None):
    result = match_usb_printer(queue("usb://Star/TSP143%20(STR_T-001)", model=model), STAR)
    assert result.status == "reachable"
    without_id = replace(STAR, device_id="", model="TSP143 (STR_T-001)")
    assert match_usb_printer(
        queue("usb://Star/TSP143%20(STR_T-001)", model=model), without_id
    ).status == ("reachable")


def test_a_usb_printer_is_matched_by_the_serial_number_in_its_device_id():
    device = replace(STAR, device_id="MFG:Star;MDL:mC-Print3;SN:2550121;")
    result = match_usb_printer(queue("usb://Star/mC-Print3?serial=2550121"), device)
    assert result.reason == (
        "Plugged in by USB as /dev/usb/lp0, recognised by serial number 2550121"
    )


@pytest.mark.parametrize("serial", ["00000000", "000001", "0.00", "123456789", "XXXXXX"])
def test_a_placeholder_is_not_used_as_a_serial_number(serial: str):
    uris = [f"usb://POS/Printer80?serial={serial}", f"usb://POS/Printer58?serial={serial}"]
    known = [queue(uri, name) for uri, name in zip(uris, "ab", strict=True)]
    printer80 = UsbPrinter("1-1", "POS", "Printer80", serial, path="/dev/usb/lp0")
    result = match_printers(*with_usb(known, [printer80]))
    assert [printer_match.status for printer_match in result] == ["reachable", "unreachable"]
    twins = match_printers(
        *with_usb([known[0]], [printer80, replace(printer80, bus_id="1-2", path=None)])
    )
    assert twins[0].status == "unknown"
    assert "it is unknown which of them is this printer" in (twins[0].reason or "")
    ids = [twin.id for twin in twins]
    assert len({*ids}) == len(ids) == 3


@pytest.mark.parametrize(
    "uri",
    [
        "ipp://Canon%20TR150%20series%20(USB)._ipp._tcp.local/",
        "dnssd://Canon%20TR150%20series%20(USB)._ipp._tcp.local/?uuid=" + UUID,
        "implicitclass://Canon_TR150_series_USB/",
        "ippusb://Canon%20TR150%20series._ipp._tcp.local/",
    ],
)
def test_a_queue_of_ipp_usb_is_a_usb_printer(uri: str):
    canon = UsbPrinter("1-4", "Canon", "TR150 series")
    result = match_usb_printer(queue(uri), canon)
    assert (result.transport, result.status) == ("usb", "reachable")
    assert match_usb_printer(queue(uri)).status == "unreachable"
    renamed = match_usb_printer(queue("ipp://Bar%20(USB)._ipp._tcp.local/"), canon)
    assert renamed.status == "unknown"


# ------------------------------------------------------------------ a different device answers


def test_a_hint_never_names_the_printer_of_another_queue():
    kitchen = queue("socket://192.168.1.50", info="Kitchen")
    bar = queue("socket://192.168.1.61", "bar", "Bar")
    hosts = (scanned_host("192.168.1.61", OTHER_MAC, 631, 9100),)
    services = (announcement("192.168.1.61", "Kitchen", ty="Epson TM-m30"),)
    result, other_result = match_printers(kitchen, bar, hosts=hosts, services=services)
    assert (result.status, result.matched_endpoint) == ("unreachable", None)
    assert result.reason == "No answer from 192.168.1.50: is it switched on and connected?"
    assert other_result.status == "reachable"
    (free,) = match_printers(kitchen, hosts=hosts, services=services)
    assert free.matched_endpoint is None
    assert "it may be the same printer" in (free.reason or "")


def test_a_uuid_that_two_printers_share_does_not_show_that_a_printer_has_moved():
    kitchen = queue(f"ipp://192.168.1.50/ipp/print?uuid={UUID}", "kitchen")
    bar = queue(f"ipp://192.168.1.61/ipp/print?uuid={UUID}", "bar")
    result, other_result = match_printers(
        kitchen,
        bar,
        hosts=(scanned_host("192.168.1.61", OTHER_MAC, 631),),
        services=(announcement("192.168.1.61", "Bar", uuid=UUID),),
    )
    assert (result.matched_endpoint, other_result.status) == (None, "reachable")
    assert "61" not in (result.reason or "")


def test_a_hint_never_names_a_device_at_the_address_of_another_queue():
    """192.168.1.61 is the address of the queue `bar`, although the UUID of `bar` is announced at
    192.168.1.50.
    """
    lost = queue("socket://192.168.1.55", "lost")
    bar = queue(f"ipp://192.168.1.61/ipp/print?uuid={UUID}", "bar")
    hosts = (
        scanned_host("192.168.1.61", None, 631, 9100),
        scanned_host("192.168.1.50", None, 631, 9100),
    )
    other = queue("socket://192.168.1.50", "other")
    services = (announcement("192.168.1.50", "X", uuid=UUID),)
    result, *_ = match_printers(lost, bar, other, hosts=hosts, services=services)
    assert result.status == "unreachable"
    assert "192.168.1.61" not in (result.reason or "")
    assert "192.168.1.50" not in (result.reason or "")


def test_a_queue_that_is_set_up_at_the_new_address_of_a_printer_is_reachable():
    kitchen = queue(f"ipp://192.168.1.50/ipp/print?uuid={UUID}", "kitchen")
    bar = queue("socket://192.168.1.61", "bar")
    result, other_result = match_printers(
        kitchen,
        bar,
        hosts=(scanned_host("192.168.1.61", MAC, 631, 9100),),
        services=(announcement("192.168.1.61", "K", uuid=UUID),),
    )
    assert result.matched_endpoint == "192.168.1.61:631"
    assert result.reason == (
        "Moved to 192.168.1.61:631 (same UUID); it is already set up there as bar; nothing answers"
        " at 192.168.1.50 any more: print with that queue and remove this one"
    )
    assert other_result.status == "reachable"


def test_a_printer_that_answers_has_not_moved_although_its_uuid_is_announced_elsewhere():
    """Some makers give many devices the same UUID. Only a MAC address is unique."""
    known = queue(f"ipp://192.168.1.50/ipp/print?uuid={UUID}")
    hosts = (scanned_host("192.168.1.50", None, 631), scanned_host("192.168.1.61", OTHER_MAC, 631))
    (result,) = match_printers(
        known, hosts=hosts, services=(announcement("192.168.1.61", "K", uuid=UUID),)
    )
    assert (result.status, result.matched_endpoint) == ("reachable", "192.168.1.50:631")
    bar = queue("socket://192.168.1.61", "bar")
    opened = (hosts[0], scanned_host("192.168.1.61", OTHER_MAC, 631, 9100))
    services = (announcement("192.168.1.61", "K", uuid=UUID),)
    _, other_result = match_printers(known, bar, hosts=opened, services=services)
    assert other_result.status == "reachable"
    other = announcement("192.168.1.50", "X", uuid=UUID.replace("e3", "aa"))
    (result,) = match_printers(
        known, hosts=hosts, services=(announcement("192.168.1.61", "K", uuid=UUID), other)
    )
    assert (result.status, result.matched_endpoint) == ("unknown", None)
    assert "its UUID differs from that of the printer that was set up" in (result.reason or "")
    assert "a device with its UUID was seen at 192.168.1.61" in (result.reason or "")


def test_the_uuid_in_an_ipp_answer_hints_at_a_printer_whose_name_is_not_announced():
    """CUPS cannot print to the queue: it resolves only the mDNS name, which no device announces."""
    known = queue(f"dnssd://Kitchen%20Printer._ipp._tcp.local/?uuid={UUID}")
    (result,) = match_printers(
        known,
        hosts=(scanned_host("192.168.1.61", OTHER_MAC, 631, 9100),),
        evidence=(Evidence("192.168.1.61", 631, uuid=UUID),),
    )
    assert (result.status, result.matched_endpoint) == ("unreachable", None)
    assert result.reason == (
        "No device announces the name Kitchen Printer by mDNS: is it switched on and connected?"
        " A device with its UUID was seen at 192.168.1.61: it may be the same printer"
    )


@pytest.mark.parametrize(
    ("model", "announced_model", "is_other"),
    [
        ("Epson TM-T20II", "Star TSP143IIIW", True),
        ("Epson TM-T20II", "EPSON TM-m30", True),
        ("Epson TM-T20II", "EPSON TM-T20II", False),
        ("Epson TM-T20", "TM-T20II", False),
        ("EPSON TM-T (180dpi)", "EPSON TM-T88V", False),
        ("Star TSP100 Cutter", "Star TSP143IIILAN", False),
        ("HP LaserJet 400 M401", "HP LaserJet 400 color M451dn", False),
        ("Brother HL-L2350DW series, driverless", "Brother HL-L2375DW", False),
        ("Local Raw Printer", "Epson TM-T20II", False),
        ("Generic Text-Only Printer", "Epson TM-T20II", False),
        ("HP LaserJet Series PCL 4/5", "Brother HL-L2350DW", False),
        ("Epson 24-Pin Series", "EPSON LQ-590", False),
        ("HP Universal Printing PCL 6 (v7.0.1)", "Kyocera ECOSYS P2040dn", False),
        ("Canon Generic Plus UFR II", "Epson TM-T20II", False),
    ],
)
def test_a_printer_is_reported_as_reachable_unless_it_is_of_another_model(
    model: str, announced_model: str, is_other: bool
):
    (result,) = match_printers(
        queue("socket://192.168.1.50", model=model),
        hosts=(scanned_host("192.168.1.50", MAC, 631, 9100),),
        services=(announcement("192.168.1.50", "X", ty=announced_model),),
    )
    assert result.status == ("unknown" if is_other else "reachable"), result.reason
    assert ("it is of the model" in (result.reason or "")) is is_other


@pytest.mark.parametrize(("mac", "status"), [("00:1b:a9:7f:e5:58", "reachable"), (MAC, "unknown")])
def test_a_device_is_unknown_if_its_mac_differs_from_the_mac_in_the_host_name(
    mac: str, status: str
):
    known = replace(queue("socket://hp7fe558.lan"), addresses=("192.168.1.50",))
    (result,) = match_printers(known, hosts=(scanned_host("192.168.1.50", mac, 9100),))
    assert result.status == status
    assert ("its MAC differs" in (result.reason or "")) is (status == "unknown")


def test_the_device_that_now_has_the_address_is_named():
    (result,) = match_printers(
        queue("socket://192.168.1.50"),
        hosts=(scanned_host("192.168.1.50", MAC, 8008, refused=(9100,)),),
        services=(
            announcement("192.168.1.50", "Lounge", type_="_googlecast._tcp", md="Chromecast"),
        ),
    )
    assert result.status == "unreachable"
    assert result.reason == (
        "192.168.1.50 refuses connections on port 9100 (matched by address and port); the device"
        " there is Chromecast: has another device taken the address?"
    )


# ------------------------------------------------------------------ one printer, two addresses


def test_cable_and_wifi_of_one_printer_are_one_device():
    hosts = (scanned_host("192.168.1.50", MAC, 631), scanned_host("192.168.1.51", OTHER_MAC, 631))
    services = tuple(
        announcement(address, "Kitchen", "kitchen.local", uuid=UUID)
        for address in ("192.168.1.50", "192.168.1.51")
    )
    (result,) = match_printers(
        queue(f"dnssd://Kitchen._ipp._tcp.local/?uuid={UUID}"), hosts=hosts, services=services
    )
    assert (result.status, result.matched_endpoint) == ("reachable", "192.168.1.50:631")
    by_wifi = queue(f"ipp://192.168.1.51/ipp/print?uuid={UUID}")
    off = (hosts[0], scanned_host("192.168.1.51", OTHER_MAC))
    for seen, status in ((hosts, "reachable"), (off, "unknown")):
        (result,) = match_printers(by_wifi, hosts=seen, services=services)
        assert (result.status, result.matched_endpoint) == (status, "192.168.1.51:631")


def test_the_order_of_scanned_hosts_does_not_change_the_matched_address():
    hosts = (scanned_host("192.168.1.51", OTHER_MAC, 631), scanned_host("192.168.1.50", MAC, 631))
    services = tuple(
        announcement(host.address, "Kitchen", "kitchen.local", uuid=UUID) for host in hosts
    )
    known = queue(f"dnssd://Kitchen._ipp._tcp.local/?uuid={UUID}")
    for order in (1, -1):
        (result,) = match_printers(known, hosts=hosts[::order], services=services[::order])
        assert result.matched_endpoint == "192.168.1.50:631"


@pytest.mark.parametrize("mac", [None, MAC])
def test_a_relay_that_announces_the_uuid_of_a_printer_is_not_the_printer(mac: str | None):
    """An AirPrint relay announces a name of its own. CUPS resolves only the name in the URI of the
    queue.
    """
    hosts = (scanned_host("192.168.1.50", mac, 631), scanned_host("192.168.1.61", OTHER_MAC, 631))
    services = (
        announcement("192.168.1.61", "AirPrint Kitchen", "relay.local", uuid=UUID),
        announcement("192.168.1.50", "Kitchen", "kitchen.local", uuid=UUID),
    )
    known = queue(f"dnssd://Kitchen._ipp._tcp.local/?uuid={UUID}")
    (result,) = match_printers(known, hosts=hosts, services=services)
    assert (result.status, result.matched_endpoint) == ("reachable", "192.168.1.50:631")
    renamed = queue(f"dnssd://Renamed._ipp._tcp.local/?uuid={UUID}")
    (result,) = match_printers(renamed, hosts=hosts, services=services)
    assert result.status == "unreachable"
    is_recognised = "the device that had this name is at 192.168.1.50" in (result.reason or "")
    assert is_recognised is (mac is not None)
    (result,) = match_printers(known, hosts=hosts[1:], services=services[:1])
    assert (result.status, result.matched_endpoint) == ("unreachable", None)


# ------------------------------------------------------------------ the queue's own path


def test_a_queue_that_its_server_does_not_have_is_reported_as_missing():
    evidence = (
        Evidence("192.168.1.5", 631, queue="printers/GONE", is_missing=True),
        Evidence("192.168.1.5", 631, queue="printers/bar", uuid=UUID, state="idle"),
    )
    gone, bar = match_printers(
        queue("ipp://192.168.1.5/printers/GONE", "gone"),
        queue("ipp://192.168.1.5/printers/bar", "bar"),
        hosts=(scanned_host("192.168.1.5", MAC, 631),),
        evidence=evidence,
    )
    assert (gone.status, bar.status) == ("unreachable", "reachable")
    assert gone.reason == (
        "192.168.1.5:631 answers, but it has no queue printers/GONE: was it renamed or removed"
        " there?"
    )


def test_stopped_queue_of_a_server_is_reported_from_mdns_and_from_ipp():
    services = (
        announcement("192.168.1.5", "Bar @ server", rp="printers/bar", **{"printer-state": "5"}),
        announcement("192.168.1.5", "Till @ server", rp="printers/till", **{"printer-state": "3"}),
    )
    known = [queue(f"ipp://192.168.1.5/printers/{name}", name) for name in ("bar", "till")]
    hosts = (scanned_host("192.168.1.5", MAC, 631),)
    bar, till = match_printers(*known, hosts=hosts, services=services)
    assert (bar.reason or "").endswith("the printer reports that it is stopped")
    assert "stopped" not in (till.reason or "")
    answers = (
        Evidence("192.168.1.5", 631, queue="printers/bar", state="idle"),
        Evidence("192.168.1.5", 631, queue="printers/till", state="stopped"),
    )
    bar, till = match_printers(*known, hosts=hosts, services=services, evidence=answers)
    assert "stopped" not in (bar.reason or "")
    assert (till.reason or "").endswith("the printer reports that it is stopped")


# ------------------------------------------------------------------ device URIs


@pytest.mark.parametrize(
    ("uri", "mac", "host", "name"),
    [
        ("hp:/net/HP_LaserJet_400?zc=HP7FE558", "00:1b:a9:7f:e5:58", "hp7fe558.local", "X"),
        ("hp:/net/HP_LaserJet_400?zc=kitchen", MAC, "Kitchen.local", "X"),
        ("hp:/net/HP_OJ_9010?zc=HP_OJ_9010_series_5D3821", MAC, "", "HP OJ 9010 series [5D3821]"),
        ("implicitclass://Receipt%40till1/", MAC, "", "Receipt @ till1"),
        ("socket://[v1.fe80::21b:a9ff:fe12:3456+eth0]", MAC, "", "X"),
        (
            "dnssd://DYMO%5C032LabelWriter%5C032450._ipp._tcp.local/",
            MAC,
            "",
            "DYMO LabelWriter 450",
        ),
    ],
)
def test_a_printer_is_matched_for_each_form_of_device_uri(uri: str, mac: str, host: str, name: str):
    (result,) = match_printers(
        queue(uri),
        hosts=(scanned_host("192.168.1.50", mac, 515, 631, 9100),),
        services=(announcement("192.168.1.50", name, host),),
    )
    assert result.status == "reachable", result.reason


@pytest.mark.parametrize(
    ("uri", "mac"),
    [
        ("socket://hp7fe558.lan", "00:1b:a9:7f:e5:58"),
        ("lpd://BRN_020554/BINARY_P1", "00:80:77:02:05:54"),
        ("lpd://BRN008077020554/BINARY_P1", "00:80:77:02:05:54"),
        ("socket://hp7fe558.local", "00:1b:a9:7f:e5:58"),
    ],
)
def test_a_printer_whose_name_does_not_resolve_is_unreachable_although_its_mac_was_seen(
    uri: str, mac: str
):
    hosts = (scanned_host("192.168.1.50", mac, 515, 631, 9100),)
    (result,) = match_printers(queue(uri), hosts=hosts)
    assert result.status == "unreachable"
    name = queue(uri).host
    assert (result.reason or "").startswith(
        f"No address was found for the name {name}; the device is at 192.168.1.50 (same MAC):"
    )


@pytest.mark.parametrize(
    ("uri", "transport"),
    [
        ("smb://anna:secret@server/bar", "network"),
        ("beh:/1/3/5/socket://192.168.1.50:9100", "network"),
        ("tea4cups://socket://192.168.1.50:9100", "network"),
        ("gutenprint53+usb://canon-cp800/1234", "usb"),
        ("cnijbe2://Canon/?port=usb&serial=01DE95", "usb"),
        ("cnijbe2://Canon/?port=net&serial=60-12-8B-65-7C-47", "network"),
        ("bjnp://192.168.1.50:8611", "network"),
        ("file:///dev/usb/lp0", "usb"),
    ],
)
def test_queue_of_an_unsupported_backend_is_listed_with_unknown_status(uri: str, transport: str):
    (result,) = match_printers(*with_usb([queue(uri, name := "q")], [])[:1])
    assert result.name == name
    assert (result.status, result.transport) == ("unknown", transport)
    backend = uri.partition(":")[0]
    assert result.reason == f"Not checked: CUPS prints to it with the backend {backend}"
    assert "secret" not in repr(result)


def test_a_usb_printer_that_an_unsupported_queue_may_use_is_not_reported_as_unused():
    known = with_usb([queue("gutenprint53+usb://canon-cp800/1234")], [STAR])
    assert known[1].presence_reason == (
        "plugged in by USB; it is not known whether a queue of this machine uses it"
    )


# ------------------------------------------------------------------ addresses out of reach


@pytest.mark.parametrize(
    ("address", "why"),
    [("169.254.7.8", "without a DHCP server"), ("10.9.0.5", "another network than this machine")],
)
@pytest.mark.parametrize("uri", [f"ipp://192.168.1.50/?uuid={UUID}", f"dnssd://K?uuid={UUID}"])
def test_unreachable_address_is_not_recommended(uri: str, address: str, why: str):
    services = (announcement(address, "K", uuid=UUID),)
    (result,) = match_printers(queue(uri), services=services)
    assert result.status == "unreachable"
    assert why in (result.reason or "")
    assert "new address" not in (result.reason or "")
    (near,) = match_printers(queue(uri), services=(announcement("192.168.1.77", "K", uuid=UUID),))
    assert why not in (near.reason or "")


# ------------------------------------------------------------------ hints for any driver


@pytest.mark.parametrize(
    ("model", "announced_model"),
    [
        ("Kyocera ECOSYS M2540dn (KPDL)", "ECOSYS M2540dn"),
        ("Canon MF640C Series UFR II ver.4.0", "Canon MF640C"),
        ("Local Raw Printer", "Epson TM-T20II"),
        ("UFR II", "Canon MF640C"),
        ("(KPDL)", "Kyocera ECOSYS M2540dn"),
    ],
)
def test_the_reason_of_an_unreachable_queue_has_a_hint_with_any_driver(
    model: str, announced_model: str
):
    (result,) = match_printers(
        queue("socket://192.168.1.50", model=model),
        hosts=(scanned_host("192.168.1.77", MAC, 631, 9100),),
        services=(announcement("192.168.1.77", "X", ty=announced_model),),
    )
    assert (result.status, result.matched_endpoint) == ("unreachable", None)
    assert (result.reason or "").endswith("was seen at 192.168.1.77")
