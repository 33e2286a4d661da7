"""The collector of the network report: reads every source, in parallel where that is possible.

1. Read this machine: the version of the system, its interfaces and the neighbour table. The
   interfaces and the table determine the targets of the scan.
2. Run four threads. One scans, one browses mDNS, and one reads this machine's printers. The fourth
   thread queries each host for its name, and each open port for details, as soon as the scan finds
   the host or port. It queries an IPP port only after the paths of the port's queues are known.
3. When the scan is complete, contact printers that it did not reach, query printers by SNMP, and
   connect again to print ports that refused the connection or did not answer.

If the job is for printers only, the printers are read first, and only their addresses are scanned.
Such a job browses mDNS only if the address of a printer must be resolved by mDNS.

Only the calling thread stores results. After each step, it sends all facts so far. If a source
fails, only its own facts are missing.

Modules that the scan does not need are imported where they are first used, as in sources.py. So the
scan, which takes longest, starts earlier.
"""

import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

from collectors.contract import (
    PRINTER_STEP,
    Failure,
    Interface,
    NetworkFacts,
    NetworkJob,
    Run,
    SourceState,
)
from collectors.network.collected_facts import NO_NETWORK, NOT_DONE, ONLY_DEVICE, CollectedFacts
from collectors.network.discoveries import Discoveries
from collectors.network.observations import (
    NO_IDENTIFIERS,
    DeviceAnswers,
    Enrichment,
    Evidence,
    KnownPrinters,
    MdnsResult,
)
from collectors.network.scan.host_probes import TRIES
from collectors.network.scan.payment_terminals import protect_terminals
from collectors.network.scan.printer_targets import (
    USUAL_PORTS,
    doubtful_ports,
    printer_targets,
    select_printers,
    snmp_targets,
)
from collectors.network.scan.scan import ScanResult, merge, with_neighbour_table
from collectors.network.scan.targets import (
    Target,
    TargetSelection,
    select_own_addresses,
    select_targets,
)
from collectors.network.sources import Sources
from collectors.shared.addresses import ipv4_host, network_of
from collectors.shared.background import in_background
from collectors.shared.host.local_network import LocalNetwork
from collectors.shared.watched_devices import expectations, terminals_of

MDNS_MAX_S = 10.0
NAMES_MAX_S = 11.0
"""The system's resolver waits five seconds for each name server, and tries twice (resolv.conf(5)).
So with one name server it ends after ten seconds. Print systems also wait this long for a name."""
_DISCOVERY_SHARE = 0.8
"""The share of the job's maximum duration after which the scan and mDNS end."""
_RESERVE_S = 0.3
"""The collection ends this many seconds before the job's maximum duration is over, so that the
facts are still sent in time."""
_GRACE_S = 0.2
"""How long to wait for threads that are not done when the run ends. All threads share this time."""
_POLL_S = 0.05
"""How often a waiting thread checks whether the run was cancelled, in seconds."""
_SHORT_POLL_S = 0.01
_IPP_QUERIES_WAIT_S = 1.0
"""The longest wait before the scan if the job is for printers only (`_wait_for_ipp_queries`)."""
_ONLY_PRINTERS = "only the printers of this machine were checked"
_QUERIES_DISABLED = "open ports and host names were not queried: the configuration disables this"
_NOTHING_TO_SCAN = "there is no private network to scan"

T = TypeVar("T")
D = TypeVar("D")


def collect_network(job: NetworkJob, run: Run, sources: Sources | None = None) -> NetworkFacts:
    """Collect the facts within the bounds of the job. Blocks until they are complete.

    A cancelled run returns the facts that it has so far.
    """
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
        self._identifiers = NO_IDENTIFIERS  # until the printers are read
        self._discoveries = Discoveries()
        self._expected = expectations(job.devices, job.learned)
        self._terminals = terminals_of(self._expected)
        self._collected = CollectedFacts(
            started_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
            os_platform=sys.platform,
        )

    def collect(self) -> NetworkFacts:
        if not self._is_over():
            self._read_machine()
            if self._job.printers_only:
                self._check_printers()
            else:
                self._discover()
        self._collected.is_cut_short = self._is_over()
        return self._facts(final=True)

    # ------------------------------------------------------------------ steps

    def _read_machine(self) -> None:
        self._run.progress("interfaces", 0, 1)
        collected, sources = self._collected, self._sources
        collected.os_version = self._run_step("os-version", sources.read_os_version, lambda _: None)
        collected.interfaces_state = SourceState("succeeded")
        collected.local = self._run_step(
            "interfaces", sources.read_local_network, self._record_missing_interfaces
        )
        self._discoveries = Discoveries(collected.local.own_addresses)
        if not collected.local.in_use:
            collected.limitations.append(NO_NETWORK)
        if self._job.device_only:
            collected.selection = select_own_addresses(collected.local.interfaces)
        elif not self._job.printers_only:
            collected.selection = self._select()
        self._run.progress("interfaces", 1, 1)

    def _record_missing_interfaces(self, reason: str) -> LocalNetwork:
        self._collected.interfaces_state = SourceState("failed", reason)
        return LocalNetwork()

    def _select(self) -> TargetSelection:
        local, job = self._collected.local, self._job
        devices = (expectation.address for expectation in self._expected)
        printer_hosts = (ipv4_host(entry.address) for entry in job.printers)
        known_hosts = (*filter(None, (*devices, *printer_hosts)), *self._neighbour_macs())
        return select_targets(
            local.in_use,
            subnets=job.subnets,
            exclude=job.exclude,
            max_hosts=job.max_hosts,
            first=(*local.gateways, *known_hosts),
        )

    def _discover(self) -> None:
        scan = in_background(self._scan)
        mdns = in_background(self._browse)
        # The scan and mDNS take longest. The modules of the other steps are imported meanwhile.
        self._checkpoint()
        printers = in_background(self._read_printers)
        queries = in_background(self._query)
        self._store_printers(printers)
        self._collected.mdns = self._result("mdns", mdns, _failed_browse)
        self._set_queues()
        self._checkpoint()
        self._complete(scan, queries)

    def _check_printers(self) -> None:
        """Contact this machine's printers, or one of them, and nothing else."""
        from collectors.network.observations import is_resolved_by_mdns
        from collectors.network.report_facts import printer_addresses_in

        collected = self._collected
        self._store_printers(in_background(self._read_printers))
        collected.mdns = MdnsResult(state=SourceState("unsupported", _ONLY_PRINTERS))
        if any(map(is_resolved_by_mdns, collected.known or ())):
            collected.mdns = self._result("mdns", in_background(self._browse), _failed_browse)
        collected.macs = self._neighbour_macs()
        if self._can_use_network:
            addresses = printer_addresses_in(collected)
            collected.selection = select_printers(
                collected.known or (), addresses, collected.local.in_use, self._job
            )
        self._set_queues()
        queries = in_background(self._query)
        self._wait_for_ipp_queries(queries)
        self._complete(in_background(self._scan), queries)

    def _wait_for_ipp_queries(self, queries: "Future[Enrichment]") -> None:
        """Wait until the query thread is ready for the IPP ports that the scan will find open.

        A query of an IPP port then uses the connection that the scan has opened. If the scan starts
        earlier, the query needs a second connection, after a pause of a second.
        """
        ends_s = time.monotonic() + _IPP_QUERIES_WAIT_S
        while not (self._discoveries.queries_ipp_at_once or queries.done() or self._is_over()):
            if time.monotonic() >= ends_s:
                break
            time.sleep(_SHORT_POLL_S)

    def _complete(self, scan: "Future[ScanResult]", queries: "Future[Enrichment]") -> None:
        """Wait for the scan, contact the printers that it did not reach, and store all answers."""
        collected = self._collected
        collected.scan = self._result("scan", scan, _failed_scan)
        self._checkpoint()
        devices = in_background(self._check_devices)
        self._contact_printers()
        snmp = in_background(self._query_snmp)
        self._retry_print_ports()
        self._discoveries.is_complete = True
        collected.macs = self._neighbour_macs()
        self._store_answers(queries, snmp)
        collected.device_answers = self._result("devices", devices, lambda _: DeviceAnswers())

    def _store_printers(self, printers: "Future[KnownPrinters]") -> None:
        known = self._result("printers", printers, lambda _: None)
        if known is not None:
            self._collected.known = known.printers
            self._collected.failures += known.failures
            self._collected.limitations += known.limitations

    def _set_queues(self) -> None:
        from collectors.network.report_facts import queues_in

        self._collected.macs = self._neighbour_macs()  # the MACs identify the mDNS announcers
        self._discoveries.set_queues(queues_in(self._collected))

    def _store_answers(
        self, queries: "Future[Enrichment]", snmp: "Future[tuple[Evidence, ...]]"
    ) -> None:
        from collectors.network.report_facts import answers_in

        collected = self._collected
        collected.enrichment = self._result("enrichment", queries, lambda _: Enrichment())
        collected.enrichment = answers_in(collected)
        evidence = (*collected.enrichment.evidence, *self._result("snmp", snmp, lambda _: ()))
        collected.enrichment = replace(collected.enrichment, evidence=evidence)

    def _contact_printers(self) -> None:
        """Connect to known printers that the scan did not reach."""
        collected, job = self._collected, self._job
        if collected.known is None or not self._can_use_network:
            return
        from collectors.network.report_facts import destinations_in

        tried_endpoints = {
            (h.address, port) for h in collected.scan.hosts for port in h.tried_ports
        }
        if job.printers_only:
            ports = (*USUAL_PORTS, *(printer.port for printer in collected.known if printer.port))
            # An address that did not answer ARP is not contacted again.
            tried_endpoints |= {
                (t.address, port) for t in collected.scan.unanswered for port in ports
            }
        targets, limitations = printer_targets(
            destinations_in(collected),
            tried=tried_endpoints,
            own=collected.local.own_addresses,
            exclude=job.exclude,
            networks=[network_of(a) for i in self._interfaces for a in i.addresses],
        )
        collected.limitations += limitations
        if targets:
            connect = partial(self._run_scan, targets, ())
            result = self._run_step("scan", connect, _failed_scan)
            collected.scan = merge(collected.scan, result, targets)
            if result.state.state == "succeeded":
                collected.add_unanswered_ports(targets)

    def _retry_print_ports(self) -> None:
        """Connect again to print ports that failed: another till may have been using them."""
        collected, started_s = self._collected, time.monotonic()
        for after_s in self._retry_delays_s:
            own = collected.local.own_addresses
            targets = doubtful_ports(collected.known or (), collected.scan.hosts, own)
            if not targets or started_s + after_s >= self._discovery_ends_s:
                break
            self._pause_until(started_s + after_s)
            if self._run.cancelled:
                break
            before = {host.address: host for host in collected.scan.hosts}
            connect = partial(self._run_scan, targets, (), tries=1)
            result = self._run_step("scan", connect, _failed_scan)
            collected.scan = merge(collected.scan, result)
            collected.add_attempt(targets, before, result)

    # ------------------------------------------------------------------ in threads

    def _check_devices(self) -> DeviceAnswers | None:
        """Resolve the addresses of watched devices that the scan has not confirmed."""
        job, collected = self._job, self._collected
        if not self._expected or job.printers_only or not self._can_use_network:
            return None
        from collectors.network.watched_devices import unconfirmed_addresses

        addresses = unconfirmed_addresses(self._expected, collected, job.exclude)
        if not addresses:
            return DeviceAnswers()
        return self._sources.check_addresses(addresses, self._discovery_ends_s, self._run)

    def _scan(self) -> ScanResult:
        targets, ports = self._collected.selection.targets, self._job.ports
        if self._job.printers_only:
            ports = USUAL_PORTS
        if not targets and self._job.printers_only:
            return ScanResult(state=SourceState("unsupported", _ONLY_PRINTERS))
        if not targets:
            state = SourceState("unsupported", _NOTHING_TO_SCAN)
            return ScanResult(state=state, limitations=(_NOTHING_TO_SCAN,))
        result = self._run_scan(targets, ports)
        if any(target.way == "routed" for target in targets):
            table = self._sources.read_neighbour_table()
            result = with_neighbour_table(result, targets, table)
        for host in result.hosts:  # including hosts that only the neighbour table has
            if (host.address, host.mac_address) not in self._terminals:
                self._discoveries.add_host(host.address)
        return result

    def _run_scan(
        self, targets: Sequence[Target], ports: Sequence[int], tries: int = TRIES
    ) -> ScanResult:
        local, macs = self._collected.local, self._collected.macs
        return self._sources.scan(
            protect_terminals(targets, self._terminals, local.in_use, local.own_addresses, macs),
            ports,
            deadline_s=self._discovery_ends_s,
            run=self._run,
            discoveries=self._discoveries,
            tries=tries,
            terminals=self._terminals,
        )

    def _browse(self) -> MdnsResult:
        if not self._can_use_network:
            reason = ONLY_DEVICE if self._job.device_only else NO_NETWORK
            return MdnsResult(state=SourceState("unsupported", reason))
        ends_s = min(self._discovery_ends_s, time.monotonic() + MDNS_MAX_S)
        return self._sources.browse(
            self._interfaces, self._job, ends_s, self._run, lambda: self._identifiers
        )

    def _read_printers(self) -> KnownPrinters:
        from collectors.network.matching.learned import with_learned
        from collectors.network.mdns.announced import identifiers_of

        known_printers = self._sources.read_known_printers(self._job.printers, self._deadline_s)
        known_printers = replace(
            known_printers, printers=with_learned(known_printers.printers, self._job.learned)
        )
        if self._job.printer:
            known_printers = self._choose_printer(known_printers)
        self._identifiers = identifiers_of(known_printers.printers)
        if not self._can_use_network:
            return known_printers
        names_end_s = min(self._discovery_ends_s, time.monotonic() + NAMES_MAX_S)
        printers = self._sources.resolve_hosts(known_printers.printers, names_end_s)
        self._identifiers = identifiers_of(printers)
        return replace(known_printers, printers=printers)

    def _choose_printer(self, known_printers: KnownPrinters) -> KnownPrinters:
        """Return only the printer that the job names. Add a failure if there is no such printer."""
        from collectors.network.printers.selection import describe_unknown, find_named

        chosen_printers = find_named(known_printers.printers, self._job.printer)
        if chosen_printers:
            return replace(known_printers, printers=chosen_printers)
        reason = describe_unknown(known_printers.printers, self._job.printer)
        failures = (*known_printers.failures, Failure(PRINTER_STEP, reason))
        return replace(known_printers, printers=(), failures=failures)

    def _query(self) -> Enrichment:
        if not self._job.enrich:
            return Enrichment(limitations=(_QUERIES_DISABLED,))
        is_limited = self._job.device_only or self._job.printers_only
        interfaces = () if is_limited else self._interfaces
        return self._sources.enrich(self._discoveries, interfaces, self._deadline_s, self._run)

    def _query_snmp(self) -> tuple[Evidence, ...]:
        """Query this machine's printers by SNMP, if the configuration has a community."""
        community, collected = self._job.snmp_community, self._collected
        if not community or self._job.device_only or not self._job.enrich:
            return ()
        own = collected.local.own_addresses
        targets = snmp_targets(collected.known or (), collected.scan.hosts, own)
        return self._sources.query_snmp(targets, community, self._deadline_s, self._run)

    # ------------------------------------------------------------------ bounds and failures

    @property
    def _can_use_network(self) -> bool:
        return bool(self._collected.local.in_use) and not self._job.device_only

    @property
    def _retry_delays_s(self) -> tuple[float, ...]:
        """The times at which print ports that failed are tried again, in seconds after the scan."""
        if self._job.device_only:
            return ()
        retry_delays_s = self._sources.retry_delays_s
        return retry_delays_s[:1] if self._job.printers_only else retry_delays_s

    @property
    def _interfaces(self) -> tuple[Interface, ...]:
        return tuple(local.interface for local in self._collected.local.in_use)

    def _neighbour_macs(self) -> dict[str, str]:
        """Return the MAC of each address in the neighbour table."""
        table = self._run_step("neighbours", self._sources.read_neighbour_table, lambda _: ())
        return {entry.address: entry.mac_address for entry in table if entry.mac_address}

    def _facts(self, *, final: bool) -> NetworkFacts:
        from collectors.network.report_facts import facts_of

        return facts_of(self._collected, self._job, cancelled=self._run.cancelled, final=final)

    def _checkpoint(self) -> None:
        self._run.checkpoint(self._facts(final=False))

    def _is_over(self) -> bool:
        return self._run.cancelled or time.monotonic() >= self._deadline_s

    def _result(self, step: str, future: "Future[T]", fallback: Callable[[str], D]) -> T | D:
        """Return the result of a thread. A thread that is not done in time counts as failed."""
        while not future.done() and not self._is_over():
            left_s = max(0.0, self._deadline_s - time.monotonic())
            wait([future], timeout=min(_POLL_S, left_s))
        if not future.done():
            # The run has ended, so the thread ends by itself soon.
            self._grace_ends_s = self._grace_ends_s or time.monotonic() + _GRACE_S
            wait([future], timeout=max(0.0, self._grace_ends_s - time.monotonic()))
        return self._run_step(step, partial(_require_result, future), fallback)

    def _pause_until(self, end_s: float) -> None:
        while not self._run.cancelled and (left_s := end_s - time.monotonic()) > 0:
            time.sleep(min(_POLL_S, left_s))

    def _run_step(self, step: str, act: Callable[[], T], fallback: Callable[[str], D]) -> T | D:
        """Call ``act``. If it fails, record the failure and return ``fallback(reason)``."""
        try:
            return act()
        except Exception as error:  # noqa: BLE001 - the boundary of a source
            reason = str(error) or type(error).__name__
            self._collected.failures.append(Failure(step, reason))
            return fallback(reason)


def _require_result(future: "Future[T]") -> T:
    if not future.done():
        raise TimeoutError(NOT_DONE)
    return future.result()


def _failed_scan(reason: str) -> ScanResult:
    return ScanResult(state=SourceState("failed", reason))


def _failed_browse(reason: str) -> MdnsResult:
    return MdnsResult(state=SourceState("failed", reason), truncated=True)
