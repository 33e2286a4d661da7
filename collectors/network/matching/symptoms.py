"""The symptoms of a printer and those of the machine, from which the causes are derived.

They are frozen values, with properties that format them for the sentences of a cause. Texts from
other devices were limited in length when they were read.
"""

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from collectors.network.matching.reasons import state_words
from collectors.network.observations import KnownPrinter
from collectors.network.scan.scan import PortState
from collectors.shared.addresses import RAW_PRINT_PORTS, parse_networks

Status = Literal["reachable", "unreachable", "unknown"]
OutOfReach = Literal["", "link-local", "wrong mask", "other network"]
"""Why this machine cannot print to an address. ``link-local``: a device without a DHCP server has
assigned the address to itself (169.254.0.0/16). ``wrong mask``: the address is outside of this
machine's network, but would be inside of it with the usual mask (/24). ``other network``: it would
be outside with the usual mask, too."""

FailedLookup = Literal["", "host name", "name server", "service", "other"]
"""The look-up that fails, so that the print system does not reach the printer. ``host name``: the
name servers have no address for the name. ``name server``: the name servers do not answer.
``service``: a device announces the queue's name, but not with the queue's type of service, or not
with the queue's UUID. ``other``: no device has the printer's mDNS name, DNS-SD name, MAC or UUID,
or nothing answers at its address. "" means that no look-up fails."""

_DISCARDING = re.compile(r"(?i)\bTM-[A-Z]\d")
"""Matches the models of Epson's receipt printers. Newer models accept connections to port 9100, but
print nothing until plain printing is allowed in their settings."""


@dataclass(frozen=True, slots=True)
class MachineSymptoms:
    """Problems of this machine and its network that prevent connections to printers.

    ``link_local`` are the machine's interfaces if it has only self-assigned IPv4 addresses.
    ``shared_by`` are two interfaces that have addresses in the same network, ``shared_network``.
    ``isolated_on`` is the Wi-Fi interface on which only the gateway answers, in the network
    ``isolated_network``.
    ``unicast_only`` are the interfaces on which hosts answer mDNS only by unicast.
    ``lost_gateway`` is the gateway of a default route on the interface ``lost_on``, and is outside
    of that interface's networks.
    ``slow_lookup_s`` is the time in seconds that the name servers took for the name of a printer,
    if it was long.
    """

    link_local: tuple[str, ...] = ()
    shared_by: tuple[str, ...] = ()
    shared_network: str = ""
    isolated_on: str = ""
    isolated_network: str = ""
    unicast_only: tuple[str, ...] = ()
    lost_gateway: str = ""
    lost_on: str = ""
    slow_lookup_s: float = 0.0


NOTHING_WRONG = MachineSymptoms()


@dataclass(frozen=True, slots=True)
class Symptoms:
    """What was observed of one printer.

    ``seen`` describes the observation and the evidence by which the printer was matched. If the
    printer has moved, ``old_address_state`` describes what is now at its old address, and
    ``set_up_as`` are the names of the printers that are set up with its new address.
    ``device_address`` is an address of the device that was recognised as the printer, with the
    evidence: ``192.168.1.61 (same MAC)``. It is "" if an unusable service with the printer's name
    is announced at an address of this device.
    ``out_of_reach`` is the reason why this machine cannot print to ``address``.
    ``attempts`` are the results of all connections to the printer's port, oldest first.
    ``is_answering``: some port of the address accepts or refuses connections.
    ``difference`` describes why the device at the address is not the printer.
    ``may_have_replaced``: this other device may be a replacement of the printer.
    ``is_queue_missing``: the device answered that it does not have the queue.
    ``other_open_ports`` lists the open print ports of the device if ``port`` is not open.
    ``occupant_name`` is the name of a device at the address that has no print port.
    ``models`` are the models that the device reports or announces.
    ``own_reasons`` are the printer-state-reasons that the printer itself reports, and
    ``is_stopped`` is True if its own printer-state is "stopped".
    """

    printer: KnownPrinter
    status: Status
    seen: str
    address: str = ""
    port: int | None = None
    attempts: tuple[PortState, ...] = ()
    is_answering: bool = False
    failed_lookup: FailedLookup = ""
    device_address: str = ""
    old_address_state: str = ""
    set_up_as: str = ""
    out_of_reach: OutOfReach = ""
    difference: str = ""
    may_have_replaced: bool = False
    is_queue_missing: bool = False
    other_open_ports: str = ""
    occupant_name: str = ""
    models: tuple[str, ...] = ()
    own_reasons: tuple[str, ...] = ()
    is_stopped: bool = False

    @property
    def contact(self) -> PortState | None:
        """The result of the last connection to the printer's port. None if there was none."""
        return self.attempts[-1] if self.attempts else None

    @property
    def is_unreached(self) -> bool:
        """Whether this is a network printer that was not reached."""
        return self.printer.transport == "network" and self.status != "reachable"

    @property
    def complaints(self) -> tuple[str, ...]:
        """Descriptions of the device's problems. A paused queue alone is no such problem."""
        words = state_words((*self.own_reasons, *self.printer.state_reasons))
        return () if set(words) <= {"paused"} and self.printer.is_queue_stopped else words

    @property
    def complaint_source(self) -> str:
        is_printer = self.own_reasons or (self.status == "reachable" and not self.difference)
        return "printer" if is_printer else "spooler"

    @property
    def is_device_fine(self) -> bool:
        return self.status == "reachable" and not (self.complaints or self.is_stopped)

    @property
    def attempts_count(self) -> int:
        return len(self.attempts)

    @property
    def may_discard(self) -> bool:
        """Whether the printer is reachable by a raw port and may discard the data it receives."""
        is_raw = self.status == "reachable" and self.port in RAW_PRINT_PORTS
        return is_raw and any(
            map(_DISCARDING.search, (*self.models, self.printer.make_model or ""))
        )

    @property
    def replaced_on(self) -> str:
        """The day on which a different device was accepted as the printer."""
        since = self.printer.learned.replaced_at if self.printer.learned else None
        return (since or "")[:10] if self.status == "reachable" else ""

    @property
    def forget_command(self) -> str:
        """The command that deletes the learned identity of the printer."""
        return f"venue-agent printers forget {shlex.quote(self.printer.id)}"

    @property
    def waiting_jobs(self) -> str:
        """Describe how many jobs wait."""
        count = self.printer.stuck_jobs
        return f"{count} job{'s' if count > 1 else ''} {'wait' if count > 1 else 'waits'}"

    @property
    def resume_command(self) -> str:
        """The command that resumes the queue, or what to do in the queue's window on Windows."""
        return self._command("cupsenable", "end “Pause Printing” and “Use Printer Offline”")

    @property
    def accept_command(self) -> str:
        """The command that makes the queue accept jobs, or what to do on Windows."""
        return self._command("cupsaccept", "let it accept documents")

    @property
    def cancel_command(self) -> str:
        """The command that cancels all jobs of the queue, or what to do on Windows."""
        return self._command("cancel -a", "cancel all documents")

    def is_in(self, network: str) -> bool:
        """Return whether the printer is set up with an address in ``network``."""
        networks = parse_networks((network,))
        addresses = parse_networks(self.printer.addresses)
        return any(a.network_address in network for a in addresses for network in networks)

    def _command(self, command: str, by_hand: str) -> str:
        if self.printer.source == "windows":
            return f"{by_hand} in its window"
        return f"`{command} {shlex.quote(self.printer.id.partition(':')[2])}`"


Condition = Callable[[Symptoms, MachineSymptoms], bool]
