"""Computes the facts of a report from what a run has collected so far. No I/O."""

from dataclasses import replace
from typing import Final, Literal

from collectors.contract import Host, NetworkFacts, NetworkJob, SourceState, Unavailable
from collectors.network.collected_facts import NO_NETWORK, NOT_DONE, ONLY_DEVICE, CollectedFacts
from collectors.network.correlate import correlate
from collectors.network.discoveries import Queues
from collectors.network.matching.cases import located_addresses
from collectors.network.matching.causes import machine_causes
from collectors.network.matching.destination import with_destinations
from collectors.network.matching.machine import find_machine_symptoms
from collectors.network.matching.match import match
from collectors.network.matching.recognise import known_macs
from collectors.network.matching.symptoms import NOTHING_WRONG
from collectors.network.mdns.announced import (
    LinkLayer,
    ServiceSelection,
    choose_services,
    identifiers_of,
)
from collectors.network.network_map import assemble_endpoints, assemble_hosts, select_hosts
from collectors.network.observations import (
    Enrichment,
    KnownPrinter,
    Observations,
    PrinterMatches,
)
from collectors.network.watched_devices import DeviceMatches, answers_of, match_devices
from collectors.shared.addresses import network_of
from collectors.shared.watched_devices import Answers, expectations

NO_DEFAULT_ROUTE: Final = "this machine has no default route"


def services_in(collected: CollectedFacts) -> ServiceSelection:
    """Return the announced services to list, given the MACs that are known so far."""
    scanned_macs = {h.address: h.mac_address for h in collected.scan.hosts if h.mac_address}
    networks = [network_of(a) for i in collected.local.in_use for a in i.interface.addresses]
    unanswered = frozenset(target.address for target in collected.scan.unanswered)
    link = LinkLayer({**collected.macs, **scanned_macs}, unanswered, networks)
    return choose_services(collected.mdns.services, link, identifiers_of(collected.known or ()))


def observations_in(collected: CollectedFacts, announced: ServiceSelection) -> Observations:
    """Return all observations so far, joined."""
    is_scan_complete = collected.scan.state.state == "succeeded"
    return correlate(
        local=collected.local,
        scanned=collected.scan.hosts,
        services=announced.services,
        evidence=collected.enrichment.evidence,
        hostnames=collected.enrichment.hostnames,
        macs=collected.macs,
        announcers=announced.announcers,
        scanned_networks=collected.selection.networks if is_scan_complete else (),
        attempts=collected.attempts,
    )


def printer_addresses_in(collected: CollectedFacts) -> set[str]:
    """Return the addresses at which the known printers may be. No scan is needed to find them.

    These are the addresses in the setup of the printers, the addresses that mDNS announces for
    them, and the addresses that the neighbour table has for their MACs. If the setup of a printer
    has no address, its address in an earlier report is added.
    """
    known = [printer for printer in collected.known or () if printer.transport == "network"]
    observed = observations_in(collected, services_in(collected))
    addresses = located_addresses(known, observed.without(collected.local.own_addresses))
    for printer in known:
        learned = printer.learned
        addresses.update(printer.addresses)
        macs = known_macs(printer)
        addresses.update(address for address, mac in collected.macs.items() if mac.endswith(macs))
        if learned is not None and learned.address and not printer.addresses:
            addresses.add(learned.address)
    return addresses


def queues_in(collected: CollectedFacts) -> dict[tuple[str, int], Queues]:
    """Return the queues of each port.

    They are the announced queues (``rp`` in TXT, Bonjour Printing Specification 1.2.1, section 9.2)
    and the queues that this machine prints to.
    """
    own_queues: dict[tuple[str, int], dict[str, None]] = {}
    for known in collected.known or ():
        for address in known.addresses if known.queue else ():
            own_queues.setdefault((address, known.port or 0), {})[known.queue or ""] = None
    ports = observations_in(collected, services_in(collected)).ports
    return {
        key: Queues(ports[key].queues if key in ports else (), tuple(own_queues.get(key, ())))
        for key in (*ports, *own_queues)
    }


def destinations_in(collected: CollectedFacts) -> tuple[KnownPrinter, ...]:
    """Return this machine's printers with the addresses at which to contact them.

    A printer that mDNS resolves is listed once for each of its addresses and ports.
    """
    observed = observations_in(collected, services_in(collected))
    return with_destinations(collected.known or (), observed)


def answers_in(collected: CollectedFacts) -> Enrichment:
    """Return the answers of hosts to the enrichment queries so far (see `Enrichment`).

    The host names of this machine, and of hosts that announced a service themselves, are left out:
    these names are known without the queries.
    """
    services = services_in(collected).services
    announced_addresses = {a for s in services if not s.is_hearsay for a in s.addresses}
    announced_addresses |= collected.local.own_addresses
    answered = collected.enrichment.hostnames
    hostnames = {a: name for a, name in answered.items() if a not in announced_addresses}
    return replace(collected.enrichment, hostnames=hostnames)


def facts_of(
    collected: CollectedFacts, job: NetworkJob, *, cancelled: bool, final: bool
) -> NetworkFacts:
    """Return all facts so far. ``final`` means that no more facts are collected.

    With ``final``, a source that still runs is reported as failed. The identities to learn are only
    returned with ``final``. The watched devices, and the problems of this machine itself, are only
    returned with ``final``, and only if the run was not cancelled.
    """
    announced = services_in(collected)
    observed = observations_in(collected, announced)
    # Print queues that this machine itself shares are not printers of the network.
    remote = observed.without(collected.local.own_addresses)
    known = collected.known or ()
    is_complete = final and not cancelled
    machine = (
        find_machine_symptoms(collected.local, known, observed, collected.mdns.unicast_only)
        if is_complete
        else NOTHING_WRONG
    )
    matches = PrinterMatches()
    if known:
        matches = match(known, remote, machine, printers_only=job.printers_only)
    devices = _match_watched_devices(collected, job, remote) if is_complete else DeviceMatches()
    hosts = assemble_hosts(observed)
    selected_hosts = select_hosts(hosts, observed, matches, job.max_hosts)
    is_list_cut = collected.selection.truncated or collected.mdns.truncated or announced.is_cut
    return NetworkFacts(
        scope=_scope(collected, job),
        os_platform=collected.os_platform,
        os_version=collected.os_version,
        started_at=collected.started_at,
        interfaces=tuple(interface.interface for interface in collected.local.in_use),
        hosts=selected_hosts,
        endpoints=assemble_endpoints(observed, matches),
        printers=None if collected.known is None else matches.printers,
        learned=(*matches.learned, *devices.learned) if final else (),
        strangers=(*matches.strangers, *devices.strangers) if final else (),
        devices=devices.states,
        interfaces_source=_state(collected.interfaces_state, final),
        mdns_source=_state(collected.mdns.state, final),
        scan_source=_state(collected.scan.state, final),
        unavailable=_unavailable(collected),
        failures=(*collected.failures, *collected.enrichment.failures),
        limitations=(*machine_causes(machine), *_limitations(collected, announced, hosts, job)),
        truncated=is_list_cut or collected.is_cut_short or len(selected_hosts) < len(hosts),
        cancelled=cancelled,
    )


def _match_watched_devices(
    collected: CollectedFacts, job: NetworkJob, observed: Observations
) -> DeviceMatches:
    """Return the state of each watched device, unless the job is for printers only."""
    if job.printers_only:
        return DeviceMatches()
    expected = expectations(job.devices, job.learned)
    device_answers = collected.device_answers
    if device_answers is None:
        reason = NO_NETWORK if not job.device_only else ONLY_DEVICE
        answers = Answers({}, is_whole=False, reason=reason)
    else:
        answers = answers_of(collected, device_answers)
    return match_devices(expected, observed, answers)


def _scope(collected: CollectedFacts, job: NetworkJob) -> Literal["local-network", "device"]:
    has_remote_target = any(target.way != "local" for target in collected.selection.targets)
    return "local-network" if has_remote_target and not job.device_only else "device"


def _state(state: SourceState, final: bool) -> SourceState:
    return SourceState("failed", NOT_DONE) if final and state.state == "running" else state


def _unavailable(collected: CollectedFacts) -> Unavailable:
    """Return the reason for each missing value of this machine."""
    reasons, in_use = collected.local.unavailable, collected.local.in_use
    mac_address, gateway, interfaces = reasons.mac_address, reasons.gateway, reasons.interfaces
    if collected.interfaces_state.state == "failed":
        interfaces = collected.interfaces_state.reason
    elif not in_use and interfaces is None:
        interfaces = NO_NETWORK
    if not in_use:
        mac_address, gateway = mac_address or interfaces, gateway or interfaces
    elif not any(interface.interface.mac_address for interface in in_use):
        names = ", ".join(interface.interface.name for interface in in_use)
        mac_address = f"the system reports no MAC address of {names}"
    if in_use and gateway is None and not collected.local.gateways:
        default = next((interface for interface in in_use if interface.metric is not None), None)
        gateway = (
            NO_DEFAULT_ROUTE
            if default is None
            else f"the default route through {default.interface.name} needs no gateway"
        )
    return Unavailable(
        mac_address=mac_address,
        interfaces=interfaces,
        gateway=gateway,
        os_version=None if collected.os_version else "the system does not report its version",
    )


def _limitations(
    collected: CollectedFacts, announced: ServiceSelection, hosts: tuple[Host, ...], job: NetworkJob
) -> tuple[str, ...]:
    texts = [
        *collected.limitations,
        *collected.selection.limitations,
        *collected.scan.limitations,
        *collected.mdns.limitations,
        *announced.limitations,
        *collected.enrichment.limitations,
    ]
    if len(hosts) > job.max_hosts:
        left_out = len(hosts) - job.max_hosts
        texts.append(
            f"hosts left out, because max_hosts is {job.max_hosts}: {left_out} of {len(hosts)}"
        )
    return tuple(dict.fromkeys(texts))
