"""Tests that the facts of one source are passed to the sources that run later."""

from dataclasses import replace

from collectors.contract import SourceState
from collectors.network.collected_facts import CollectedFacts
from collectors.network.discoveries import Queues
from collectors.network.observations import (
    Enrichment,
    KnownPrinter,
    MdnsResult,
    MdnsService,
)
from collectors.network.report_facts import answers_in, observations_in, queues_in, services_in


def _service(kind: str, port: int, **txt: str) -> MdnsService:
    return MdnsService(
        instance="Kitchen",
        type=kind,
        hostname="print-server.local",
        addresses=("192.0.2.7", "fe80::7"),
        port=port,
        txt=tuple(txt.items()),
        interface_name="eth0",
    )


def _collected(*services: MdnsService) -> CollectedFacts:
    collected = CollectedFacts(started_at="2026-11-20T12:00:00.000+00:00", os_platform="linux")
    collected.mdns = MdnsResult(services=services, state=SourceState("succeeded"))
    return collected


def test_announced_queues_are_known_for_each_address_and_port() -> None:
    facts = _collected(
        _service("_ipp._tcp", 631, rp="printers/kitchen"),
        _service("_ipps._tcp", 631, rp="/printers/bar/"),
        _service("_ipp._tcp", 631, rp="printers/kitchen"),
    )
    ports = observations_in(facts, services_in(facts)).ports
    assert ports["192.0.2.7", 631].queues == ("printers/kitchen", "printers/bar")
    assert ports["fe80::7", 631].queues == ports["192.0.2.7", 631].queues
    assert queues_in(facts)["192.0.2.7", 631] == Queues(("printers/kitchen", "printers/bar"))


def test_only_print_services_announce_queues() -> None:
    facts = _collected(_service("_http._tcp", 80, rp="admin"), _service("_ipp._tcp", 631))
    ports = observations_in(facts, services_in(facts)).ports.values()
    assert [port.queues for port in ports] == [(), (), (), ()]


def test_configured_queues_are_queried() -> None:
    facts = _collected()
    server = KnownPrinter("q", "q", "network", "cups", addresses=("192.0.2.7",), port=631)
    facts.known = (replace(server, queue="printers/bar"), replace(server, queue=None))
    assert queues_in(facts) == {("192.0.2.7", 631): Queues((), ("printers/bar",))}


def test_a_queried_name_is_ignored_if_the_host_announced_a_name() -> None:
    facts = _collected(_service("_http._tcp", 80))
    facts.enrichment = Enrichment(hostnames={"192.0.2.7": "other.local", "192.0.2.8": "till.local"})
    assert answers_in(facts).hostnames == {"192.0.2.8": "till.local"}
