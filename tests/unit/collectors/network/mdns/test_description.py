import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.network.mdns.description import (
    ROLES,
    display_model,
    friendly_name,
    is_technical,
    role_of,
    txt_model,
)
from collectors.network.observations import MdnsService


def service(kind: str, instance: str = "Kitchen", **txt: str) -> MdnsService:
    return MdnsService(instance, kind, "h.local", ("10.0.0.9",), 631, tuple(txt.items()))


@pytest.mark.parametrize(
    ("kind", "txt", "role"),
    [
        ("_ipp._tcp", {"rp": "printers/kitchen"}, "shared queue"),
        ("_ipp._tcp", {"rp": "/classes/all"}, "shared queue"),
        ("_ipps._tcp", {"rp": "x", "printer-type": "0x801046"}, "shared queue"),
        ("_ipp._tcp", {"rp": "ipp/print"}, None),
        ("_hap._tcp", {"ci": "5"}, "light"),
        ("_hap._tcp", {"ci": "17"}, "camera"),
        ("_hap._tcp", {"ci": "99"}, None),
        ("_googlecast._tcp", {"ca": "199172"}, "speaker"),
        ("_googlecast._tcp", {"ca": "4101"}, "screen"),
        ("_googlecast._tcp", {}, None),
        ("_airplay._tcp", {"features": "0x445F8A00,0x1C340"}, "speaker"),
        ("_airplay._tcp", {"features": "0x4A7FDFD5,0xBC157FDE"}, "screen"),
        ("_airplay._tcp", {"features": "0x200,0x20000"}, "screen"),
        ("_raop._tcp", {"ft": "0x4A7FCA00,0xBC354BD0"}, "speaker"),
        ("_airplay._tcp", {"features": "many"}, None),
        ("_http._tcp", {"rp": "printers/x", "ci": "5"}, None),
    ],
)
def test_the_role_of_an_announced_service_is_determined(
    kind: str, txt: dict[str, str], role: str | None
) -> None:
    assert role_of(service(kind, **txt)) == role
    assert role is None or role in ROLES


@pytest.mark.parametrize(
    ("announcement", "name"),
    [
        (service("_raop._tcp", "02005E0010AA@Terrace"), "Terrace"),
        (service("_workstation._tcp", "till-2 [02:00:5e:00:10:aa]"), "till-2"),
        (service("_googlecast._tcp", "Chromecast-0123", fn="Salon"), "Salon"),
        (service("_googlecast._tcp", "Chromecast-0123"), "Chromecast-0123"),
        (service("_amzn-wplay._tcp", "amzn.dmgr:1", n="Bar TV"), "Bar TV"),
        (service("_ipp._tcp", "Bar @ till"), "Bar @ till"),
        (service("_raop._tcp", "02005E0010AA@"), "02005E0010AA@"),
    ],
)
def test_the_friendly_name_of_a_service_is_parsed(announcement: MdnsService, name: str) -> None:
    assert friendly_name(announcement) == name


def test_models_in_announcements_are_parsed() -> None:
    synology = service("_http._tcp", vendor="Synology", model="DS418play")
    assert txt_model(synology) == "Synology DS418play"
    assert txt_model(service("_raop._tcp", am="AppleTV6,2")) == "AppleTV6,2"
    assert txt_model(service("_companion-link._tcp", rpmd="iPad13,1")) == "iPad13,1"
    named = service("_airplay._tcp", manufacturer="Sonos", model="Sonos One")
    assert txt_model(named) == "Sonos One"
    # File servers of other makers announce these models only to get an icon on a Mac.
    for icon in ("Xserve", "RackMac", "MacSamba"):
        assert txt_model(service("_device-info._tcp", model=icon)) is None
    assert txt_model(service("_ipp._tcp", product="(GPL Ghostscript)")) is None
    assert txt_model(service("_ipp._tcp", ty="Local Raw Printer", usb_mdl="HL-1")) == "HL-1"


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("Brother MFC-7360N, using brlaser v4", "Brother MFC-7360N"),
        ("Samsung ML-2160 Series, hpcups 3.22.10", "Samsung ML-2160 Series"),
        ("HP LaserJet - CUPS+Gutenprint v5.3", "HP LaserJet"),
        ("HP LaserJet Foomatic/pxlmono (recommended)", "HP LaserJet"),
        ("Canon TS5000, driverless, 2.1.1", "Canon TS5000"),
        ("EPSON ET-3700 Series", "EPSON ET-3700 Series"),
        ("iMac21,1", "iMac21,1"),
        ("Local Raw Printer", None),
    ],
)
def test_names_of_drivers_are_removed_from_models(model: str, expected: str | None) -> None:
    assert display_model(model) == expected


def test_technical_names_are_recognised() -> None:
    for name in ("sonos02005e0010aa", "02:00:5e:00:10:aa@fe80::1", "amzn.dmgr:1:x", "RINCON_1"):
        assert is_technical(name)
    for name in ("Kitchen", "EPSON TM-m30", "BRN30055C", "till-2", "Café 12"):
        assert not is_technical(name)


@given(
    st.sampled_from(["_ipp._tcp", "_hap._tcp", "_googlecast._tcp", "_airplay._tcp", "_raop._tcp"]),
    st.text(max_size=40),
    st.dictionaries(
        st.sampled_from(["rp", "ci", "ca", "features", "ft", "am", "md", "ty", "fn"]),
        st.text(max_size=40),
    ),
)
def test_any_announced_service_has_valid_roles_models_and_names(
    kind: str, instance: str, txt: dict[str, str]
) -> None:
    result = service(kind, instance, **txt)
    role = role_of(result)
    assert role is None or role in ROLES
    assert txt_model(result) != ""
    assert bool(friendly_name(result)) == bool(instance or (txt.get("fn") and "cast" in kind))
