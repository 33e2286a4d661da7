"""Which devices are asked, and which are left out, and why."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, get_args

from agent.wire.operator_operations import Device
from agent.wire.vocabulary import Kind
from controlplane.cli.connection import device_named
from controlplane.cli.devices.filters import Filters, filters_of, state_of
from controlplane.client.errors import CommandError, UsageError

Reason = Literal["offline", "revoked", "unsupported", "already asked"]
REASONS: Final[dict[Reason, str]] = {
    "offline": "offline",
    "revoked": "revoked",
    "unsupported": "without reports of this kind",
    "already asked": "with such a request open",
}
KINDS: Final = frozenset(get_args(Kind))
NAMED_MAX: Final = 5


@dataclass(slots=True)
class Selection:
    """``left_out`` holds who matched and is not asked now.

    What is to be done about the offline ones later begins with ``left_out["offline"]``.
    """

    devices: list[Device]
    left_out: dict[Reason, list[Device]] = field(default_factory=dict)

    def leave_out(self, device: Device, reason: Reason) -> None:
        self.left_out.setdefault(reason, []).append(device)

    def lines(self) -> list[str]:
        return [
            f"left out, {REASONS[reason]}: {len(devices)} ({_named(devices)})"
            for reason, devices in self.left_out.items()
        ]


def is_for_one(options: argparse.Namespace) -> bool:
    """Tell whether one device is named: it is asked whatever its state."""
    return len(options.instance) == 1 and not options.all and filters_of(options).is_any


def select(options: argparse.Namespace, every: Sequence[Device]) -> Selection:
    """Return who is asked of those that are meant. Raises CommandError."""
    selection = Selection([])
    for device in meant_by(options, every):
        if reason := _reason_against(device, options.kind):
            selection.leave_out(device, reason)
        else:
            selection.devices.append(device)
    return selection


def meant_by(options: argparse.Namespace, every: Sequence[Device]) -> list[Device]:
    """Return who is meant by names, or by filters, of all devices. Raises CommandError."""
    filters = filters_of(options)
    if options.instance:
        if options.all or not filters.is_any:
            raise UsageError("name devices, or choose them by --all or filters, not both")
        return list(dict.fromkeys(device_named(each, every) for each in options.instance))
    if options.all or not filters.is_any:
        return _filtered(filters, every)
    raise UsageError("whom to ask? Name devices, or say --location or --all")


def _filtered(filters: Filters, every: Sequence[Device]) -> list[Device]:
    found = filters.of(every)
    if not found:
        raise CommandError(f"none of {len(every)} devices is like this")
    return found


def _reason_against(device: Device, kind: Kind) -> Reason | None:
    state = state_of(device)
    if state != "online":
        return state
    declared = KINDS.intersection(device.capabilities)
    return "unsupported" if declared and kind not in declared else None


def _named(devices: Sequence[Device]) -> str:
    names = [device.legacy_install_id for device in devices[:NAMED_MAX]]
    more = len(devices) - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "")
