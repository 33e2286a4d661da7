"""Tests that equal reports have no changes. If two reports are compared in the reverse order, the
changes are the same, with the values before and after exchanged.
"""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agent.presentation.changes.change import Changes, most_severe_first
from agent.presentation.changes.changes import changes_between
from agent.wire.payloads.application import ApplicationPayload
from agent.wire.payloads.network import MapHost, MapService, NetworkPayload, SourceFailed
from tests.fixtures.healthy import HEALTHY
from tests.fixtures.payloads import HOSTILE_STRINGS, network_map
from tests.unit.agent.presentation.findings.changed_report import Missing, report_with
from tests.unit.agent.presentation.findings.networks import healthy_network, link, printer

NAMES = st.sampled_from(("till", "nas", "BRN00262d", *HOSTILE_STRINGS[:6])) | st.none()
MACS = st.sampled_from(("00:26:ab:00:00:01", "00:26:ab:00:00:02", "02:11:22:33:44:55", None))
ADDRESSES = st.sampled_from(
    ("192.168.1.1", "192.168.1.2", "192.168.1.3", "10.0.0.9", "x", "fd00::1")
)
HOSTS = st.builds(
    MapHost,
    address=ADDRESSES,
    interface_name=st.sampled_from(("eth0", "eth1")),
    hostname=NAMES,
    mac_address=MACS,
    services=st.lists(
        st.builds(
            MapService,
            port=st.sampled_from((22, 80, 9100, 4711)),
            source=st.sampled_from(("tcp", "mdns")),
            reachable=st.booleans(),
        ),
        max_size=3,
    ).map(tuple),
    reachability=st.sampled_from(("reachable", "unknown")),
    sources=st.sampled_from((("tcp",), ("mdns",), ("gateway", "tcp"), ("local",))),
)
ENDPOINTS = st.sampled_from(("192.168.1.52:9100", "192.168.1.61:9100", "[fd00::52]:631", "x", None))
PRINTERS = st.builds(
    printer,
    status=st.sampled_from(("reachable", "unreachable", "unknown")),
    reason=st.sampled_from(("fine", "Up; the printer reports: out of paper", None)),
    name=st.sampled_from(("bar", "door", "<b>")),
    address=ENDPOINTS,
    matched_endpoint=ENDPOINTS,
)
COMPLETENESS = st.sampled_from(("complete", "limited", "partial"))


@st.composite
def networks(draw: st.DrawFn) -> NetworkPayload:
    lan_map = network_map(tuple(draw(st.lists(HOSTS, max_size=6))))
    links = draw(
        st.lists(
            st.builds(
                link,
                st.sampled_from(("eth0", "eth1")),
                st.sampled_from(("192.168.1.20", "192.168.1.21", "10.0.0.7", "169.254.3.3")),
                gateways=st.sampled_from(((), ("192.168.1.1",), ("192.168.1.2",))),
            ),
            max_size=2,
        )
    )
    sources = lan_map.sources
    if draw(st.booleans()):
        sources = sources.model_copy(update={"scan": SourceFailed(reason="cut")})
    by_id = {
        printer_facts.id: printer_facts for printer_facts in draw(st.lists(PRINTERS, max_size=3))
    }
    map_changes: dict[str, Any] = {
        "interfaces": tuple(links), "sources": sources, "truncated": draw(st.booleans()),
    }  # fmt: skip
    return healthy_network(tuple(by_id.values())).model_copy(
        update={
            "network_map": draw(st.sampled_from((lan_map.model_copy(update=map_changes), None))),
            "endpoints": (),
            "completeness": draw(COMPLETENESS),
            "limitations": draw(st.sampled_from(((), ("one",), ("one", "two")))),
        }
    )


VALUES = {
    "os.bootTime": st.sampled_from(("2026-11-16T04:00:02Z", "2026-11-17T04:00:02Z", "no time")),
    "os.kernel": st.sampled_from(("6.1.0", "6.1.2", "")),
    "os.pendingReboot": st.booleans(),
    "agent.uptimeSeconds": st.floats(0, 1e17),
    "process.bar.running": st.booleans(),
    "process.bar.startedAt": st.sampled_from(("2026-11-16T04:00:02Z", "2026-11-17T04:00:02Z")),
    "process.watched": st.sampled_from((("bar",), ("bar", "door"))),
    "disk./.usedFraction": st.floats(0, 1),
    "disk./.freeBytes": st.sampled_from((10**8, 10**10, 10**12)),
    "printqueue.queues": st.sampled_from(((), ("bar",), ("bar", "<b>"))),
    "printqueue.bar.stuckJobs": st.integers(0, 3),
    "network.dnsServers": st.sampled_from((("1.1.1.1",), ("1.1.1.1", "9.9.9.9"))),
    "hardware.memoryBytes": st.integers(0, 2**40),
    "service.timeSync.state": st.sampled_from(("active", "inactive", "failed")),
    "network.service.tlsExpiresAt": st.sampled_from(("2026-11-16T04:00:02Z", "2027-01-01T00:00Z")),
}
MISSING = st.sampled_from(
    (
        Missing("collection-failed", "it broke"),
        Missing("not-applicable", "there is none"),
        Missing("permission-denied", "not allowed"),
    )
)


@st.composite
def snapshots(draw: st.DrawFn) -> ApplicationPayload:
    keys = draw(st.lists(st.sampled_from(sorted(VALUES)), unique=True, max_size=8))
    payload = report_with(
        {key: draw(VALUES[key] | MISSING) for key in keys}, draw(st.sampled_from(HEALTHY))
    )
    snapshot = payload.snapshot
    count = draw(st.integers(0, len(snapshot.peripherals)))
    update = {"truncated": draw(st.booleans()), "peripherals": snapshot.peripherals[:count]}
    return payload.model_copy(
        update={
            "snapshot": snapshot.model_copy(update=update), "completeness": draw(COMPLETENESS),
        }
    )  # fmt: skip


def with_exchanged_values(changes: Changes) -> set[tuple[str, str, str, str]]:
    return {
        (change.code, change.subject, change.after, change.before) for change in changes.changes
    }


def check_mirrored(
    a: NetworkPayload | ApplicationPayload, b: NetworkPayload | ApplicationPayload
) -> None:
    """Check that both orders have the same changes, with the values before and after exchanged."""
    forward, backward = changes_between(a, b), changes_between(b, a)
    assert with_exchanged_values(forward) == {
        (c.code, c.subject, c.before, c.after) for c in backward.changes
    }
    assert len(forward.changes) == len(with_exchanged_values(forward)) == len(backward.changes)
    assert len(forward.not_compared) == len(backward.not_compared)
    for change in (*forward.changes, *backward.changes):
        assert change.before != change.after
        assert change.sentence.isprintable()
    assert forward.changes == most_severe_first(forward.changes)


@given(networks())
def test_no_network_report_differs_from_itself(payload: NetworkPayload) -> None:
    assert changes_between(payload, payload).changes == ()


@given(snapshots())
def test_no_snapshot_differs_from_itself(payload: ApplicationPayload) -> None:
    assert changes_between(payload, payload).changes == ()


@given(networks(), networks())
def test_network_changes_are_mirrored_if_reports_are_exchanged(
    a: NetworkPayload, b: NetworkPayload
) -> None:
    check_mirrored(a, b)


@given(snapshots(), snapshots())
def test_application_changes_are_mirrored_if_reports_are_exchanged(
    a: ApplicationPayload, b: ApplicationPayload
) -> None:
    check_mirrored(a, b)
