"""Tests of which hosts the network map shows, and how."""

import pytest

from agent.presentation.page.network_diagram import (
    DOTS_MAX,
    IMPORTANT_MAX,
    LABELLED_MAX,
    Diagram,
    Node,
    network_diagram,
)
from agent.wire.payloads.network import MapHost, NetworkPayload
from tests.fixtures.payloads import (
    bare_report,
    empty_report,
    host,
    large_venue,
    network_map,
    small_venue,
)


def diagram_of(payload: NetworkPayload) -> Diagram:
    diagram = network_diagram(payload)
    assert diagram is not None
    return diagram


def with_hosts(*hosts: MapHost) -> NetworkPayload:
    return small_venue().model_copy(update={"network_map": network_map(hosts), "printers": ()})


def by_label(diagram: Diagram) -> dict[str, Node]:
    return {" ".join(node.label): node for node in diagram.boxes}


def test_the_gateway_is_the_centre_and_every_host_is_drawn_once() -> None:
    diagram = diagram_of(small_venue())
    assert diagram.centre.host.kind == "router"
    assert diagram.centre.position.x == diagram.centre.position.y == 0
    assert len(diagram.boxes) == 11
    assert diagram.dots == ()
    assert diagram.omitted_count == 0


def test_printers_are_marked_and_labelled_with_their_names() -> None:
    nodes = by_label(diagram_of(small_venue()))
    assert nodes["Bar receipts"].marker == "good"
    assert nodes["Kitchen printer"].marker == "bad"
    assert nodes["till-1"].marker == ""
    assert nodes["till-1"].host.kind == "machine"


@pytest.mark.parametrize("order", [1, -1])
def test_the_worse_of_two_printers_with_equal_shortened_names_is_displayed(order: int) -> None:
    venue = small_venue()
    printers = [
        printer.model_copy(update={"name": "x" * 500 + printer.name})
        for printer in (venue.printers or ())
    ]
    diagram = diagram_of(venue.model_copy(update={"printers": tuple(printers[::order])}))
    assert "good" not in {node.marker for node in diagram.boxes}
    assert "bad" in {node.marker for node in diagram.boxes}


def test_the_latency_of_a_host_is_displayed() -> None:
    assert by_label(diagram_of(small_venue()))["Kitchen printer"].host.latency == "21 ms"


def test_a_printer_without_a_host_is_listed_as_missing() -> None:
    assert diagram_of(small_venue()).missing_printers == ("Office laser",)


def test_printers_are_nearest_to_the_centre() -> None:
    assert [node.marker for node in diagram_of(small_venue()).boxes[:2]] == ["good", "bad"]


def test_without_a_gateway_this_machine_is_the_centre() -> None:
    diagram = diagram_of(with_hosts(host(2, "a"), host(20, "till", sources=("local",))))
    assert diagram.centre.host.kind == "machine"


def test_without_a_gateway_and_this_machine_the_first_host_is_the_centre() -> None:
    diagram = diagram_of(with_hosts(host(2, "first"), host(3, "second")))
    assert diagram.centre.label == ("first",)


@pytest.mark.parametrize("payload", [empty_report(), bare_report()])
def test_a_report_without_hosts_has_no_diagram(payload: NetworkPayload) -> None:
    assert network_diagram(payload) is None


def test_up_to_sixty_hosts_have_labels() -> None:
    diagram = diagram_of(large_venue(LABELLED_MAX + 1))
    assert len(diagram.boxes) == LABELLED_MAX
    assert diagram.dots == ()


def test_in_a_large_network_only_important_hosts_have_labels() -> None:
    diagram = diagram_of(large_venue(250))
    assert len(diagram.boxes) == IMPORTANT_MAX
    assert len(diagram.boxes) + len(diagram.dots) + 1 == 250
    assert all(node.label == () and node.tooltip for node in diagram.dots)


def test_hosts_that_are_not_drawn_are_counted() -> None:
    hosts = tuple(
        host(number % 250, f"h{number}", network=f"10.0.{number // 250}")
        for number in range(DOTS_MAX + 500)
    )
    diagram = diagram_of(with_hosts(*hosts))
    assert len(diagram.dots) == DOTS_MAX
    assert len(diagram.boxes) + len(diagram.dots) + 1 + diagram.omitted_count == len(hosts)


def test_the_legend_counts_every_host() -> None:
    assert sum(entry.count for entry in diagram_of(large_venue(250)).legend) == 250
