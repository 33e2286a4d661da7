"""The sources of a network report, as functions that a test can replace one by one.

mDNS, printers and enrichment are imported where they are first called: their libraries take
longer to load than all the rest, and that time passes while the scan waits for answers.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from collectors.contract import ConfiguredPrinter, Interface, Run
from collectors.network.host.interfaces import read_local_network
from collectors.network.host.local_network import LocalNetwork
from collectors.network.host.neighbours import read_neighbour_table
from collectors.network.host.operating_system import read_os_version
from collectors.network.host.rtnetlink import LinkNeighbour
from collectors.network.observations import (
    Enrichment,
    Evidence,
    KnownPrinter,
    KnownPrinters,
    MdnsFindings,
    SnmpTarget,
    Wanted,
)
from collectors.network.scan.scan import ScanFindings, look_once, scan
from collectors.network.scan.targets import Target
from collectors.network.sightings import Sightings


class Browse(Protocol):
    def __call__(
        self,
        interfaces: Sequence[Interface],
        *,
        extra_types: Sequence[str],
        max_services: int,
        deadline_s: float,
        run: Run,
        wanted: Callable[[], Wanted],
        exclude: Sequence[str],
    ) -> MdnsFindings: ...


class Scan(Protocol):
    def __call__(
        self,
        targets: Sequence[Target],
        ports: Sequence[int],
        *,
        deadline_s: float,
        run: Run,
        sightings: Sightings,
    ) -> ScanFindings: ...


class LookOnce(Protocol):
    def __call__(
        self, targets: Sequence[Target], *, deadline_s: float, run: Run, sightings: Sightings
    ) -> ScanFindings: ...


class Enrich(Protocol):
    def __call__(
        self,
        sightings: Sightings,
        deadline_s: float,
        run: Run,
        device_only: bool = False,
        *,
        interfaces: Sequence[Interface] = (),
    ) -> Enrichment: ...


def _browse(
    interfaces: Sequence[Interface],
    *,
    extra_types: Sequence[str],
    max_services: int,
    deadline_s: float,
    run: Run,
    wanted: Callable[[], Wanted],
    exclude: Sequence[str],
) -> MdnsFindings:
    from collectors.network.mdns.browse import browse

    return browse(
        interfaces,
        extra_types=extra_types,
        max_services=max_services,
        deadline_s=deadline_s,
        run=run,
        wanted=wanted,
        exclude=exclude,
    )


def _read_known_printers(
    configured: Sequence[ConfiguredPrinter], deadline_s: float
) -> KnownPrinters:
    from collectors.network.printers import read_known_printers

    return read_known_printers(configured, deadline_s)


def _resolve_hosts(known: Sequence[KnownPrinter], deadline_s: float) -> tuple[KnownPrinter, ...]:
    from collectors.network.printers import resolve_hosts

    return resolve_hosts(known, deadline_s)


def _enrich(
    sightings: Sightings,
    deadline_s: float,
    run: Run,
    device_only: bool = False,
    *,
    interfaces: Sequence[Interface] = (),
) -> Enrichment:
    from collectors.network.questions.questions import enrich

    return enrich(sightings, deadline_s, run, device_only, interfaces=interfaces)


def _ask_snmp(
    targets: Sequence[SnmpTarget], community: str, deadline_s: float, run: Run
) -> tuple[Evidence, ...]:
    from collectors.network.questions.snmp import ask_snmp

    return ask_snmp(targets, community, deadline_s, run)


LOOKS_AFTER_S = (2.0, 4.0, 6.0)
"""When a print port that did not answer is looked at again: a receipt is printed by then."""


@dataclass(frozen=True, slots=True)
class Sources:
    """Where the facts come from; the defaults are the real ones."""

    looks_after_s: tuple[float, ...] = LOOKS_AFTER_S
    read_local_network: Callable[[], LocalNetwork] = read_local_network
    read_neighbour_table: Callable[[], tuple[LinkNeighbour, ...]] = read_neighbour_table
    read_os_version: Callable[[], str | None] = read_os_version
    browse: Browse = _browse
    scan: Scan = scan
    look_once: LookOnce = look_once
    read_known_printers: Callable[[Sequence[ConfiguredPrinter], float], KnownPrinters] = (
        _read_known_printers
    )
    resolve_hosts: Callable[[Sequence[KnownPrinter], float], tuple[KnownPrinter, ...]] = (
        _resolve_hosts
    )
    enrich: Enrich = _enrich
    ask_snmp: Callable[[Sequence[SnmpTarget], str, float, Run], tuple[Evidence, ...]] = _ask_snmp
