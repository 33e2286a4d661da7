"""Tests of local faults, with print queues as the example, and of events that are reported at most
once an hour.
"""

from datetime import UTC, datetime, timedelta

from agent.rules.connectivity.cause import LinkState
from agent.rules.connectivity.events import HOUR_S, GatewayMacs, Throttling
from agent.rules.connectivity.local_faults import LocalFaults, LocalReading, LocalState
from agent.wire.payloads.history import Incident

AT = datetime(2026, 11, 22, 18, 0, tzinfo=UTC)
FIVE_MINUTES = timedelta(minutes=5)


def queues(**faults: str | None) -> LocalReading:
    states = {("queue-stopped", name): LocalState(fault) for name, fault in faults.items()}
    return LocalReading(states, frozenset({"queue-stopped"}))  # type: ignore[arg-type]


def summary(incidents: tuple[Incident, ...]) -> list[tuple[str, float, float | None]]:
    """Return the evidence, begin and end of each incident. The times are counted from ``AT`` in
    units of five minutes. An unfinished incident has the end None.
    """
    return [
        (
            incident.evidence,
            (incident.began_at - AT) / FIVE_MINUTES,
            None if incident.ended_at is None else (incident.ended_at - AT) / FIVE_MINUTES,
        )
        for incident in incidents
    ]


def test_a_fault_counts_from_the_second_reading_and_begins_with_the_first() -> None:
    faults = LocalFaults()
    assert faults.observe(AT, queues(receipts="stopped")) == ()
    assert faults.is_suspected
    assert faults.current_incidents(AT) == ()
    faults.observe(AT + FIVE_MINUTES, queues(receipts="stopped"))
    assert summary(faults.current_incidents(AT + FIVE_MINUTES)) == [("receipts: stopped", 0, None)]
    ended = faults.observe(AT + 2 * FIVE_MINUTES, queues(receipts=None))
    assert summary(ended) == [("receipts: stopped", 0, 2)]
    assert [fault.subject for fault in ended] == ["receipts"]
    assert faults.current_incidents(AT + 2 * FIVE_MINUTES) == ()


def test_a_fault_of_one_reading_is_no_incident() -> None:
    faults = LocalFaults()
    faults.observe(AT, queues(receipts="stopped"))
    assert faults.observe(AT + FIVE_MINUTES, queues(receipts=None)) == ()
    assert not faults.is_suspected


def test_two_queues_that_stop_together_are_two_incidents_with_different_begin_times() -> None:
    """The begin time identifies an incident, so no two incidents may have the same one."""
    faults = LocalFaults()
    for number in range(2):
        faults.observe(AT + number * FIVE_MINUTES, queues(receipts="stopped", kitchen="stopped"))
    begins = {fault.began_at for fault in faults.current_incidents(AT + FIVE_MINUTES)}
    assert len(begins) == 2
    ended = faults.observe(AT + 2 * FIVE_MINUTES, queues(receipts=None, kitchen="stopped"))
    assert [fault.subject for fault in ended] == ["receipts"]
    assert [fault.subject for fault in faults.current_incidents(AT + 2 * FIVE_MINUTES)] == [
        "kitchen"
    ]


def test_an_incident_has_the_times_at_which_the_spooler_stopped_and_resumed_a_queue() -> None:
    faults = LocalFaults()
    stopped = LocalState("stopped", AT - 2 * FIVE_MINUTES)
    for number in range(2):
        faults.observe(
            AT + number * FIVE_MINUTES, LocalReading({("queue-stopped", "bar"): stopped})
        )
    resumed = LocalState(None, AT + 1.5 * FIVE_MINUTES)
    ended = faults.observe(AT + 2 * FIVE_MINUTES, LocalReading({("queue-stopped", "bar"): resumed}))
    assert summary(ended) == [("bar: stopped", -2, 1.5)]


def test_an_unknown_state_ends_nothing_and_a_removed_queue_ends_its_incident() -> None:
    faults = LocalFaults()
    for number in range(2):
        faults.observe(AT + number * FIVE_MINUTES, queues(receipts="stopped"))
    assert faults.observe(AT + 2 * FIVE_MINUTES, LocalReading()) == ()
    assert summary(faults.observe(AT + 3 * FIVE_MINUTES, queues())) == [("receipts: stopped", 0, 3)]


def test_lasting_faults_continue_after_a_reload() -> None:
    lasting_incident = Incident("queue-stopped", AT, None, 0.0, "receipts: stopped")
    faults = LocalFaults((), (lasting_incident,))
    faults.observe(AT + FIVE_MINUTES, queues(receipts="stopped"))
    faults.shift(FIVE_MINUTES)
    assert summary(faults.end_all(AT + 3 * FIVE_MINUTES)) == [("receipts: stopped", 1, 3)]


def test_frequent_faults_before_and_after_a_reload_are_one_incident() -> None:
    minute = timedelta(minutes=1)
    recent = tuple(
        Incident(
            "queue-stopped",
            AT + n * FIVE_MINUTES,
            AT + n * FIVE_MINUTES + minute,
            60.0,
            "receipts: stopped",
        )
        for n in range(6)
    )
    faults = LocalFaults(recent)
    assert faults.current_incidents(AT + 6 * FIVE_MINUTES) == ()
    stopped = LocalReading({("queue-stopped", "receipts"): LocalState("stopped")})
    faults.observe(AT + 6 * FIVE_MINUTES, stopped)
    faults.observe(AT + 7 * FIVE_MINUTES, stopped)
    (incident,) = faults.observe(AT + 8 * FIVE_MINUTES, queues(receipts=None))
    assert (incident.count, incident.began_at) == (7, AT)


def test_heat_is_reported_at_most_once_an_hour() -> None:
    throttling = Throttling()
    assert throttling.observe(None, AT, 0.0) is None
    assert throttling.observe(40, AT, 0.0) is None
    event = throttling.observe(43, AT, 300.0)
    assert event is not None
    assert (event.kind, event.detail) == ("processor-throttled", "3 times")
    assert throttling.observe(50, AT, 600.0) is None
    event = throttling.observe(55, AT, 300.0 + HOUR_S)
    assert event is not None
    assert event.detail == "12 times"
    assert throttling.observe(2, AT, 9000.0) is None  # the counters began again


def gateway(mac: str, address: str = "10.0.0.1") -> LinkState:
    return LinkState(gateway=address, gateway_mac=f"02:00:00:00:00:0{mac}")


def test_two_macs_that_use_the_gateway_address_by_turns_are_a_conflict() -> None:
    macs = GatewayMacs()
    events = [macs.observe(gateway(mac), AT, 60.0 * n) for n, mac in enumerate("aabab")]
    assert [event and event.kind for event in events] == [
        None,
        None,
        None,
        None,
        "gateway-conflict",
    ]
    assert events[-1] is not None
    assert events[-1].detail == "02:00:00:00:00:0a and 02:00:00:00:00:0b use 10.0.0.1 by turns"
    assert macs.has_conflict(300.0)
    assert macs.observe(gateway("a"), AT, 300.0) is None
    assert not macs.has_conflict(300.0 + HOUR_S)


def test_a_failover_and_back_or_several_routers_are_no_conflict() -> None:
    for sequence in ("aba", "abcab", "abc"):
        macs = GatewayMacs()
        assert not any(macs.observe(gateway(m), AT, 60.0 * n) for n, m in enumerate(sequence))
    macs = GatewayMacs()
    assert not any(
        macs.observe(gateway(mac, address), AT, 60.0)
        for mac, address in (
            ("a", "10.0.0.1"),
            ("b", "10.0.0.1"),
            ("a", "10.0.0.2"),
            ("b", "10.0.0.2"),
        )
    )
