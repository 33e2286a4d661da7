"""Tests of the sentence about the printers of a network report."""

import pytest

from agent.presentation.headline import printers_verdict
from agent.wire.payloads.network import Endpoint, MapHost
from tests.fixtures.payloads import host, small_venue
from tests.unit.agent.presentation.hosts.test_rows import endpoint, venue, with_mac


def test_discovered_printers_are_named() -> None:
    def printer(
        last_byte: int, model: str | None, name: str | None = None
    ) -> tuple[MapHost, Endpoint]:
        return with_mac(host(last_byte, name, 9100), None), endpoint(
            9100, "x", model, ("scan",), last_byte
        )

    def verdict_of(*printers: tuple[MapHost, Endpoint]) -> str:
        payload = venue(
            *(lan_host for lan_host, _ in printers),
            endpoints=tuple(printer_endpoint for _, printer_endpoint in printers),
        )
        return printers_verdict(payload)[0]

    kitchen, bar = printer(50, "TM-T88VI"), printer(51, None, "bar")
    no_queue, discovered = (
        "No printer is configured on this machine",
        "discovered on the network: TM-T88VI at 192.168.1.50",
    )
    assert verdict_of() == f"{no_queue}."
    assert verdict_of(kitchen) == f"{no_queue}; 1 {discovered}."
    assert verdict_of(kitchen, bar) == f"{no_queue}; 2 {discovered}, bar at .51."
    assert verdict_of(kitchen, bar, printer(52, None), printer(53, "X")) == (
        f"{no_queue}; 4 {discovered}, bar at .51, one at .52 and 1 more."
    )


@pytest.mark.parametrize("other_address", ["192.168.15.3", "10.0.0.51", "fe80::51"])
def test_an_address_is_shortened_only_if_it_is_in_the_network_of_the_first_address(
    other_address: str,
) -> None:
    hosts = (host(50, "kitchen", 9100), host(51, "bar", 9100))
    hosts = (hosts[0], hosts[1].model_copy(update={"address": other_address}))
    assert printers_verdict(venue(*hosts))[0].endswith(f", bar at {other_address}.")
    hosts = (hosts[0].model_copy(update={"address": "fe80::50"}), hosts[1])
    assert printers_verdict(venue(*hosts))[0].endswith(f", bar at {other_address}.")


def test_the_printers_verdict_counts_configured_printers() -> None:
    payload = small_venue()
    assert printers_verdict(payload)[0] == "3 printers: 1 unreachable, 1 moved, 1 reachable."
    not_checked = payload.model_copy(update={"printers": None})
    assert printers_verdict(not_checked)[0] == "Printers were not checked."
