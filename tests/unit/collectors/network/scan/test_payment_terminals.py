"""Tests that the scan makes no connection to a payment terminal, neither at its configured address
nor at any other address at which its MAC answers.
"""

import pytest

from collectors.contract import Interface, InterfaceAddress
from collectors.network.discoveries import Discoveries
from collectors.network.scan.payment_terminals import protect_terminals
from collectors.network.scan.sweep import Sweep, SweepResult
from collectors.network.scan.targets import Target
from collectors.shared.host.local_network import LocalInterface
from collectors.shared.linux.rtnetlink import LinkNeighbour
from collectors.shared.watched_devices import PaymentTerminals
from tests.unit.collectors.network.scan.simulated_lan import (
    SimulatedHost,
    SimulatedLan,
    SimulatedRun,
)

TERMINAL, OTHER = "00:11:22:00:00:01", "00:11:22:00:00:02"
PORTS = (80, 8443, 9100)
OPEN = frozenset(PORTS)
TERMINALS = PaymentTerminals(frozenset({"10.0.0.4"}), frozenset({TERMINAL}))
LINK = LocalInterface(Interface("eth0", (InterfaceAddress("10.0.0.20", "ipv4", 24),)))


def sweep(
    lan: SimulatedLan, *addresses: str, terminals: PaymentTerminals = TERMINALS
) -> tuple[SweepResult, Discoveries]:
    targets = [Target(address, "arp", "eth0") for address in addresses]
    discoveries = Discoveries()
    result = Sweep(lan, targets, PORTS, discoveries=discoveries, terminals=terminals).run(
        lan.now() + 60, SimulatedRun()
    )
    return result, discoveries


def test_a_terminal_is_listed_but_not_contacted_wherever_its_mac_answers() -> None:
    lan = SimulatedLan(
        {"10.0.0.7": SimulatedHost(TERMINAL, OPEN), "10.0.0.8": SimulatedHost(OTHER, OPEN)}
    )
    result, discoveries = sweep(lan, "10.0.0.7", "10.0.0.8")
    assert {address for address, _ in lan.connects} == {"10.0.0.8"}
    assert discoveries.hosts() == ("10.0.0.8",)
    hosts = {host.target.address: (host.mac_address, host.is_confirmed) for host in result.hosts}
    assert hosts == {"10.0.0.7": (TERMINAL, True), "10.0.0.8": (OTHER, True)}


def test_connections_end_if_a_terminal_takes_over_the_address() -> None:
    lan = SimulatedLan({"10.0.0.7": SimulatedHost(OTHER, filtered=frozenset(PORTS))})
    takeover = LinkNeighbour(2, "10.0.0.7", TERMINAL, "reachable")
    lan.schedule(0.02, takeover)  # just after the scan has begun to connect
    result, _ = sweep(lan, "10.0.0.7")
    assert lan.open_sockets == 0
    assert max(lan.connects.values()) == 1
    (host,) = result.hosts
    assert host.probes.open + host.probes.refused + host.probes.silent == []


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (Target("10.0.0.4", "arp", "eth0"), Target("10.0.0.4", "arp", "eth0", ())),
        (Target("10.0.0.4", "local", None, (9100,)), None),
        (Target("10.0.0.4", "routed"), None),
        (Target("10.0.0.5", "arp", "eth0"), Target("10.0.0.5", "arp", "eth0")),
        (Target("10.0.0.5", "local", None, (9100,)), Target("10.0.0.5", "arp", "eth0", (9100,))),
        (Target("10.9.0.5", "local", None, (9100,)), Target("10.9.0.5", "local", None, (9100,))),
        (Target("10.0.0.20", "local"), Target("10.0.0.20", "local")),
        (Target("fe80::211:22ff:fe00:1", "local", None, (631,)), None),
        (Target("fd00::7", "local", None, (631,)), None),
        (Target("fd00::8", "local", None, (631,)), Target("fd00::8", "local", None, (631,))),
    ],
)
def test_targets_are_changed_so_that_the_scan_connects_to_no_terminal(
    target: Target, expected: Target | None
) -> None:
    targets = protect_terminals([target], TERMINALS, (LINK,), {"10.0.0.20"}, {"fd00::7": TERMINAL})
    assert targets == ((expected,) if expected else ())


def test_targets_do_not_change_if_no_terminal_is_configured() -> None:
    targets = (Target("10.0.0.4", "local", None, (9100,)), Target("fd00::7", "local"))
    assert protect_terminals(targets, PaymentTerminals(), (LINK,), (), {}) == targets
