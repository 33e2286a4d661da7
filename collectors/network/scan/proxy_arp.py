"""MACs that are not those of hosts: proxy ARP and multicast."""

from collections import defaultdict

PROXY_ADDRESSES = 8
"""More addresses than this behind one MAC are a proxy's: routers have a few, ghosts hundreds."""


def is_multicast_mac(mac_address: str) -> bool:
    """True for group addresses (IEEE 802: the lowest bit of the first byte), such as 01:00:5e."""
    return bool(int(mac_address[:2], 16) & 1)


class MacCensus:
    """Counts the addresses of each MAC as they appear."""

    def __init__(self) -> None:
        self._addresses: defaultdict[str, set[str]] = defaultdict(set)

    def add(self, mac_address: str, address: str) -> bool:
        """Count an address; True when its MAC answers for too many to be a host."""
        self._addresses[mac_address].add(address)
        return self.is_proxy(mac_address)

    def is_proxy(self, mac_address: str) -> bool:
        return len(self._addresses.get(mac_address, ())) > PROXY_ADDRESSES

    def addresses(self, mac_address: str) -> frozenset[str]:
        return frozenset(self._addresses.get(mac_address, ()))

    @property
    def proxies(self) -> dict[str, int]:
        """The MACs that answer for too many, with the number of addresses."""
        return {mac: len(a) for mac, a in self._addresses.items() if len(a) > PROXY_ADDRESSES}
