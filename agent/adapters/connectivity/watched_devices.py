"""Checks with the neighbour table whether the watched devices answer, and at which addresses.

The first step makes the kernel resolve their addresses by ARP, as `collectors.shared.arp.priming`
describes. The second step, at least ten seconds later, reads the result. By then, the kernel has
removed or marked each entry whose device does not answer.
"""

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Final

from agent.config.model import WatchedDevice
from agent.rules.connectivity.local_faults import Key, LocalReading, LocalState
from agent.wire.payloads.history import EventKind
from collectors import contract
from collectors.shared.addresses import Network, is_in_networks, normal_mac, parse_networks
from collectors.shared.arp.priming import PrimingSockets
from collectors.shared.linux.rtnetlink import LinkNeighbour
from collectors.shared.linux.rtnetlink_socket import read_neighbours
from collectors.shared.watched_devices import Answers, Expectation, state_of

SETTLED_AFTER_S: Final = 10.0
"""Time between the two steps. The kernel needs 8 s to detect that a known device is gone."""
_GONE: Final = ("failed", "resolving")


class WatchedDevices:
    """Checks each device in two steps: resolve its addresses, and read the result.

    Args:
        networks: returns the networks of this machine; none if it has no link. Only addresses in
            them are resolved.
        exclude: addresses and networks that get no packet.
        sends_nothing: no device gets a packet, so there is no first step. A device is recognised
            only if the kernel has confirmed its entry recently.
        read_table: returns the neighbour table of IPv4. Tests replace it.
        prime: makes the kernel resolve addresses. Tests replace it.
    """

    def __init__(
        self,
        devices: Sequence[WatchedDevice],
        networks: Callable[[], tuple[Network, ...]],
        exclude: Sequence[str] = (),
        *,
        sends_nothing: bool = False,
        read_table: Callable[[], Sequence[LinkNeighbour]] | None = None,
        prime: Callable[[set[str]], None] | None = None,
    ) -> None:
        self._devices = devices
        self._networks = networks
        self._exclude = parse_networks(exclude)
        self._sends_nothing = sends_nothing
        self._read_table = read_table or _read_table
        self._prime = prime or _prime
        self._resolved: set[str] | None = None  # the addresses whose result was not read yet
        self._due_s = 0.0  # when the result can be read
        self._last_addresses: dict[str, str] = {}

    @property
    def is_pending(self) -> bool:
        """Whether addresses were resolved, and the result was not read yet."""
        return self._resolved is not None

    def step(self, now_s: float | None = None) -> LocalReading:
        """Resolve the addresses, or return the result of the previous step. Never raises.

        Returns an empty reading if there is no result yet. With ``sends_nothing``, no address is
        resolved, and each call returns a result.
        """
        now_s = time.monotonic() if now_s is None else now_s
        if self._resolved is not None and now_s < self._due_s:
            return LocalReading()
        try:
            table = {each.address: each for each in self._read_table()}
            if self._resolved is not None:
                resolved, self._resolved = self._resolved, None
                return self._check_devices(table, resolved) if self._networks() else LocalReading()
            if self._sends_nothing:
                return self._check_devices(table, set())
            addresses = {
                each.address or self._last_addresses.get(each.name) or "" for each in self._devices
            }
            macs = {normal_mac(each.mac) for each in self._devices if each.mac}
            addresses |= {each.address for each in table.values() if each.mac_address in macs}
            self._resolved = set(filter(self._is_resolvable, addresses))
            self._due_s = now_s + SETTLED_AFTER_S
            self._prime(self._resolved)
        except OSError:
            self._resolved = None
        return LocalReading()

    def _check_devices(self, table: dict[str, LinkNeighbour], resolved: set[str]) -> LocalReading:
        """Return the state of each device that could be checked."""
        macs_by_address = {
            address: each.mac_address
            for address, each in table.items()
            if each.mac_address
            and (each.state == "reachable" or (address in resolved and each.state not in _GONE))
        }
        answers = Answers(macs_by_address, silent=resolved - macs_by_address.keys())
        states: dict[Key, LocalState] = {}
        events: list[tuple[EventKind, str]] = []
        for device in self._devices:
            last_address = self._last_addresses.get(device.name) or device.address
            expected = contract.WatchedDevice(device.name, device.kind, last_address, device.mac)
            state = state_of(Expectation(expected), answers)
            if state.address and state.state in ("present", "moved"):
                self._last_addresses[device.name] = state.address
                states["device-absent", device.name] = LocalState(None)
                if last_address is not None and last_address != state.address:
                    events.append(
                        ("device-moved", f"{device.name}: from {last_address} to {state.address}")
                    )
            elif state.address in resolved and (fault := _fault_of(state)):
                states["device-absent", device.name] = LocalState(fault)
        return LocalReading(states, events=tuple(events))

    def _is_resolvable(self, text: str) -> bool:
        if not text or ":" in text:
            return False
        is_local = is_in_networks(text, self._networks())
        return is_local and not is_in_networks(text, self._exclude)


def _fault_of(state: contract.DeviceState) -> str | None:
    """Return what is wrong with a device that does not answer; None if this is not known."""
    if state.state == "absent":
        return f"no answer to ARP at {state.address}"
    if state.state == "replaced":
        return f"another device ({state.other_mac}) answers at {state.address}"
    return None


def _read_table() -> Sequence[LinkNeighbour]:
    """Return the neighbour table of IPv4. Raises OSError."""
    if sys.platform == "win32":
        from collectors.shared.host.neighbours_windows import read_neighbours_windows

        return read_neighbours_windows()
    return read_neighbours()


def _prime(addresses: set[str]) -> None:
    with closing(PrimingSockets()) as sockets:
        for address in addresses:
            sockets.prime(address)
