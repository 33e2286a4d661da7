"""The facts about name servers, the proxy, interfaces, Wi-Fi, and the connection to the service."""

import errno
import ipaddress
import socket
import ssl
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from collectors.application.deadline import Deadline
from collectors.application.linux.network import links
from collectors.application.readers.network import interfaces, resolver, service_probe
from collectors.application.readers.network.interfaces import Links, Wireless
from collectors.application.readers.network.service_probe import (
    CertificateSummary,
    parse_certificate,
)
from collectors.application.source import Origin
from collectors.application.system_bus import parse_objects
from collectors.shared.host.resolv_conf import parse_resolv_conf
from collectors.shared.linux.wireless import parse_signals
from collectors.shared.text import decode
from tests.unit.collectors.application.fixtures import by_key, fixture, values, write_files

DEADLINE = Deadline.after(3600)


def test_name_servers_are_read_from_resolv_conf_or_from_the_file_of_systemd_resolved(
    tmp_path: Path,
) -> None:
    root = write_files(tmp_path, {"etc/resolv.conf": "# x\nnameserver 127.0.0.53\noptions edns0\n"})
    assert resolver.read_servers(root, DEADLINE) == ("127.0.0.53",)
    upstream = "nameserver 192.168.1.1\nnameserver fe80::1%eth0\nnameserver junk\n"
    write_files(root, {"run/systemd/resolve/resolv.conf": upstream})
    assert resolver.read_servers(root, DEADLINE) == ("192.168.1.1", "fe80::1%eth0")
    field = resolver.servers_field(resolver.read_servers(root, DEADLINE), Origin("resolv.conf"))
    assert field.value == ("192.168.1.1", "fe80::1")


def test_name_servers_are_not_applicable_if_none_is_set(tmp_path: Path) -> None:
    reading = resolver.read_resolver(
        DEADLINE, lambda _: resolver.read_servers(tmp_path, DEADLINE), ""
    )
    assert by_key(reading)["network.dnsServers"].status == "not-applicable"


@given(st.text())
def test_the_parser_of_resolv_conf_accepts_any_text(text: str) -> None:
    for server in parse_resolv_conf(text):
        ipaddress.ip_address(server)


def test_the_password_of_a_proxy_is_not_reported() -> None:
    field = resolver.proxy_field(
        {"https": "http://anna:hunter2@proxy.example:3128/x?y"}, Origin("x")
    )
    assert field.value == "proxy.example:3128"
    assert resolver.proxy_field({}, Origin("x")).status == "not-applicable"


def test_local_service_is_checked_without_a_proxy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("http_proxy", "http://proxy.example:3128")
    monkeypatch.delenv("no_proxy", raising=False)
    with socket.create_server(("127.0.0.1", 0)) as service:
        url = f"http://127.0.0.1:{service.getsockname()[1]}"
        fields = by_key(service_probe.read_service(Deadline.after(60), url))
    assert fields["network.service.reachable"].value is True
    fields = by_key(service_probe.read_service(Deadline.after(60), "http://ops.example"))
    assert fields["network.service.reachable"].status == "not-applicable"


@pytest.mark.parametrize("host", ["ops.example", "127.0.0.1"])
def test_only_a_local_service_is_tested_if_a_proxy_is_configured(host: str) -> None:
    fields = by_key(service_probe.read_service(DEADLINE, f"http://{host}:1", has_proxy=True))
    is_local = host == "127.0.0.1"
    status = fields["network.service.reachable"].status
    assert status == ("available" if is_local else "not-applicable")


@pytest.mark.parametrize(
    "url",
    ["http://anna:12/34@proxy:3128", "http://anna:p@s#s?w@proxy:3128", "anna:p/w@proxy:3128"],
)
def test_a_malformed_password_is_not_reported(url: str) -> None:
    assert resolver.host_and_port(url) == "proxy:3128"


@given(st.text())
def test_any_proxy_text_is_reported_without_credentials(text: str) -> None:
    result = resolver.host_and_port(text)
    assert result is None or "@" not in result


def test_facts_of_the_loopback_interface_are_read() -> None:
    def read_links(names: tuple[str, ...], _: Deadline) -> Links:
        return Links({"lo": "loopback"}, {"lo": Wireless("Venue", -60)})

    reading = interfaces.read_interfaces(DEADLINE, read_links)
    loopback = next(entry for entry in reading.interfaces if entry.id == "lo")
    facts = values(loopback.fields)
    assert facts["interface.type"] == "loopback"
    assert "127.0.0.1/8" in facts["interface.addresses"]
    assert facts["interface.wifiSsid"] == "Venue"
    assert facts["interface.receiveErrors"] == 0
    assert len({field.key for field in loopback.fields}) == len(loopback.fields)


def test_addresses_of_an_interface_are_read() -> None:
    address_row = psutil._ntp.snicaddr
    addresses = [
        address_row(psutil.AF_LINK, "AA-BB-CC-00-11-22", None, None, None),
        address_row(socket.AF_INET, "192.0.2.7", "255.255.254.0", None, None),
        address_row(socket.AF_INET6, "fe80::1%eth0", "ffff:ffff:ffff:ffff::", None, None),
        address_row(socket.AF_INET6, "2001:db8::1", None, None, None),
    ]
    facts = values(interfaces.address_fields(addresses))
    assert facts["interface.macAddress"] == "aa:bb:cc:00:11:22"
    assert facts["interface.addresses"] == ("192.0.2.7/23", "fe80::1/64", "2001:db8::1")


@given(st.text(), st.none() | st.text())
def test_the_parser_of_addresses_accepts_any_text(address: str, netmask: str | None) -> None:
    interfaces.with_prefix(address, netmask)


def test_interfaces_with_a_default_route_are_read(tmp_path: Path) -> None:
    default = "eth0\t00000000\t0101A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n"
    local = "usb0\t0000FEA9\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n"
    zeros = "0" * 32
    ipv6 = "".join(
        f"{zeros} 00 {zeros} 00 {zeros} ffffffff 00000001 00000000 00200200 {name}\n"
        for name in ("wwan0", "lo")
    )
    assert links.default_routes(tmp_path) is None
    root = write_files(
        tmp_path, {"route": f"Iface\tDestination\n{default}{local}", "ipv6_route": ipv6}
    )
    assert links.default_routes(root) == {"eth0", "wwan0"}


def test_link_types_are_detected(tmp_path: Path) -> None:
    root = write_files(
        tmp_path,
        {
            "eth0/type": "1\n",
            "eth0/device/vendor": "0x8086\n",
            "veth1/type": "1\n",
            "wlan0/type": "1\n",
            "wlan0/wireless/link": "0\n",
            "br0/type": "1\n",
            "br0/uevent": "DEVTYPE=bridge\nINTERFACE=br0\n",
            "lo/type": "772\n",
            "tun0/type": "65534\n",
        },
    )
    names = ("eth0", "veth1", "wlan0", "br0", "lo", "tun0", "gone")
    assert [links.link_type(root / name) for name in names] == [
        "ethernet",
        "virtual",
        "wifi",
        "bridge",
        "loopback",
        "tunnel",
        "other",
    ]


def test_wifi_facts_come_from_the_kernel_or_network_manager(tmp_path: Path) -> None:
    root = write_files(tmp_path, {"proc/net/wireless": fixture("linux/proc-net-wireless.txt")})
    objects = parse_objects(fixture("linux/network-manager.json"))
    wireless = links.read_wireless(root, ("wlan0",), lambda: objects, lambda _: "Kernel", dict)
    assert wireless["wlan0"] == Wireless("Kernel", -56)
    wireless = links.read_wireless(root, ("wlan0",), lambda: objects, lambda _: None, dict)
    assert wireless["wlan0"] == Wireless("Café", -56)


def test_the_kernel_names_no_network_for_loopback() -> None:
    assert links.ssid_by_ioctl("lo") is None


@given(st.text())
def test_the_parser_of_wifi_signals_accepts_any_text(text: str) -> None:
    assert all(level < 0 for level in parse_signals(text).values())


def test_wifi_signals_are_parsed() -> None:
    assert parse_signals(decode(fixture("linux/proc-net-wireless.txt"))) == {"wlan0": -56}


# ---------------------------------------------------------------------------- the service


def self_signed() -> tuple[bytes, bytes]:
    """Return a self-signed test certificate and its key, both in PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    issuer = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Nosy Middlebox Ltd"),
            x509.NameAttribute(NameOID.COMMON_NAME, "Inspecting CA \u2603"),
        ]
    )
    certificate = (
        x509.CertificateBuilder()
        .subject_name(issuer)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(4711)
        .not_valid_before(datetime(2026, 5, 6, 7, 8, 9, tzinfo=UTC))
        .not_valid_after(datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC))
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return certificate.public_bytes(serialization.Encoding.PEM), private


CERTIFICATE, KEY = self_signed()
DER = ssl.PEM_cert_to_DER_cert(CERTIFICATE.decode())


def test_a_certificate_is_parsed() -> None:
    assert parse_certificate(DER) == CertificateSummary(
        "Nosy Middlebox Ltd, Inspecting CA \u2603",
        "2026-05-06T07:08:09+00:00",
        "2031-05-06T07:08:09+00:00",
    )


def with_version(field: bytes) -> bytes:
    """Return the test certificate in DER. ``field`` replaces the encoded version field. If it is
    empty, the certificate has the default version, for which DER omits the field.
    """
    default = bytes.fromhex("a003020102")
    lengths = [int.from_bytes(DER[at : at + 2], "big") - len(default) + len(field) for at in (2, 6)]
    outer, inner = (b"\x30\x82" + length.to_bytes(2, "big") for length in lengths)
    return outer + inner + DER[8:].replace(default, field, 1)


ISSUER = "Nosy Middlebox Ltd, Inspecting CA \u2603"
VALID = ("2026-05-06T07:08:09+00:00", "2031-05-06T07:08:09+00:00")
SERIAL = bytes.fromhex("02021267")  # 4711


@pytest.mark.parametrize(
    ("der", "issuer"),
    [
        (with_version(b""), ISSUER),
        (DER.replace(SERIAL, bytes.fromhex("02029267"), 1), ISSUER),  # a negative serial number
        (DER.replace(SERIAL, bytes.fromhex("02020080"), 1), ISSUER),
        # A country instead of the organization, and a locality instead of the common name.
        (DER.replace(bytes.fromhex("55040a"), bytes.fromhex("550406")), "Inspecting CA \u2603"),
        (DER.replace(bytes.fromhex("550403"), bytes.fromhex("550407")), "Nosy Middlebox Ltd"),
        (DER.replace(b"Nosy", b"N\xf6sy"), "unreadable"),
        (DER.replace(b"\x0c\x12Nosy", b"\x03\x12\0osy"), "unreadable"),  # a bit string, not text
    ],
)
def test_an_unusual_certificate_is_parsed(der: bytes, issuer: str) -> None:
    assert der != DER
    assert parse_certificate(der) == CertificateSummary(issuer, *VALID)


def test_a_certificate_of_an_unknown_version_is_refused() -> None:
    with pytest.raises(ValueError, match="not an X"):
        parse_certificate(with_version(bytes.fromhex("a003020107")))


@given(st.binary())
def test_random_bytes_are_refused_as_a_certificate(data: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - no random bytes are a certificate
        parse_certificate(data)


@given(st.integers(0, len(DER) - 1), st.integers(0, 255))
def test_a_damaged_certificate_is_read_or_refused(position: int, byte: int) -> None:
    damaged = DER[:position] + bytes([byte]) + DER[position + 1 :]
    try:
        assert len(parse_certificate(damaged).issuer) <= 256
    except ValueError:
        return


@pytest.fixture
def tls_service(tmp_path: Path) -> Iterator[int]:
    """Run a TLS server with an untrusted certificate. Yields its port."""
    write_files(tmp_path, {"cert.pem": CERTIFICATE, "key.pem": KEY})
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)

        def serve() -> None:
            for _ in range(2):  # the probe connects again to read an untrusted certificate
                try:
                    connection, _address = server.accept()
                    with connection, context.wrap_socket(connection, server_side=True) as tls:
                        tls.recv(1)
                except OSError:
                    continue

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        thread.join()


def test_the_issuer_of_an_untrusted_certificate_is_reported(tls_service: int) -> None:
    reading = service_probe.read_service(Deadline.after(60), f"https://localhost:{tls_service}/")
    facts = values(reading.fields)
    assert facts["network.service.reachable"] is True
    assert facts["network.service.tlsTrusted"] is False
    assert facts["network.service.tlsIssuer"] == "Nosy Middlebox Ltd, Inspecting CA \u2603"
    assert facts["network.service.tlsVersion"] == "TLSv1.3"
    assert facts["network.service.tlsIssuedAt"] == "2026-05-06T07:08:09+00:00"
    assert facts["network.service.tlsExpiresAt"] == "2031-05-06T07:08:09+00:00"
    assert float(str(facts["network.service.connectMilliseconds"])) >= 0


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def test_a_service_that_refuses_connections_is_reported() -> None:
    reading = service_probe.read_service(Deadline.after(60), f"https://127.0.0.1:{closed_port()}")
    fields = by_key(reading)
    assert fields["network.service.reachable"].value is False
    assert fields["network.service.error"].value == "Connection refused"
    assert fields["network.service.tlsIssuer"].status == "not-applicable"


def test_addresses_of_a_family_that_the_kernel_lacks_are_skipped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    create_socket = socket.socket

    def create_ipv4_socket(family: int, *arguments: int) -> socket.socket:
        if family == socket.AF_INET6:
            raise OSError(errno.EAFNOSUPPORT, "Address family not supported by protocol")
        return create_socket(family, *arguments)

    with socket.create_server(("127.0.0.1", 0)) as service:
        port = service.getsockname()[1]
        addresses = [("::1", port), ("127.0.0.1", port)]
        monkeypatch.setattr(service_probe, "resolve", lambda *_: addresses)
        monkeypatch.setattr(socket, "socket", create_ipv4_socket)
        fields = by_key(service_probe.read_service(Deadline.after(60), "http://ops.example"))
    assert fields["network.service.reachable"].value is True


@pytest.mark.medium
def test_silent_service_is_reachable_without_tls_facts() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"https://127.0.0.1:{silent.getsockname()[1]}"
        fields = by_key(service_probe.read_service(Deadline.after(1.0), url))
    assert fields["network.service.reachable"].value is True
    assert fields["network.service.tlsIssuer"].status == "collection-failed"


def test_tls_facts_of_a_service_without_tls_are_not_applicable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as plain:
        url = f"http://127.0.0.1:{plain.getsockname()[1]}"
        fields = by_key(service_probe.read_service(Deadline.after(60), url))
    assert fields["network.service.reachable"].value is True
    assert fields["network.service.tlsIssuer"].status == "not-applicable"


@pytest.mark.parametrize("url", ["", "ftp://127.0.0.1", "nonsense"])
def test_service_facts_without_a_service_url_are_not_applicable(url: str) -> None:
    fields = service_probe.read_service(DEADLINE, url).fields
    assert {field.status for field in fields} == {"not-applicable"}
