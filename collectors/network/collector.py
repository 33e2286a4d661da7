"""The network report's collector: asks each source, in parallel where they do not meet.

interfaces → scan, mDNS, the machine's own printers and the questions to what the scan finds, side
by side → printers that the scan did not come to. Once mDNS and printers have told which queues
there are, IPP ports are asked, too. After each step all facts so far are told. A source that
breaks costs its own facts only.

What the scan does not need is imported where it is first called, as in sources.py: the scan, which
takes the longest, begins that much earlier.
"""

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

from collectors.contract import Failure, NetworkFacts, NetworkJob, Run, SourceState
from collectors.network.background import Background
from collectors.network.gathered import NO_NETWORK, Gathered
from collectors.network.host.local_network import LocalNetwork
from collectors.network.observations import (
    NOTHING_WANTED,
    Enrichment,
    Evidence,
    KnownPrinters,
    MdnsFindings,
)
from collectors.network.scan.printer_targets import (
    doubtful_ports,
    printer_targets,
    snmp_targets,
)
from collectors.network.scan.scan import ScanFindings, merge, with_neighbour_table
from collectors.network.scan.targets import (
    Target,
    TargetSelection,
    select_own_addresses,
    select_targets,
)
from collectors.network.sightings import Sightings
from collectors.network.sources import Sources
from collectors.shared.addresses import ipv4_host

MDNS_MAX_S = 10.0
NAMES_MAX_S = 2.0
_DISCOVERY_SHARE = 0.8
_RESERVE_S = 0.3
_GRACE_S = 0.2
_LOOK_S = 0.05
"""How often a pause looks whether the run was cancelled."""
_ONLY_DEVICE = "only this machine itself was asked for"
_NOT_ASKED = "devices were not asked what they are: the configuration says so"

T = TypeVar("T")


def collect_network(job: NetworkJob, run: Run, sources: Sources | None = None) -> NetworkFacts:
    """Collect within the bounds of the job; blocks. A cancelled run returns what it has."""
    return _Collection(job, run, sources or Sources()).collect()


class _Collection:
    def __init__(self, job: NetworkJob, run: Run, sources: Sources) -> None:
        started_s = time.monotonic()
        self._job = job
        self._run = run
        self._sources = sources
        self._deadline_s = started_s + job.max_duration_s - _RESERVE_S
        self._discovery_ends_s = started_s + job.max_duration_s * _DISCOVERY_SHARE
        self._grace_ends_s: float | None = None
        self._wanted = NOTHING_WANTED  # until the printers are read
        self._gathered = Gathered(
            started_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
            os_platform=sys.platform,
        )

    def collect(self) -> NetworkFacts:
        if not self._is_over():
            self._look_at_machine()
            self._discover()
        self._gathered.is_cut = self._is_over()
        return self._facts(final=True)

    # ------------------------------------------------------------------ steps

    def _look_at_machine(self) -> None:
        self._run.progress("interfaces", 0, 1)
        gathered, job = self._gathered, self._job
        gathered.os_version = self._guarded(
            "os-version", self._sources.read_os_version, lambda _reason: None
        )
        gathered.interfaces_state = SourceState("succeeded")
        gathered.local = self._guarded(
            "interfaces", self._sources.read_local_network, self._without_interfaces
        )
        if not gathered.local.in_use:
            gathered.limitations.append(NO_NETWORK)
        if job.device_only:
            gathered.selection = select_own_addresses(gathered.local.interfaces)
        else:
            gathered.selection = self._select()
        self._run.progress("interfaces", 1, 1)

    def _without_interfaces(self, reason: str) -> LocalNetwork:
        self._gathered.interfaces_state = SourceState("failed", reason)
        return LocalNetwork()

    def _select(self) -> TargetSelection:
        local = self._gathered.local
        printer_hosts = (ipv4_host(entry.address) for entry in self._job.printers)
        table = self._guarded("neighbours", self._sources.read_neighbour_table, lambda _reason: ())
        return select_targets(
            local.in_use,
            subnets=self._job.subnets,
            exclude=self._job.exclude,
            max_hosts=self._job.max_hosts,
            first=(
                *local.gateways,
                *(host for host in printer_hosts if host),
                *(entry.address for entry in table if entry.mac_address),
            ),
        )

    def _discover(self) -> None:
        """Run all sources side by side, and take what each found once it is done."""
        gathered = self._gathered
        sightings = Sightings(gathered.local.own_addresses)
        scan = Background(lambda: self._scan(sightings))
        mdns = Background(self._browse) if self._may_browse() else None
        # These two take the longest: the others are imported once they have begun.
        self._run.checkpoint(self._facts(final=False))
        printers = Background(self._read_printers)
        asking = Background(lambda: self._ask(sightings)) if self._job.enrich else None
        self._take_known(printers)
        if mdns is not None:
            gathered.mdns = self._guarded("mdns", lambda: self._taken(mdns), _failed_browse)
        self._tell_queues(sightings)
        self._run.checkpoint(self._facts(final=False))
        gathered.scan = self._guarded("scan", lambda: self._taken(scan), _failed_scan)
        self._run.checkpoint(self._facts(final=False))
        self._contact_printers(sightings)
        asking_printers = Background(self._ask_printers)
        self._watch_print_ports(sightings)
        sightings.complete()
        self._read_macs()
        self._take_answers(asking)
        told = self._guarded("snmp", lambda: self._taken(asking_printers), lambda _reason: ())
        answers = gathered.enrichment
        gathered.enrichment = replace(answers, evidence=(*answers.evidence, *told))

    def _take_known(self, printers: Background[KnownPrinters]) -> None:
        known = self._guarded("printers", lambda: self._taken(printers), lambda _reason: None)
        if known is not None:
            self._gathered.known = known.printers
            self._gathered.failures += known.failures
            self._gathered.limitations += known.limitations

    def _tell_queues(self, sightings: Sightings) -> None:
        from collectors.network.progress import queues_in

        self._read_macs()  # by which it is known who announced what
        sightings.tell_queues(queues_in(self._gathered))

    def _take_answers(self, asking: Background[Enrichment] | None) -> None:
        from collectors.network.progress import answers_in

        gathered = self._gathered
        if asking is None:
            gathered.limitations.append(_NOT_ASKED)
            return
        gathered.enrichment = self._guarded(
            "enrichment", lambda: self._taken(asking), lambda _reason: Enrichment()
        )
        gathered.enrichment = answers_in(gathered)

    # ------------------------------------------------------------------ sources

    def _read_printers(self) -> KnownPrinters:
        from collectors.network.matching.learned import with_learned
        from collectors.network.mdns.announced import wanted_by

        known = self._sources.read_known_printers(self._job.printers, self._deadline_s)
        known = replace(known, printers=with_learned(known.printers, self._job.learned))
        self._wanted = wanted_by(known.printers)
        if self._job.device_only or not self._gathered.local.in_use:
            return known
        names_end_s = min(self._discovery_ends_s, time.monotonic() + NAMES_MAX_S)
        printers = self._sources.resolve_hosts(known.printers, names_end_s)
        self._wanted = wanted_by(printers)
        return replace(known, printers=printers)

    def _may_browse(self) -> bool:
        if self._gathered.local.in_use and not self._job.device_only:
            return True
        reason = _ONLY_DEVICE if self._job.device_only else NO_NETWORK
        self._gathered.mdns = MdnsFindings(state=SourceState("unsupported", reason))
        return False

    def _browse(self) -> MdnsFindings:
        return self._sources.browse(
            [local.interface for local in self._gathered.local.in_use],
            extra_types=self._job.mdns_service_types,
            max_services=self._job.max_services,
            deadline_s=min(self._discovery_ends_s, time.monotonic() + MDNS_MAX_S),
            run=self._run,
            wanted=lambda: self._wanted,
            exclude=self._job.exclude,
        )

    def _scan(self, sightings: Sightings) -> ScanFindings:
        targets = self._gathered.selection.targets
        if not targets:
            reason = "there is no private network to scan"
            state = SourceState("unsupported", reason)
            return ScanFindings(state=state, limitations=(reason,))
        findings = self._sources.scan(
            targets,
            self._job.ports,
            deadline_s=self._discovery_ends_s,
            run=self._run,
            sightings=sightings,
        )
        if any(target.way == "routed" for target in targets):
            table = self._sources.read_neighbour_table()
            findings = with_neighbour_table(findings, targets, table)
        for host in findings.hosts:  # found by the table alone
            sightings.host(host.address)
        return findings

    def _contact_printers(self, sightings: Sightings) -> None:
        """Connect to known printers where the scan did not."""
        gathered = self._gathered
        if gathered.known is None or self._job.device_only or not gathered.local.in_use:
            return
        targets, limitations = printer_targets(
            gathered.known,
            tried={(h.address, port) for h in gathered.scan.hosts for port in h.tried_ports},
            own=gathered.local.own_addresses,
            exclude=self._job.exclude,
        )
        gathered.limitations += limitations
        if targets:
            found = self._guarded(
                "scan",
                lambda: self._sources.scan(
                    targets,
                    (),
                    deadline_s=self._discovery_ends_s,
                    run=self._run,
                    sightings=sightings,
                ),
                lambda _reason: ScanFindings(),
            )
            gathered.scan = merge(gathered.scan, found, targets)

    def _watch_print_ports(self, sightings: Sightings) -> None:
        """Look again at printers' ports that did not answer: another till may hold them."""
        gathered, started_s = self._gathered, time.monotonic()
        for after_s in () if self._job.device_only else self._sources.looks_after_s:
            own = gathered.local.own_addresses
            targets = doubtful_ports(gathered.known or (), gathered.scan.hosts, own)
            if not targets or started_s + after_s >= self._discovery_ends_s:
                break
            self._pause_until(started_s + after_s)
            if self._run.cancelled:
                break
            before = {host.address: host for host in gathered.scan.hosts}
            found = self._guarded(
                "scan", partial(self._look_once, targets, sightings), _failed_scan
            )
            gathered.scan = merge(gathered.scan, found)
            gathered.add_look(targets, before, found)

    def _look_once(self, targets: Sequence[Target], sightings: Sightings) -> ScanFindings:
        return self._sources.look_once(
            targets, deadline_s=self._discovery_ends_s, run=self._run, sightings=sightings
        )

    def _ask_printers(self) -> tuple[Evidence, ...]:
        """Ask this machine's printers by SNMP, where the configuration has a community."""
        community, gathered = self._job.snmp_community, self._gathered
        if not community or self._job.device_only or not self._job.enrich:
            return ()
        own = gathered.local.own_addresses
        targets = snmp_targets(gathered.known or (), gathered.scan.hosts, own)
        return self._sources.ask_snmp(targets, community, self._deadline_s, self._run)

    def _ask(self, sightings: Sightings) -> Enrichment:
        return self._sources.enrich(
            sightings,
            self._deadline_s,
            self._run,
            self._job.device_only,
            interfaces=[local.interface for local in self._gathered.local.in_use],
        )

    def _read_macs(self) -> None:
        table = self._guarded("neighbours", self._sources.read_neighbour_table, lambda _reason: ())
        self._gathered.macs = {e.address: e.mac_address for e in table if e.mac_address}

    # ------------------------------------------------------------------ bounds and failures

    def _facts(self, *, final: bool) -> NetworkFacts:
        from collectors.network.progress import facts_of

        return facts_of(self._gathered, self._job, cancelled=self._run.cancelled, final=final)

    def _is_over(self) -> bool:
        return self._run.cancelled or time.monotonic() >= self._deadline_s

    def _taken(self, background: Background[T]) -> T:
        """Wait for a step beside this one. Raises TimeoutError when it is not done in time."""
        if not background.wait(self._deadline_s, lambda: self._run.cancelled):
            # A cancelled step ends by itself; all together are given some time to notice.
            if self._grace_ends_s is None:
                self._grace_ends_s = time.monotonic() + _GRACE_S
            background.wait(self._grace_ends_s, lambda: False)
        return background.result()

    def _pause_until(self, moment_s: float) -> None:
        while not self._run.cancelled and (left_s := moment_s - time.monotonic()) > 0:
            time.sleep(min(_LOOK_S, left_s))

    def _guarded(self, step: str, act: Callable[[], T], otherwise: Callable[[str], T]) -> T:
        """Run a source; when it breaks, record the failure and go on with ``otherwise``."""
        try:
            return act()
        except Exception as error:  # noqa: BLE001 - the boundary of a source
            reason = str(error) or type(error).__name__
            self._gathered.failures.append(Failure(step, reason))
            return otherwise(reason)


def _failed_scan(reason: str) -> ScanFindings:
    return ScanFindings(state=SourceState("failed", reason))


def _failed_browse(reason: str) -> MdnsFindings:
    return MdnsFindings(state=SourceState("failed", reason), truncated=True)
