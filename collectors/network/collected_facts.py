"""The facts that a run has collected so far."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from collectors.contract import Failure, SourceState
from collectors.network.observations import DeviceAnswers, Enrichment, KnownPrinter, MdnsResult
from collectors.network.scan.scan import PortState, ScannedHost, ScanResult
from collectors.network.scan.targets import Target, TargetSelection
from collectors.shared.host.local_network import LocalNetwork

NO_NETWORK = "no network interface is up"
NOT_DONE = "stopped before it had finished"
ONLY_DEVICE = "only this machine was examined, not its network"


@dataclass(slots=True)
class CollectedFacts:
    """The facts of each source so far.

    ``known`` are the printers of this machine, or None until they are read. ``macs`` maps each
    address in the neighbour table to its MAC. ``local`` are the networks of this machine.
    ``selection`` are the addresses to scan.
    """

    started_at: str
    os_platform: str
    os_version: str | None = None
    local: LocalNetwork = field(default_factory=LocalNetwork)
    interfaces_state: SourceState = field(default_factory=SourceState)
    selection: TargetSelection = field(default_factory=TargetSelection)
    scan: ScanResult = field(default_factory=lambda: ScanResult(state=SourceState()))
    mdns: MdnsResult = field(default_factory=MdnsResult)
    known: tuple[KnownPrinter, ...] | None = None
    enrichment: Enrichment = field(default_factory=Enrichment)
    macs: dict[str, str] = field(default_factory=dict)
    attempts: dict[tuple[str, int], tuple[PortState, ...]] = field(default_factory=dict)
    """The results of the connections to a print port, oldest first. A port has an entry if it was
    tried more than once, or if its printer is outside of the scanned networks and did not answer.
    """
    device_answers: DeviceAnswers | None = None
    """The ARP answers at addresses that the scan did not confirm and that watched devices may have.
    None if no addresses were checked for watched devices.
    """
    failures: list[Failure] = field(default_factory=list)
    limitations: list[str] = field(default_factory=list)
    is_cut_short: bool = False
    """Whether the run ended at its deadline or by a cancellation."""

    def add_unanswered_ports(self, targets: Sequence[Target]) -> None:
        """Record "no-answer" for each port of a target if the scan found no host at its address."""
        host_addresses = {host.address for host in self.scan.hosts}
        for target in targets:
            if target.address not in host_addresses:
                for port in target.ports or ():
                    self.attempts[target.address, port] = ("no-answer",)

    def add_attempt(
        self, targets: Sequence[Target], before: Mapping[str, ScannedHost], result: ScanResult
    ) -> None:
        """Add the results of one more connection to each print port of ``targets``.

        ``before`` has the scanned hosts from before this connection, by address.
        """
        now = {host.address: host for host in result.hosts}
        for target in targets:
            for port in target.ports or ():
                key, host = (target.address, port), now.get(target.address)
                previous = before[target.address].contact(port) or "no-answer"
                latest = (host.contact(port) if host else None) or "no-answer"
                self.attempts[key] = (*self.attempts.get(key, (previous,)), latest)
