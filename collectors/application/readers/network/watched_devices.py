"""Reads whether the watched devices are on the network, and where.

The devices receive only ARP requests and empty datagrams (`shared/arp/priming.py`). If a device
with a known MAC does not answer at its address, all addresses of this machine's /24 network are
resolved in the same way.
"""

import ipaddress
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Final

from collectors.application.deadline import Deadline
from collectors.application.source import CONFIGURATION, Fields, Origin, Reading, source
from collectors.contract import ApplicationJob, DeviceState
from collectors.shared.addresses import (
    OWN_RANGES,
    Network,
    is_in_networks,
    network_of,
    parse_networks,
)
from collectors.shared.arp.resolver import ArpNetwork, Resolver, SystemArpNetwork
from collectors.shared.arp.table_room import read_table_room
from collectors.shared.host.interfaces import read_local_network
from collectors.shared.host.local_network import LocalInterface, LocalNetwork
from collectors.shared.watched_devices import (
    NOT_TRIED,
    Answers,
    Expectation,
    expectations,
    learned_identity,
    state_of,
)

ORIGIN: Final = Origin("ARP")
LIMIT_S: Final = 9.2
"""Time limit of the source. The neighbour table may have an older entry for a device that is gone.
The kernel needs 8 s to find out that such a device does not answer."""
KNOWN_TRIES: Final = 2
"""How often the known addresses are tried. A device on Wi-Fi may miss the requests of one try."""
_RESERVE_S: Final = 0.2  # the search ends this long before the deadline
_SWEEP_PREFIX: Final = 24
_DEVICE_ONLY: Final = "network.device_only forbids packets to other devices"
_TIME_UP: Final = "the time was up before its address had answered"

ReadAnswers = Callable[[Sequence[Expectation], ApplicationJob, Deadline], Answers]


@source("watched-devices", ORIGIN, "device.watched", limit_s=LIMIT_S)
def read_watched_devices(
    deadline: Deadline, job: ApplicationJob, *, answers: ReadAnswers | None = None
) -> Reading:
    expected = expectations(job.devices, job.learned)
    names = tuple(expectation.device.name for expectation in expected)
    fields = [CONFIGURATION.available("device.watched", names)]
    if not expected:
        return Reading(tuple(fields))
    results = (answers or read_answers)(expected, job, deadline)
    states = tuple(state_of(expectation, results) for expectation in expected)
    for state in states:
        fields += device_fields(state)
    pairs = [learned_identity(e, s, results) for e, s in zip(expected, states, strict=True)]
    return Reading(
        tuple(fields),
        learned=tuple(device for device, _ in pairs if device),
        strangers=tuple(stranger for _, stranger in pairs if stranger),
    )


def device_fields(state: DeviceState) -> Fields:
    """Yield the fields of one device."""
    prefix = f"device.{state.device.name}"
    yield CONFIGURATION.available(f"{prefix}.kind", state.device.kind)
    keys = tuple(f"{prefix}.{aspect}" for aspect in ("present", "address", "movedFrom", "otherMac"))
    if state.state == "unknown":
        yield from ORIGIN.all_absent(keys, "unsupported", state.reason or "no reason was given")
        return
    present, address, moved_from, other_mac = keys
    yield ORIGIN.available(present, state.state in ("present", "moved"))
    for key, value, reason in (
        (address, state.address, "it has no configured address, and does not answer"),
        (moved_from, state.moved_from, "it has not moved"),
        (other_mac, state.other_mac, "no other device answers at its address"),
    ):
        yield ORIGIN.fact(key, value, reason, "not-applicable")


def read_answers(
    expected: Sequence[Expectation], job: ApplicationJob, deadline: Deadline
) -> Answers:
    """Resolve the addresses of the devices, within the deadline."""
    try:
        local = read_local_network()
        with closing(SystemArpNetwork()) as network:
            if job.device_only:
                return known_answers(network)
            resolver = Resolver(network, read_table_room())
            search = Search(expected, local, job.exclude, resolver, network)
            return search.run(lambda: deadline.remaining_s() < _RESERVE_S)
    except OSError as error:
        return Answers({}, is_whole=False, reason=error.strerror or str(error))


def known_answers(network: ArpNetwork) -> Answers:
    """Return the confirmed entries of the neighbour table, without sending anything."""
    table = (
        neighbour
        for neighbour in network.table()
        if neighbour.state == "reachable" and neighbour.mac_address
    )
    macs = {neighbour.address: neighbour.mac_address for neighbour in table}
    return Answers(macs, is_whole=False, reason=_DEVICE_ONLY)


@dataclass(slots=True)
class Search:
    """One search for the devices. ``local`` is this machine's network.

    If a device with a known MAC is missing, all addresses of the /24 network are resolved (the
    sweep). ``table`` is the neighbour table before the search: the MAC of each address. ``swept``
    are the addresses of the sweep that are not in ``table``. The sweep waits only for answers from
    ``swept``. It does not wait for the addresses in ``table``, because they belong to other
    devices. If a missing device takes such an address, it announces the address, and the kernel
    updates the entry.
    """

    expected: Sequence[Expectation]
    local: LocalNetwork
    exclude: Sequence[str]
    resolver: Resolver
    network: ArpNetwork
    table: dict[str, str] = field(default_factory=dict)
    swept: tuple[str, ...] = ()
    has_begun_sweep: bool = False

    def run(self, is_over: Callable[[], bool]) -> Answers:
        """Resolve the addresses of the devices, and then the network if it is necessary."""
        self.table = {e.address: e.mac_address for e in self.network.table() if e.mac_address}
        macs = {expectation.mac_address for expectation in self.expected}
        known_addresses = {e.address for e in self.expected if e.address}
        known_addresses |= {address for address, mac in self.table.items() if mac in macs}
        self.resolver.add(filter(self._may_resolve, sorted(known_addresses)), KNOWN_TRIES)
        while not is_over():
            self.resolver.step()
            missing = list(filter(self._is_missing, self.expected))
            if missing and not self.has_begun_sweep:
                self.has_begun_sweep = True
                addresses = tuple(filter(self._may_resolve, self._neighbourhood(missing)))
                self.resolver.add(addresses)
                self.swept = tuple(address for address in addresses if address not in self.table)
            if all(map(self._is_settled, self.expected)):
                break
            self.network.wait()
        own_macs = {a: i.interface.mac_address for i in self.local.interfaces for a in i.addresses}
        return Answers(
            {**own_macs, **self.resolver.answers},
            frozenset(self.resolver.silent),
            self.table,
            is_whole=self._is_sweep_complete,
            reason=NOT_TRIED if self.resolver.is_done else _TIME_UP,
        )

    def _addresses_of(self, expectation: Expectation) -> set[str]:
        expected_mac = expectation.mac_address
        return {a for a, mac in self.resolver.answers.items() if mac == expected_mac}

    def _is_missing(self, expectation: Expectation) -> bool:
        """Return whether a device with a known MAC has not answered at any address so far.

        While its expected address may still answer in the usual time, the device is not missing.
        """
        if expectation.mac_address is None or self._addresses_of(expectation):
            return False
        address = expectation.address or ""
        return not self.resolver.is_pending(address) or self.resolver.is_late(address)

    def _is_settled(self, expectation: Expectation) -> bool:
        """Return whether further answers cannot change the state of a device."""
        expected_mac = expectation.mac_address
        addresses = self._addresses_of(expectation) if expected_mac else set()
        if expectation.address in addresses:
            return True
        old_addresses = {a for a, mac in self.table.items() if mac == expected_mac}
        if any(map(self.resolver.is_pending, (expectation.address or "", *old_addresses))):
            return False
        return expected_mac is None or bool(addresses) or self._is_sweep_complete

    @property
    def _is_sweep_complete(self) -> bool:
        return self.has_begun_sweep and all(map(self.resolver.is_known, self.swept))

    def _may_resolve(self, address: str) -> bool:
        on_link = (network_of(a) for i in self._links for a in i.interface.addresses)
        is_excluded = is_in_networks(address, parse_networks(self.exclude))
        is_own = address in self.local.own_addresses
        return is_in_networks(address, on_link) and not is_excluded and not is_own

    @property
    def _links(self) -> tuple[LocalInterface, ...]:
        return tuple(
            interface for interface in self.local.in_use if not interface.is_point_to_point
        )

    def _neighbourhood(self, missing: Sequence[Expectation]) -> Iterator[str]:
        """Yield the addresses of this machine's /24 network on each link of a missing device.

        A device without an address is assumed to be on the first link (`_is_on`).
        """
        for number, link in enumerate(self._links):
            for own_address in link.interface.addresses:
                network = network_of(own_address)
                has_missing_device = any(
                    _is_on(expectation.address, network, number) for expectation in missing
                )
                if has_missing_device and any(network.overlaps(known) for known in OWN_RANGES):
                    prefix = max(_SWEEP_PREFIX, network.prefixlen)
                    block = ipaddress.ip_network(f"{own_address.address}/{prefix}", strict=False)
                    yield from map(str, block.hosts())


def _is_on(address: str | None, network: Network, number: int) -> bool:
    """Return whether a device is on the link with this number, which has ``network``.

    A device without an address is assumed to be on link 0, which has the preferred default route of
    all links.
    """
    return number == 0 if address is None else ipaddress.ip_address(address) in network
