"""Detects MACs that do not identify a host: those of proxy ARP and of multicast groups."""

from collections import defaultdict

HOST_ADDRESSES_MAX = 8
"""A MAC with more addresses than this belongs to a proxy. A router has a few addresses, but a proxy
answers for hundreds of addresses that may have no host."""


def is_multicast_mac(mac_address: str) -> bool:
    """Return whether a MAC is a group address, such as 01:00:5e:00:00:fb.

    IEEE 802 marks group addresses by the lowest bit of the first byte.
    """
    return bool(int(mac_address[:2], 16) & 1)


class MacCensus:
    """Counts the addresses of each MAC as they appear."""

    def __init__(self) -> None:
        self._addresses: defaultdict[str, set[str]] = defaultdict(set)

    def add(self, mac_address: str, address: str) -> bool:
        """Count an address of a MAC. Returns whether the MAC is now that of a proxy."""
        self._addresses[mac_address].add(address)
        return self.is_proxy(mac_address)

    def is_proxy(self, mac_address: str) -> bool:
        return len(self._addresses.get(mac_address, ())) > HOST_ADDRESSES_MAX

    def addresses(self, mac_address: str) -> frozenset[str]:
        return frozenset(self._addresses.get(mac_address, ()))

    @property
    def proxies(self) -> dict[str, int]:
        """The MACs that answer for too many addresses, with the number of their addresses."""
        return {mac: len(a) for mac, a in self._addresses.items() if len(a) > HOST_ADDRESSES_MAX}
