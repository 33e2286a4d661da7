"""Rules for watched devices, for network reports and for application snapshots."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

from agent.presentation.findings.rule import ProblemRule, Rule, Values
from agent.presentation.findings.snapshot_facts import SnapshotFacts
from agent.presentation.watched_devices import watched_devices
from agent.wire.payloads.network import NetworkPayload
from agent.wire.payloads.watched_devices import KIND_WORDS, WatchedLine, WatchedState

T = TypeVar("T")


def _devices_in_snapshot(facts: SnapshotFacts) -> Iterator[WatchedLine]:
    machine = facts.machine
    for name in machine.names("device", "present"):
        prefix = f"device.{name}"
        is_present = machine.flag(f"{prefix}.present")
        if is_present is None:
            continue
        moved_from = machine.text(f"{prefix}.movedFrom")
        other_mac = machine.text(f"{prefix}.otherMac")
        state: WatchedState = "moved" if moved_from else "present"
        if not is_present:
            state = "replaced" if other_mac else "absent"
        kind = KIND_WORDS.get(machine.text(f"{prefix}.kind"), KIND_WORDS["other"])
        address = machine.text(f"{prefix}.address") or None
        yield WatchedLine(name, kind, state, address, moved_from or None, other_mac or None)


def _with_state(devices: Iterable[WatchedLine], state: WatchedState) -> tuple[Values, ...]:
    """Return the values of each device in a state.

    ``kind`` is the kind of the devices, or "device" if they are of different kinds.
    """
    devices_in_state = [device for device in devices if device.state == state]
    kinds = {device.kind for device in devices_in_state}
    kind = kinds.pop() if len(kinds) == 1 else KIND_WORDS["other"]
    return tuple(
        {
            "device": device.subject,
            "kind": kind,
            "at": f"at {device.address}" if device.address else "on this network",
            "old": device.moved_from or "",
            "new": device.address or "",
            "mac": device.other_mac or "",
        }
        for device in devices_in_state
    )


def _rules(
    devices: Callable[[T], Iterable[WatchedLine]], fields: tuple[str, str, str]
) -> tuple[Rule[T], ...]:
    """Return the rules for one kind of report.

    ``devices`` returns the watched devices of a report. ``fields`` are the fields that the three
    rules read, in the order of the rules.
    """
    fields_of_moved, fields_of_replaced, fields_of_absent = fields
    return (
        ProblemRule(
            "device-moved",
            fields_of_moved,
            "a watched device answers at another address",
            "{device} has moved from {old} to {new}.",
            "give the {kind} a fixed address (DHCP reservation)",
            lambda report: _with_state(devices(report), "moved"),
        ),
        ProblemRule(
            "device-replaced",
            fields_of_replaced,
            "a watched device does not answer, and another MAC answers at its address",
            "{device} does not answer: another device uses its address {new} (MAC {mac}).",
            "give the {kind} a fixed address (DHCP reservation), and the other device a different"
            " address; if the {kind} was exchanged, configure its new MAC",
            lambda report: _with_state(devices(report), "replaced"),
        ),
        ProblemRule(
            "device-absent",
            fields_of_absent,
            "a watched device does not answer, and was not found at another address",
            "{device} does not answer {at}.",
            "check that the {kind} is on and connected to this network",
            lambda report: _with_state(devices(report), "absent"),
        ),
    )


_PRESENT: Final = "device.<name>.present"
WATCHED_SNAPSHOT_RULES: Final = _rules(
    _devices_in_snapshot,
    (
        "device.<name>.movedFrom, device.<name>.address",
        f"{_PRESENT}, device.<name>.otherMac, device.<name>.address",
        f"{_PRESENT}, device.<name>.address",
    ),
)
WATCHED_NETWORK_RULES: Final[tuple[Rule[NetworkPayload], ...]] = _rules(
    watched_devices, ("limitations[]", "limitations[]", "limitations[]")
)
