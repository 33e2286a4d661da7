"""Creates a healthy network report, which tests then change."""

from agent.wire.payloads.network import (
    MapAddress,
    MapInterface,
    NetworkPayload,
    Printer,
)
from tests.fixtures.payloads import small_venue


def printer(
    status: str = "reachable", reason: str | None = None, name: str = "bar", **changes: object
) -> Printer:
    base = Printer(
        id=name,
        name=name,
        transport="network",
        address="192.168.1.52:9100",
        status="reachable",
        reason="Reachable on port 9100, matched by address",
        matched_endpoint="192.168.1.52:9100",
    )
    return base.model_copy(update={"status": status, "reason": reason or base.reason, **changes})


USB = printer(
    "unknown",
    "This system does not report whether it is plugged in",
    "usb",
    transport="usb",
    address=None,
    matched_endpoint=None,
)
LOW_ON_TONER = printer(
    "reachable", "Reachable on port 631; the printer reports: low on toner", "office"
)


def healthy_network(
    printers: tuple[Printer, ...] = (printer(), USB, LOW_ON_TONER),
) -> NetworkPayload:
    return small_venue().model_copy(update={"printers": printers})


def link(name: str, *addresses: str, gateways: tuple[str, ...] = ("192.168.1.1",)) -> MapInterface:
    return MapInterface(
        name=name,
        addresses=tuple(
            MapAddress(address=a, family="ipv6" if ":" in a else "ipv4", prefix_length=24)
            for a in addresses
        ),
        gateways=gateways,
    )


def with_map(**changes: object) -> NetworkPayload:
    """Return a healthy report without endpoints, with these changes to its network map."""
    payload = healthy_network()
    assert payload.network_map
    return payload.model_copy(
        update={"network_map": payload.network_map.model_copy(update=changes), "endpoints": ()}
    )
