"""Tests the list of announced services: the services that a device announces for itself come first,
and the share of each announcer is limited.
"""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.network.mdns.announced import (
    ANNOUNCERS_NAMED_MAX,
    HOSTS_PER_ANNOUNCER_MAX,
    LISTED_MAX,
    SERVICES_PER_ANNOUNCER_MAX,
    SERVICES_PER_HOST_MAX,
    LinkLayer,
    ServiceSelection,
    choose_services,
    identifiers_of,
)
from collectors.network.observations import KnownPrinter, MdnsService, PrinterIdentifiers

HONEST, OTHER, FORGER = "192.168.1.9", "192.168.1.10", "192.168.1.66"
FORGER_MAC = "02:00:00:00:00:66"
LINK = LinkLayer(
    {HONEST: "02:00:00:00:00:09", OTHER: "02:00:00:00:00:10", FORGER: FORGER_MAC},
    networks=(ipaddress.ip_network("192.168.1.0/24"),),
)


def service(
    label: str, announcer: str, *addresses: str, port: int = 631, uuid: str = ""
) -> MdnsService:
    txt = (("uuid", uuid),) if uuid else ()
    return MdnsService(label, "_ipp._tcp", "h.local", addresses, port, txt, "eth0", announcer)


KITCHEN = service("Kitchen", HONEST, HONEST)


def listed_services(result: ServiceSelection) -> set[tuple[str, str]]:
    """Return the instance and each address of the listed services."""
    return {
        (announced_service.instance, address)
        for announced_service in result.services
        for address in announced_service.addresses
    }


def select(
    *services: MdnsService, link: LinkLayer = LINK, identifiers: PrinterIdentifiers | None = None
) -> ServiceSelection:
    return choose_services(services, link, identifiers or PrinterIdentifiers())


def test_own_announcements_of_devices_are_unchanged() -> None:
    result = select(KITCHEN, service("Bar", OTHER, OTHER))
    assert result.services == (KITCHEN, service("Bar", OTHER, OTHER))
    assert (result.limitations, result.is_cut) == ((), False)
    assert result.announcers[HONEST] == "02:00:00:00:00:09"


@pytest.mark.parametrize(
    "forged",
    [
        service("Kitchen", FORGER, OTHER),
        service("KITCHEN", FORGER, "10.9.9.9"),
        service("Forged", FORGER, HONEST),
    ],
)
def test_an_announcement_that_contradicts_the_device_itself_is_left_out(
    forged: MdnsService,
) -> None:
    result = select(forged, KITCHEN)
    assert result.services == (KITCHEN,)
    (text,) = result.limitations
    assert text.startswith(f"192.168.1.66 (MAC {FORGER_MAC}) announced 1 services that other")


def test_a_service_of_the_same_name_by_another_announcer_is_listed_separately() -> None:
    result = select(service("Kitchen", FORGER, FORGER, HONEST), KITCHEN)
    assert listed_services(result) == {("Kitchen", FORGER), ("Kitchen", HONEST)}
    assert [
        announced_service
        for announced_service in result.services
        if HONEST in announced_service.addresses
    ] == [KITCHEN]


def test_a_service_announced_by_another_host_is_listed_last_as_hearsay() -> None:
    shared = service("AirPrint", OTHER, HONEST, port=9100)
    first, second = select(shared, KITCHEN).services
    assert first == KITCHEN
    assert (second.instance, second.addresses, second.is_hearsay) == ("AirPrint", (HONEST,), True)


def test_addresses_with_the_same_mac_belong_to_one_device() -> None:
    link = LinkLayer(
        {HONEST: "02:00:00:00:00:09", "fe80::9": "02:00:00:00:00:09"}, (), LINK.networks
    )
    both = service("Kitchen", HONEST, HONEST, "fe80::9")
    assert select(both, link=link).services == (both,)


def test_announcements_for_other_hosts_are_ignored_behind_proxy_arp() -> None:
    link = LinkLayer({f"192.168.1.{n}": FORGER_MAC for n in range(1, 80)}, (), LINK.networks)
    result = select(service("Kitchen", FORGER, OTHER), KITCHEN, link=link)
    assert result.services == (KITCHEN,)


def test_addresses_of_other_networks_are_left_out_beside_a_local_address() -> None:
    result = select(service("Server", HONEST, HONEST, "172.17.0.1", "fe80::9"))
    assert listed_services(result) == {("Server", HONEST), ("Server", "fe80::9")}
    reflected = select(service("Reflected", HONEST, "10.20.0.5"))
    assert listed_services(reflected) == {("Reflected", "10.20.0.5")}


def test_services_of_one_announcer_are_bounded_and_reported() -> None:
    forged = [service(f"Forged {n}", FORGER, FORGER, port=n + 1) for n in range(2048)]
    result = select(*forged, KITCHEN)
    assert SERVICES_PER_HOST_MAX == 64
    assert result.limitations == (
        f"192.168.1.66 (MAC {FORGER_MAC}) announced 2,048 services: 64 are listed",
    )
    assert ("Kitchen", HONEST) in listed_services(result)
    assert result.is_cut


def test_services_and_hosts_of_one_announcer_are_bounded() -> None:
    forged = [service(f"Forged {n}", FORGER, f"10.0.{n // 8}.{n % 250}") for n in range(2048)]
    result = select(*forged)
    assert len({address for _, address in listed_services(result)}) == HOSTS_PER_ANNOUNCER_MAX
    many = [service(f"Forged {n}", FORGER, f"10.0.0.{n % 60}", port=n + 1) for n in range(2048)]
    assert len(listed_services(select(*many))) == SERVICES_PER_ANNOUNCER_MAX


def test_announcements_of_others_do_not_displace_services_of_the_device_itself() -> None:
    forged = [service(f"Forged {n}", FORGER, HONEST, port=2000 + n) for n in range(500)]
    own = [service(f"Queue {n}", HONEST, HONEST, port=1 + n) for n in range(40)]
    assert {(f"Queue {n}", HONEST) for n in range(40)} <= listed_services(select(*forged, *own))


def test_all_announcers_share_the_limit_of_listed_services() -> None:
    forged = [
        service(f"Forged {source} {n}", source, *(f"10.{k}.{number}.{n % 8}" for k in range(8)))
        for number in range(200)
        for source in (f"192.168.1.{number}",)
        for n in range(8)
    ]
    result = select(*forged, service("Late", "192.168.1.250", "192.168.1.250"), link=LinkLayer())
    assert len(listed_services(result)) == LISTED_MAX
    assert ("Late", "192.168.1.250") in listed_services(result)


def test_addresses_that_answer_no_arp_are_one_announcer() -> None:
    sources = [f"192.168.1.{n}" for n in range(100, 200)]
    forged = [
        service(f"Forged {source} {n}", source, source) for source in sources for n in range(4)
    ]
    result = select(*forged, KITCHEN, link=LinkLayer(LINK.macs, frozenset(sources), LINK.networks))
    assert len(listed_services(result)) <= HOSTS_PER_ANNOUNCER_MAX * 4 + 1
    assert result.limitations[0].startswith(
        "100 addresses at which no host answers ARP, such as 192.168.1.100, announced 400 services:"
    )


def test_announcements_that_identify_known_printers_are_cut_last() -> None:
    uuid = "12345678-1234-1234-1234-123456789abc"
    printers = (
        KnownPrinter("a", "Front desk", "network", "config"),
        KnownPrinter("b", "B", "network", "cups", addresses=("10.3.3.3",)),
        KnownPrinter("c", "C", "network", "cups", uuid=uuid),
        KnownPrinter("d", "D", "network", "cups", mac_address=FORGER_MAC),
    )
    forged = [service(f"Forged {n}", OTHER, f"10.0.0.{n % 64}", port=n + 1) for n in range(1000)]
    needed = [
        service("Front desk", OTHER, "10.3.3.1"),
        service("X", OTHER, "10.3.3.3"),
        service("Y", OTHER, "10.3.3.4", uuid=uuid.upper()),
        service("Z", OTHER, FORGER),
    ]
    kept = listed_services(select(*forged, *needed, identifiers=identifiers_of(printers)))
    assert {
        (announced_service.instance, announced_service.addresses[0]) for announced_service in needed
    } <= kept


def test_only_the_announcers_with_the_most_services_are_named() -> None:
    forged = [
        service(f"Forged {number} {n}", f"192.168.1.{number}", f"192.168.1.{number}", port=n + 1)
        for number in range(20)
        for n in range(80)
    ]
    result = select(*forged, link=LinkLayer())
    assert len(result.limitations) == ANNOUNCERS_NAMED_MAX + 1
    assert result.limitations[-1] == "12 more devices announced 960 services: 768 are listed"


_FORGED = st.lists(
    st.builds(
        lambda label, addresses, port: service(label, FORGER, *dict.fromkeys(addresses), port=port),
        st.sampled_from(("Kitchen", "Bar", "Forged", "")),
        st.lists(st.sampled_from((HONEST, OTHER, FORGER, "10.1.1.1", "fe80::1")), max_size=4),
        st.integers(0, 70_000),
    ),
    max_size=200,
)


@given(_FORGED, st.booleans())
def test_hostile_announcements_do_not_change_honest_services(
    forged: list[MdnsService], is_first: bool
) -> None:
    honest = (KITCHEN, service("Bar", OTHER, OTHER), service("Bar web", OTHER, OTHER, port=80))
    result = select(*((*forged, *honest) if is_first else (*honest, *forged)))
    assert set(honest) <= set(result.services)
    for announced_service in result.services:
        if announced_service.announcer == FORGER:
            assert (HONEST, 631) not in {
                (a, announced_service.port) for a in announced_service.addresses
            }
            assert (
                not ({HONEST, OTHER} & set(announced_service.addresses))
                or announced_service.is_hearsay
            )


def test_service_without_a_host_address_is_not_cut() -> None:
    result = select(KITCHEN, service("Half", HONEST))
    assert {announced_service.instance for announced_service in result.services} == {
        "Kitchen",
        "Half",
    }
    assert (result.is_cut, result.limitations) == (False, ())
