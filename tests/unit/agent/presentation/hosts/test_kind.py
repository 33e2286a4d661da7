"""Tests of how the kind of a host (printer, camera, …) is determined."""

from pathlib import Path

import pytest

from agent import presentation
from agent.presentation.hosts.evidence import HOST_KINDS, KIND_LABELS, ROLES, HostKind
from agent.presentation.hosts.kind import SHARED_QUEUE, kind_of
from agent.presentation.page.network_diagram import NEAREST_FIRST
from agent.wire.payloads.network import Endpoint, MapHost
from agent.wire.vocabulary import DiscoverySource
from collectors.network.mdns.description import ROLES as COLLECTED_ROLES
from tests.fixtures.payloads import host


@pytest.mark.parametrize(
    ("name", "ports", "announced", "kind"),
    [
        (None, (9100,), None, "printer"),
        ("front-desk", (80, 631), None, "printer"),
        ("x", (8008,), "_googlecast._tcp.local.", "screen"),
        ("x", (554, 80), None, "camera"),
        ("nas", (22, 445), None, "server"),
        ("Annas-iPhone", (), None, "phone"),
        ("x", (), "_apple-mobdev2._tcp", "phone"),
        ("BRN30055C112233", (80,), None, "printer"),
        ("door-kiosk", (80,), None, "screen"),
        ("idrac-4XK2P13", (80, 443), None, "server"),
        ("metrics", (22, 9100), None, "server"),
        ("metrics", (9100, 22, 631), None, "printer"),
        ("SoundBar-Bar", (), None, "speaker"),
        ("x", (80,), "_fbx-api._tcp.local.", "network"),
        ("x", (), "_nut._tcp.local.", "server"),
        ("x", (), "_powerview-g3._tcp.local.", "home"),
        ("something", (), None, "unknown"),
        (None, (), None, "unknown"),
        ("<script>", (), "\x1b[31m", "unknown"),
    ],
)
def test_names_ports_and_announcements_determine_the_kind_of_a_host(
    name: str | None, ports: tuple[int, ...], announced: str | None, kind: HostKind
) -> None:
    lan_host = host(7, name, *ports, mdns=announced)
    assert kind_of(lan_host, is_matched=False, is_gateway=False) == kind


def test_ports_do_not_change_the_kind_of_a_gateway_or_this_machine_or_a_matched_printer() -> None:
    printer_like = host(7, "x", 9100)
    assert kind_of(printer_like, is_matched=False, is_gateway=True) == "router"
    local = host(7, "x", 9100, sources=("local", "tcp"))
    assert kind_of(local, is_matched=True, is_gateway=True) == "machine"
    assert kind_of(host(7, "x", 22), is_matched=True, is_gateway=False) == "printer"


def test_a_refused_port_does_not_determine_the_kind_of_a_host() -> None:
    lan_host = host(7, None, 9100)
    refused_service = lan_host.services[0].model_copy(update={"reachable": False})
    with_refused_port = lan_host.model_copy(update={"services": (refused_service,)})
    assert kind_of(with_refused_port, is_matched=False, is_gateway=False) == "unknown"


def endpoint(
    port: int,
    label: str = "x",
    model: str | None = None,
    ids: tuple[str, ...] = (),
    by: tuple[DiscoverySource, ...] = ("scan",),
) -> Endpoint:
    return Endpoint(
        address="192.168.1.7",
        host="x",
        port=port,
        label=label,
        model=model,
        discovered_by=by,
        status="reachable",
        mac_address=None,
        matched_printer_ids=ids,
    )


def test_a_web_port_alone_does_not_make_a_host_a_server() -> None:
    for ports in ((80,), (443,), (80, 443), (8080,), (8043, 8443)):
        assert kind_with(host(7, None, *ports)) == "unknown"


def test_a_host_with_a_shared_queue_is_a_server() -> None:
    sharing_host = host(7, "till", 631, mdns="_ipp._tcp")
    shared_queue = endpoint(631, model="Brother HL (shared queue)")
    assert kind_with(sharing_host, shared_queue) == "server"
    matched = endpoint(631, model="Brother HL (shared queue)", ids=("q1",))
    assert kind_with(sharing_host, matched, is_matched=True) == "server"
    nameless = endpoint(631, model="shared queue")
    assert kind_with(sharing_host, nameless) == "server"
    # A matched raw printer port beside the shared queue makes the host a printer.
    assert (
        kind_with(sharing_host, shared_queue, endpoint(9100, ids=("q1",)), is_matched=True)
        == "printer"
    )
    assert kind_with(sharing_host, endpoint(631, model="Brother HL")) == "printer"
    assert kind_with(sharing_host, shared_queue, is_gateway=True) == "router"


@pytest.mark.parametrize(
    ("announced", "model", "kind"),
    [
        ("_airplay._tcp", "iMac21,1", "server"),
        ("_airplay._tcp", "Mac16,12", "server"),
        ("_airplay._tcp", "AppleTV14,1", "screen"),
        ("_airplay._tcp", "AudioAccessory5,1", "speaker"),
        ("_airplay._tcp", "Sonos One (speaker)", "speaker"),
        ("_airplay._tcp", "HW-Q990C", "speaker"),
        ("_airplay._tcp", "HT-A7000", "speaker"),
        ("_airplay._tcp", "Bose Smart Soundbar 900", "speaker"),
        ("_airplay._tcp", "LG OLED55C9 (screen)", "screen"),
        ("_raop._tcp", "AirPort10,115", "network"),
        ("_ssh._tcp", "MacPro", "server"),
        ("_companion-link._tcp", "J320AP", "phone"),
        ("_companion-link._tcp", "D421pAP", "phone"),
        ("_companion-link._tcp", "J105aAP", "screen"),
        ("_companion-link._tcp", "B520AP", "speaker"),
        ("_companion-link._tcp", "iPad13,1", "phone"),
        ("_googlecast._tcp", "Google Home Mini (speaker)", "speaker"),
        ("_hap._tcp", "LIFX A19 (light)", "lighting"),
        ("_hap._tcp", "Circle View (camera)", "camera"),
        ("_hap._tcp", "Eve Energy (outlet)", "home"),
        ("_hap._tcp", "Someone's (best) plug", "home"),
        ("_spotify-connect._tcp", None, "speaker"),
        ("_androidtvremote2._tcp", None, "screen"),
    ],
)
def test_announced_roles_and_models_determine_the_kind_of_a_host(
    announced: str, model: str | None, kind: HostKind
) -> None:
    lan_host = host(7, "Android.local", 5000, mdns=announced)
    assert kind_with(lan_host, endpoint(5000, model=model, by=("mdns",))) == kind


@pytest.mark.parametrize(
    ("label", "kind"),
    [
        ("DCS-932LB1", "camera"),
        ("NETGEAR R7000P", "network"),
        ("Kyocera ECOSYS", "printer"),
        ("CUPS/2.4 IPP/2.1", "server"),
        ("Cisco IP Phone", "phone"),
        ("Lenovo XClarity Controller", "server"),
        ("MegaRAC SP-X", "server"),
        ("Node Exporter", "server"),
        ("Speedport Smart 4", "network"),
        ("Omada Controller", "network"),
        ("TP-Link Tapo P110", "home"),
        ("Paxton Net2", "home"),
        ("DoorBird", "camera"),
        ("MagicINFO Player", "screen"),
        ("Welcome to nginx!", "server"),
        ("The Smart Hubcap Shop", "unknown"),
        ("Decorators' Bar", "unknown"),
        ("Shelly Switch", "home"),
        ("Lucia's of San Francisco", "unknown"),
        ("Sprint results", "unknown"),
    ],
)
def test_the_title_of_a_web_page_determines_the_kind_of_a_host(label: str, kind: HostKind) -> None:
    assert kind_with(host(7, None, 80), endpoint(80, label)) == kind


def test_an_announced_name_is_not_used_as_a_page_title() -> None:
    lan_host = host(7, None, 80, mdns="_http._tcp")
    assert (
        kind_with(lan_host, endpoint(80, "Camera and printer shop", by=("mdns", "scan")))
        == "unknown"
    )


def test_every_role_that_determines_a_kind_is_reported_by_collectors() -> None:
    assert set(ROLES) <= COLLECTED_ROLES
    assert SHARED_QUEUE in COLLECTED_ROLES


def test_every_kind_has_a_label_an_icon_and_a_colour() -> None:
    templates = Path(presentation.__file__).parent / "page/templates"
    icons, styles = (templates / "map.html").read_text(), (templates / "report.css").read_text()
    assert set(KIND_LABELS) == set(HOST_KINDS) == set(NEAREST_FIRST)
    for kind in HOST_KINDS:
        assert f'id="icon-{kind}"' in icons
        assert styles.count(f"--{kind}: #") == 2, "a light and a dark page need a colour each"


def kind_with(
    lan_host: MapHost, *endpoints: Endpoint, is_matched: bool = False, is_gateway: bool = False
) -> HostKind:
    return kind_of(lan_host, endpoints, is_matched=is_matched, is_gateway=is_gateway)
