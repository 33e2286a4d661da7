"""The network report's collector: asks each source, in parallel where they do not meet.

interfaces → mDNS beside scan beside the machine's own printers → enrichment beside second looks.
After each step all facts so far are told. A source that breaks costs its own facts only.
"""

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TypeVar

from collectors.contract import Failure, NetworkFacts, NetworkJob, Run, SourceState
from collectors.network.background import Background
from collectors.network.host.local_network import LocalNetwork
from collectors.network.matching.learned import with_learned
from collectors.network.mdns.announced import wanted_by
from collectors.network.observations import (
    NOTHING_WANTED,
    Enrichment,
    KnownPrinters,
    MdnsFindings,
    OpenPort,
)
from collectors.network.progress import NO_NETWORK, Gathered, facts_of, join
from collectors.network.scan.printer_targets import printer_host, printer_targets
from collectors.network.scan.scan import (
    ScanFindings,
    late_answers_by_s,
    merge,
    with_neighbour_table,
)
from collectors.network.scan.targets import TargetSelection, select_own_addresses, select_targets
from collectors.network.sources import Sources

MDNS_MAX_S = 10.0
NAMES_MAX_S = 2.0
_DISCOVERY_SHARE = 0.8
_RESERVE_S = 0.3
_LOOK_S = 0.05
_GRACE_S = 0.06
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
        steps = (self._look_at_machine, self._discover, self._look_closer)
        for number, step in enumerate(steps):
            if self._is_over():
                self._gathered.is_cut = True
                break
            step()
            if number < len(steps) - 1:
                self._run.checkpoint(self._facts(final=False))
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
        printer_hosts = (printer_host(entry.address) for entry in self._job.printers)
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
        """Run mDNS, the scan and the reading of printers side by side."""
        gathered = self._gathered
        printers = Background(self._read_printers)
        mdns = Background(self._browse) if self._may_browse() else None
        gathered.scan = self._guarded("scan", self._scan, _failed_scan)
        self._run.checkpoint(self._facts(final=False))
        if mdns is not None:
            gathered.mdns = self._guarded("mdns", lambda: self._taken(mdns), _failed_browse)
        known = self._guarded("printers", lambda: self._taken(printers), lambda _reason: None)
        if known is not None:
            gathered.known = known.printers
            gathered.failures += known.failures
            gathered.limitations += known.limitations

    def _look_closer(self) -> None:
        """Ask devices what they are, and meanwhile look at what may have been lost."""
        gathered = self._gathered
        gathered.scan = self._guarded("scan", self._contact_printers, self._scan_as_it_is)
        asked = gathered.open_ports()
        asking = Background(lambda: self._ask(asked, gathered.nameless()))
        self._look_again()
        gathered.macs = self._guarded("neighbours", self._read_macs, lambda _reason: {})
        self._run.checkpoint(self._facts(final=False))
        first = self._guarded(
            "enrichment", lambda: self._taken(asking), lambda _reason: Enrichment()
        )
        gathered.enrichment = first
        known = {(port.address, port.port) for port in asked}
        found = gathered.open_ports()
        if new := tuple(port for port in found if (port.address, port.port) not in known):
            gathered.enrichment = self._guarded(
                "enrichment", lambda: join(first, self._ask(new, ())), lambda _reason: first
            )

    def _look_again(self) -> None:
        """Try ports whose SYNs may have been lost, and hosts whose ARP was."""
        gathered = self._gathered
        gathered.scan = self._guarded("scan", self._look_at_silent_ports, self._scan_as_it_is)
        moment = late_answers_by_s(gathered.scan)
        if moment is not None and moment < self._discovery_ends_s:
            self._pause_until(moment)
            gathered.scan = self._guarded("scan", self._take_late, self._scan_as_it_is)

    # ------------------------------------------------------------------ sources

    def _read_printers(self) -> KnownPrinters:
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

    def _scan(self) -> ScanFindings:
        targets = self._gathered.selection.targets
        if not targets:
            reason = "there is no private network to scan"
            state = SourceState("unsupported", reason)
            return ScanFindings(state=state, limitations=(reason,))
        findings = self._sources.scan(
            targets, self._job.ports, deadline_s=self._discovery_ends_s, run=self._run
        )
        if all(target.way != "routed" for target in targets):
            return findings
        return with_neighbour_table(findings, targets, self._sources.read_neighbour_table())

    def _look_at_silent_ports(self) -> ScanFindings:
        return self._sources.look_again(
            self._gathered.scan, deadline_s=self._discovery_ends_s, run=self._run
        )

    def _take_late(self) -> ScanFindings:
        return self._sources.take_late(
            self._gathered.scan,
            self._job.ports,
            deadline_s=self._discovery_ends_s,
            run=self._run,
        )

    def _contact_printers(self) -> ScanFindings:
        gathered = self._gathered
        if gathered.known is None or self._job.device_only or not gathered.local.in_use:
            return gathered.scan
        targets, limitations = printer_targets(
            gathered.known,
            tried={(h.address, port) for h in gathered.scan.hosts for port in h.tried_ports},
            own=gathered.local.own_addresses,
            exclude=self._job.exclude,
        )
        gathered.limitations += limitations
        if not targets:
            return gathered.scan
        found = self._sources.scan(targets, (), deadline_s=self._discovery_ends_s, run=self._run)
        return merge(gathered.scan, found, targets)

    def _ask(self, open_ports: Sequence[OpenPort], nameless: Sequence[str]) -> Enrichment:
        if not self._job.enrich:
            return Enrichment(limitations=(_NOT_ASKED,))
        return self._sources.enrich(
            open_ports,
            self._deadline_s,
            self._run,
            self._job.device_only,
            interfaces=[local.interface for local in self._gathered.local.in_use],
            nameless=nameless,
        )

    def _read_macs(self) -> dict[str, str]:
        table = self._sources.read_neighbour_table()
        return {entry.address: entry.mac_address for entry in table if entry.mac_address}

    # ------------------------------------------------------------------ bounds and failures

    def _facts(self, *, final: bool) -> NetworkFacts:
        return facts_of(self._gathered, self._job, cancelled=self._run.cancelled, final=final)

    def _is_over(self) -> bool:
        return self._run.cancelled or time.monotonic() >= self._deadline_s

    def _pause_until(self, moment_s: float) -> None:
        while not self._run.cancelled and (left_s := moment_s - time.monotonic()) > 0:
            time.sleep(min(_LOOK_S, left_s))

    def _taken(self, background: Background[T]) -> T:
        """Wait for a step beside this one. Raises TimeoutError when it is not done in time."""
        if not background.wait(self._deadline_s, lambda: self._run.cancelled):
            # A cancelled step ends by itself; all together are given some time to notice.
            if self._grace_ends_s is None:
                self._grace_ends_s = time.monotonic() + _GRACE_S
            background.wait(self._grace_ends_s, lambda: False)
        return background.result()

    def _guarded(self, step: str, act: Callable[[], T], otherwise: Callable[[str], T]) -> T:
        """Run a source; when it breaks, record the failure and go on with ``otherwise``."""
        try:
            return act()
        except Exception as error:  # noqa: BLE001 - the boundary of a source
            reason = str(error) or type(error).__name__
            self._gathered.failures.append(Failure(step, reason))
            return otherwise(reason)

    def _scan_as_it_is(self, _reason: str) -> ScanFindings:
        return self._gathered.scan


def _failed_scan(reason: str) -> ScanFindings:
    return ScanFindings(state=SourceState("failed", reason))


def _failed_browse(reason: str) -> MdnsFindings:
    return MdnsFindings(state=SourceState("failed", reason), truncated=True)
