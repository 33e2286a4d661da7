"""The faults: how each begins and ends in the venue, and the cause that the record must show."""

import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from agent.wire.payloads.history import Cause
from tests.lab.connectivity.venue import GATEWAY, INTERNET, TILL
from tests.scenario.connectivity.site import Site

Step = Callable[[Site], None]
NoticedBy = Literal["change", "silence", "call"]
"""``change``: the kernel or the closed connection reports the fault at once. ``silence``: the idle
command stream breaks within 7 s. ``call``: the fault stays unnoticed until the next call to the
service fails."""


@dataclass(frozen=True, slots=True)
class Fault:
    cause: Cause
    noticed_by: NoticedBy
    begin: Step
    end: Step


def _ip(namespace: str, *commands: str) -> Step:
    """Return a step that runs ip(8) commands in a network namespace of the venue."""

    def run(site: Site) -> None:
        for command in commands:
            site.venue.ip(namespace, command)

    return run


def _signal(program: str, number: signal.Signals) -> Step:
    return lambda site: site.signal(program, number)


def _kill(program: str) -> Step:
    return lambda site: site.kill(program)


def _restart(program: str) -> Step:
    return lambda site: site.restart(program)


def _rules(verb: str, *selectors: str) -> Step:
    """Return a step that adds or deletes rules of the gateway that drop packets."""
    return _ip("gateway", *(f"rule {verb} pref 0 {selector} blackhole" for selector in selectors))


_ROUTE = f"route add default via {GATEWAY}"
_ADDRESS = f"addr add {TILL}/24 dev eth0"
_ALL_PACKETS = ("iif eth0",)
_IPV4_PACKETS = tuple(f"iif eth0 ipproto {protocol}" for protocol in ("icmp", "tcp", "udp"))
_TO_INTERNET = (f"iif eth0 to {INTERNET}", f"iif lo to {INTERNET}")

FAULTS: Final = {
    "carrier": Fault(
        "link-down", "change",
        _ip("switch", "link set till down"), _ip("switch", "link set till up"),
    ),
    "interface": Fault(
        "link-down", "change",
        _ip("till", "link set eth0 down"), _ip("till", "link set eth0 up", _ROUTE),
    ),
    "address": Fault(
        "no-address", "change", _ip("till", f"addr del {TILL}/24 dev eth0"),
        _ip("till", _ADDRESS, _ROUTE),
    ),
    "lease": Fault(
        "no-address", "change",
        _ip("till", f"addr change {TILL}/24 dev eth0 valid_lft 1 preferred_lft 1"),
        _ip("till", f"{_ADDRESS} valid_lft 3600 preferred_lft 3600", _ROUTE),
    ),
    "route": Fault(
        "gateway-silent", "change", _ip("till", "route del default"), _ip("till", _ROUTE)
    ),
    "gateway-gone": Fault(
        "gateway-silent", "silence",
        _ip("gateway", "link set eth0 down"), _ip("gateway", "link set eth0 up"),
    ),
    "gateway-hung": Fault(
        "gateway-silent", "silence", _rules("add", *_ALL_PACKETS), _rules("del", *_ALL_PACKETS)
    ),
    "gateway-only-arp": Fault(
        "gateway-silent", "silence", _rules("add", *_IPV4_PACKETS), _rules("del", *_IPV4_PACKETS)
    ),
    "provider-down": Fault(
        "provider-down", "silence",
        _ip("gateway", "link set wan0 down"), _ip("gateway", "link set wan0 up"),
    ),
    "provider-silent": Fault(
        "provider-down", "silence", _rules("add", *_TO_INTERNET), _rules("del", *_TO_INTERNET)
    ),
    "provider-unreachable": Fault(
        "provider-down", "silence",
        _ip("gateway", f"route add unreachable {INTERNET}"),
        _ip("gateway", f"route del unreachable {INTERNET}"),
    ),
    "names-stopped": Fault(
        "name-servers-silent", "call",
        _signal("forwarder", signal.SIGSTOP), _signal("forwarder", signal.SIGCONT),
    ),
    "names-gone": Fault(
        "name-servers-silent", "call", _kill("forwarder"), _restart("forwarder")
    ),
    "service-killed": Fault(
        "service-down", "change", _kill("service"), _restart("service")
    ),
    "service-stopped": Fault(
        "service-down", "call",
        _signal("service", signal.SIGSTOP), _signal("service", signal.SIGCONT),
    ),
    "service-503": Fault(
        "service-down", "call",
        _signal("service", signal.SIGUSR1), _signal("service", signal.SIGHUP),
    ),
    "key-refused": Fault(
        "service-refuses", "call",
        _signal("service", signal.SIGUSR2), _signal("service", signal.SIGHUP),
    ),
}  # fmt: skip
