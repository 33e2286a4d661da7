"""Tests a till's sensors of the path to the service, behind a simulated gateway and internet."""

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from tests.lab.connectivity.venue import (
    GATEWAY,
    INTERNET,
    NAME,
    PORT,
    TILL,
    SensorProcess,
    Venue,
    venue,
)

pytestmark = [pytest.mark.lab, pytest.mark.needs("veth")]


@pytest.fixture(scope="module")
def lab() -> Iterator[Venue]:
    with venue() as lab_venue:
        yield lab_venue


@pytest.fixture(scope="module")
def sensor(lab: Venue) -> SensorProcess:
    """The sensors, after a probe while everything works."""
    sensor_process = lab.sensor(GATEWAY, INTERNET)
    sensor_process.ask("probe")
    return sensor_process


@contextlib.contextmanager
def with_fault(lab: Venue, name: str, fault: str, *repairs: str) -> Iterator[None]:
    """Run an ip(8) command in a namespace, and at the end the commands that undo it."""
    lab.ip(name, fault)
    try:
        yield
    finally:
        for repair in repairs:
            lab.ip(name, repair)


def without_gateway(lab: Venue) -> contextlib.AbstractContextManager[None]:
    return with_fault(lab, "gateway", "link set eth0 down", "link set eth0 up")


def answers(sample: dict[str, Any]) -> dict[str, tuple[str, bool | None]]:
    """Return ``answer`` and ``can_forward`` of each name server, by its address."""
    servers = sample["name_servers"]
    return {server["address"]: (server["answer"], server["can_forward"]) for server in servers}


def test_a_working_path_has_no_fault(sensor: SensorProcess) -> None:
    sample, cause = sensor.ask("probe")
    assert cause is None
    link = sample["link"]
    assert (link["interface"], link["has_link"], link["addresses"]) == ("eth0", True, [TILL])
    assert (link["has_route"], link["gateway"], link["link_errors"]) == (True, GATEWAY, 0)
    assert len(link["gateway_mac"].split(":")) == 6
    assert sample["gateway_answers"] is True
    assert answers(sample) == {GATEWAY: ("answer", True), INTERNET: ("answer", None)}
    assert [name_server["is_local"] for name_server in sample["name_servers"]] == [True, False]
    assert (sample["service"], sample["is_service_local"]) == ("connected", False)


def test_a_lost_carrier_is_detected_although_address_and_route_remain(
    lab: Venue, sensor: SensorProcess
) -> None:
    sensor.ask("link")
    with with_fault(lab, "switch", "link set till down", "link set till up"):
        sensor.wait_until(lambda link: link["has_link"] is False)
        sample, cause = sensor.ask("probe")
    assert cause == "link-down"
    assert (sample["link"]["addresses"], sample["link"]["has_route"]) == ([TILL], True)
    sensor.wait_until(lambda link: link["has_link"] is True)
    # At first, the kernel still reports that there is no route. The probe then tries again.
    assert sensor.ask("probe")[0]["service"] != "unreachable"


def test_a_removed_address_is_detected(lab: Venue, sensor: SensorProcess) -> None:
    repairs = (f"addr add {TILL}/24 dev eth0", f"route add default via {GATEWAY}")
    with with_fault(lab, "till", f"addr del {TILL}/24 dev eth0", *repairs):
        sensor.wait_until(lambda link: link["addresses"] == [])
        sample, cause = sensor.ask("probe")
    assert cause == "no-address"
    assert (sample["link"]["interface"], sample["link"]["has_link"]) == ("eth0", True)
    sensor.wait_until(lambda link: link["has_route"] is True)


def test_a_removed_default_route_is_detected(lab: Venue, sensor: SensorProcess) -> None:
    with with_fault(lab, "till", "route del default", f"route add default via {GATEWAY}"):
        sensor.wait_until(lambda link: link["has_route"] is False)
        sample, cause = sensor.ask("probe")
    assert cause == "gateway-silent"
    assert sample["gateway_answers"] is None
    sensor.wait_until(lambda link: link["has_route"] is True)


def test_a_gateway_that_disappears_after_it_has_answered_is_silent(
    lab: Venue, sensor: SensorProcess
) -> None:
    with without_gateway(lab):
        sample, cause = sensor.ask("probe")
    assert cause == "gateway-silent"
    assert sample["gateway_answers"] is False
    assert answers(sample) == {GATEWAY: ("silent", None), INTERNET: ("silent", None)}


def test_a_gateway_that_never_answered_is_silent(lab: Venue) -> None:
    with without_gateway(lab):
        lab.ip("till", "neigh flush dev eth0")
        sample, cause = lab.sensor(INTERNET).ask("probe")
    assert sample["gateway_answers"] is False
    # The service's address is unknown, so it was not tried.
    assert sample["service"] is None
    assert cause == "gateway-silent"


def test_a_valid_neighbour_entry_does_not_count_as_an_answer_of_a_lost_gateway(
    lab: Venue, sensor: SensorProcess
) -> None:
    """The entry of a lost gateway stays valid for half a minute, until the kernel checks it."""
    assert sensor.ask("probe")[0]["gateway_answers"] is True
    with without_gateway(lab):
        assert lab.sensor(INTERNET).ask("probe")[0]["gateway_answers"] is None


def test_the_provider_is_down_if_only_the_local_name_server_answers(
    lab: Venue, sensor: SensorProcess
) -> None:
    """The local server still answers queries for the service's name from its cache."""
    with with_fault(lab, "gateway", "link set wan0 down", "link set wan0 up"):
        sample, cause = sensor.ask("probe")
    assert cause == "provider-down"
    assert sample["gateway_answers"] is True
    assert answers(sample) == {GATEWAY: ("answer", False), INTERNET: ("silent", None)}
    # The gateway limits how often it reports that there is no route (icmp(7), icmp_ratelimit).
    assert sample["service"] in ("unreachable", "silent")


def test_a_stopped_name_server_is_silent(lab: Venue) -> None:
    sensor = lab.sensor(INTERNET)
    assert [answer["answer"] for answer in sensor.ask("names")] == ["answer"]
    with lab.stopped("names"):
        sample, cause = sensor.ask("probe")
        assert [answer["answer"] for answer in sensor.ask("names")] == ["silent"]
    assert cause == "name-servers-silent"
    assert sample["service"] == "connected"


def test_the_service_is_down_if_its_port_refuses_connections(lab: Venue) -> None:
    sensor = lab.sensor(GATEWAY, base_url=f"https://{NAME}:{PORT + 1}")
    sample, cause = sensor.ask("probe")
    assert cause == "service-down"
    assert sample["service"] == "refused"


def test_a_silent_service_in_the_local_network_is_down_even_without_a_gateway(lab: Venue) -> None:
    # No host of the till's network has this address.
    sensor = lab.sensor(GATEWAY, base_url="https://10.66.1.77")
    with without_gateway(lab):
        sample, cause = sensor.ask("probe")
    assert cause == "service-down"
    assert (sample["is_service_local"], sample["name_servers"]) == (True, [])


@pytest.mark.large
def test_a_dead_command_stream_ends(lab: Venue) -> None:
    """Without keep-alive, the stream would end with a timeout after 90 s."""
    stream = lab.stream()
    assert stream.stdout is not None
    with without_gateway(lab):
        assert stream.stdout.readline() == "connection-lost\n"
