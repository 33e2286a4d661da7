"""Answers two questions about each network printer: where does the print system send a job now, and
which device is the printer? The answers select a row of the table of verdicts. No I/O.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from collectors.network.matching.destination import Destination, Directory, Problem
from collectors.network.matching.devices import Device, DeviceIndex, group_devices, service_names
from collectors.network.matching.models import is_same_model
from collectors.network.matching.recognise import (
    UNIDENTIFIED,
    Comparison,
    Match,
    compare,
    find_candidates,
    find_matches,
    may_have_mac,
)
from collectors.network.matching.symptoms import OutOfReach
from collectors.network.matching.table import IdentityAt, Occupant, PortStatus, Situation
from collectors.network.observations import KnownPrinter, Observations, PortObservation
from collectors.network.scan.scan import PortState
from collectors.shared.addresses import (
    LINK_LOCAL,
    PRINT_PORTS,
    Network,
    is_in_networks,
    parse_networks,
)

_Endpoint = tuple[str, int | None]  # an address and a port
_Choice = tuple[_Endpoint, Device]
_USUAL_PREFIX = 24
_PORT_STATUSES_BEST_FIRST: tuple[PortStatus, ...] = ("open", "not tried", "refused", "silent")


@dataclass(frozen=True, slots=True)
class Case:
    """The answers for one printer.

    ``address`` and ``port`` are its destination now, or ``problem`` is the reason why it has none.
    ``announced_address`` is that of an unusable service with the printer's name (`Destination`).
    ``device`` is the device at the destination, and ``observation`` is what was observed of the
    port. ``comparison`` compares the device with the printer. If the print system may pick any of
    several devices, ``rivals`` are these devices. ``matches`` are the devices that certainly are
    the printer.
    """

    printer: KnownPrinter
    problem: Problem = ""
    announced_address: str = ""
    address: str = ""
    port: int | None = None
    device: Device | None = None
    observation: PortObservation | None = None
    comparison: Comparison = UNIDENTIFIED
    rivals: tuple[Device, ...] = ()
    matches: tuple[Match, ...] = ()

    @property
    def elsewhere(self) -> tuple[Match, ...]:
        """The matched devices that are not the device at the destination.

        A MAC is the strongest evidence. So if some of the devices are identified by their MAC, the
        other devices are left out.
        """
        others = [match for match in self.matches if match.device is not self.device]
        by_mac = tuple(m for m in others if m.by == "MAC" and not m.is_mac_from_host_name)
        if self.observation is not None and self.observation.contact == "open":
            # The device with the open port and the device elsewhere may be two interfaces of one
            # printer. So a MAC from the host name does not count. If the device with the open port
            # shares an identity with the printer, only an observed MAC counts.
            if self.comparison.has_shared_identity:
                return by_mac
            others = [match for match in others if not match.is_mac_from_host_name]
        return by_mac or tuple(others)

    @property
    def devices(self) -> tuple[Device, ...]:
        """All devices that this printer uses or may use."""
        devices = (self.device,) if self.device else ()
        return (*devices, *self.rivals, *(match.device for match in self.matches))

    def evidence(self, device: Device) -> str | None:
        """Return the evidence that a device certainly is this printer, or None."""
        if self.device is device and self.comparison.likeness == "same":
            return self.comparison.by
        return next((match.by for match in self.matches if match.device is device), None)

    def may_print_to(self, device: Device) -> bool:
        return self.device is device and self.comparison.likeness != "different"


class Reach:
    """Results of connections to addresses.

    ``has_no_observations``: nothing of the network was observed.
    """

    def __init__(self, observed: Observations) -> None:
        self._attempts = observed.attempts
        self._scanned = {a: h.scanned for a, h in observed.hosts.items() if h.scanned}
        self._networks = parse_networks(observed.scanned_networks)
        self._own_networks = parse_networks(observed.own_networks)
        self.has_no_observations = not (
            observed.ports or self._scanned or observed.scanned_networks
        )

    def attempts(self, address: str, port: int) -> tuple[PortState, ...]:
        """Return the results of all connections to a port, oldest first.

        If the scan tried the address and nothing answered, the only result is "no-answer".
        """
        if attempts := self._attempts.get((address, port)):
            return attempts
        host = self._scanned.get(address)
        contact = host.contact(port) if host else None
        if host is None and is_in_networks(address, self._networks):
            contact = "no-answer"
        return (contact,) if contact else ()

    def is_answering(self, address: str) -> bool:
        host = self._scanned.get(address)
        return host is not None and host.is_answering

    def obstacle(self, address: str) -> OutOfReach:
        """Return why this machine cannot print to an address; "" if it can.

        An IPv6 address counts as an address in one of this machine's networks.
        """
        if is_in_networks(address, (LINK_LOCAL,)):
            return "link-local"
        nearby = (*self._own_networks, *self._networks)
        is_near = ":" in address or not self._own_networks or is_in_networks(address, nearby)
        if is_near or self.is_answering(address):
            return ""
        usual_networks = tuple(map(_usual_network, self._own_networks))
        return "wrong mask" if is_in_networks(address, usual_networks) else "other network"


class Cases:
    """The cases of all network printers. ``by_number`` has them by their position in ``known``.

    A printer with a device URI of unknown form (`KnownPrinter.backend`) has no case.
    ``addresses`` are those of all devices that the printers use or may use.
    """

    def __init__(
        self, known: Sequence[KnownPrinter], observed: Observations, index: DeviceIndex
    ) -> None:
        self.index = index
        self.reach = Reach(observed)
        self._ports = observed.ports
        directory = Directory(observed, index)
        self.by_number = {
            number: self._make_case(printer, directory.resolve(printer))
            for number, printer in enumerate(known)
            if printer.transport == "network" and printer.backend is None
        }
        devices = (device for case in self.by_number.values() for device in case.devices)
        self.addresses = {address for device in devices for address in device.addresses}

    def is_free(self, device: Device) -> bool:
        """Return whether this machine could print to a device and no queue uses it."""
        return device.address not in self.addresses and not self.reach.obstacle(device.address)

    def others(self, case: Case) -> Iterator[Case]:
        """Yield the cases of the printers that share no address of their setup with ``case``."""
        addresses = set(case.printer.addresses)
        for other in self.by_number.values():
            if other is not case and not addresses & set(other.printer.addresses):
                yield other

    def owner(self, case: Case, device: Device) -> tuple[str, str] | None:
        """Return the name of another printer that certainly is ``device``, and the evidence.

        A printer whose destination is another address of ``device`` than the address of ``case`` is
        skipped: that printer has not moved to the address of ``case``.
        """
        for other in self.others(case):
            has_other_address = other.device is device and other.address != case.address
            if not has_other_address and (by := other.evidence(device)):
                return other.printer.name, by
        return None

    def situation(self, case: Case) -> Situation:
        choices: tuple[IdentityAt, ...] = ("nowhere", "elsewhere", "at several")
        identity_seen = choices[min(len(case.elsewhere), 2)]
        if case.rivals:
            return Situation("several", None, None, identity_seen)
        if not case.address:
            return Situation("fails", None, None, identity_seen)
        occupant, port = self._occupant(case), self._destination_state(case)
        if occupant == "this printer":
            identity_seen = "at the address"
        elif occupant == "unknown" and port == "open":
            # A device may have further IPv6 addresses, so an unknown device at an IPv6 address may
            # be the device that was matched elsewhere.
            addresses = (address for match in case.elsewhere for address in match.device.addresses)
            is_ipv6 = ":" in case.address or all(":" in address for address in addresses)
            identity_seen = "nowhere" if is_ipv6 else identity_seen
        return Situation("address", occupant, port, identity_seen)

    def _occupant(self, case: Case) -> Occupant:
        device = case.device
        is_answering = self._destination_state(case) in ("open", "refused")
        if device is None:
            return "unknown" if is_answering else "nobody"
        if not is_answering and not device.is_alive and case.elsewhere:
            return "nobody"  # only an old entry of the neighbour table is left at the address
        if case.comparison.likeness != "different":
            return "this printer" if case.comparison.likeness == "same" else "unknown"
        return "another printer" if self.owner(case, device) else "another device"

    def _destination_state(self, case: Case) -> PortStatus:
        if case.port is None and case.device is not None:
            return "refused" if case.device.is_alive else "silent"  # the device has no print port
        return self._port_state(case.address, case.port)

    def _port_state(self, address: str, port: int | None) -> PortStatus:
        if attempts := self.reach.attempts(address, port or 0):
            return "silent" if attempts[-1] == "no-answer" else attempts[-1]
        return "not tried"

    # ------------------------------------------------------------------ the answers

    def _make_case(self, printer: KnownPrinter, destination: Destination) -> Case:
        case = Case(
            printer,
            destination.problem,
            destination.announced_address,
            matches=find_matches(printer, self.index),
        )
        if not destination.endpoints:
            return case
        endpoints = self._usable(destination.endpoints)
        rivals: tuple[Device, ...] = ()
        if destination.is_one_of:
            endpoints, rivals = self._narrow(printer, endpoints)
        address, port = min(endpoints, key=lambda endpoint: self._preference(printer, *endpoint))
        device = self.index.at(address)
        observation = self._observation(printer, device, address, port)
        if device is not None:
            comparison = compare(printer, device, self.index, observation)
            case = replace(
                case, device=device, observation=observation, comparison=comparison, rivals=rivals
            )
        if observation is not None:
            address, port = observation.address, observation.port
        return replace(case, address=address, port=port)

    def _preference(
        self, printer: KnownPrinter, address: str, port: int | None
    ) -> tuple[int, bool]:
        """Return the sort key of an address, lowest for an open port.

        The print system tries all addresses, so it prints to an address with an open port.
        """
        device = self.index.at(address)
        is_other = device and compare(printer, device, self.index).likeness == "different"
        return _PORT_STATUSES_BEST_FIRST.index(self._port_state(address, port)), bool(is_other)

    def _usable(self, endpoints: Sequence[_Endpoint]) -> list[_Endpoint]:
        """Leave out IPv6 addresses that were not tried, if there are IPv4 addresses."""
        if all(":" in address for address, _ in endpoints):
            return list(endpoints)
        return [e for e in endpoints if ":" not in e[0] or self._port_state(*e) != "not tried"]

    def _narrow(
        self, printer: KnownPrinter, endpoints: list[_Endpoint]
    ) -> tuple[list[_Endpoint], tuple[Device, ...]]:
        """Choose between devices with the same name, UUID or MAC.

        Each criterion narrows the choice. Returns the remaining endpoints, and the remaining
        devices if there are several.
        """
        uuid = printer.uuid
        criteria: tuple[Callable[[Device], bool], ...] = (
            lambda device: bool(device.observations),
            lambda device: may_have_mac(printer, device),
            lambda device: any(
                uuid in observation.answered_uuids for observation in device.observations
            ),
            lambda device: any(
                observation.contact == "open" for observation in device.observations
            ),
            lambda device: any(is_same_model(printer.make_model, m) for m in device.models),
        )
        candidates: list[_Choice] = [
            (e, device) for e in endpoints if (device := self.index.at(e[0])) is not None
        ]
        for fits in criteria:
            candidates = [candidate for candidate in candidates if fits(candidate[1])] or candidates
        devices = tuple(dict.fromkeys(device for _, device in candidates))
        remaining = [endpoint for endpoint, _ in candidates] or endpoints
        return remaining, devices if len(devices) > 1 else ()

    def _observation(
        self, printer: KnownPrinter, device: Device | None, address: str, port: int | None
    ) -> PortObservation | None:
        """Return the observation of the destination's port.

        If the destination has no port, the observation of the best port at the destination's
        address is returned. If the printer has a UUID, the best port may be at any address of the
        device, because the UUID identifies the printer's port.
        """
        if port is not None or device is None:
            return self._ports.get((address, port or 0))
        return choose_observation(
            printer, [e for e in device.observations if e.address == address or printer.uuid]
        )


def located_addresses(known: Sequence[KnownPrinter], observed: Observations) -> set[str]:
    """Return the addresses of all devices that may be one of the printers."""
    index = DeviceIndex(group_devices(observed))
    candidates = (device for printer in known for device in find_candidates(printer, index))
    addresses = {a for device in candidates for a in device.addresses}
    return addresses | Cases(known, observed, index).addresses


def choose_observation(
    printer: KnownPrinter, observations: Sequence[PortObservation]
) -> PortObservation | None:
    """Return the observation of the best port to print to.

    The best port is the port in the printer's setup. If the setup has no port, the best port is one
    that gives the printer's UUID or DNS-SD name (`is_own`), or else a usual print port.
    """
    if printer.port is not None:
        observations = [
            observation for observation in observations if observation.port == printer.port
        ]
        return min(observations, key=_rank, default=None)
    own_ports = [observation for observation in observations if is_own(printer, observation)]
    best = min(own_ports or observations, key=_rank, default=None)
    return best if best is not None and (own_ports or best.port in PRINT_PORTS) else None


def is_own(printer: KnownPrinter, observation: PortObservation) -> bool:
    """Return whether an observed port itself gives the printer's UUID or DNS-SD name."""
    if printer.uuid is not None and printer.uuid in observation.uuids:
        return True
    name = (printer.dns_sd_name or "").lower()
    return bool(name) and any(name in service_names(instance) for instance in observation.instances)


def _rank(observation: PortObservation) -> tuple[bool, int, int]:
    port = observation.port
    position = PRINT_PORTS.index(port) if port in PRINT_PORTS else len(PRINT_PORTS)
    return (observation.contact != "open", position, port)


def _usual_network(network: Network) -> Network:
    """Return the /24 that contains a smaller IPv4 network. Other networks are returned as is."""
    is_small = network.version == 4 and network.prefixlen > _USUAL_PREFIX
    return network.supernet(new_prefix=_USUAL_PREFIX) if is_small else network
