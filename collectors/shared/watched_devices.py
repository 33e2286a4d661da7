"""Determines where a watched device is, by the MACs that answer ARP. Does no input or output.

The network report and the application snapshot both use this, so that they give the same answer.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, Literal

from collectors.contract import DeviceState, LearnedPrinter, WatchedDevice
from collectors.shared.addresses import normal_mac, numeric_order

TERMINAL_KIND: Final = "payment-terminal"
_ID_PREFIX: Final = "device:"
NOT_TRIED: Final = (
    "its address was not checked: it is excluded, or not in a network of this machine"
)
_SHARED_MAC_REASON: Final = (
    "{mac} answers at the device's address and at others, as a repeater or a proxy does"
)
_RANDOM_MAC_REASON: Final = (
    "{mac} answers at the device's address; this MAC is random,"
    " so the device may have changed its MAC"
)
_LOCAL_BIT: Final = 0x02


@dataclass(frozen=True, slots=True)
class Expectation:
    """What is known about a device: its configuration, and what earlier reports have learned.

    ``is_mac_learned``: no MAC is configured. ``mac_address`` is then the MAC that an earlier report
    has learned from ARP, or None if there is no such MAC. A learned MAC can be that of a repeater
    instead of the device's.
    """

    device: WatchedDevice
    learned: LearnedPrinter | None = None

    @property
    def id(self) -> str:
        return f"{_ID_PREFIX}{self.device.name}"

    @property
    def setup(self) -> str:
        """The configured address and MAC. After a change, what was learned before is not used."""
        return " ".join(filter(None, (self.device.address, self.device.mac_address)))

    @property
    def mac_address(self) -> str | None:
        learned = self.learned.mac_address if self.learned else None
        return normal_mac(self.device.mac_address) or learned

    @property
    def is_mac_learned(self) -> bool:
        return normal_mac(self.device.mac_address) is None

    @property
    def address(self) -> str | None:
        """The configured address, or else the last known one."""
        return self.device.address or (self.learned.address if self.learned else None) or None


@dataclass(frozen=True, slots=True)
class Answers:
    """Which addresses answered.

    ``macs`` maps each address that answered to its MAC, or to None if the MAC is not visible.
    ``silent`` are the addresses that were tried and did not answer. ``reason`` explains why an
    address is neither in ``macs`` nor in ``silent``. ``table`` is the neighbour table, whose
    entries may be older than the answers. ``proxies`` are the MACs of machines that answer for the
    addresses of other hosts (proxy ARP). ``is_whole``: all addresses of the network were tried.
    """

    macs: Mapping[str, str | None]
    silent: Collection[str] = ()
    table: Mapping[str, str] = field(default_factory=dict)
    proxies: Collection[str] = ()
    is_whole: bool = True
    reason: str = NOT_TRIED

    def addresses_of(self, mac_address: str | None) -> tuple[str, ...]:
        """Return the addresses of a MAC, in numeric order."""
        addresses = (a for a, mac in self.macs.items() if mac and mac == mac_address)
        return tuple(sorted(addresses, key=numeric_order))


def expectations(
    devices: Iterable[WatchedDevice], learned: Sequence[LearnedPrinter]
) -> tuple[Expectation, ...]:
    """Add to each device what was learned about it, unless its configuration has changed since."""
    by_id = {(printer.id, printer.setup): printer for printer in learned}
    unlearned = (Expectation(device) for device in devices)
    return tuple(Expectation(e.device, by_id.get((e.id, e.setup))) for e in unlearned)


@dataclass(frozen=True, slots=True)
class PaymentTerminals:
    """The addresses and MACs of payment terminals, which get no connection and no data."""

    addresses: frozenset[str] = frozenset()
    macs: frozenset[str] = frozenset()

    def __contains__(self, host: tuple[str, str | None]) -> bool:
        """Return whether a host, given by its address and MAC, is a payment terminal."""
        return host[0] in self.addresses or host[1] in self.macs


NO_TERMINALS: Final = PaymentTerminals()


def terminals_of(expected: Iterable[Expectation]) -> PaymentTerminals:
    """Return the addresses and MACs of the payment terminals among the devices."""
    terminals = [
        expectation for expectation in expected if expectation.device.kind == TERMINAL_KIND
    ]
    return PaymentTerminals(
        frozenset(terminal.device.address for terminal in terminals if terminal.device.address),
        frozenset(terminal.mac_address for terminal in terminals if terminal.mac_address),
    )


def state_of(
    expected: Expectation, answers: Answers, recognised: Collection[str] = ()
) -> DeviceState:
    """Return where a device is.

    ``recognised`` are the addresses at which the device was recognised by something other than its
    MAC.
    """
    device, address, mac = expected.device, expected.address, expected.mac_address
    addresses = tuple(
        dict.fromkeys((*answers.addresses_of(mac), *sorted(recognised, key=numeric_order)))
    )
    is_ambiguous = len(addresses) > 1 and address not in addresses
    if is_ambiguous and expected.is_mac_learned and not recognised:
        addresses = ()  # the learned MAC is that of a repeater with several devices behind it
    other_mac = answers.macs.get(address or "")
    is_mac_unknown = mac is None or other_mac is None
    has_answer = address in answers.macs and is_mac_unknown
    if address in addresses or has_answer or (addresses and address is None):
        return DeviceState(device, "present", address or addresses[0])
    if addresses:
        return DeviceState(device, "moved", addresses[0], moved_from=address, other_mac=other_mac)
    return _missing_state(expected, other_mac, answers)


def _missing_state(expected: Expectation, other_mac: str | None, answers: Answers) -> DeviceState:
    """Return the state of a device that was not recognised anywhere.

    ``other_mac`` is the MAC that answers at its address. A device without a configured address may
    have any address, so it is absent only if the whole network was searched.
    """
    device, address = expected.device, expected.address
    if device.address is None and answers.is_whole:
        return DeviceState(device, "absent", address)
    if device.address is None or (other_mac is None and address not in answers.silent):
        return DeviceState(device, "unknown", address, reason=answers.reason)
    if other_mac is None:
        return DeviceState(device, "absent", address)
    doubt = _doubt_about(other_mac, expected, answers)
    state: Literal["unknown", "replaced"] = "unknown" if doubt else "replaced"
    return DeviceState(device, state, address, other_mac=other_mac, reason=doubt)


def _doubt_about(other_mac: str, expected: Expectation, answers: Answers) -> str | None:
    """Return why ``other_mac`` may be the device after all, or None if it is another device."""
    older_addresses = {
        a for a, mac in answers.table.items() if mac == other_mac and a not in answers.silent
    }
    addresses = {*answers.addresses_of(other_mac), *(older_addresses - answers.macs.keys())}
    if len(addresses) > 1 or other_mac in answers.proxies:
        return _SHARED_MAC_REASON.format(mac=other_mac)
    if expected.is_mac_learned and is_random(expected.mac_address, other_mac):
        return _RANDOM_MAC_REASON.format(mac=other_mac)
    return None


def is_random(*macs: str | None) -> bool:
    """Return whether all MACs are locally administered, as the random MACs of phones are.

    IEEE 802 marks them by the second lowest bit of the first byte.
    """
    return all(mac and int(mac[:2], 16) & _LOCAL_BIT for mac in macs)


def learned_identity(
    expected: Expectation, state: DeviceState, answers: Answers
) -> tuple[LearnedPrinter | None, LearnedPrinter | None]:
    """Return the learned identities: of the device, and of another device at its address.

    An identity is None if nothing was learned about that device.

    A MAC that several addresses have does not identify a device, so it is not learned.
    """
    is_there = state.state in ("present", "moved")
    is_stranger = bool(state.other_mac) and expected.is_mac_learned
    if state.address is None or not (is_there or is_stranger):
        return None, None
    mac = answers.macs.get(state.address)
    addresses = {
        a for a, other_mac in (*answers.table.items(), *answers.macs.items()) if other_mac == mac
    }
    identity = LearnedPrinter(
        id=expected.id,
        setup=expected.setup,
        seen_at=datetime.now(UTC).isoformat(timespec="seconds"),
        address=state.address,
        mac_address=mac if addresses == {state.address} else None,
    )
    if is_there:
        return identity, None
    return None, identity if identity.mac_address else None
