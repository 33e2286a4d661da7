from collectors.network.correlate import announced_addresses, correlate
from collectors.network.matching.models import is_same_model, plain_model
from collectors.network.matching.reasons import join_names, state_words
from collectors.network.mdns.description import txt_model
from collectors.network.observations import (
    Evidence,
    MdnsService,
)
from collectors.network.scan.scan import ScannedHost

UUID = "e3248000-80ce-11db-8000-001ba9123456"


def service(kind: str = "_ipp._tcp", port: int = 631, **txt: str) -> MdnsService:
    return MdnsService("Kitchen", kind, "h.local", ("10.0.0.9",), port, tuple(txt.items()))


def test_facts_of_all_sources_are_joined_by_address():
    observed = correlate(
        scanned=[
            ScannedHost(
                "10.0.0.9",
                mac_address="aa:aa:aa:aa:aa:aa",
                open_ports=(631,),
                refused_ports=(80,),
            )
        ],
        services=[service(uuid=UUID.upper(), rp="/ipp/print/", ty="Brother HL")],
        evidence=[Evidence("10.0.0.9", 631, make_model="Brother HL", serial="S1", state="idle")],
        hostnames={"10.0.0.9": "brn.local"},
    )
    (observation,) = observed.ports.values()
    assert (observation.contact, observation.is_announced, observation.state) == (
        "open",
        True,
        "idle",
    )
    assert observed.hosts["10.0.0.9"].mac_address == "aa:aa:aa:aa:aa:aa"
    assert observation.hostnames == ("h.local", "brn.local")
    assert (observation.uuids, observation.serials, observation.queues) == (
        (UUID,),
        ("S1",),
        ("ipp/print",),
    )
    assert observation.models == ("Brother HL",)


def test_a_service_without_a_port_adds_no_port():
    assert correlate(services=[service("_printer._tcp", 0)]).ports == {}


def test_models_in_txt_records_are_parsed():
    assert txt_model(service(ty="HP LaserJet")) == "HP LaserJet"
    assert txt_model(service(usb_mfg="Brother", usb_mdl="HL-L2350DW")) == "Brother HL-L2350DW"
    assert txt_model(service(product="(EPSON TM-m30)")) == "EPSON TM-m30"
    assert txt_model(service("_googlecast._tcp", md="Chromecast")) == "Chromecast"
    assert txt_model(service("_airplay._tcp", model="AppleTV6,2")) == "AppleTV6,2"
    assert txt_model(service("_http._tcp", md="no model here")) is None
    assert txt_model(service(ty="Printer")) is None


def test_endpoints_have_labels_and_models_of_all_sources():
    observed = correlate(
        services=[service(ty="From TXT"), service("_http._tcp", 80)],
        evidence=[
            Evidence("10.0.0.9", 631, make_model="From IPP", name="Own name"),
            Evidence("10.0.0.9", 80, title="Web page"),
            Evidence("10.0.0.9", 8080, title="Other page"),
        ],
    )
    assert {(port.port, port.labels[0], port.models[:1]) for port in observed.ports.values()} == {
        (631, "Kitchen", ("From IPP",)),
        (80, "Kitchen", ()),
        (8080, "Other page", ()),
    }
    assert observed.ports["10.0.0.9", 631].labels == ("Kitchen", "Own name")


def test_models_are_compared_without_names_of_drivers():
    assert plain_model("Brother HL-L2350DW series - CUPS+Gutenprint") == "brotherhll2350dw"
    assert plain_model("Printer - IPP Everywhere") == plain_model("Local Raw Printer") == ""
    assert is_same_model("HL-L2350DW", "Brother HL-L2350DW, driverless, cups-filters 1.28")
    assert not is_same_model("HP LaserJet", "Brother HL-L2350DW")
    assert not is_same_model(None, "")


def test_reported_printer_states_are_described():
    assert state_words(("media-empty-error", "media-empty-warning")) == ("out of paper",)
    assert state_words(("toner-low", "com.vendor-thing")) == ("low on toner", "com.vendor thing")
    assert join_names(["a", "b", "c", "d", "e", "f"]) == "a, b, c, d and 2 more"
    assert (join_names(["a"]), join_names([])) == ("a", "")


def test_a_service_is_listed_under_ipv4_or_its_best_ipv6_address() -> None:
    def listed(*addresses: str) -> tuple[str, ...]:
        return announced_addresses(MdnsService("x", "_ipp._tcp", "x.local", addresses, 631))

    assert listed("fe80::1", "10.0.0.1", "10.0.0.2") == ("10.0.0.1", "10.0.0.2")
    assert listed("fe80::1", "fd00::1") == ("fd00::1",)
    assert listed() == ()


def test_observations_can_exclude_addresses() -> None:
    observed = correlate(scanned=[ScannedHost("10.0.0.9", open_ports=(80,))], services=[service()])
    assert observed.without({"10.0.0.8"}) == observed
    remaining = observed.without({"10.0.0.9"})
    assert (remaining.hosts, remaining.ports) == ({}, {})
