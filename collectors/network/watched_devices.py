"""Finds the watched devices among the hosts of a network report. No I/O.

A device is recognised by its MAC. A MAC that is learned, and not configured, may have changed. A
device with a learned MAC is also recognised by its other identities, in the same way as a printer.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from collectors.contract import DeviceState, LearnedPrinter
from collectors.network.collected_facts import CollectedFacts
from collectors.network.matching.devices import Device, DeviceIndex, group_devices
from collectors.network.matching.learned import learn
from collectors.network.matching.recognise import compare
from collectors.network.observations import DeviceAnswers, KnownPrinter, Observations
from collectors.shared.addresses import is_in_networks, network_of, parse_networks
from collectors.shared.watched_devices import Answers, Expectation, state_of


@dataclass(frozen=True, slots=True)
class DeviceMatches:
    """The states of the watched devices. For ``learned`` and ``strangers`` see `NetworkFacts`."""

    states: tuple[DeviceState, ...] = ()
    learned: tuple[LearnedPrinter, ...] = ()
    strangers: tuple[LearnedPrinter, ...] = ()


def unconfirmed_addresses(
    expected: Sequence[Expectation], collected: CollectedFacts, exclude: Sequence[str]
) -> frozenset[str]:
    """Return the addresses at which devices may be and which the scan did not confirm.

    These are the known addresses of the devices, and the addresses that the neighbour table lists
    with the MAC of a device. If the scan left the MAC of at least one device unconfirmed, all
    unconfirmed addresses of the neighbour table are included, because this device may have one of
    these addresses.
    """
    scan, local, excluded = collected.scan, collected.local, parse_networks(exclude)
    links = [network_of(a) for i in local.in_use for a in i.interface.addresses]
    addresses = {expectation.address for expectation in expected if expectation.address}
    macs = {expectation.mac_address for expectation in expected if expectation.mac_address}
    missing = macs - {host.mac_address for host in scan.hosts if host.is_confirmed}
    addresses |= {h.address for h in scan.hosts if missing or h.mac_address in macs}
    confirmed = {host.address for host in scan.hosts if host.is_confirmed}
    confirmed |= local.own_addresses
    return frozenset(
        address
        for address in addresses - confirmed
        if is_in_networks(address, links) and not is_in_networks(address, excluded)
    )


def answers_of(collected: CollectedFacts, later_answers: DeviceAnswers) -> Answers:
    """Join the answers to the scan with the answers to later ARP requests."""
    scan, selection, interfaces = collected.scan, collected.selection, collected.local.interfaces
    own_macs = {a: i.interface.mac_address for i in interfaces for a in i.addresses}
    hosts = {h.address: h.mac_address for h in scan.hosts if h.is_confirmed}
    routed = {t.address for t in selection.targets if t.way == "routed"}
    is_whole = scan.state.state == "succeeded"
    silent = set(later_answers.silent)
    if is_whole:  # `unanswered` of a scan that ended early includes addresses that were not tried
        silent |= {t.address for t in scan.unanswered} | (routed - hosts.keys())
    return Answers(
        {**own_macs, **hosts, **later_answers.macs},
        silent - later_answers.macs.keys(),
        collected.macs,
        scan.proxies,
        is_whole=is_whole and bool(selection.networks),
    )


def match_devices(
    expected: Sequence[Expectation], observed: Observations, answers: Answers
) -> DeviceMatches:
    """Return the state of each device, and the identities to learn."""
    index = DeviceIndex(group_devices(observed))
    states: list[DeviceState] = []
    known: list[tuple[KnownPrinter, Device, str]] = []
    strangers: list[tuple[KnownPrinter, Device, str]] = []
    for expectation in expected:
        subject = _subject(expectation)
        state = state_of(
            expectation, answers, tuple(_recognised_addresses(subject, index, answers))
        )
        states.append(state)
        device = index.at(state.address or "")
        if device is None or state.address not in answers.macs:
            continue
        if state.state in ("present", "moved"):
            known.append((subject, device, state.address or ""))
        elif state.other_mac and expectation.is_mac_learned:
            strangers.append((subject, device, state.address or ""))
    learned_strangers = tuple(e for e in learn(strangers, index) if e.mac_address)
    return DeviceMatches(tuple(states), tuple(learn(known, index)), learned_strangers)


def _subject(expected: Expectation) -> KnownPrinter:
    """Return the device as a printer, so that it is matched and learned in the same way."""
    device = expected.device
    return KnownPrinter(
        expected.id,
        device.name,
        "network",
        "config",
        host=device.address,
        addresses=(device.address,) if device.address else (),
        mac_address=device.mac_address,
        learned=expected.learned,
    )


def _recognised_addresses(
    subject: KnownPrinter, index: DeviceIndex, answers: Answers
) -> Iterator[str]:
    """Yield the address of each device that shares two identities with ``subject``, or has the host
    name and the DNS-SD name of ``subject``.

    If a MAC is configured, only a device that answers with this MAC is recognised.
    """
    learned = subject.learned
    if learned is None:
        return
    for device in index.devices:
        macs = {answers.macs.get(address) for address in device.addresses} - {None}
        if not macs and not device.is_alive:
            continue
        if subject.mac_address and subject.mac_address not in macs:
            continue
        comparison = compare(subject, device, index)
        is_same = comparison.likeness == "same" and comparison.by != "MAC"
        has_names = learned.dns_sd_name in device.instances and (
            learned.hostname or ""
        ).lower() in {n.lower() for n in device.hostnames}
        if is_same or has_names:
            yield device.address
