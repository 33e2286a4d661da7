"""Tests which connections the scan makes to one host, and when."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.network.scan.host_probes import (
    IN_FLIGHT_MAX,
    LAST_RETRY_AFTER_S,
    PRINT_GAP_S,
    WAIT_MIN_S,
    WAIT_S,
    ConnectOutcome,
    HostProbes,
    Step,
)
from collectors.shared.addresses import PRINT_PORTS

PORTS = (22, 53, 80, 139, 443, 445, 515, 554, 631, 8008, 8043, 8080, 8443, 9100, 9101)


def time_out_all(probes: HostProbes, now: float = 0.0) -> list[Step]:
    """Let every attempt time out without an answer. Return all steps."""
    steps: list[Step] = []
    for _ in range(1000):
        if probes.is_done:
            return steps
        steps += probes.start_connections(now, 100)
        due = probes.next_due
        assert due is not None
        now = due
        steps += probes.time_out_tries(now)
    raise AssertionError("the probes never end")


def test_at_most_eight_connections_and_one_to_a_print_port_are_open_at_once() -> None:
    probes = HostProbes(PORTS)
    started = probes.start_connections(0.0, 100)
    assert len(started) == IN_FLIGHT_MAX
    assert [step.port for step in started if step.port in PRINT_PORTS] == [631]
    assert probes.start_connections(0.0, 100) == []


def test_the_next_print_port_waits_for_the_answer_of_the_first_print_port() -> None:
    probes = HostProbes((9100, 9101))
    assert [s.port for s in probes.start_connections(0.0, 100)] == [9100]
    assert probes.start_connections(0.1, 100) == []
    assert probes.record_outcome(9100, "open", 0.1)
    assert [s.port for s in probes.start_connections(0.1, 100)] == [9101]


def test_ipp_is_contacted_last_if_its_connection_is_reused() -> None:
    probes = HostProbes((80, 515, 631, 9100), ipp_last=True)
    assert [s.port for s in probes.start_connections(0.0, 1)] == [9100]
    probes.record_outcome(9100, "open", 0.1)
    assert [s.port for s in probes.start_connections(0.1, 1)] == [515]
    assert probes.time_out_tries(0.1 + WAIT_S) == [Step(515, "drop")]
    # Port 515 will be tried again.
    assert [s.port for s in probes.start_connections(0.5, 9)] == [80]
    probes.record_outcome(80, "refused", 0.6)
    assert probes.next_due == 0.1 + PRINT_GAP_S
    assert probes.give_up_second_tries_at_print_ports(0.7)
    assert not probes.is_done
    assert [s.port for s in probes.start_connections(0.7, 9)] == [631]
    assert not probes.is_done_with_print_ports
    probes.record_outcome(631, "open", 0.8)
    assert probes.is_done_with_print_ports
    assert (probes.open, probes.silent) == ([9100, 631], [515])


def test_first_try_of_ipp_waits_for_second_tries_of_other_print_ports() -> None:
    probes = HostProbes((631, 9100), ipp_last=True)
    started = [step.port for step in time_out_all(probes) if step.action == "connect"]
    assert started == [9100, 9100, 631, 631]
    probes = HostProbes((631, 9100, 9101))
    started = [step.port for step in time_out_all(probes) if step.action == "connect"]
    assert started == [631, 9100, 9101, 631, 9100, 9101]


def test_two_connections_to_one_print_port_are_a_second_apart() -> None:
    probes = HostProbes((9100,))
    assert [s.port for s in probes.start_connections(0.0, 100)] == [9100]
    assert probes.time_out_tries(WAIT_S) == [Step(9100, "drop")]
    assert probes.start_connections(WAIT_S, 100) == []
    assert probes.next_due == PRINT_GAP_S
    assert [s.port for s in probes.start_connections(PRINT_GAP_S, 100)] == [9100]


def test_second_tries_at_print_ports_are_given_up_if_nothing_else_is_pending() -> None:
    probes = HostProbes((80, 9100))
    probes.start_connections(0.0, 100)
    assert not probes.give_up_second_tries_at_print_ports(0.5)  # other ports are still pending
    probes.record_outcome(80, "open", 0.01)
    assert probes.time_out_tries(WAIT_S) == [Step(9100, "drop")]
    # The second try can start at PRINT_GAP_S. It is kept, because that is not too late.
    assert not probes.give_up_second_tries_at_print_ports(PRINT_GAP_S)
    assert probes.give_up_second_tries_at_print_ports(0.5)
    assert probes.is_done
    assert probes.silent == [9100]
    silent_host = HostProbes((9100,))
    silent_host.start_connections(0.0, 100)
    silent_host.time_out_tries(WAIT_S)
    assert silent_host.give_up_second_tries_at_print_ports(PRINT_GAP_S)
    untried_port = HostProbes((9100, 9101))
    untried_port.start_connections(0.0, 100)
    untried_port.time_out_tries(WAIT_S)
    assert not untried_port.give_up_second_tries_at_print_ports(0.5)


def test_third_tries_at_print_ports_are_given_up_if_the_scan_only_waits_for_them() -> None:
    probes = HostProbes((80, 9100))
    probes.start_connections(0.0, 100)
    probes.record_outcome(80, "open", 0.01)
    probes.time_out_tries(WAIT_S)
    probes.start_last_retry()  # it permits a third try
    assert [step.port for step in probes.start_connections(PRINT_GAP_S, 100)] == [9100]
    assert not probes.give_up_second_tries_at_print_ports(9.0)  # the second try is in flight
    assert probes.time_out_tries(PRINT_GAP_S + WAIT_S) == [Step(9100, "drop")]
    assert not probes.is_done
    assert probes.give_up_second_tries_at_print_ports(9.0)
    assert (probes.is_done, probes.silent) == (True, [9100])


def test_late_second_tries_at_print_ports_are_given_up_while_other_ports_are_in_flight() -> None:
    probes = HostProbes((80, 81, 9100))
    probes.start_connections(0.0, 100)
    assert probes.time_out_tries(WAIT_S)
    assert not probes.give_up_second_tries_at_print_ports(0.5)  # no port has answered so far
    probes.record_outcome(80, "open", WAIT_S)
    assert probes.give_up_second_tries_at_print_ports(0.5)
    assert (probes.is_done, probes.silent) == (False, [9100])


def test_silent_ports_are_retried_while_further_tries_at_print_ports_are_pending() -> None:
    probes = HostProbes((80, 81, 9100))
    probes.start_connections(0.0, 100)
    probes.record_outcome(80, "open", 0.01)
    assert not probes.has_only_pauses_left
    probes.time_out_tries(WAIT_MIN_S)
    probes.time_out_tries(2 * WAIT_MIN_S)
    assert (probes.has_only_pauses_left, probes.is_done) == (True, False)
    assert probes.last_retry_in_s(None) == LAST_RETRY_AFTER_S
    mute = HostProbes((9100, 9101))
    mute.start_connections(0.0, 100)
    mute.time_out_tries(WAIT_S)
    mute.start_connections(WAIT_S, 100)
    assert not mute.has_only_pauses_left


@pytest.mark.parametrize("ipp_last", [False, True])
def test_retries_do_not_use_the_pauses_if_an_ipp_query_waits_for_print_ports(
    ipp_last: bool,
) -> None:
    probes = HostProbes((80, 631, 9100), ipp_last=ipp_last)
    probes.start_connections(0.0, 100)
    probes.record_outcome(80, "refused", 0.01)
    if not ipp_last:
        probes.record_outcome(631, "open", 0.01)
        probes.start_connections(0.01, 100)
    probes.time_out_tries(0.01 + WAIT_MIN_S)
    assert not probes.is_done_with_print_ports
    assert not probes.has_only_pauses_left


def test_a_silent_port_is_tried_once_more_by_a_second_socket() -> None:
    probes = HostProbes((80,))
    probes.start_connections(0.0, 100)
    assert probes.next_due == pytest.approx(WAIT_S)
    assert probes.time_out_tries(WAIT_S) == [Step(80, "again")]
    assert probes.time_out_tries(2 * WAIT_S) == [Step(80, "drop")]
    assert probes.silent == [80]


def test_a_silent_print_port_has_one_socket_at_a_time() -> None:
    probes = HostProbes((9100, 9101))
    steps = time_out_all(probes)
    assert [(s.port, s.action) for s in steps] == [
        (9100, "connect"),
        (9100, "drop"),
        (9101, "connect"),
        (9101, "drop"),
        (9100, "connect"),
        (9100, "drop"),
        (9101, "connect"),
        (9101, "drop"),
    ]


def test_a_second_socket_replaces_the_first_when_all_slots_are_taken() -> None:
    probes = HostProbes(range(1000, 1010))
    probes.start_connections(0.0, 100)
    assert {step.action for step in probes.time_out_tries(WAIT_S)} == {"replace"}
    assert probes.sockets == IN_FLIGHT_MAX


def test_attempts_at_a_host_that_answers_fast_time_out_sooner() -> None:
    probes = HostProbes((80, 81))
    probes.start_connections(0.0, 1)
    probes.record_outcome(80, "refused", 0.002)
    probes.start_connections(0.002, 1)
    assert probes.next_due == pytest.approx(0.002 + WAIT_MIN_S)


def test_the_wait_for_an_answer_is_one_and_a_half_times_the_slowest_answer() -> None:
    probes = HostProbes((80, 81, 9100))
    probes.start_connections(0.0, 2)
    probes.record_outcome(80, "open", 0.12)
    assert probes.next_due == pytest.approx(0.18)


def test_an_answer_to_one_of_two_sockets_does_not_change_the_wait() -> None:
    probes = HostProbes((80, 81, 82))
    probes.start_connections(0.0, 2)
    probes.record_outcome(81, "refused", 0.01)
    assert probes.time_out_tries(WAIT_MIN_S) == [Step(80, "again")]
    probes.record_outcome(80, "open", WAIT_MIN_S + 0.14)
    probes.start_connections(1.0, 100)
    assert probes.next_due == pytest.approx(1.0 + WAIT_MIN_S)


def test_further_ports_of_a_silent_host_are_tried_only_once() -> None:
    probes = HostProbes(PORTS)
    steps = time_out_all(probes)
    connects = [step.port for step in steps if step.action in ("connect", "again", "replace")]
    assert len(connects) < 2 * len(PORTS)
    assert sorted(probes.silent) == sorted(PORTS)


def test_a_silent_host_is_abandoned_after_the_first_ports() -> None:
    probes = HostProbes(PORTS, abandon_when_silent=True)
    steps = time_out_all(probes)
    assert sum(step.action == "connect" for step in steps) == IN_FLIGHT_MAX


def test_unconfirmed_host_is_abandoned_after_three_unreachable_ports() -> None:
    probes = HostProbes(PORTS, abandon_when_silent=True)
    for step in probes.start_connections(0.0, 3):
        probes.record_outcome(step.port, "unreachable", 0.01)
    assert probes.is_done


def test_a_late_answer_of_a_port_that_was_given_up_is_ignored() -> None:
    probes = HostProbes((80,))
    time_out_all(probes)
    assert not probes.record_outcome(80, "open", 9.0)
    assert probes.open == []


def test_a_host_is_retried_once_and_only_if_it_has_answered() -> None:
    mute = HostProbes((80,))
    time_out_all(mute)
    assert not mute.retry_soon(None)
    assert mute.last_retry_in_s(None) is None
    probes = HostProbes((80, 443, 9100))
    probes.start_connections(0.0, 100)
    probes.record_outcome(80, "open", 0.01)
    time_out_all(probes, 0.01)
    assert probes.retry_soon(None)
    assert probes.silent == [9100]
    assert [step.action for step in time_out_all(probes, 5.0)] == ["connect", "drop"]
    assert not probes.retry_soon(None)


def test_last_retry_comes_later_and_before_the_sweep_ends() -> None:
    probes = HostProbes((80, 81))
    probes.start_connections(0.0, 100)
    probes.record_outcome(80, "refused", 0.01)
    time_out_all(probes, 0.01)
    assert probes.last_retry_in_s(None) == LAST_RETRY_AFTER_S
    assert probes.last_retry_in_s(9.0) == LAST_RETRY_AFTER_S
    assert probes.last_retry_in_s(1.0) == pytest.approx(1.0 - WAIT_MIN_S)
    assert probes.last_retry_in_s(-9.0) == 0.0
    probes.start_last_retry()
    assert [step.action for step in time_out_all(probes, 5.0)] == ["connect", "drop"]
    assert probes.silent == [81]
    assert probes.last_retry_in_s(None) is None


def test_the_first_retry_is_skipped_if_there_is_only_time_for_the_last_retry() -> None:
    probes = HostProbes((80, 443, 9100, 9101))
    probes.start_connections(0.0, 100)
    probes.record_outcome(80, "refused", 0.01)
    time_out_all(probes, 0.01)
    assert probes.last_retry_in_s(0.0) == 0.0
    assert not probes.retry_soon(4 * WAIT_MIN_S - 0.01)
    assert probes.retry_soon(4 * WAIT_MIN_S)


def test_probes_with_a_single_try_are_not_retried() -> None:
    probes = HostProbes((80, 9100), tries=1)
    probes.start_connections(0.0, 100)
    probes.record_outcome(80, "refused", 0.01)
    assert [step.action for step in time_out_all(probes, 0.01)] == ["drop"]
    assert not probes.retry_soon(None)
    assert probes.last_retry_in_s(None) is None


def test_print_ports_of_a_host_with_ipp_get_no_last_retry() -> None:
    probes = HostProbes((631, 9100, 80))
    probes.start_connections(0.0, 100)
    probes.record_outcome(631, "open", 0.01)
    time_out_all(probes, 0.01)
    assert sorted(probes.silent) == [80, 9100]
    probes.start_last_retry()
    assert [step.port for step in time_out_all(probes, 5.0)] == [80, 80]
    assert sorted(probes.silent) == [80, 9100]


@given(
    ports=st.lists(st.sampled_from((*PORTS, *range(2000, 2020))), unique=True, max_size=25),
    seed=st.integers(0, 2**16),
    abandon=st.booleans(),
    ipp_last=st.booleans(),
)
def test_every_probe_ends_within_the_bounds_whatever_the_host_does(
    ports: list[int], seed: int, abandon: bool, ipp_last: bool
) -> None:
    rng = random.Random(seed)
    probes = HostProbes(ports, abandon_when_silent=abandon, ipp_last=ipp_last)
    sockets: dict[int, int] = {}
    now = 0.0
    for _ in range(2000):
        if probes.is_done:
            break
        for step in (
            *probes.time_out_tries(now),
            *probes.start_connections(now, rng.randint(0, 9)),
        ):
            if step.action != "again":
                sockets.pop(step.port, None)
            if step.action != "drop":
                sockets[step.port] = sockets.get(step.port, 0) + 1
        assert sum(sockets.values()) <= IN_FLIGHT_MAX
        assert sum(n for port, n in sockets.items() if port in PRINT_PORTS) <= 1
        assert probes.sockets == sum(sockets.values())
        for port in list(sockets):
            if rng.random() < 0.2:
                outcomes: tuple[ConnectOutcome, ...] = ("open", "refused", "unreachable")
                probes.record_outcome(port, rng.choice(outcomes), now)
                del sockets[port]
        now += rng.uniform(0.0, 0.3)
    assert probes.is_done
    ended = [*probes.open, *probes.refused, *probes.silent]
    assert len(set(ended)) == len(ended)
    assert set(ended) <= set(ports)
    if not abandon:
        assert set(ended) == set(ports)
