"""Tests of changes between two network reports, and of differences that are not changes."""

from collections.abc import Callable

import pytest

from agent.presentation.changes.change import NOT_CHECKED, Changes
from agent.presentation.changes.changes import changes_between
from agent.wire.payloads.common import Failure
from agent.wire.payloads.network import (
    MapHost,
    MapService,
    NetworkMap,
    NetworkPayload,
    Printer,
    SourceFailed,
    SourceSucceeded,
    Unavailable,
)
from agent.wire.payloads.watched_devices import WatchedLine, WatchedState
from tests.fixtures.healthy import healthy
from tests.fixtures.payloads import host, small_venue
from tests.unit.agent.presentation.findings.networks import healthy_network, link, printer

MOVED = {"status": "unreachable", "matched_endpoint": "192.168.1.61:9100"}


def venue(**map_changes: object) -> NetworkPayload:
    """Return the report of a healthy network whose map has the given changes."""
    payload = healthy_network()
    assert payload.network_map
    lan_map = payload.network_map.model_copy(update=map_changes)
    return payload.model_copy(update={"network_map": lan_map, "endpoints": ()})


def hosts() -> tuple[MapHost, ...]:
    lan_map = small_venue().network_map
    assert lan_map
    return lan_map.hosts


def hosts_without(last_byte: int) -> tuple[MapHost, ...]:
    return tuple(lan_host for lan_host in hosts() if lan_host.address != f"192.168.1.{last_byte}")


def hosts_with_changed(last_byte: int, **changes: object) -> tuple[MapHost, ...]:
    return tuple(
        lan_host.model_copy(update=changes)
        if lan_host.address == f"192.168.1.{last_byte}"
        else lan_host
        for lan_host in hosts()
    )


def sentences(before: NetworkPayload, after: NetworkPayload) -> list[str]:
    return [change.sentence for change in changes_between(before, after).changes]


def compare(before: NetworkPayload, after: NetworkPayload) -> Changes:
    return changes_between(before, after)


def test_a_report_has_no_changes_compared_with_itself() -> None:
    changes = compare(small_venue(), small_venue())
    assert (changes.changes, changes.not_compared) == ((), ())
    assert (changes.verdict, changes.severity) == ("Nothing changed.", "muted")
    assert changes.since == "2026-11-20T19:04:12.120Z"


def test_reports_of_different_kinds_are_not_compared() -> None:
    with pytest.raises(ValueError, match="cannot be compared"):
        changes_between(small_venue(), healthy("linux-till"))


# ---------------------------------------------------------------------------- printers


@pytest.mark.parametrize(
    ("before", "after", "sentence", "severity"),
    [
        (
            printer(),
            printer("unreachable", matched_endpoint=None),
            "The printer bar is not reachable; it was reachable.",
            "bad",
        ),
        (
            printer("unreachable", matched_endpoint=None),
            printer(),
            "The printer bar is reachable; it was not reachable.",
            "good",
        ),
        (
            printer(),
            printer(**MOVED),
            "The printer bar has moved to 192.168.1.61:9100; it was reachable.",
            "bad",
        ),
        (
            printer(**MOVED),
            printer(**{**MOVED, "matched_endpoint": "192.168.1.62:9100"}),
            "The printer bar has moved to 192.168.1.62:9100; it was at 192.168.1.61:9100.",
            "bad",
        ),
        (
            printer(),
            printer("unknown"),
            "The printer bar is in an unknown state; it was reachable.",
            "warn",
        ),
        (
            printer(),
            printer(address="192.168.1.60:9100", matched_endpoint="192.168.1.60:9100"),
            "The printer bar is configured with 192.168.1.60:9100; it had 192.168.1.52:9100.",
            "muted",
        ),
        (
            printer(address="bar.local"),
            printer(address="bar.local", matched_endpoint="192.168.1.60:9100"),
            "The printer bar is at 192.168.1.60:9100; it was at 192.168.1.52:9100.",
            "muted",
        ),
    ],
)  # fmt: skip
def test_changes_of_a_printer_are_reported(
    before: Printer, after: Printer, sentence: str, severity: str
) -> None:
    (change,) = compare(healthy_network((before,)), healthy_network((after,))).changes
    assert (change.sentence, change.severity) == (sentence, severity)


@pytest.mark.parametrize(
    "after",
    [
        printer(reason="Reachable on port 9100, matched by name"),
        printer(matched_endpoint="192.168.1.52:631"),
        printer(matched_endpoint="[fd00::52]:9100"),
    ],
)
def test_different_evidence_for_the_same_printer_is_not_a_change(after: Printer) -> None:
    assert sentences(healthy_network((printer(),)), healthy_network((after,))) == []


def test_added_and_removed_printers_are_reported() -> None:
    one, both = healthy_network((printer(),)), healthy_network((printer(), printer(name="door")))
    assert sentences(one, both) == ["The printer door is new: it is reachable."]
    assert sentences(both, one) == ["The printer door is no longer configured."]


def test_a_printer_that_a_partial_report_lacks_was_not_checked() -> None:
    both = healthy_network((printer(), printer(name="door")))
    one = healthy_network((printer(),)).model_copy(update={"completeness": "partial"})
    (change,) = compare(both, one).changes
    assert change.after == NOT_CHECKED
    assert change.sentence == "The printer door was not checked this time."
    none = healthy_network().model_copy(update={"printers": None})
    assert compare(healthy_network(), none).not_compared == (
        "Printers were not checked this time.",
    )
    assert compare(none, healthy_network()).not_compared == (
        "Printers were not checked in the earlier report.",
    )


def test_changes_of_reported_printer_states_are_listed() -> None:
    out_of_paper = printer(reason="Reachable on port 631; the printer reports: out of paper")
    new = "New: The printer bar needs attention: out of paper."
    resolved = "Resolved: The printer bar needs attention: out of paper."
    healthy_report, faulty_report = healthy_network((printer(),)), healthy_network((out_of_paper,))
    assert (sentences(healthy_report, faulty_report), sentences(faulty_report, healthy_report)) == (
        [new],
        [resolved],
    )
    assert [c.severity for c in compare(faulty_report, healthy_report).changes] == ["good"]


# ---------------------------------------------------------------------------- hosts


def test_added_and_removed_hosts_are_reported() -> None:
    assert sentences(venue(hosts=hosts_without(40)), venue()) == [
        "nas.lan (192.168.1.40) is new on the network."
    ]
    assert sentences(venue(), venue(hosts=hosts_without(40))) == [
        "nas.lan (192.168.1.40) is no longer on the network."
    ]


def test_phones_and_hosts_without_a_name_are_only_counted() -> None:
    guests = tuple(
        host(200 + n, None).model_copy(update={"mac_address": f"02:11:22:33:44:{n:02x}"})
        for n in range(3)
    )
    assert sentences(
        venue(hosts=hosts_without(80)), venue(hosts=(*hosts_without(80), *guests))
    ) == ["Phones and unrecognised devices: 3 new, 0 gone."]
    assert sentences(venue(), venue(hosts=hosts_without(80))) == [
        "Phones and unrecognised devices: 0 new, 1 gone."
    ]


def test_a_host_with_a_changed_address_is_recognised_by_its_mac() -> None:
    moved = hosts_with_changed(40, address="192.168.1.140")
    assert sentences(venue(), venue(hosts=moved)) == [
        "nas.lan has moved from 192.168.1.40 to 192.168.1.140."
    ]


def test_a_host_without_a_mac_is_recognised_by_its_address() -> None:
    assert sentences(venue(), venue(hosts=hosts_with_changed(40, mac_address=None))) == []


def test_another_device_at_an_address_is_not_the_same_host() -> None:
    other = hosts_with_changed(40, mac_address="00:26:ab:99:99:99", hostname="other.lan")
    assert sentences(venue(), venue(hosts=other)) == [
        "nas.lan (192.168.1.40) is no longer on the network.",
        "other.lan (192.168.1.40) is new on the network.",
    ]


def test_another_router_at_the_gateway_address_is_reported() -> None:
    (change,) = compare(
        venue(), venue(hosts=hosts_with_changed(1, mac_address="00:26:ab:99:99:99"))
    ).changes
    assert change.severity == "warn"
    assert change.sentence == (
        "Another router answers at 192.168.1.1: 00:26:ab:99:99:99; it was 00:26:ab:00:00:01."
    )


def test_a_router_whose_address_another_device_also_used_is_reported_once() -> None:
    """The comparison in the reverse order has the same changes, with before and after exchanged."""
    gateway = next(lan_host for lan_host in hosts() if "gateway" in lan_host.sources)
    second = gateway.model_copy(update={"mac_address": "00:26:ab:00:00:98"})
    conflict = venue(hosts=(*hosts(), second))
    replaced = venue(hosts=hosts_with_changed(1, mac_address="00:26:ab:99:99:99"))
    forward, backward = compare(conflict, replaced), compare(replaced, conflict)
    routers = [change for change in forward.changes if change.code == "router"]
    assert [(change.before, change.after) for change in routers] == [
        ("00:26:ab:00:00:98", "00:26:ab:99:99:99")
    ]
    assert {(c.code, c.subject, c.after, c.before) for c in forward.changes} == {
        (c.code, c.subject, c.before, c.after) for c in backward.changes
    }


def services(*ports: int) -> tuple[MapService, ...]:
    return tuple(MapService(port=port, source="tcp", reachable=True) for port in ports)


def test_a_newly_opened_port_is_reported_as_a_change() -> None:
    opened = venue(hosts=hosts_with_changed(41, services=services(22, 80, 443)))
    (change,) = compare(venue(), opened).changes
    assert change.severity == "warn"
    assert change.sentence == "till-2 (192.168.1.41) has opened ports 80, 443."
    (change,) = compare(opened, venue()).changes
    assert change.severity == "muted"
    assert change.sentence == "till-2 (192.168.1.41) no longer answers on ports 80, 443."


def test_a_port_that_was_not_scanned_before_is_not_newly_open() -> None:
    lan_map = venue().network_map
    assert lan_map
    fewer = lan_map.bounds.model_copy(update={"ports": (22,)})
    opened = hosts_with_changed(41, services=services(22, 80))
    assert sentences(venue(bounds=fewer), venue(hosts=opened)) == []


def test_changed_latency_and_sources_of_a_host_are_not_reported() -> None:
    measured_again = hosts_with_changed(40, latency_ms=250.0, sources=("tcp", "mdns"))
    assert sentences(venue(), venue(hosts=measured_again)) == []


FAILED = SourceFailed(reason="the scan was stopped")


def _scan_failed(lan_map: NetworkMap) -> dict[str, object]:
    return {"sources": lan_map.sources.model_copy(update={"scan": FAILED})}


@pytest.mark.parametrize(
    "cut",
    [
        lambda lan_map: {"truncated": True},
        lambda lan_map: {"state": "cancelled"},
        _scan_failed,
        lambda lan_map: {"interfaces": (link("eth0", "192.168.1.20"),)},
    ],
    ids=["truncated", "cancelled", "scan-failed", "without-the-interface"],
)
def test_hosts_of_unchecked_networks_are_not_reported_as_missing(
    cut: Callable[[NetworkMap], dict[str, object]],
) -> None:
    lan_map = venue().network_map
    assert lan_map
    camera = host(7, "camera.lan", 554, network="10.9.9")
    links = (link("eth0", "192.168.1.20"), link("eth1", "10.9.9.9"))
    before = venue(hosts=(*hosts(), camera), interfaces=links)
    after = venue(**{"hosts": hosts(), "interfaces": links, **cut(lan_map)})
    changes = compare(before, after)
    assert not [change for change in changes.changes if change.code == "host"]
    assert changes.not_compared == ("1 host of the earlier report was not checked this time.",)
    back = compare(after, before)
    assert not [change for change in back.changes if change.code == "host"]
    assert back.not_compared == ("1 host was not checked in the earlier report.",)


@pytest.mark.parametrize("completeness", ["partial", "limited"])
def test_an_incomplete_report_reports_no_missing_hosts(completeness: str) -> None:
    cut = {
        "completeness": completeness,
        "limitations": ("only half of the network was scanned",),
        "failures": (Failure(step="scan", reason="cut"),) if completeness == "partial" else (),
    }
    changes = compare(venue(), venue(hosts=hosts_without(40)).model_copy(update=cut))
    assert changes.changes == ()
    assert changes.verdict == "No change in what was compared."
    assert changes.not_compared == ("1 host of the earlier report was not checked this time.",)


def test_missing_hosts_are_reported_if_both_reports_have_the_same_limitation() -> None:
    def limited(payload: NetworkPayload, count: int) -> NetworkPayload:
        lines = (f"{count} addresses are excluded by the configuration",)
        return payload.model_copy(update={"completeness": "limited", "limitations": lines})

    assert sentences(limited(venue(), 3), limited(venue(hosts=hosts_without(40)), 4)) == [
        "nas.lan (192.168.1.40) is no longer on the network."
    ]


def test_an_announced_host_is_not_missing_if_mdns_failed() -> None:
    lan_map = venue().network_map
    assert lan_map
    speaker = host(90, "Bar speaker", 7000, mdns="_raop._tcp", sources=("mdns",))
    speaker = speaker.model_copy(update={"services": speaker.services[1:]})
    without_mdns = lan_map.sources.model_copy(update={"mdns": FAILED})
    assert not [
        change
        for change in compare(venue(hosts=(*hosts(), speaker)), venue(sources=without_mdns)).changes
        if change.code == "host"
    ]
    assert sentences(venue(hosts=(*hosts(), speaker)), venue()) == [
        "Bar speaker (192.168.1.90) is no longer on the network."
    ]


# ---------------------------------------------------------------------------- the machine's network


def eth0(*addresses: str, gateways: tuple[str, ...] = ("192.168.1.1",)) -> NetworkPayload:
    return venue(interfaces=(link("eth0", *addresses, gateways=gateways),))


def test_changes_of_the_gateway_and_of_the_machines_address_are_reported() -> None:
    assert sentences(eth0("192.168.1.20"), eth0("192.168.1.44")) == [
        "This machine has the address 192.168.1.44 on eth0; it was 192.168.1.20."
    ]
    changes = compare(eth0("192.168.1.20"), eth0("192.168.1.20", gateways=("192.168.1.254",)))
    assert [(c.sentence, c.severity) for c in changes.changes] == [
        ("The gateway on eth0 is 192.168.1.254; it was 192.168.1.1.", "warn")
    ]


def test_changed_temporary_ipv6_addresses_are_not_reported() -> None:
    before, after = eth0("192.168.1.20", "fd00::a:1"), eth0("192.168.1.20", "fd00::b:2")
    assert sentences(before, after) == []


def test_an_unreadable_gateway_is_not_reported_as_a_change() -> None:
    hidden = eth0("192.168.1.20", gateways=()).model_copy(
        update={"unavailable": Unavailable(gateway="the sandbox hides it")}
    )
    assert sentences(eth0("192.168.1.20"), hidden) == []


def test_hosts_of_different_networks_are_not_compared() -> None:
    elsewhere = venue(interfaces=(link("eth0", "10.0.0.20", gateways=("192.168.1.1",)),), hosts=())
    changes = compare(venue(interfaces=(link("eth0", "192.168.1.20"),)), elsewhere)
    network = next(change for change in changes.changes if change.code == "network")
    assert network.sentence == (
        "The machine is on another network: 10.0.0.0/24; it was on 192.168.1.0/24."
    )
    assert not [change for change in changes.changes if change.code == "host"]
    assert changes.not_compared == ("Hosts were not compared: the machine is on another network.",)


def test_a_source_that_works_again_is_reported_as_resolved() -> None:
    lan_map = venue().network_map
    assert lan_map
    failed = venue(sources=lan_map.sources.model_copy(update={"mdns": FAILED}))
    fine = venue(sources=lan_map.sources.model_copy(update={"mdns": SourceSucceeded()}))
    (change,) = compare(failed, fine).changes
    assert change.severity == "good"
    assert change.sentence.startswith("Resolved: Receiving announcements (mDNS) failed")


def watching(state: WatchedState, **known: str) -> NetworkPayload:
    line = str(WatchedLine("Bar", "payment terminal", state, **known))  # type: ignore[arg-type]
    return healthy_network().model_copy(update={"limitations": (line,)})


def test_a_watched_device_that_moves_is_a_change_if_both_reports_checked_it() -> None:
    present = watching("present", address="192.168.1.40")
    moved = watching("moved", address="192.168.1.61", moved_from="192.168.1.40")
    unknown = watching("unknown", address="192.168.1.40", reason="the time was up")
    sentence = "The payment terminal Bar has moved from 192.168.1.40 to 192.168.1.61."
    assert sentences(present, moved) == [f"New: {sentence}"]
    assert sentences(moved, present) == [f"Resolved: {sentence}"]
    assert sentences(moved, moved) == sentences(present, unknown) == []
    for before in (unknown, healthy_network()):
        assert sentences(before, moved) == [f"New, or not checked before: {sentence}"]
        assert sentences(moved, before) == [f"Not checked this time: {sentence}"]
