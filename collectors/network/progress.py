"""The facts that follow from what a run has collected so far. Pure."""

from dataclasses import replace
from typing import Literal

from collectors.contract import Host, NetworkFacts, NetworkJob, SourceState, Unavailable
from collectors.network.correlate import correlate
from collectors.network.discoveries import Queues
from collectors.network.gathered import NO_NETWORK, Gathered
from collectors.network.matching.causes import machine_causes
from collectors.network.matching.machine import find_machine_symptoms
from collectors.network.matching.match import match
from collectors.network.matching.symptoms import NOTHING_WRONG
from collectors.network.mdns.announced import Announced, LinkLayer, announced, wanted_by
from collectors.network.network_map import assemble_endpoints, assemble_hosts, worth_keeping
from collectors.network.observations import Enrichment, Observations, PrinterMatches
from collectors.shared.addresses import network_of

NOT_DONE = "stopped before it was done"


def announced_in(gathered: Gathered) -> Announced:
    """Return the announcements to list, by the announcers known so far."""
    macs = {
        **gathered.macs,
        **{h.address: h.mac_address for h in gathered.scan.hosts if h.mac_address},
    }
    networks = tuple(
        network_of(address)
        for local in gathered.local.in_use
        for address in local.interface.addresses
    )
    unanswered = frozenset(target.address for target in gathered.scan.unanswered)
    link = LinkLayer(macs, unanswered, networks)
    return announced(gathered.mdns.services, link, wanted_by(gathered.known or ()))


def observed_in(gathered: Gathered, announced: Announced) -> Observations:
    """Return the table of all observations so far."""
    is_whole = gathered.scan.state.state == "succeeded"
    return correlate(
        local=gathered.local,
        scanned=gathered.scan.hosts,
        services=announced.services,
        evidence=gathered.enrichment.evidence,
        hostnames=gathered.enrichment.hostnames,
        macs=gathered.macs,
        announcers=announced.announcers,
        scanned_networks=gathered.selection.networks if is_whole else (),
        attempts=gathered.attempts,
    )


def queues_in(gathered: Gathered) -> dict[tuple[str, int], Queues]:
    """Return the queues of each port: those announced (``rp`` in TXT, Bonjour Printing
    Specification 1.2.1, section 9.2), and those that this machine prints to."""
    own: dict[tuple[str, int], dict[str, None]] = {}
    for known in gathered.known or ():
        for address in known.addresses if known.queue else ():
            own.setdefault((address, known.port or 0), {})[known.queue or ""] = None
    ports = observed_in(gathered, announced_in(gathered)).ports
    return {
        key: Queues(ports[key].queues if key in ports else (), tuple(own.get(key, ())))
        for key in (*ports, *own)
    }


def answers_in(gathered: Gathered) -> Enrichment:
    """Return the answers, without the names of hosts that announced one."""
    services = announced_in(gathered).services
    named = {a for s in services if not s.is_hearsay for a in s.addresses}
    named |= gathered.local.own_addresses
    told = tuple(name for name in gathered.enrichment.hostnames if name.address not in named)
    return replace(gathered.enrichment, hostnames=told)


def facts_of(gathered: Gathered, job: NetworkJob, *, cancelled: bool, final: bool) -> NetworkFacts:
    """Return all facts so far; in ``final`` ones no source is running any more."""
    announced = announced_in(gathered)
    observed = observed_in(gathered, announced)
    others = observed.without(gathered.local.own_addresses)
    # This machine's own queues are not printers of the network.
    known = gathered.known or ()
    is_whole = final and not cancelled
    machine = (
        find_machine_symptoms(gathered.local, known, observed, gathered.mdns.unicast_only)
        if is_whole
        else NOTHING_WRONG
    )
    matches = match(known, others, machine) if known else PrinterMatches()
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
        limitations=(*machine_causes(machine), *_limitations(gathered, announced, hosts, job)),
        truncated=_is_truncated(gathered) or announced.is_cut or len(kept) < len(hosts),
        cancelled=cancelled,
    )


def _scope(gathered: Gathered, job: NetworkJob) -> Literal["local-network", "device"]:
    goes_out = any(target.way != "local" for target in gathered.selection.targets)
    return "local-network" if goes_out and not job.device_only else "device"


def _state(state: SourceState, final: bool) -> SourceState:
    return SourceState("failed", NOT_DONE) if final and state.state == "running" else state


def _unavailable(gathered: Gathered) -> Unavailable:
    """Return why each value of the machine is missing."""
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
        mac_address = f"the system reports no MAC address of {names}"
    if in_use and gateway is None and not gathered.local.gateways:
        gateway = "this machine has no default route"
    return Unavailable(
        mac_address=mac_address,
        interfaces=interfaces,
        gateway=gateway,
        os_version=None if gathered.os_version else "the system does not report its version",
    )


def _is_truncated(gathered: Gathered) -> bool:
    return gathered.selection.truncated or gathered.mdns.truncated or gathered.is_cut


def _limitations(
    gathered: Gathered, announced: Announced, hosts: tuple[Host, ...], job: NetworkJob
) -> tuple[str, ...]:
    texts = [
        *gathered.limitations,
        *gathered.selection.limitations,
        *gathered.scan.limitations,
        *gathered.mdns.limitations,
        *announced.limitations,
        *gathered.enrichment.limitations,
    ]
    if len(hosts) > job.max_hosts:
        left_out = len(hosts) - job.max_hosts
        texts.append(
            f"{left_out} of {len(hosts)} hosts were left out: max_hosts is {job.max_hosts}"
        )
    return tuple(dict.fromkeys(texts))
