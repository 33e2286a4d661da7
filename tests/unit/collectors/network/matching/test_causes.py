"""Tests that each cause in the table is reported, and is no longer reported after its fix."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.contract import Interface, InterfaceAddress, LearnedPrinter
from collectors.network.correlate import correlate
from collectors.network.matching.causes import CAUSES, Cause, explain, machine_causes
from collectors.network.matching.learned import with_learned
from collectors.network.matching.machine import find_machine_symptoms
from collectors.network.matching.match import match
from collectors.network.matching.symptoms import MachineSymptoms, Symptoms
from collectors.network.observations import Evidence, KnownPrinter, MdnsService
from collectors.network.printers.cups import queue_printer
from collectors.network.printers.host_names import with_literal_addresses
from collectors.network.printers.usb import UsbPrinter, with_usb
from collectors.network.scan.scan import PortState, ScannedHost
from collectors.shared.host.local_network import LocalInterface, LocalNetwork
from tests.paths import ROOT

MAC, STRANGER_MAC = "00:1b:a9:12:34:56", "02:00:00:00:00:61"
UUID = "e3248000-80ce-11db-8000-001ba9123456"
ADDRESS = "192.168.1.50"
Attempts = dict[tuple[str, int], tuple[PortState, ...]]


def interface(
    name: str = "eth0",
    address: str = "192.168.1.2",
    prefix: int = 24,
    gateway: str | None = "192.168.1.1",
    *,
    is_wireless: bool = False,
) -> LocalInterface:
    own = Interface(
        name, (InterfaceAddress(address, "ipv4", prefix),), (gateway,) if gateway else ()
    )
    return LocalInterface(own, is_wireless=is_wireless)


def host(
    address: str = ADDRESS,
    mac: str = MAC,
    opened: tuple[int, ...] = (9100,),
    **ports: tuple[int, ...],
) -> ScannedHost:
    return ScannedHost(address, mac_address=mac, open_ports=opened, **ports)


def queue(uri: str = f"socket://{ADDRESS}", model: str | None = None) -> KnownPrinter:
    printer = queue_printer("kitchen", "", uri, model)
    assert printer is not None
    return with_literal_addresses([printer])[0]


PRINTER = queue()


@dataclass(frozen=True)
class Venue:
    """What is known and observed about one printer and about the machine.

    ``local`` are the interfaces of the machine, and ``scanned`` the networks that were scanned.
    ``unicast_only`` are the interfaces on which hosts answer mDNS only by unicast. ``attempts`` are
    the results of the connections to each port. ``others`` are the other printers of the machine.
    """

    printer: KnownPrinter = PRINTER
    hosts: tuple[ScannedHost, ...] = (host(),)
    services: tuple[MdnsService, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    attempts: Attempts | None = None
    local: tuple[LocalInterface, ...] = (interface(),)
    scanned: tuple[str, ...] = ("192.168.1.0/24",)
    unicast_only: tuple[str, ...] = ()
    others: tuple[KnownPrinter, ...] = ()

    def reason(self) -> str:
        """Return the reason of the printer, followed by the causes of the machine."""
        observed = correlate(
            local=LocalNetwork(self.local),
            scanned=self.hosts,
            services=self.services,
            evidence=self.evidence,
            scanned_networks=self.scanned,
            attempts=self.attempts or {},
        )
        machine = find_machine_symptoms(
            LocalNetwork(self.local), [self.printer], observed, self.unicast_only
        )
        printer = match([self.printer, *self.others], observed, machine).printers[0]
        return "; ".join((printer.reason or "", *machine_causes(machine)))


def announcement(address: str = ADDRESS, name: str = "Kitchen") -> MdnsService:
    txt = (("rp", "ipp/print"), ("uuid", UUID))
    return MdnsService(name, "_ipp._tcp", "", (address,), 631, txt, "eth0")


WORKING = Venue()
LEARNED = LearnedPrinter("cups:kitchen", ADDRESS, "2026-11-01T10:00:00+00:00", ADDRESS, MAC)
REMEMBERED = with_learned([queue()], [LEARNED])[0]  # identity known from an earlier report
REPLACED = replace(REMEMBERED, learned=replace(LEARNED, replaced_at="2026-11-02T10:00:00+00:00"))
BY_UUID = queue(f"ipp://{ADDRESS}/ipp/print?uuid={UUID}")
BY_NAME = queue(f"dnssd://Kitchen._ipp._tcp.local/?uuid={UUID}")
BY_HOST = queue("socket://kitchen.lan")
BY_MAC_NAME = queue("socket://BRN001BA9123456.lan")  # the host name contains the MAC
EPSON_TM = queue(model="EPSON TM-m30III")  # can accept data on port 9100 without printing it
SERVED = queue(f"ipp://{ADDRESS}/printers/Bar")  # a queue of a print server
SUSPENDED = UsbPrinter(
    "1-1", "Star", "TSP143", path="/dev/usb/lp0", suspended_sysfs_path="/sys/usb/1-1"
)
AWAKE = replace(SUSPENDED, suspended_sysfs_path=None)


def venue_with_usb(*plugged: UsbPrinter, uri: str = "usb://Star/TSP143") -> Venue:
    return Venue(with_usb([queue(uri)], plugged)[0])


def venue_with_attempts(*attempts: PortState) -> Venue:
    ports: dict[str, tuple[int, ...]] = {
        "opened": (80, 9100) if attempts[-1] == "open" else (80,),
        "refused_ports": (9100,) if attempts[-1] == "refused" else (),
        "silent_ports": (9100,) if attempts[-1] == "no-answer" else (),
    }
    return Venue(
        hosts=(host(**ports),), attempts={(ADDRESS, 9100): attempts} if len(attempts) > 1 else None
    )


def venue_with_only_a_gateway(*, is_wireless: bool) -> Venue:
    gateway = host("192.168.1.1", "02:00:00:00:00:01", (80,))
    return Venue(hosts=(gateway,), local=(interface("wlan0", is_wireless=is_wireless),))


def venue_with_evidence(**attributes: object) -> Venue:
    return Venue(
        queue(f"ipp://{ADDRESS}/ipp/print"),
        hosts=(host(opened=(631,)),),
        evidence=(Evidence(ADDRESS, 631, queue="ipp/print", **attributes),),  # type: ignore[arg-type]
    )


ROWS: dict[str, tuple[Venue, Venue]] = {
    "address-taken": (Venue(REMEMBERED, hosts=(host(mac=STRANGER_MAC),)), Venue(REMEMBERED)),
    "printer-without-dhcp": (
        Venue(BY_UUID, hosts=(), services=(announcement("169.254.7.7"),)),
        Venue(BY_UUID, hosts=(host(opened=(631,)),), services=(announcement(),)),
    ),
    "wrong-mask": (
        Venue(
            BY_NAME,
            hosts=(),
            services=(announcement("192.168.1.200"),),
            local=(interface(prefix=25),),
            scanned=("192.168.1.0/25",),
        ),
        Venue(BY_NAME, (), (announcement("192.168.1.200"),)),
    ),
    "other-subnet": (
        Venue(BY_NAME, hosts=(), services=(announcement("192.168.2.50"),)),
        Venue(BY_NAME, hosts=(host(opened=(631,)),), services=(announcement(),)),
    ),
    "already-set-up": (
        Venue(
            REMEMBERED,
            hosts=(host("192.168.1.77"),),
            others=(replace(queue("socket://192.168.1.77"), id="cups:bar", name="bar"),),
        ),
        Venue(REMEMBERED, hosts=(host("192.168.1.77"),)),
    ),
    "address-changed": (Venue(REMEMBERED, hosts=(host("192.168.1.77"),)), Venue(REMEMBERED)),
    "queue-missing": (
        Venue(
            SERVED,
            (host(opened=(631,)),),
            evidence=(Evidence(ADDRESS, 631, queue="printers/Bar", is_missing=True),),
        ),
        Venue(
            SERVED,
            (host(opened=(631,)),),
            evidence=(Evidence(ADDRESS, 631, queue="printers/Bar", state="idle"),),
        ),
    ),
    "renamed": (
        Venue(BY_NAME, (host(opened=(631,)),), (announcement(name="Bar"),)),
        Venue(BY_NAME, (host(opened=(631,)),), (announcement(),)),
    ),
    "name-lost": (Venue(BY_MAC_NAME), Venue(replace(BY_MAC_NAME, addresses=(ADDRESS,)))),
    "name-servers-silent": (Venue(replace(BY_HOST, lookup_s=11.0)), Venue(BY_HOST)),
    "name-unresolved": (Venue(BY_HOST), Venue(replace(BY_HOST, addresses=(ADDRESS,)))),
    "service-changed": (
        Venue(BY_NAME, services=(replace(announcement(), type="_pdl-datastream._tcp", port=9100),)),
        Venue(BY_NAME, (host(opened=(631,)),), (announcement(),)),
    ),
    "off": (Venue(hosts=()), WORKING),
    "asleep-or-off": (Venue(hosts=(host(opened=(), silent_ports=(80, 9100)),)), WORKING),
    "port-held": (
        venue_with_attempts("refused", "no-answer", "refused"),
        venue_with_attempts("open"),
    ),
    "port-held-for-a-while": (
        venue_with_attempts("no-answer", "refused", "open"),
        venue_with_attempts("open"),
    ),
    "port-closed": (venue_with_attempts("refused"), venue_with_attempts("open")),
    "device-file-missing": (
        venue_with_usb(replace(AWAKE, path=None), uri="usb:/dev/usb/lp0"),
        venue_with_usb(AWAKE, uri="usb:/dev/usb/lp0"),
    ),
    "unplugged": (venue_with_usb(), venue_with_usb(AWAKE)),
    "usb-suspended": (venue_with_usb(SUSPENDED), venue_with_usb(AWAKE)),
    "replaced-perhaps": (Venue(REMEMBERED, hosts=(host(mac=STRANGER_MAC),)), Venue(REMEMBERED)),
    "replaced": (Venue(REPLACED), Venue(REMEMBERED)),
    "other-port-open": (
        Venue(hosts=(host(opened=(631,), refused_ports=(9100,)),)),
        Venue(hosts=(host(opened=(631, 9100)),)),
    ),
    "other-kind-of-device": (
        Venue(
            hosts=(host(opened=(80,), refused_ports=(9100,)),),
            evidence=(Evidence(ADDRESS, 80, title="Reolink"),),
        ),
        WORKING,
    ),
    "needs-attention": (
        venue_with_evidence(state_reasons=("media-empty",)),
        venue_with_evidence(state="idle"),
    ),
    "printer-stopped": (venue_with_evidence(state="stopped"), venue_with_evidence(state="idle")),
    "accepts-only": (
        Venue(EPSON_TM),
        Venue(replace(EPSON_TM, port=631), hosts=(host(opened=(631,)),)),
    ),
    "queue-paused": (
        Venue(replace(queue(), is_queue_stopped=True, state_reasons=("paused",))),
        WORKING,
    ),
    "queue-stopped": (Venue(replace(queue(), is_queue_stopped=True), hosts=()), Venue(hosts=())),
    "queue-rejecting": (Venue(replace(queue(), is_rejecting=True)), WORKING),
    "jobs-stuck": (Venue(replace(queue(), stuck_jobs=2)), WORKING),
    "wsd-port": (Venue(replace(queue(), is_on_wsd_port=True), hosts=()), Venue(hosts=())),
    "till-without-dhcp": (
        Venue(hosts=(), local=(interface(address="169.254.3.4", prefix=16, gateway=None),)),
        WORKING,
    ),
    "gateway-outside": (Venue(hosts=(), local=(interface(gateway="192.168.2.1"),)), WORKING),
    "two-ways": (
        Venue(hosts=(), local=(interface(), interface("wlan0", "192.168.1.3", is_wireless=True))),
        Venue(local=(interface(), interface("wlan0", "192.168.7.3", gateway="192.168.7.1"))),
    ),
    "client-isolation": (
        venue_with_only_a_gateway(is_wireless=True),
        venue_with_only_a_gateway(is_wireless=False),
    ),
    "slow-name-servers": (
        Venue(replace(BY_HOST, addresses=(ADDRESS,), lookup_s=5.1)),
        Venue(replace(BY_HOST, addresses=(ADDRESS,), lookup_s=0.1)),
    ),
    "multicast-filtered": (
        Venue(BY_NAME, (host(opened=(631,)),), (announcement(),), unicast_only=("eth0",)),
        Venue(BY_NAME, (host(opened=(631,)),), (announcement(),)),
    ),
}
"""Maps the code of each cause to a venue with the cause, and a venue in which it was fixed."""

REASON_WORDS = {
    "port-closed": "refuses connections on port",
    "unplugged": "no USB printer",
    "name-servers-silent": "the name servers did not answer for the name",
    "service-changed": "is announced at {x}, but not as _ipp._tcp: enable AirPrint",
}
"""The words by which a cause is recognised in a reason, if the words in the table of causes do not
suffice. Braces stand for any text."""


@pytest.mark.parametrize("cause", CAUSES, ids=lambda cause: cause.code)
def test_cause_is_reported_and_absent_after_its_fix(cause: Cause):
    broken, fixed = (venue.reason() for venue in ROWS[cause.code])
    matcher = _sentence_matcher(cause)
    assert matcher(broken), broken
    assert not matcher(fixed), fixed


def test_every_cause_has_a_row_in_the_order_of_the_table():
    assert [cause.code for cause in CAUSES] == list(ROWS)


def test_a_cause_of_the_machine_is_also_in_the_reasons_of_printers_that_it_explains():
    isolated = venue_with_only_a_gateway(is_wireless=True)
    # Once in the reason of the printer, and once among the causes of the machine.
    assert isolated.reason().count("nothing but the gateway answers") == 2
    with_printer = replace(isolated, hosts=(*isolated.hosts, host()))
    assert "gateway" not in with_printer.reason()
    two_ways = Venue(local=(interface(), interface("wlan0", "192.168.1.3")))
    assert two_ways.reason().startswith(
        "Reachable on port 9100, matched by address and port; eth0 and"
    )


def test_the_command_that_resumes_a_queue_quotes_its_name():
    named = replace(queue(), id="cups:kitchen;reboot", is_queue_stopped=True)
    assert "resume it: `cupsenable 'kitchen;reboot'`" in Venue(named).reason()
    on_windows = replace(named, id="windows:Kitchen", source="windows")
    assert "Pause Printing" in Venue(on_windows).reason()


def test_untrusted_text_is_not_used_as_a_format_template():
    evidence = (Evidence(ADDRESS, 80, title="{s.printer.__class__} {0}"),)
    venue = Venue(hosts=(host(opened=(80,), refused_ports=(9100,)),), evidence=evidence)
    assert "the device there is {s.printer.__class__} {0}" in venue.reason()


printer_symptoms = st.builds(
    Symptoms,
    printer=st.just(queue()),
    status=st.sampled_from(["reachable", "unreachable", "unknown"]),
    seen=st.text(max_size=8),
    attempts=st.lists(st.sampled_from(["open", "refused", "no-answer"]), max_size=3).map(tuple),
    failed_lookup=st.sampled_from(["", "host name", "other"]),
    difference=st.text(max_size=8),
    own_reasons=st.lists(st.text(max_size=8), max_size=2).map(tuple),
)


@given(printer_symptoms, st.builds(MachineSymptoms, isolated_on=st.text(max_size=4)))
def test_any_symptoms_are_explained(symptoms: Symptoms, machine: MachineSymptoms):
    assert all(isinstance(reason, str) for reason in explain(symptoms, machine))


def test_the_manual_contains_the_table_of_causes():
    manual = (ROOT / "docs/troubleshooting.md").read_text()
    rows = [line.split(" | ") for line in manual.splitlines() if line.startswith("| **")]
    assert [(name, remedy) for name, _, remedy in rows] == list(map(_manual_cells, CAUSES))
    assert all(evidence.strip() for _, evidence, _ in rows)


def _manual_cells(cause: Cause) -> tuple[str, str]:
    """Return the first and the last cell of a row in troubleshooting.md: a cause and its fix."""
    sample = Symptoms(
        replace(PRINTER, id="cups:QUEUE", suspended_sysfs_path="/sys/bus/usb/devices/…"),
        "unknown",
        "",
    )
    remedy = cause.remedy.format(s=sample, m=MachineSymptoms())
    return f"| **{cause.code.replace('-', ' ')}**", f"{remedy} |"


def _sentence_matcher(cause: Cause) -> Callable[[str], bool]:
    """Return a function that checks whether a reason contains the words of a cause. Placeholders in
    braces match any text.
    """
    text = cause.sentence if cause.is_obvious else f"{cause.sentence}: {cause.remedy}"
    parts = [re.escape(part) for part in re.split(r"\{[^}]*\}", REASON_WORDS.get(cause.code, text))]
    pattern = re.compile(".*".join(parts), re.IGNORECASE)
    return lambda reason: pattern.search(reason) is not None
