"""Generates venues with watched devices: their networks on a first day, and on a later day.

With each device, the generator returns the state of the device that the reports of the later day
must contain. It does not use the code by which the collectors recognise devices.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from collectors.contract import DeviceKind, LearnedPrinter, WatchedDevice
from collectors.shared.linux.rtnetlink import LinkNeighbour

Fate = Literal["stays", "moves", "is off", "is replaced", "moves, replaced", "exchanged", "new MAC"]
FATES: tuple[Fate, ...] = (
    "stays", "moves", "is off", "is replaced", "moves, replaced", "exchanged", "new MAC",
)  # fmt: skip
"""What happens to a watched device between the two days. "replaced": another device gets its
address. "exchanged": it swaps addresses with another watched device. "new MAC": it has a random
MAC, which changes.
"""
KINDS: tuple[DeviceKind, ...] = (
    "payment-terminal", "payment-terminal", "kitchen-display", "scale", "cash-drawer", "other",
)  # fmt: skip
NETWORK = "10.0.0"
OWN, GATEWAY = f"{NETWORK}.20", f"{NETWORK}.1"
GATEWAY_MAC = "00:1a:00:00:00:01"


@dataclass(frozen=True)
class LanDevice:
    """A device in the LAN. ``name`` is its mDNS name; "" if it announces none."""

    mac: str
    ports: frozenset[int] = frozenset()
    name: str = ""


@dataclass(frozen=True)
class ExpectedState:
    """The expected values of the fields of `DeviceState` with the same names."""

    state: str
    address: str | None
    moved_from: str | None = None
    other_mac: str | None = None


@dataclass
class DeviceHistory:
    """A watched device with its fate. ``first_address`` is its address on the first day.

    ``network`` and ``snapshot`` are the states of the device that the network report and the
    application snapshot of the later day must contain.
    """

    device: WatchedDevice
    lan: LanDevice
    first_address: str
    fate: Fate
    network: ExpectedState
    snapshot: ExpectedState

    @property
    def is_terminal(self) -> bool:
        return self.device.kind == "payment-terminal"


@dataclass
class Venue:
    """A venue with its devices by address: ``before`` on the first day, ``now`` on the later day.

    ``stale`` contains old entries of the neighbour table on the later day: addresses with MACs.
    """

    before: dict[str, LanDevice]
    now: dict[str, LanDevice]
    watched: list[DeviceHistory]
    stale: dict[str, str] = field(default_factory=dict)

    @property
    def devices(self) -> tuple[WatchedDevice, ...]:
        return tuple(watched_device.device for watched_device in self.watched)


def venue_of(seed: int) -> Venue:
    """Return the venue of a seed."""
    rng = random.Random(seed)
    free = [f"{NETWORK}.{n}" for n in range(2, 255) if f"{NETWORK}.{n}" != OWN]
    rng.shuffle(free)
    before = {GATEWAY: LanDevice(GATEWAY_MAC, frozenset({53, 80}))}
    repeater = mac_of(rng)  # the MAC of a Wi-Fi repeater, which answers for several addresses
    for _ in range(rng.randrange(4, 20)):
        before[free.pop()] = LanDevice(mac_of(rng), ports_of(rng))
    for _ in range(rng.choice((0, 2, 3))):
        before[free.pop()] = LanDevice(repeater, ports_of(rng))
    venue = Venue(before, dict(before), [])
    watched = [new_device(rng, number, free.pop()) for number in range(rng.randrange(1, 7))]
    for watched_device in watched:
        before[watched_device.first_address] = venue.now[watched_device.first_address] = (
            watched_device.lan
        )
    exchanged = [watched_device for watched_device in watched if watched_device.fate == "exchanged"]
    for first, second in zip(exchanged[::2], exchanged[1::2], strict=False):
        venue.now[first.first_address], venue.now[second.first_address] = second.lan, first.lan
        set_expected(
            first, ExpectedState("moved", second.first_address, first.first_address, second.lan.mac)
        )
        set_expected(
            second, ExpectedState("moved", first.first_address, second.first_address, first.lan.mac)
        )
    if len(exchanged) % 2:
        exchanged[-1].fate = "stays"
    for watched_device in watched:
        if watched_device.fate != "exchanged":
            apply_fate(rng, venue, watched_device, free, repeater)
    venue.watched = watched
    venue.stale = stale_table(rng, venue)
    return venue


def new_device(rng: random.Random, number: int, first_address: str) -> DeviceHistory:
    """Return a device of a random kind, configured by its address, its MAC or both."""
    fate, kind = rng.choice(FATES), rng.choice(KINDS)
    form = rng.choice(("both", "address", "mac"))
    name = rng.choice(("", f"Device {number}"))
    if fate == "new MAC":
        kind, form, name = "kitchen-display", "address", f"Device {number}"
    mac = mac_of(rng, is_random=fate == "new MAC")
    device = WatchedDevice(
        f"Device {number}",
        kind,
        None if form == "mac" else first_address,
        None if form == "address" else mac,
    )
    lan = LanDevice(mac, ports_of(rng), name)
    return DeviceHistory(
        device, lan, first_address, fate, ExpectedState("", None), ExpectedState("", None)
    )


def apply_fate(
    rng: random.Random, venue: Venue, watched_device: DeviceHistory, free: list[str], repeater: str
) -> None:
    """Change the venue according to the device's fate. Set the states that reports must contain."""
    now, first_address, lan = venue.now, watched_device.first_address, watched_device.lan
    if watched_device.fate == "stays":
        set_expected(watched_device, ExpectedState("present", first_address))
        return
    del now[first_address]
    newcomer = None
    if "replaced" in watched_device.fate:
        has_repeater = any(host.mac == repeater for host in now.values())
        mac = repeater if has_repeater and rng.random() < 0.3 else mac_of(rng)
        newcomer = now[first_address] = LanDevice(mac, ports_of(rng))
    if watched_device.fate.startswith("moves"):
        new = free.pop()
        now[new] = lan
        set_expected(
            watched_device,
            ExpectedState("moved", new, first_address, newcomer.mac if newcomer else None),
        )
    elif watched_device.fate == "new MAC":
        other = replace(lan, mac=mac_of(rng, is_random=True))
        new = rng.choice((first_address, free.pop()))
        now[new] = other
        watched_device.network = (
            ExpectedState("present", first_address)
            if new == first_address
            else ExpectedState("moved", new, first_address)
        )
        watched_device.snapshot = ExpectedState(
            "unknown" if new == first_address else "absent", first_address
        )
    elif newcomer is None or watched_device.device.address is None:
        set_expected(watched_device, ExpectedState("absent", first_address))
    elif newcomer.mac == repeater:
        set_expected(watched_device, ExpectedState("unknown", first_address))
    else:
        set_expected(watched_device, ExpectedState("replaced", first_address, None, newcomer.mac))


def set_expected(watched_device: DeviceHistory, expected: ExpectedState) -> None:
    watched_device.network = watched_device.snapshot = expected


def stale_table(rng: random.Random, venue: Venue) -> dict[str, str]:
    """Return old neighbour entries: some with MACs of the first day, some with current MACs."""
    earlier_entries = {a: host.mac for a, host in venue.before.items() if rng.random() < 0.4}
    current_entries = {a: host.mac for a, host in venue.now.items() if rng.random() < 0.2}
    return {**earlier_entries, **current_entries}


def mac_of(rng: random.Random, *, is_random: bool = False) -> str:
    first = 0x02 if is_random else 0x00
    return ":".join(f"{byte:02x}" for byte in (first, *rng.randbytes(5)))


def ports_of(rng: random.Random) -> frozenset[int]:
    return frozenset(rng.sample((22, 80, 443, 631, 8443, 9100), rng.randrange(0, 4)))


@dataclass
class SimulatedKernel:
    """The neighbour table of this machine, with its own clock. It implements `ArpNetwork`.

    An address without an entry gets three ARP requests, one a second. When an old entry is used,
    requests to its MAC follow 5 s later. They confirm the entry if this MAC still has the address.
    If not, the entry fails 8 s after it was used.

    ``stale`` contains the old entries. ``sent`` are the addresses to which `prime` sent a datagram.
    """

    lan: dict[str, LanDevice]
    stale: dict[str, str]
    now_s: float = 100.0
    sent: list[str] = field(default_factory=list)
    has_states: bool = True
    _primed: dict[str, float] = field(default_factory=dict)

    def now(self) -> float:
        return self.now_s

    def wait(self) -> None:
        self.now_s += 0.1  # longer than a real wait, so that a test needs fewer steps

    def prime(self, address: str) -> bool:
        self._primed.setdefault(address, self.now_s)
        entry = self._entry(address)
        if entry and entry.state == "failed":
            self._primed[address] = self.now_s
            self.stale.pop(address, None)
        self.sent.append(address)
        return True

    def table(self) -> Sequence[LinkNeighbour]:
        addresses = dict.fromkeys((*self.stale, *self._primed))
        return tuple(filter(None, map(self._entry, addresses)))

    def _entry(self, address: str) -> LinkNeighbour | None:
        host, old = self.lan.get(address), self.stale.get(address)
        primed_s = self._primed.get(address)
        if primed_s is None:
            return LinkNeighbour(2, address, old, "stale") if old else None
        elapsed_s = self.now_s - primed_s
        if old is not None:
            if host is not None and host.mac == old and elapsed_s > 5.01:
                return LinkNeighbour(2, address, old, "reachable")
            if elapsed_s > 8.01:
                return LinkNeighbour(2, address, None, "failed")
            return LinkNeighbour(2, address, old, "stale")
        if host is not None and elapsed_s > 0.01:
            return LinkNeighbour(2, address, host.mac, "reachable")
        return LinkNeighbour(2, address, None, "failed" if elapsed_s > 3.01 else "resolving")


def learned_on_the_first_day(venue: Venue) -> tuple[LearnedPrinter, ...]:
    """Return the identities that a network report of the first day learns.

    A test of the snapshot can use them without making such a report.
    """
    return tuple(
        LearnedPrinter(
            f"device:{watched_device.device.name}",
            " ".join(
                filter(None, (watched_device.device.address, watched_device.device.mac_address))
            ),
            "2026-11-01T00:00:00+00:00",
            watched_device.first_address,
            watched_device.lan.mac,
        )
        for watched_device in venue.watched
    )
