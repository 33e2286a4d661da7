"""What one source found is handed on to the next."""

from dataclasses import replace

from collectors.contract import SourceState
from collectors.network.observations import KnownPrinter, MdnsFindings, MdnsService, OpenPort
from collectors.network.progress import Gathered
from collectors.network.scan.scan import ScanFindings, ScannedHost


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


def _gathered(*services: MdnsService) -> Gathered:
    gathered = Gathered(started_at="2026-11-20T12:00:00.000+00:00", os_platform="linux")
    gathered.mdns = MdnsFindings(services=services, state=SourceState("succeeded"))
    return gathered


def test_announced_queues_are_known_for_each_address_and_port() -> None:
    gathered = _gathered(
        _service("_ipp._tcp", 631, rp="printers/kitchen"),
        _service("_ipps._tcp", 631, rp="/printers/bar/"),
        _service("_ipp._tcp", 631, rp="printers/kitchen"),
    )
    ports = gathered.observations(gathered.announced()).ports
    assert ports["192.0.2.7", 631].queues == ("printers/kitchen", "printers/bar")
    assert ports["fe80::7", 631].queues == ports["192.0.2.7", 631].queues
    assert gathered.open_ports() == ()
    gathered.scan = ScanFindings((ScannedHost("192.0.2.7", open_ports=(80, 631)),))
    assert gathered.open_ports() == (
        OpenPort("192.0.2.7", 80),
        OpenPort("192.0.2.7", 631, ("printers/kitchen", "printers/bar")),
    )


def test_what_is_no_print_queue_is_not_taken_for_one() -> None:
    gathered = _gathered(_service("_http._tcp", 80, rp="admin"), _service("_ipp._tcp", 631))
    ports = gathered.observations(gathered.announced()).ports.values()
    assert [each.queues for each in ports] == [(), (), (), ()]


def test_the_queues_that_this_machine_prints_to_are_asked() -> None:
    gathered = _gathered()
    server = KnownPrinter("q", "q", "network", "cups", addresses=("192.0.2.7",), port=631)
    gathered.known = (replace(server, queue="printers/bar"), replace(server, queue=None))
    gathered.scan = ScanFindings((ScannedHost("192.0.2.7", open_ports=(80, 631)),))
    assert gathered.open_ports() == (
        OpenPort("192.0.2.7", 80),
        OpenPort("192.0.2.7", 631, (), ("printers/bar",)),
    )
