"""Filters of devices: by location, state, platform, version and words.

The device list of the contract has no filters, so all devices are read and filtered here.
"""

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from agent.wire.operator_operations import Device

State = Literal["online", "offline", "revoked"]


@dataclass(frozen=True, slots=True)
class Filters:
    """The device filters in the options of a command.

    A device matches if it has one of the values of each filter that is given, none of the excluded
    versions, and all search words. Without filters, every device matches.
    """

    options: argparse.Namespace

    @property
    def state(self) -> State | None:
        return getattr(self.options, "state", None)  # only `devices` has this option

    @property
    def is_empty(self) -> bool:
        """Return whether no filter is given."""
        options = self.options
        lists = (options.location, options.platform, options.app_version, options.app_version_not)
        return not any((*lists, options.search.split(), self.state))

    def apply(self, devices: Iterable[Device]) -> list[Device]:
        return [device for device in devices if self.matches(device)]

    def matches(self, device: Device) -> bool:
        options, version = self.options, device.app_version or ""
        names = {device.location_id.casefold(), (device.location_name or "").casefold()}
        return (
            _matches_one(names, [text.casefold() for text in options.location])
            and self.state in (None, state_of(device))
            and _matches_one({device.platform}, options.platform)
            and _matches_one({version}, options.app_version)
            and version not in options.app_version_not
            and all(_contains(device, word) for word in options.search.casefold().split())
        )


def state_of(device: Device) -> State:
    if device.revoked_at is not None:
        return "revoked"
    return "online" if device.online else "offline"


def location_of(device: Device) -> str:
    return device.location_name or device.location_id


def _matches_one(values: set[str], accepted_values: Sequence[str]) -> bool:
    return not accepted_values or not values.isdisjoint(accepted_values)


def _contains(device: Device, word: str) -> bool:
    texts = (
        device.legacy_install_id,
        device.location_id,
        device.location_name or "",
        device.app_version or "",
    )
    return str(device.instance_id).startswith(word) or any(
        word in text.casefold() for text in texts
    )
