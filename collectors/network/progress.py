"""What a run has gathered so far, and the facts that follow from it. Pure."""

from dataclasses import dataclass, field
from typing import Literal

from collectors.contract import (
    Failure,
    Host,
    NetworkFacts,
    NetworkJob,
    SourceState,
    Unavailable,
)
from collectors.network.correlate import correlate
from collectors.network.host.local_network import LocalNetwork
from collectors.network.matching.match import match
from collectors.network.mdns.announced import Announced, LinkLayer, announced, wanted_by
from collectors.network.network_map import (
    assemble_endpoints,
    assemble_hosts,
    worth_keeping,
)
from collectors.network.observations import (
    Enrichment,
    KnownPrinter,
    MdnsFindings,
    Observations,
    OpenPort,
    PrinterMatches,
)
from collectors.network.scan.scan import ScanFindings
from collectors.network.scan.targets import TargetSelection
from collectors.shared.addresses import network_of

NOT_DONE = "stopped before it was done"
NO_NETWORK = "no network interface is up"


@dataclass(slots=True)
class Gathered:
    """The findings of each source as they come in; ``known`` is None until printers were read."""

    started_at: str
    os_platform: str
    os_version: str | None = None
    local: LocalNetwork = field(default_factory=LocalNetwork)
    interfaces_state: SourceState = field(default_factory=SourceState)
    selection: TargetSelection = field(default_factory=TargetSelection)
    scan: ScanFindings = field(default_factory=lambda: ScanFindings(state=SourceState()))
    mdns: MdnsFindings = field(default_factory=MdnsFindings)
    known: tuple[KnownPrinter, ...] | None = None
    enrichment: Enrichment = field(default_factory=Enrichment)
    macs: dict[str, str] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    limitations: list[str] = field(default_factory=list)
    is_cut: bool = False

    def announced(self) -> Announced:
        """Return what is listed of the announcements, by what is known of the announcers now."""
        macs = {**self.macs, **{h.address: h.mac_address for h in self.scan.hosts if h.mac_address}}
        networks = tuple(
            network_of(address)
            for local in self.local.in_use
            for address in local.interface.addresses
        )
        unanswered = frozenset(target.address for target in self.scan.unanswered)
        link = LinkLayer(macs, unanswered, networks)
        return announced(self.mdns.services, link, wanted_by(self.known or ()))

    def observations(self, announced: Announced) -> Observations:
        """Return the table of all that was seen so far."""
        is_whole = self.scan.state.state == "succeeded"
        return correlate(
            local=self.local,
            scanned=self.scan.hosts,
            services=announced.services,
            evidence=self.enrichment.evidence,
            hostnames=self.enrichment.hostnames,
            macs=self.macs,
            announcers=announced.announcers,
            scanned_networks=self.selection.networks if is_whole else (),
        )

    def open_ports(self) -> tuple[OpenPort, ...]:
        """Return the open ports that may be asked what they are, with their announced queues
        (``rp`` in TXT, Bonjour Printing Specification 1.2.1, section 9.2).

        This machine's own spooler is not among them: its queues are read as what they are.
        """
        own = self.local.own_addresses
        printed_to: dict[tuple[str, int], dict[str, None]] = {}
        for known in self.known or ():
            for address in known.addresses if known.queue else ():
                printed_to.setdefault((address, known.port or 0), {})[known.queue or ""] = None
        return tuple(
            OpenPort(
                each.address,
                each.port,
                each.queues,
                tuple(printed_to.get((each.address, each.port), ())),
            )
            for each in self.observations(self.announced()).ports.values()
            if each.contact == "open" and not (each.port == _SPOOLER_PORT and each.address in own)
        )

    def nameless(self) -> tuple[str, ...]:
        """Return the addresses of hosts that have not told a name."""
        told = (a for s in self.announced().services if not s.is_hearsay for a in s.addresses)
        known = {*told, *self.local.own_addresses}
        return tuple(host.address for host in self.scan.hosts if host.address not in known)


_SPOOLER_PORT = 631


def facts_of(gathered: Gathered, job: NetworkJob, *, cancelled: bool, final: bool) -> NetworkFacts:
    """Return all facts so far; in ``final`` ones no source is running any more."""
    announced = gathered.announced()
    observed = gathered.observations(announced)
    others = observed.without(gathered.local.own_addresses)
    # This machine's own queues are no printers of the network.
    matches = match(gathered.known, others) if gathered.known else PrinterMatches()
    hosts = assemble_hosts(observed)
    kept = worth_keeping(hosts, observed, matches, job.max_hosts)
    return NetworkFacts(
        scope=_scope(gathered, job),
        os_platform=gathered.os_platform,
        os_version=gathered.os_version,
        started_at=gathered.started_at,
        interfaces=tuple(each.interface for each in gathered.local.in_use),
        hosts=kept,
        endpoints=assemble_endpoints(observed, matches),
        printers=None if gathered.known is None else matches.printers,
        learned=matches.learned if final else (),
        strangers=matches.strangers if final else (),
        interfaces_source=_state(gathered.interfaces_state, final),
        mdns_source=_state(gathered.mdns.state, final),
        scan_source=_state(gathered.scan.state, final),
        unavailable=_unavailable(gathered),
        failures=(*gathered.failures, *gathered.enrichment.failures),
        limitations=_limitations(gathered, announced, hosts, job),
        truncated=_is_truncated(gathered) or announced.is_cut or len(kept) < len(hosts),
        cancelled=cancelled,
    )


def join(first: Enrichment, second: Enrichment) -> Enrichment:
    """Return the answers of two rounds of questions as one."""
    return Enrichment(
        evidence=(*first.evidence, *second.evidence),
        hostnames=(*first.hostnames, *second.hostnames),
        failures=(*first.failures, *second.failures),
        limitations=tuple(dict.fromkeys((*first.limitations, *second.limitations))),
    )


def _scope(gathered: Gathered, job: NetworkJob) -> Literal["local-network", "device"]:
    goes_out = any(target.way != "local" for target in gathered.selection.targets)
    return "local-network" if goes_out and not job.device_only else "device"


def _state(state: SourceState, final: bool) -> SourceState:
    return SourceState("failed", NOT_DONE) if final and state.state == "running" else state


def _unavailable(gathered: Gathered) -> Unavailable:
    """Say why each thing that the machine could have told is missing."""
    given, in_use = gathered.local.unavailable, gathered.local.in_use
    mac_address, gateway, interfaces = given.mac_address, given.gateway, given.interfaces
    if gathered.interfaces_state.state == "failed":
        interfaces = gathered.interfaces_state.reason
    elif not in_use and interfaces is None:
        interfaces = NO_NETWORK
    if not in_use:
        mac_address, gateway = mac_address or interfaces, gateway or interfaces
    elif not any(each.interface.mac_address for each in in_use):
        names = ", ".join(each.interface.name for each in in_use)
        mac_address = f"the system tells no MAC address of {names}"
    if in_use and gateway is None and not gathered.local.gateways:
        gateway = "this machine has no default route"
    return Unavailable(
        mac_address=mac_address,
        interfaces=interfaces,
        gateway=gateway,
        os_version=None if gathered.os_version else "the system does not tell its version",
    )


def _is_truncated(gathered: Gathered) -> bool:
    return gathered.selection.truncated or gathered.mdns.truncated or gathered.is_cut


def _limitations(
    gathered: Gathered, announced: Announced, hosts: tuple[Host, ...], job: NetworkJob
) -> tuple[str, ...]:
    said = [
        *gathered.limitations,
        *gathered.selection.limitations,
        *gathered.scan.limitations,
        *gathered.mdns.limitations,
        *announced.limitations,
        *gathered.enrichment.limitations,
    ]
    if len(hosts) > job.max_hosts:
        left_out = len(hosts) - job.max_hosts
        said.append(f"{left_out} of {len(hosts)} hosts were left out: max_hosts is {job.max_hosts}")
    return tuple(dict.fromkeys(said))
