"""The network report and the application snapshot have the expected state of each watched device
of generated venues. The network scan contacts no payment terminal.
"""

from collections.abc import Collection, Sequence
from datetime import UTC, datetime

import pytest

from agent.rules.learned_printers import NOTHING_LEARNED, update_memory
from collectors.application.readers.network.watched_devices import LIMIT_S, Search
from collectors.contract import (
    DeviceState,
    Interface,
    InterfaceAddress,
    LearnedPrinter,
    NetworkFacts,
    NetworkJob,
    Run,
    SourceState,
)
from collectors.network.collector import collect_network
from collectors.network.discoveries import Discoveries
from collectors.network.observations import (
    DeviceAnswers,
    Enrichment,
    KnownPrinters,
    MdnsResult,
    MdnsService,
)
from collectors.network.scan.scan import ScanResult, scan_result_of
from collectors.network.scan.sweep import Sweep
from collectors.network.scan.targets import Target
from collectors.network.sources import Sources
from collectors.shared.arp.resolver import Resolver
from collectors.shared.host.local_network import LocalInterface, LocalNetwork
from collectors.shared.linux.rtnetlink import LinkNeighbour
from collectors.shared.watched_devices import PaymentTerminals, expectations, state_of
from tests.sizes import amount
from tests.unit.collectors.network.scan.simulated_lan import (
    SimulatedHost,
    SimulatedLan,
    SimulatedRun,
)
from tests.unit.collectors.network.test_collector import RecordedRun
from tests.unit.collectors.watched_venues import (
    GATEWAY,
    OWN,
    ExpectedState,
    LanDevice,
    SimulatedKernel,
    Venue,
    learned_on_the_first_day,
    venue_of,
)

PORTS = (22, 80, 443, 631, 8443, 9100)
ETHERNET = Interface("eth0", (InterfaceAddress(OWN, "ipv4", 24),), (GATEWAY,), "00:00:5e:00:53:01")
LOCAL = LocalNetwork((LocalInterface(ETHERNET, metric=0),))
SEEDS = range(amount(small=3, medium=8, large=200))


class StaleLan(SimulatedLan):
    """A LAN in which the neighbour table has stale entries for some addresses.

    The kernel sends packets to the MAC of a stale entry, and does not confirm the entry during the
    scan.
    """

    def __init__(self, lan: dict[str, LanDevice], stale: dict[str, str]) -> None:
        hosts = {a: SimulatedHost(host.mac, host.ports) for a, host in lan.items()}
        known = [LinkNeighbour(2, address, mac, "stale") for address, mac in stale.items()]
        super().__init__(hosts, known)
        self.reached_macs: set[str] = set()
        self._stale = stale

    def prime(self, address: str) -> bool:
        if address not in self._stale:
            return super().prime(address)
        self.primed.append(address)
        return True

    def connect(self, address: str, port: int) -> bool:
        host = self.hosts.get(address)
        if host and self._stale.get(address, host.mac) != host.mac:
            self.reached_macs.add(self._stale[address])
            return True  # sent, but to the MAC of the stale entry, so no answer arrives
        if host:
            self.reached_macs.add(host.mac)
        return super().connect(address, port)


class VenueSources(Sources):
    """The sources of a network report in a generated LAN."""

    retry_delays_s = ()

    def __init__(self, lan: dict[str, LanDevice], stale: dict[str, str]) -> None:
        self.lan = StaleLan(lan, stale)
        self._devices, self._stale = lan, stale
        self.read_local_network = lambda: LOCAL  # type: ignore[method-assign]
        self.read_os_version = lambda: None  # type: ignore[method-assign]
        self.read_neighbour_table = self.table  # type: ignore[method-assign]
        self.scan = self.sweep  # type: ignore[method-assign,assignment]

    def table(self, *_: object) -> tuple[LinkNeighbour, ...]:
        macs = {**{a: host.mac for a, host in self._devices.items()}, **self._stale}
        return tuple(LinkNeighbour(2, a, mac, "stale") for a, mac in macs.items())

    def sweep(
        self,
        targets: Sequence[Target],
        ports: Sequence[int],
        *,
        discoveries: Discoveries,
        terminals: PaymentTerminals,
        **_: object,
    ) -> ScanResult:
        sweep = Sweep(self.lan, targets, ports, discoveries=discoveries, terminals=terminals)
        result = sweep.run(self.lan.now() + 60, SimulatedRun())
        return scan_result_of(result, len(targets))

    def browse(self, *_: object) -> MdnsResult:
        services = (
            MdnsService(
                host.name, "_http._tcp", f"{host.name[-1]}.local", (a,), 80,
                interface_name="eth0", announcer=a,
            )
            for a, host in self._devices.items()
            if host.name
        )  # fmt: skip
        return MdnsResult(tuple(services), SourceState("succeeded"))

    def read_known_printers(self, *_: object) -> KnownPrinters:
        return KnownPrinters()

    def enrich(self, *_: object) -> Enrichment:
        return Enrichment()

    def check_addresses(
        self, addresses: Collection[str], deadline_s: float, run: Run
    ) -> DeviceAnswers:
        kernel = SimulatedKernel(self._devices, dict(self._stale))
        resolver = Resolver(kernel)
        resolver.add(addresses)
        while not resolver.is_done:
            resolver.step()
            kernel.wait()
        return DeviceAnswers(resolver.answers, frozenset(resolver.silent))


def network_report(
    venue: Venue,
    lan: dict[str, LanDevice],
    stale: dict[str, str],
    learned: tuple[LearnedPrinter, ...] = (),
) -> tuple[NetworkFacts, StaleLan]:
    job = NetworkJob(
        PORTS, max_hosts=300, max_duration_s=600, devices=venue.devices, learned=learned
    )
    sources = VenueSources(lan, stale)
    return collect_network(job, RecordedRun(), sources), sources.lan


def compared_fields_of(state: DeviceState) -> ExpectedState:
    other = None if state.state == "unknown" else state.other_mac
    return ExpectedState(state.state, state.address, state.moved_from, other)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_network_report_has_the_expected_states_and_contacts_no_terminal(seed: int) -> None:
    venue = venue_of(seed)
    first, first_lan = network_report(venue, venue.before, {})
    assert [compared_fields_of(device) for device in first.devices] == [
        ExpectedState("present", watched_device.first_address) for watched_device in venue.watched
    ]
    learned = update_memory(NOTHING_LEARNED, first, datetime.now(UTC)).printers
    second, second_lan = network_report(venue, venue.now, venue.stale, learned)
    assert {device.device.name: compared_fields_of(device) for device in second.devices} == {
        watched_device.device.name: watched_device.network for watched_device in venue.watched
    }
    assert second.failures == ()
    terminals = {
        watched_device.lan.mac for watched_device in venue.watched if watched_device.is_terminal
    }
    for lan in (first_lan, second_lan):
        assert not terminals & lan.reached_macs


@pytest.mark.parametrize("seed", SEEDS)
def test_the_snapshot_has_the_expected_state_of_each_device(seed: int) -> None:
    venue = venue_of(seed)
    expected = expectations(venue.devices, learned_on_the_first_day(venue))
    kernel = SimulatedKernel(venue.now, dict(venue.stale))
    ends_s = kernel.now() + LIMIT_S - 0.2
    search = Search(expected, LOCAL, (), Resolver(kernel), kernel)
    answers = search.run(lambda: kernel.now() >= ends_s)
    assert {
        expectation.device.name: compared_fields_of(state_of(expectation, answers))
        for expectation in expected
    } == {watched_device.device.name: watched_device.snapshot for watched_device in venue.watched}
