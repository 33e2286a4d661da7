"""What one source found is handed on to the next."""

from collectors.contract import SourceState
from collectors.network.observations import MdnsFindings, MdnsService
from collectors.network.progress import Gathered


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
    queues = gathered.announced_queues()
    assert queues["192.0.2.7", 631] == ("printers/kitchen", "printers/bar")
    assert queues["fe80::7", 631] == queues["192.0.2.7", 631]


def test_what_is_no_print_queue_is_not_taken_for_one() -> None:
    gathered = _gathered(_service("_http._tcp", 80, rp="admin"), _service("_ipp._tcp", 631))
    assert gathered.announced_queues() == {}
