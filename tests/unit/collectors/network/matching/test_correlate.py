from collectors.network.matching.correlate import correlate, identify, txt_model
from collectors.network.matching.devices import is_same_model, plain_model
from collectors.network.matching.reasons import listed, state_words
from collectors.network.observations import (
    Evidence,
    HostName,
    Identification,
    MdnsService,
    PortContact,
    SeenHost,
)

UUID = "e3248000-80ce-11db-8000-001ba9123456"


def service(kind: str = "_ipp._tcp", port: int = 631, **txt: str) -> MdnsService:
    return MdnsService("Kitchen", kind, "h.local", ("10.0.0.9",), port, tuple(txt.items()))


def test_joins_what_every_source_saw():
    (observation,) = correlate(
        hosts=[SeenHost("10.0.0.9", "aa:aa:aa:aa:aa:aa")],
        contacts=[PortContact("10.0.0.9", 631, "open"), PortContact("10.0.0.9", 80, "refused")],
        services=[service(uuid=UUID.upper(), rp="/ipp/print/", ty="Brother HL")],
        evidence=[Evidence("10.0.0.9", 631, make_model="Brother HL", serial="S1", state="idle")],
        hostnames=[HostName("10.0.0.9", "brn.local")],
    ).observations
    assert (observation.contact, observation.is_announced, observation.state) == (
        "open",
        True,
        "idle",
    )
    assert observation.mac_address == "aa:aa:aa:aa:aa:aa"
    assert observation.hostnames == ("h.local", "brn.local")
    assert (observation.uuids, observation.serials, observation.queues) == (
        (UUID,),
        ("S1",),
        ("ipp/print",),
    )
    assert observation.models == ("Brother HL",)


def test_a_service_without_a_port_is_no_sighting():
    assert correlate(services=[service("_printer._tcp", 0)]).observations == ()


def test_models_in_txt_records():
    assert txt_model(service(ty="HP LaserJet")) == "HP LaserJet"
    assert txt_model(service(usb_mfg="Brother", usb_mdl="HL-L2350DW")) == "Brother HL-L2350DW"
    assert txt_model(service(product="(EPSON TM-m30)")) == "EPSON TM-m30"
    assert txt_model(service("_googlecast._tcp", md="Chromecast")) == "Chromecast"
    assert txt_model(service("_airplay._tcp", model="AppleTV6,2")) == "AppleTV6,2"
    assert txt_model(service("_http._tcp", md="no model here")) is None
    assert txt_model(service(ty="Printer")) is None


def test_labels_and_models_of_endpoints():
    found = identify(
        [service(ty="From TXT"), service("_http._tcp", 80)],
        [
            Evidence("10.0.0.9", 631, make_model="From IPP", name="Own name"),
            Evidence("10.0.0.9", 80, title="Web page"),
            Evidence("10.0.0.9", 8080, title="Other page"),
        ],
    )
    assert {(each.port, each.label, each.model) for each in found} == {
        (631, "Kitchen", "From IPP"),
        (80, "Kitchen", None),
        (8080, "Other page", None),
    }
    assert Identification("10.0.0.9", 631, "Kitchen", "From IPP") in found


def test_models_are_compared_without_what_drivers_add():
    assert plain_model("Brother HL-L2350DW series - CUPS+Gutenprint") == "brotherhll2350dw"
    assert plain_model("Printer - IPP Everywhere") == plain_model("Local Raw Printer") == ""
    assert is_same_model("HL-L2350DW", "Brother HL-L2350DW, driverless, cups-filters 1.28")
    assert not is_same_model("HP LaserJet", "Brother HL-L2350DW")
    assert not is_same_model(None, "")


def test_words_of_reasons():
    assert state_words(("media-empty-error", "media-empty-warning")) == ("out of paper",)
    assert state_words(("toner-low", "com.vendor-thing")) == ("low on toner", "com.vendor thing")
    assert listed(["a", "b", "c", "d", "e", "f"]) == "a, b, c, d and 2 more"
    assert (listed(["a"]), listed([])) == ("a", "")
