"""The interfaces of this machine, with their addresses and default routes."""

from dataclasses import dataclass, field

from collectors.contract import Interface, Unavailable


@dataclass(frozen=True, slots=True)
class LocalInterface:
    """An `Interface`, and further properties that the scan needs.

    ``has_arp``: the kernel resolves addresses of this Ethernet-like link by ARP and reports the
    results. ``metric`` is the metric of the best default route through the interface, or None
    without a default route. ``is_wireless`` is also False if the system does not report it.
    """

    interface: Interface
    index: int = 0
    is_up: bool = True
    is_loopback: bool = False
    is_point_to_point: bool = False
    has_arp: bool = True
    metric: int | None = None
    is_wireless: bool = False

    @property
    def addresses(self) -> tuple[str, ...]:
        return tuple(address.address for address in self.interface.addresses)


@dataclass(frozen=True, slots=True)
class LocalNetwork:
    """All interfaces, the one with the preferred default route first.

    ``unavailable`` has the reason if the gateways could not be read.
    """

    interfaces: tuple[LocalInterface, ...] = ()
    unavailable: Unavailable = field(default_factory=Unavailable)

    @property
    def in_use(self) -> tuple[LocalInterface, ...]:
        """The interfaces that can reach other hosts: up, with an address, and not loopback."""
        return tuple(
            local
            for local in self.interfaces
            if local.is_up and not local.is_loopback and local.interface.addresses
        )

    @property
    def gateways(self) -> frozenset[str]:
        return frozenset(g for local in self.in_use for g in local.interface.gateways)

    @property
    def own_addresses(self) -> frozenset[str]:
        """Every address of this machine, including loopback."""
        return frozenset(a for local in self.interfaces for a in local.addresses)


def best_route_first(interfaces: list[LocalInterface]) -> tuple[LocalInterface, ...]:
    """Order by the metric of the default route. Interfaces without a default route come last."""
    return tuple(
        sorted(interfaces, key=lambda local: (local.metric is None, local.metric or 0, local.index))
    )
