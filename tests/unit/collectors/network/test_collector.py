"""Tests the network collector: its order of steps, failed sources, and runs that end early."""

import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import pytest

from collectors.__main__ import job_from_json
from collectors.contract import (
    ConfiguredPrinter,
    Facts,
    Failure,
    Interface,
    InterfaceAddress,
    NetworkFacts,
    NetworkJob,
    Run,
    SourceState,
)
from collectors.network.collected_facts import CollectedFacts
from collectors.network.collector import collect_network
from collectors.network.discoveries import Discoveries, OpenPort, Queues
from collectors.network.observations import (
    DeviceAnswers,
    Enrichment,
    Evidence,
    KnownPrinter,
    KnownPrinters,
    MdnsResult,
    MdnsService,
    PrinterIdentifiers,
    SnmpTarget,
)
from collectors.network.scan.printer_targets import printer_targets
from collectors.network.scan.scan import ScannedHost, ScanResult
from collectors.network.scan.targets import Target
from collectors.network.sources import Sources
from collectors.network.watched_devices import answers_of
from collectors.shared.addresses import parse_networks
from collectors.shared.host.local_network import LocalInterface, LocalNetwork
from collectors.shared.linux.rtnetlink import LinkNeighbour
from collectors.shared.watched_devices import PaymentTerminals

JOB = NetworkJob(ports=(80, 631, 9100), max_hosts=1024, max_services=100, max_duration_s=30.0)
LAN = LocalNetwork(
    (
        LocalInterface(
            Interface("lo", (InterfaceAddress("127.0.0.1", "ipv4", 8),)),
            is_loopback=True,
            has_arp=False,
        ),
        LocalInterface(
            Interface(
                "eth0",
                (InterfaceAddress("10.0.0.20", "ipv4", 24),),
                ("10.0.0.1",),
                "02:00:00:00:00:20",
            ),
            metric=0,
        ),
    )
)
RAW_QUEUE = KnownPrinter(
    "q", "Bar", "network", "cups", "10.0.0.9:9100",
    host="10.0.0.9", addresses=("10.0.0.9",), port=9100,
)  # fmt: skip
"""A queue that prints to port 9100 of `PRINTER`."""
PRINTER = ScannedHost("10.0.0.9", "eth0", "02:00:00:00:00:09", True, 1.0, (631,), (80, 9100))


class RecordedRun:
    """Records progress and checkpoints.

    The run is cancelled at checkpoint number ``cancel_at_checkpoint``, counted from 0.
    """

    def __init__(self, cancel_at_checkpoint: int = -1) -> None:
        self.steps: list[str] = []
        self.checkpoints: list[Facts] = []
        self._cancel_at = cancel_at_checkpoint
        self._cancelled = threading.Event()
        self._wakers: list[Callable[[], None]] = []

    @property
    def cancelled(self) -> bool:
        return self._cancelled.is_set()

    def progress(self, step: str, done: int, total: int | None = None) -> None:
        self.steps.append(step)

    def checkpoint(self, facts: Facts) -> None:
        self.checkpoints.append(facts)
        if len(self.checkpoints) - 1 == self._cancel_at:
            self.cancel()

    def on_cancel(self, wake: Callable[[], None]) -> None:
        self._wakers.append(wake)

    def cancel(self) -> None:
        self._cancelled.set()
        for wake in self._wakers:
            wake()


@dataclass
class FakeSources:
    """Fake sources, which return prepared results and record their calls."""

    local: LocalNetwork = LAN
    hosts: tuple[ScannedHost, ...] = (PRINTER,)
    known: tuple[KnownPrinter, ...] = ()
    queried_ports: list[OpenPort] = field(default_factory=list)
    scan_targets: list[tuple[Target, ...]] = field(default_factory=list)
    browsed_interfaces: list[tuple[str, ...]] = field(default_factory=list)
    name_query_interfaces: list[str] = field(default_factory=list)

    def scan(
        self,
        targets: Sequence[Target],
        ports: Sequence[int],
        *,
        deadline_s: float,
        run: Run,
        discoveries: Discoveries,
        tries: int,
        terminals: PaymentTerminals,
    ) -> ScanResult:
        self.scan_targets.append(tuple(targets))
        addresses = {target.address for target in targets}
        hosts = tuple(host for host in self.hosts if host.address in addresses)
        for host in hosts:
            for port in host.open_ports:
                discoveries.add_port(host.address, port, 0.0)
        return ScanResult(hosts)

    def browse(
        self,
        interfaces: Sequence[Interface],
        job: NetworkJob,
        deadline_s: float,
        run: Run,
        identifiers: Callable[[], PrinterIdentifiers],
    ) -> MdnsResult:
        self.browsed_interfaces.append(tuple(interface.name for interface in interfaces))
        service = MdnsService("Kitchen", "_ipp._tcp", "kitchen.local", ("10.0.0.9",), 631)
        return MdnsResult((service,), SourceState("succeeded"))

    def enrich(
        self,
        discoveries: Discoveries,
        interfaces: Sequence[Interface],
        deadline_s: float,
        run: Run,
    ) -> Enrichment:
        self.name_query_interfaces += [interface.name for interface in interfaces]
        queries: list[OpenPort] = []
        while not discoveries.is_complete and not run.cancelled and time.monotonic() < deadline_s:
            time.sleep(0.005)
        queries += discoveries.take_ports()
        self.queried_ports += queries
        return Enrichment(
            tuple(Evidence(p.address, p.port, make_model="Brother HL") for p in queries)
        )

    def sources(self, **replacements: object) -> Sources:
        sources = Sources()
        functions: dict[str, object] = {
            "read_local_network": lambda: self.local,
            "read_neighbour_table": lambda: (
                LinkNeighbour(2, "10.0.0.1", "02:00:00:00:00:01", "stale"),
            ),
            "read_os_version": lambda: "Test 1",
            "browse": self.browse,
            "scan": self.scan,
            "read_known_printers": lambda configured, deadline_s: KnownPrinters(self.known),
            "resolve_hosts": lambda known, deadline_s: tuple(known),
            "enrich": self.enrich,
        }
        for name, function in (functions | replacements).items():
            assert hasattr(sources, name)
            setattr(sources, name, function)
        return sources


def collect(
    fake: FakeSources, job: NetworkJob = JOB, run: RecordedRun | None = None, **replacements: object
) -> NetworkFacts:
    return collect_network(job, run or RecordedRun(), fake.sources(**replacements))


def test_a_printer_is_recognised_by_the_mac_learned_in_an_earlier_run() -> None:
    kitchen = replace(PRINTER, open_ports=(9100,), refused_ports=())
    learned = collect(FakeSources(hosts=(kitchen,), known=(RAW_QUEUE,))).learned
    assert [device.mac_address for device in learned] == [PRINTER.mac_address]

    job = job_from_json("network", json.dumps(asdict(replace(JOB, learned=learned))).encode())
    assert isinstance(job, NetworkJob)
    moved = FakeSources(hosts=(replace(kitchen, address="10.0.0.77"),), known=(RAW_QUEUE,))
    facts = collect(moved, job)
    assert facts.printers is not None
    assert (facts.printers[0].reason or "").startswith("Moved to 10.0.0.77:9100 (same MAC)")
    # The printer is remembered at its new address. The queue has the old address until a user fixes
    # it.
    assert [(device.mac_address, device.address) for device in facts.learned] == [
        (PRINTER.mac_address, "10.0.0.77")
    ]
    again = collect(moved, replace(JOB, learned=facts.learned))
    assert again.printers == facts.printers


def collect_with_retries(
    fake: FakeSources, *outcomes: str, job: NetworkJob = JOB
) -> tuple[str, list[str]]:
    """Collect from ``fake``. ``outcomes`` are the results of the repeated attempts at the print
    port. Return the reason for the printer's status, and the ports that were tried again.
    """
    retried: list[str] = []

    def scan(targets: Sequence[Target], *ports: Sequence[int], **options: Any) -> ScanResult:
        if options["tries"] > 1:  # the first scan; a repeated attempt has one try
            return fake.scan(targets, *ports, **options)
        retried.extend(f"{target.address}:{target.ports}" for target in targets)
        outcome = outcomes[len(retried) - 1]
        result = replace(PRINTER, open_ports=(), refused_ports=())
        fields = {"open": "open_ports", "refused": "refused_ports", "no-answer": "silent_ports"}
        return ScanResult((replace(result, **{fields[outcome]: (9100,)}),))  # type: ignore[arg-type]

    facts = collect(fake, job, scan=scan, retry_delays_s=(0.0, 0.01, 0.02))
    assert facts.printers is not None
    return facts.printers[0].reason or "", retried


def test_a_print_port_that_fails_on_a_host_that_answers_is_retried() -> None:
    fake = FakeSources(
        hosts=(replace(PRINTER, open_ports=(80,), refused_ports=(9100,)),), known=(RAW_QUEUE,)
    )
    reason_if_closed, retried = collect_with_retries(fake, "refused", "no-answer", "refused")
    assert retried == ["10.0.0.9:(9100,)"] * 3
    assert "in all 4 attempts" in reason_if_closed
    assert "another till or program may use it" in reason_if_closed
    reason_if_opened, retried = collect_with_retries(fake, "no-answer", "open")
    assert len(retried) == 2
    assert reason_if_opened.startswith("Reachable on port 9100")
    assert "it accepted no connection at first" in reason_if_opened


def test_open_ports_and_ports_of_silent_hosts_are_not_retried() -> None:
    working = FakeSources(
        hosts=(replace(PRINTER, open_ports=(9100,), refused_ports=(80,)),), known=(RAW_QUEUE,)
    )
    without_hosts = FakeSources(hosts=(), known=(RAW_QUEUE,))
    silent = replace(PRINTER, open_ports=(), refused_ports=(), silent_ports=(80, 9100))
    for fake in (working, without_hosts, FakeSources(hosts=(silent,), known=(RAW_QUEUE,))):
        assert collect_with_retries(fake)[1] == []
    fake = FakeSources(known=(RAW_QUEUE,))
    assert collect_with_retries(fake, job=replace(JOB, device_only=True))[1] == []


def test_printers_are_queried_by_snmp_if_a_community_is_configured() -> None:
    fake = FakeSources(
        hosts=(replace(PRINTER, open_ports=(9100,), refused_ports=()),), known=(RAW_QUEUE,)
    )
    requests: list[tuple[Sequence[SnmpTarget], str]] = []

    def query(
        targets: Sequence[SnmpTarget], community: str, deadline_s: float, run: Run
    ) -> tuple[Evidence, ...]:
        requests.append((targets, community))
        return (Evidence("10.0.0.9", 9100, state_reasons=("door-open",)),)

    for job in (JOB, replace(JOB, snmp_community="venue", enrich=False)):
        collect(fake, job, query_snmp=query)
    assert requests == []
    facts = collect(fake, replace(JOB, snmp_community="venue"), query_snmp=query)
    assert requests == [((SnmpTarget("10.0.0.9", 9100),), "venue")]
    assert facts.printers is not None
    assert "the printer reports: door open" in (facts.printers[0].reason or "")
    assert {endpoint.port for endpoint in facts.endpoints} == {9100, 631}


def test_a_complete_collection_has_all_facts() -> None:
    fake = FakeSources(
        known=(
            KnownPrinter(
                "q", "Kitchen", "network", "cups", "10.0.0.9:631", addresses=("10.0.0.9",), port=631
            ),
        )
    )
    run = RecordedRun()
    facts = collect(fake, run=run)
    assert facts.scope == "local-network"
    assert facts.os_version == "Test 1"
    assert [i.name for i in facts.interfaces] == ["eth0"]
    assert [host.address for host in facts.hosts] == ["10.0.0.20", "10.0.0.1", "10.0.0.9"]
    assert facts.hosts[1].mac_address == "02:00:00:00:00:01"
    (endpoint,) = facts.endpoints
    assert endpoint.model == "Brother HL"
    assert endpoint.matched_printer_ids == ("q",)
    assert facts.printers is not None
    assert facts.printers[0].matched_endpoint == "10.0.0.9:631"
    for state in (facts.interfaces_source, facts.mdns_source, facts.scan_source):
        assert state == SourceState("succeeded")
    assert (facts.failures, facts.limitations, facts.truncated, facts.cancelled) == (
        (),
        (),
        False,
        False,
    )
    assert 1 <= len(run.checkpoints) <= 8
    assert len(fake.scan_targets[0]) == 254


def test_the_first_checkpoint_has_interfaces_and_a_running_scan() -> None:
    run = RecordedRun()
    collect(FakeSources(), run=run)
    first = run.checkpoints[0]
    assert isinstance(first, NetworkFacts)
    assert first.interfaces
    assert first.hosts == () or first.hosts[0].sources == ("local",)
    assert first.scan_source == SourceState("running")
    assert first.printers is None


def fail(*_: object, **__: object) -> object:
    raise OSError("out of order")


def test_a_failing_network_source_affects_only_its_own_facts() -> None:
    cases = {
        "browse": "mdns",
        "scan": "scan",
        "read_known_printers": "printers",
        "enrich": "enrichment",
        "read_os_version": "os-version",
        "resolve_hosts": "printers",
    }
    for source, step in cases.items():
        facts = collect(FakeSources(), **{source: fail})
        assert [(f.step, f.reason) for f in facts.failures] == [(step, "out of order")], source
        assert facts.interfaces_source.state == "succeeded"
        assert facts.hosts
        assert (facts.mdns_source.state == "failed") == (source == "browse")
        assert (facts.scan_source.state == "failed") == (source == "scan")
        assert (facts.printers is None) == (step == "printers")


def test_interfaces_that_cannot_be_read_are_reported() -> None:
    facts = collect(FakeSources(), read_local_network=fail)
    assert facts.interfaces_source == SourceState("failed", "out of order")
    assert facts.unavailable.interfaces == "out of order"
    assert facts.unavailable.mac_address == facts.unavailable.gateway == "out of order"
    assert facts.mdns_source.state == "unsupported"
    assert facts.scope == "device"


def test_a_machine_without_a_network_gets_a_limited_report_without_failures() -> None:
    fake = FakeSources(local=LocalNetwork(LAN.interfaces[:1]))
    facts = collect(fake)
    assert facts.scope == "device"
    assert facts.hosts == facts.endpoints == facts.interfaces == facts.failures == ()
    assert facts.printers == ()
    assert "no network interface is up" in facts.limitations
    unavailable = facts.unavailable
    assert unavailable.interfaces == "no network interface is up"
    assert unavailable.mac_address == unavailable.gateway == "no network interface is up"
    assert facts.mdns_source.state == facts.scan_source.state == "unsupported"
    assert fake.browsed_interfaces == []
    assert fake.scan_targets == []


def test_device_only_contacts_only_this_machine() -> None:
    printer = KnownPrinter("q", "Far", "network", "cups", addresses=("10.0.0.9",), port=9100)
    fake = FakeSources(known=(printer,))
    facts = collect(fake, replace(JOB, device_only=True), resolve_hosts=fail)
    assert facts.scope == "device"
    reason = "only this machine was examined, not its network"
    assert facts.mdns_source == SourceState("unsupported", reason)
    assert [[t.address for t in targets] for targets in fake.scan_targets] == [
        ["127.0.0.1", "10.0.0.20"]
    ]
    assert fake.browsed_interfaces == fake.name_query_interfaces == []
    assert facts.failures == ()
    assert facts.printers is not None
    assert facts.printers[0].status == "unknown"


def test_disabled_enrichment_queries_nothing_and_is_reported() -> None:
    fake = FakeSources()
    facts = collect(fake, replace(JOB, enrich=False))
    assert fake.queried_ports == []
    assert any("not queried" in text for text in facts.limitations)


def test_announced_and_configured_queues_are_queried() -> None:
    queue = KnownPrinter(
        "q", "Bar", "network", "cups", addresses=("10.0.0.9",), port=631, queue="printers/bar"
    )
    fake = FakeSources(known=(queue,))
    announced = MdnsService(
        "Kitchen", "_ipp._tcp", "k.local", ("10.0.0.9",), 631, (("rp", "ipp/print"),)
    )
    collect(fake, browse=lambda *_, **__: MdnsResult((announced,), SourceState("succeeded")))
    assert fake.queried_ports == [
        OpenPort("10.0.0.9", 631, Queues(("ipp/print",), ("printers/bar",)))
    ]


def test_ports_are_queried_during_the_scan() -> None:
    fake = FakeSources()
    query_received = threading.Event()

    def enrich(discoveries: Discoveries, *_: object, **__: object) -> Enrichment:
        while not discoveries.take_ports():
            time.sleep(0.005)
        query_received.set()
        return Enrichment()

    def scan(targets: Sequence[Target], *_: object, **known: object) -> ScanResult:
        discoveries = known["discoveries"]
        assert isinstance(discoveries, Discoveries)
        discoveries.add_port("10.0.0.9", 80, 0.0)
        assert query_received.wait(60)
        return ScanResult()

    facts = collect(fake, scan=scan, enrich=enrich)
    assert facts.failures == ()


def test_printers_in_other_networks_are_contacted() -> None:
    fake = FakeSources(
        hosts=(PRINTER, ScannedHost("10.50.0.5", open_ports=(9100,))),
        known=(KnownPrinter("q", "Bar", "network", "config", addresses=("10.50.0.5",), port=9100),),
    )
    facts = collect(fake)
    assert fake.scan_targets[1] == (Target("10.50.0.5", "local", None, (9100,)),)
    assert facts.printers is not None
    assert facts.printers[0].status == "reachable"


def test_a_printer_is_contacted_at_the_address_that_its_dns_sd_name_announces() -> None:
    """The address is in another network, whose announcements a router may repeat here."""
    named = KnownPrinter("q", "Bar", "network", "cups", dns_sd_name="Bar", dns_sd_type="_ipp._tcp")
    service = MdnsService("Bar", "_ipp._tcp", "bar.local", ("10.50.0.5", "2001:db8::5"), 8631)
    fake = FakeSources(
        hosts=(PRINTER, ScannedHost("10.50.0.5", open_ports=(8631,))),
        known=(named, replace(named, id="other", dns_sd_name="Office")),
    )
    facts = collect(fake, browse=lambda *_: MdnsResult((service,), SourceState("succeeded")))
    assert fake.scan_targets[1] == (Target("10.50.0.5", "local", None, (8631,)),)
    assert facts.printers is not None
    assert [printer.status for printer in facts.printers] == ["reachable", "unreachable"]


def test_a_printer_in_another_network_that_does_not_answer_is_unreachable() -> None:
    known = KnownPrinter("q", "Bar", "network", "config", addresses=("10.50.0.5",), port=9100)
    facts = collect(FakeSources(known=(known,)))
    assert facts.printers is not None
    assert facts.printers[0].status == "unreachable"
    assert "no answer from 10.50.0.5" in (facts.printers[0].reason or "").lower()


def test_the_status_of_a_printer_is_unknown_if_the_scan_of_its_address_fails() -> None:
    known = KnownPrinter("q", "Bar", "network", "config", addresses=("10.50.0.5",), port=9100)
    fake = FakeSources(known=(known,))

    def scan(*args: object, **options: object) -> ScanResult:
        if fake.scan_targets:
            raise OSError("out of order")
        return fake.scan(*args, **options)  # type: ignore[arg-type]

    facts = collect(fake, scan=scan)
    assert facts.failures == (Failure("scan", "out of order"),)
    assert facts.printers is not None
    assert facts.printers[0].status == "unknown"
    assert "no answer" not in (facts.printers[0].reason or "").lower()


def test_a_public_ipv6_address_is_contacted_only_in_an_own_network() -> None:
    known = KnownPrinter("q", "Bar", "network", "config", addresses=("2001:db8::5",), port=9100)

    def targets(*networks: str) -> tuple[tuple[str, ...], int]:
        targets, limitations = printer_targets(
            (known,), tried=(), own=(), exclude=(), networks=parse_networks(networks)
        )
        return tuple(target.address for target in targets), len(limitations)

    assert targets("2001:db8::/64") == (("2001:db8::5",), 0)
    assert targets("2001:db8:1::/64") == ((), 1)


def test_configured_printers_are_scanned_before_other_addresses() -> None:
    entry = ConfiguredPrinter("k", "Kitchen", address="10.0.0.200:9100")
    fake = FakeSources()
    facts = collect(fake, replace(JOB, printers=(entry,), max_hosts=3))
    assert [t.address for t in fake.scan_targets[0]] == ["10.0.0.20", "10.0.0.1", "10.0.0.200"]
    assert facts.truncated
    assert "3 of about 254 addresses were tried: max_hosts is 3" in facts.limitations


def test_the_spooler_of_this_machine_is_not_queried_over_the_network() -> None:
    own = ScannedHost("10.0.0.20", "eth0", open_ports=(631, 80))
    fake = FakeSources(hosts=(own,))
    collect(fake)
    assert [(p.address, p.port) for p in fake.queried_ports] == [("10.0.0.20", 80)]


def test_hosts_beyond_the_limit_are_left_out() -> None:
    hosts = tuple(ScannedHost(f"10.0.0.{n}", "eth0") for n in range(30, 40))
    facts = collect(FakeSources(hosts=hosts), replace(JOB, max_hosts=254))
    assert len(facts.hosts) == 13
    facts = collect(FakeSources(hosts=hosts), replace(JOB, max_hosts=5))
    assert len(facts.hosts) <= 5
    assert facts.truncated


def test_a_run_that_is_cancelled_before_it_starts_returns_facts() -> None:
    run = RecordedRun()
    run.cancel()
    facts = collect(FakeSources(), run=run)
    assert facts.cancelled
    assert facts.truncated
    assert facts.scan_source == SourceState("failed", "stopped before it had finished")
    assert facts.printers is None


class HangingSource:
    """A source that hangs until ``may_continue`` is set."""

    def __init__(self, answer: object) -> None:
        self.began = threading.Event()
        self.may_continue = threading.Event()
        self._answer = answer

    def __call__(self, *_: object, **__: object) -> object:
        self.began.set()
        self.may_continue.wait()
        return self._answer


def test_a_cancelled_collection_ends_although_a_source_hangs() -> None:
    source = HangingSource(KnownPrinters())
    run = RecordedRun()
    facts: list[NetworkFacts] = []
    worker = threading.Thread(
        target=lambda: facts.append(collect(FakeSources(), run=run, read_known_printers=source))
    )
    worker.start()
    assert source.began.wait(60)
    run.cancel()
    worker.join(60)
    source.may_continue.set()
    worker.join()
    assert facts[0].cancelled
    assert facts[0].printers is None
    assert facts[0].interfaces
    assert [f.step for f in facts[0].failures] in (["printers"], ["scan", "printers"])


@pytest.mark.medium
def test_the_time_limit_of_the_job_is_kept_if_a_source_hangs() -> None:
    source = HangingSource(MdnsResult())
    facts = collect(FakeSources(), replace(JOB, max_duration_s=1.2), browse=source)
    source.may_continue.set()
    assert facts.mdns_source.state == "failed"
    assert facts.truncated
    assert not facts.cancelled
    assert [host.address for host in facts.hosts] == ["10.0.0.20", "10.0.0.1", "10.0.0.9"]


QUEUE = KnownPrinter(
    "cups:kitchen", "Kitchen", "network", "cups", "10.0.0.9:631",
    host="10.0.0.9", addresses=("10.0.0.9",), port=631,
)  # fmt: skip
OTHER = replace(QUEUE, id="cups:bar", name="Bar", host="10.0.0.8", addresses=("10.0.0.8",))
PRINTER_CHECK = replace(JOB, printers_only=True, enrich=False)


def test_check_of_printers_scans_only_their_addresses() -> None:
    fake = FakeSources(known=(QUEUE, OTHER))
    facts = collect(fake, PRINTER_CHECK)
    assert {target.address for scan in fake.scan_targets for target in scan} == {
        "10.0.0.8", "10.0.0.9",
    }  # fmt: skip
    assert fake.browsed_interfaces == []
    assert facts.mdns_source.state == "unsupported"
    assert [printer.status for printer in facts.printers or ()] == ["reachable", "unreachable"]


def test_check_of_one_printer_leaves_out_the_other_printers() -> None:
    fake = FakeSources(known=(QUEUE, OTHER))
    facts = collect(fake, replace(PRINTER_CHECK, printer="kitchen"))
    assert [target.address for scan in fake.scan_targets for target in scan] == ["10.0.0.9"]
    assert [printer.name for printer in facts.printers or ()] == ["Kitchen"]


def test_check_of_an_unknown_printer_contacts_nothing_and_fails() -> None:
    fake = FakeSources(known=(QUEUE, OTHER))
    facts = collect(fake, replace(PRINTER_CHECK, printer="cellar"))
    assert fake.scan_targets == []
    assert facts.printers == ()
    (failure,) = facts.failures
    assert failure == Failure(
        "printer", "this machine has no printer 'cellar'. Its printers: Kitchen, Bar"
    )


def test_check_browses_mdns_only_for_a_printer_with_an_mdns_name() -> None:
    announced = replace(
        QUEUE, address=None, host=None, addresses=(), port=None, dns_sd_name="Kitchen"
    )
    fake = FakeSources(known=(announced,))
    facts = collect(fake, PRINTER_CHECK)
    assert fake.browsed_interfaces == [("eth0",)]
    assert [target.address for scan in fake.scan_targets for target in scan] == ["10.0.0.9"]
    assert [printer.status for printer in facts.printers or ()] == ["reachable"]


def test_check_with_device_only_contacts_no_printer() -> None:
    fake = FakeSources(known=(QUEUE,))
    facts = collect(fake, replace(PRINTER_CHECK, device_only=True))
    assert "10.0.0.9" not in {target.address for scan in fake.scan_targets for target in scan}
    assert [printer.status for printer in facts.printers or ()] == ["unknown"]


def test_check_of_a_printer_without_a_known_address_reports_an_unknown_status() -> None:
    by_mac = replace(
        QUEUE, address="02:00:00:00:00:07", host=None, addresses=(), port=None,
        mac_address="02:00:00:00:00:07",
    )  # fmt: skip
    fake = FakeSources(known=(by_mac,))
    (printer,) = collect(fake, PRINTER_CHECK).printers or ()
    assert fake.scan_targets == []
    assert (printer.status, printer.reason) == (
        "unknown", "Its address is not known, and the network was not searched for it",
    )  # fmt: skip


def test_check_contacts_the_address_that_the_neighbour_table_has_for_the_mac() -> None:
    by_mac = replace(
        QUEUE, address=PRINTER.mac_address, host=None, addresses=(), mac_address=PRINTER.mac_address
    )
    fake = FakeSources(known=(by_mac,))
    table = (LinkNeighbour(2, "10.0.0.9", PRINTER.mac_address, "stale"),)
    facts = collect(fake, PRINTER_CHECK, read_neighbour_table=lambda: table)
    assert [target.address for scan in fake.scan_targets for target in scan] == ["10.0.0.9"]
    assert [printer.status for printer in facts.printers or ()] == ["reachable"]


@pytest.mark.parametrize(("state", "silent"), [("succeeded", {"10.0.0.9"}), ("failed", set())])
def test_unanswered_addresses_are_silent_only_if_the_scan_was_complete(
    state: Literal["succeeded", "failed"], silent: set[str]
) -> None:
    result = ScanResult(state=SourceState(state), unanswered=(Target("10.0.0.9", "arp"),))
    collected = CollectedFacts("", "linux", local=LAN, scan=result)
    answers = answers_of(collected, DeviceAnswers())
    assert answers.silent == silent
