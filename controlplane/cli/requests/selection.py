"""Selects the devices that get a request, and records why other devices are left out."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, get_args

from agent.wire.operator_operations import Device
from agent.wire.vocabulary import Kind
from controlplane.cli.connection import find_device
from controlplane.cli.devices.filters import Filters, state_of
from controlplane.cli.screen.cells import shorten_list
from controlplane.client.errors import CommandError, UsageError
from controlplane.client.operations import OperationsClient

Reason = Literal["offline", "revoked", "unsupported", "already open"]
REASONS: Final[dict[Reason, str]] = {
    "offline": "offline",
    "revoked": "revoked",
    "unsupported": "makes no reports of this kind",
    "already open": "has an open request of this kind",
}
KINDS: Final = frozenset(get_args(Kind))
NAMED_MAX: Final = 5
"""Maximum number of devices that a line names."""


@dataclass(slots=True)
class Selection:
    """``devices`` get a request. ``left_out`` has the devices that get no request, by reason."""

    devices: list[Device]
    left_out: dict[Reason, list[Device]] = field(default_factory=dict)

    def leave_out(self, device: Device, reason: Reason) -> None:
        self.left_out.setdefault(reason, []).append(device)

    def lines(self) -> list[str]:
        return [
            f"left out, {REASONS[reason]}: {len(devices)} ({_list_names(devices)})"
            for reason, devices in self.left_out.items()
        ]


def is_for_one(options: argparse.Namespace) -> bool:
    """Return whether exactly one device is named. It gets a request even if it is offline."""
    return len(options.instance) == 1 and not options.all and Filters(options).is_empty


def select(options: argparse.Namespace, devices: Sequence[Device]) -> Selection:
    """Return the devices that get a request. Raises CommandError."""
    selection = Selection([])
    for device in selected_devices(options, devices):
        if reason := _reason_to_leave_out(device, options.kind):
            selection.leave_out(device, reason)
        else:
            selection.devices.append(device)
    return selection


def listed_devices(client: OperationsClient) -> Sequence[Device]:
    """Return all devices. Raises CommandError if there are more than the client reads."""
    devices, is_cut = client.devices()
    if is_cut:
        raise CommandError("there are too many devices to read: name one device at a time")
    return devices


def selected_devices(options: argparse.Namespace, devices: Sequence[Device]) -> list[Device]:
    """Return the devices that the names or filters select. Raises CommandError."""
    filters = Filters(options)
    if options.instance:
        if options.all or not filters.is_empty:
            raise UsageError("use either names of devices, or --all and filters")
        return list(dict.fromkeys(find_device(instance, devices) for instance in options.instance))
    if options.all or not filters.is_empty:
        return _matching_devices(filters, devices)
    raise UsageError("no device is selected: use a name, --location or --all")


def _matching_devices(filters: Filters, devices: Sequence[Device]) -> list[Device]:
    matching_devices = filters.apply(devices)
    if not matching_devices:
        raise CommandError(
            "no devices match the filters", "`venue-control devices` lists all devices."
        )
    return matching_devices


def _reason_to_leave_out(device: Device, kind: Kind) -> Reason | None:
    state = state_of(device)
    if state != "online":
        return state
    # A device that declares no kinds can get requests of every kind (`devices.requests.requests`).
    declared_kinds = KINDS.intersection(device.capabilities)
    return "unsupported" if declared_kinds and kind not in declared_kinds else None


def _list_names(devices: Sequence[Device]) -> str:
    return shorten_list([device.legacy_install_id for device in devices], NAMED_MAX)
