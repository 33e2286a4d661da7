import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.network.printers.cups import queue_printer
from collectors.network.printers.device_uri import DeviceUri, parse_device_uri

UUID = "e3248000-80ce-11db-8000-001ba9123456"
ZERO_WIDTH_JOINER = "\u200d"  # kept, although Python does not count it as printable


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        (
            "ipp://192.168.1.50/ipp/print",
            DeviceUri("ipp", "network", host="192.168.1.50", port=631, queue="ipp/print"),
        ),
        (
            f"ipps://printer.lan:10443/ipp/print?uuid={UUID}",
            DeviceUri(
                "ipps", "network", host="printer.lan", port=10443, queue="ipp/print", uuid=UUID
            ),
        ),
        (
            "socket://192.168.1.50",
            DeviceUri("socket", "network", host="192.168.1.50", port=9100),
        ),
        (
            "socket://[fd00::50]:9101/?waiteof=false",
            DeviceUri("socket", "network", host="fd00::50", port=9101),
        ),
        (
            "lpd://192.168.1.50/PASSTHRU",
            DeviceUri("lpd", "network", host="192.168.1.50", port=515, queue="PASSTHRU"),
        ),
        (
            f"dnssd://Kitchen%204.2%20(bar)._ipp._tcp.local/?uuid={UUID}",
            DeviceUri(
                "dnssd",
                "dns-sd",
                uuid=UUID,
                dns_sd_name="Kitchen 4.2 (bar)",
                dns_sd_type="_ipp._tcp",
            ),
        ),
        (
            "ipps://Brother%20HL._ipps._tcp.local:631/ipp/print",
            DeviceUri(
                "ipps",
                "dns-sd",
                dns_sd_name="Brother HL",
                dns_sd_type="_ipps._tcp",
                queue="ipp/print",
            ),
        ),
        (
            "usb://EPSON/TM-T20II?serial=J5XX",
            DeviceUri("usb", "usb", serial="J5XX", model="EPSON TM-T20II"),
        ),
        ("usb:/dev/usb/lp0", DeviceUri("usb", "usb", path="/dev/usb/lp0")),
        (
            "ippusb://Brother%20HL._ipp._tcp.local/?uuid=x",
            DeviceUri(
                "ippusb",
                "usb",
                dns_sd_name="Brother HL",
                dns_sd_type="_ipp._tcp",
                model="Brother HL",
            ),
        ),
        (
            "ipp://localhost:60000/ipp/print",
            DeviceUri("ipp", "usb", host="localhost", port=60000),
        ),
        (
            "hp:/net/HP_LaserJet_400?ip=192.168.1.60",
            DeviceUri("hp", "network", host="192.168.1.60", port=9100, model="HP LaserJet 400"),
        ),
        (
            "hp:/usb/HP_LaserJet_400?serial=ABC",
            DeviceUri("hp", "usb", serial="ABC", model="HP LaserJet 400"),
        ),
        (
            "bluetooth://001BA9123456/spp",
            DeviceUri("bluetooth", "bluetooth", mac_address="00:1b:a9:12:34:56"),
        ),
        (
            "serial:/dev/ttyUSB0+baud=9600+bits=8",
            DeviceUri("serial", "serial", path="/dev/ttyUSB0"),
        ),
        ("cups-pdf:/", DeviceUri("cups-pdf", "virtual")),
        ("file:///dev/null", DeviceUri("file", "virtual")),
        ("what ever", DeviceUri("", "unknown")),
        ("ipp://[broken/", DeviceUri("", "unknown")),
        ("ipp://host:99999/", DeviceUri("", "unknown")),
    ],
)
def test_every_form_of_device_uri_is_parsed(uri: str, expected: DeviceUri):
    assert parse_device_uri(uri) == expected


def test_implicit_class_has_a_dns_sd_name():
    device = parse_device_uri("implicitclass://Brother_HL/")
    assert (device.kind, device.dns_sd_name) == ("dns-sd", "Brother_HL")


# The forms of device URIs by kind. They are from the documentation or source code of the backends
# of CUPS, of Debian's packages, and of makers' drivers.
PUBLISHED_URIS = {
    "network": (
        "http://192.168.1.50:631/ipp/print",
        "https://192.168.1.50/ipp/print",
        "ipp://192.168.1.50/printers/till",
        "ipps://192.168.1.50/ipp/print",
        "lpd://192.168.1.50/queue?format=l&reserve=rfc1179",
        "socket://192.168.1.50:9100/?waiteof=false",
        "hp:/net/LaserJet_P2055dn?zc=NPI7CD54E",
        "hp:/net/LaserJet_M148?hostname=kitchen.lan",
        "hpfax:/net/OfficeJet_9010?ip=192.168.1.50",
    ),
    "dns-sd": (
        "dnssd://HL-L2350DW%20series._ipp._tcp.local/?uuid=e3248000-80ce-11db-8000-001ba9123456",
        "dnssd://LaserJet%20(CE4B57)._pdl-datastream._tcp.local/",
        "dnssd://Bar%20%40%20server._printer._tcp.local/cups",
        "mdns://Kitchen._ipp._tcp.local./",
        "ipp://Kitchen._ipp._tcp.local/",
        "implicitclass://Kitchen/",
        "implicitclass:Kitchen",
    ),
    "usb": (
        "usb://EPSON/TM-T20II?serial=J5XX",
        "usb://Brother/QL-800?serial=000C7Z123456&interface=1",
        "usb:/dev/usb/lp0",
        "hp:/usb/LaserJet_1020?serial=JL1",
        "hpfax:/usb/OfficeJet_9010?serial=JL1",
        "ippusb://Kitchen._ipp._tcp.local/",
        "ipp://Kitchen%20(USB)._ipp._tcp.local/",
        "ipp://localhost:60001/ipp/print",
        "ipp://localhost:65535/ipp/print",
        "implicitclass://Kitchen_USB/",
    ),
    "bluetooth": ("bluetooth://001BA9123456/spp",),
    "serial": (
        "serial:/dev/ttyS0?baud=115200",
        "serial:/dev/ttyUSB0?baud=9600+bits=8+parity=none+flow=none",
        "parallel:/dev/lp0",
        "parallel:/dev/usb/lp0",
    ),
    "virtual": ("cups-pdf:/", "cups-brf:/", "boomaga:/", "file:///dev/null", "file:/tmp/out.prn"),
    "unknown": (
        "beh:/1/3/5/socket://192.168.1.50:9100",
        "bjnp://192.168.1.50:8611",
        "canonoipnets2://192.168.1.50",
        "ccp://localhost:59687",
        "cnijbe://Canon/?port=usb&serial=01DE95",
        "cnijbe2://Canon/?port=net&serial=60-12-8B-65-7C-47",
        "cnijnet:/00-1E-8F-CD-D4-5C",
        "cnijusb:/dev/usb/lp0",
        "cups-x2go:/",
        "driverless:ipp://192.168.1.50/ipp/print",
        "driverless-fax://192.168.1.50/",
        "ecblp:/var/run/ecblp0",
        "epson:/dev/usb/lp0",
        "file:///dev/usb/lp0",
        "gutenprint52+usb://canon-cp800/1234",
        "gutenprint53+usb://dnp-dsrx1/CB2D5B205630",
        "hp:/par/LaserJet_4L?device=/dev/parport0",
        "ipp14://192.168.1.50/",
        "mtink:/dev/usb/lp0",
        "pap://zone/printer/LaserWriter",
        "scsi:/dev/sg0",
        "smb://server/till",
        "snmp://192.168.1.50/",
        "tea4cups:socket://192.168.1.50:9100",
        "tea4cups://socket://192.168.1.50:9100",
        "turboprint:/dev/usb/lp0",
        "socket:",
        "",
    ),
}


@pytest.mark.parametrize("kind", PUBLISHED_URIS)
def test_every_published_form_of_device_uri_is_parsed_or_listed_with_its_backend(kind: str):
    for uri in PUBLISHED_URIS[kind]:
        assert parse_device_uri(uri).kind == kind, uri
        printer = queue_printer("q", "", uri, None)
        assert (printer is None) == (kind == "virtual"), uri
        if printer is not None:
            assert bool(printer.backend) == (kind == "unknown"), uri


@given(st.from_regex(r"[a-z][a-z0-9+.-]{0,12}", fullmatch=True), st.text(max_size=40))
def test_the_queue_of_any_backend_is_listed(scheme: str, rest: str):
    uri = f"{scheme}://{rest}"
    printer = queue_printer("q", "", uri, None)
    assert (printer is None) == (parse_device_uri(uri).kind == "virtual")


def test_each_scheme_has_its_transport():
    uris = ("usb://A/B", "bluetooth://001BA9123456", "serial:/dev/ttyS0", "socket://h", "dnssd://x")
    transports = [parse_device_uri(uri).transport for uri in uris]
    assert transports == ["usb", "ble", "serial", "network", "network"]


schemes = st.sampled_from(
    ["ipp", "ipps", "socket", "lpd", "dnssd", "usb", "hp", "bluetooth", "serial", "implicitclass"]
)


@given(schemes, st.sampled_from([":", "://", ":/"]), st.text(max_size=120))
def test_any_uri_is_read_and_its_texts_are_clean(scheme: str, separator: str, rest: str):
    device = parse_device_uri(scheme + separator + rest)
    for text in (device.host, device.queue, device.serial, device.dns_sd_name, device.model):
        assert text is None or text.replace(ZERO_WIDTH_JOINER, "").isprintable()


@pytest.mark.parametrize(
    ("uri", "address"),
    [
        ("socket://anna:12/ss@kitchen", ("kitchen", 9100, None)),
        ("ipp://anna:p/s@s#?@kitchen:631/q", ("kitchen", 631, "q")),
        ("lpd://anna@kitchen/raw", ("kitchen", 515, "raw")),
        ("ipp://server:631/printers/a@b", ("server", 631, "printers/a@b")),
        ("ipp://192.168.1.5/printers/a@b", ("192.168.1.5", 631, "printers/a@b")),
    ],
)
def test_a_password_in_a_uri_is_not_read_as_the_address(
    uri: str, address: tuple[str, int, str | None]
) -> None:
    device = parse_device_uri(uri)
    assert (device.host, device.port, device.queue) == address


@given(st.text(max_size=20))
def test_a_password_in_a_uri_is_not_stored(password: str) -> None:
    for scheme in ("ipp", "socket", "smb", "dnssd", "usb", "foo"):
        text = repr(parse_device_uri(f"{scheme}://anna:q7Zk{password}@kitchen/q"))
        assert "q7Zk" not in text
