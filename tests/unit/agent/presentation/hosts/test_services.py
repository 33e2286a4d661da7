"""Tests of how the services of a host are described."""

import pytest

from agent.presentation.hosts.services import SERVICES_LISTED_MAX, describe_services
from agent.wire.payloads.network import Endpoint, MapService
from collectors.network.mdns.browse import SERVICE_TYPES
from collectors.network.scan import port_names


def announced(service_type: str, port: int = 1234, *, reached: bool | None = True) -> MapService:
    return MapService(type=service_type, port=port, source="mdns", reachable=reached)


def opened(port: int, name: str | None) -> MapService:
    return MapService(name=name, port=port, source="tcp", reachable=True)


def endpoint(port: int, label: str) -> Endpoint:
    return Endpoint(
        address="192.168.1.7", host="x", port=port, label=label, model=None,
        discovered_by=("scan",), status="reachable", mac_address=None, matched_printer_ids=(),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("services", "description"),
    [
        ((announced("_ipp._tcp.local.", 631), announced("_ipps._tcp", 631)), "prints by IPP (631)"),
        ((announced("_pdl-datastream._tcp", 9100),), "prints raw data (9100)"),
        ((opened(9100, "Raw printing"), opened(9101, "jetdirect")), "prints raw data (9100, 9101)"),
        ((announced("_googlecast._tcp", 8009),), "plays casts (8009)"),
        ((opened(8008, "HTTP (8008)"), opened(443, "HTTPS")), "web page (8008, 443)"),
        ((announced("_apple-mobdev2._tcp", 0),), "Apple device"),
        ((announced("_device-info._tcp", 0),), ""),
        ((announced("_till-sync._tcp", 4711),), "till-sync (4711)"),
        ((opened(4711, "port 4711"), opened(4712, None)), "port 4711, 4712"),
        ((announced("_smb._tcp", 445, reached=None),), "shares files (445, announced only)"),
    ],
)
def test_services_are_described(services: tuple[MapService, ...], description: str) -> None:
    assert ", ".join(describe_services(services)) == description


def test_an_informative_port_label_is_displayed_beside_the_port() -> None:
    web = (opened(80, "HTTP"), opened(443, "HTTPS"))
    titled = (endpoint(80, "RouterOS"), endpoint(443, "HTTPS"))
    assert describe_services(web, titled) == ("web page “RouterOS” (80)", "web page (443)")
    assert describe_services(web, titled, ("x", "MikroTik RouterOS")) == ("web page (80, 443)",)
    shared = (announced("_ipp._tcp", 631), announced("_http._tcp", 631))
    assert describe_services(shared, (endpoint(631, "Brother HL @ till"),)) == (
        "prints by IPP “Brother HL @ till” (631)", "web page (631)",
    )  # fmt: skip
    same = (endpoint(80, "Office"), endpoint(631, "Office"))
    assert describe_services((opened(80, "HTTP"), opened(631, "IPP printing")), same) == (
        "prints by IPP “Office” (631)", "web page (80)",
    )  # fmt: skip
    unknown = (opened(4711, "port 4711"), announced("_till-sync._tcp", 4712))
    assert describe_services(unknown, (endpoint(4711, "Till"), endpoint(4712, "till-sync"))) == (
        "port 4711 “Till”", "till-sync (4712)",
    )  # fmt: skip


def test_the_main_service_of_a_host_is_listed_first() -> None:
    services = (opened(80, "HTTP"), announced("_till-sync._tcp"), announced("_ipp._tcp", 631))
    assert describe_services(services) == (
        "prints by IPP (631)",
        "web page (80)",
        "till-sync (1234)",
    )


def test_services_beyond_the_bound_are_counted() -> None:
    displayed = describe_services(tuple(opened(port, f"service {port}") for port in range(1, 101)))
    assert len(displayed) == SERVICES_LISTED_MAX + 1
    assert displayed[-1] == f"and {100 - SERVICES_LISTED_MAX} more"


def test_every_browsed_service_type_has_a_description() -> None:
    for service_type in SERVICE_TYPES:
        bare_type = service_type.removeprefix("_").removesuffix("._tcp")
        described = describe_services((announced(service_type),))
        assert described != (f"{bare_type} (1234)",), service_type


def test_known_ports_have_a_description() -> None:
    undescribed = {"Kerberos", "Windows RPC", "MySQL", "PostgreSQL"}
    names = {port: port_names.port_name(port) for port in (*range(1, 10_200), 62078)}
    known = {port: name for port, name in names.items() if name != f"port {port}"}
    assert undescribed < set(known.values())
    for port, name in known.items():
        if name not in undescribed:
            assert describe_services((opened(port, name),)) != (f"{name} ({port})",), name
