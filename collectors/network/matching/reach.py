"""The results of connections to an address, and whether this machine can reach it. Pure."""

import ipaddress

from collectors.network.matching.symptoms import OutOfReach
from collectors.network.observations import Observations
from collectors.network.scan.scan import PortState
from collectors.shared.addresses import Network, parse_networks

_USUAL_PREFIX = 24
_LINK_LOCAL = ipaddress.IPv4Network("169.254.0.0/16")  # RFC 3927


class Reach:
    """Answers questions about addresses. ``is_blind``: nothing of the network was observed."""

    def __init__(self, observed: Observations) -> None:
        self._attempts = observed.attempts
        self._scanned = {a: h.scanned for a, h in observed.hosts.items() if h.scanned}
        self._networks = parse_networks(observed.scanned_networks)
        self._own_networks = parse_networks(observed.own_networks)
        self.is_blind = not (observed.ports or self._scanned or observed.scanned_networks)

    def attempts(self, address: str, port: int) -> tuple[PortState, ...]:
        """Return the results of all connections to a port, oldest first."""
        last = self.contact(address, port)
        return self._attempts.get((address, port)) or ((last,) if last else ())

    def contact(self, address: str, port: int) -> PortState | None:
        host = self._scanned.get(address)
        return host.contact(port) if host else None

    def is_answering(self, address: str) -> bool:
        host = self._scanned.get(address)
        return host is not None and host.is_answering

    def is_scanned(self, address: str) -> bool:
        """Return whether the address is in a network whose addresses were all tried."""
        return _is_in(address, self._networks)

    def obstacle(self, address: str) -> OutOfReach:
        """Return why this machine cannot print to an address; "" if it can."""
        if _is_in(address, (_LINK_LOCAL,)):
            return "link-local"
        nearby = (*self._own_networks, *self._networks)
        is_near = ":" in address or not self._own_networks or _is_in(address, nearby)
        if is_near or self.is_answering(address):
            return ""
        is_masked = _is_in(address, tuple(map(_usual_network, self._own_networks)))
        return "wrong mask" if is_masked else "other network"


def _is_in(address: str, networks: tuple[Network, ...]) -> bool:
    parsed = ipaddress.ip_address(address.partition("%")[0])
    return any(parsed in network for network in networks)


def _usual_network(own: Network) -> Network:
    """Return the /24 that contains a smaller IPv4 network. Other networks are returned as is."""
    is_small = own.version == 4 and own.prefixlen > _USUAL_PREFIX
    return own.supernet(new_prefix=_USUAL_PREFIX) if is_small else own
