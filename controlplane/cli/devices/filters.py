"""Filters of devices: by location, state, platform, version and words.

The contract's list has no filters, so all devices are read and filtered here.
"""

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from agent.wire.operator_operations import Device

State = Literal["online", "offline", "revoked"]


@dataclass(frozen=True, slots=True)
class Filters:
    """A device must match one value of each kind, and all words. Empty filters match any device."""

    locations: tuple[str, ...] = ()
    state: State | None = None
    platforms: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()
    other_versions: tuple[str, ...] = ()
    words: tuple[str, ...] = ()

    @property
    def is_any(self) -> bool:
        return self == Filters()

    def of(self, devices: Iterable[Device]) -> list[Device]:
        return [device for device in devices if self.admits(device)]

    def admits(self, device: Device) -> bool:
        version = device.app_version or ""
        places = {device.location_id.casefold(), (device.location_name or "").casefold()}
        return (
            _is_one(places, [each.casefold() for each in self.locations])
            and (self.state is None or state_of(device) == self.state)
            and _is_one({device.platform}, self.platforms)
            and _is_one({version}, self.versions)
            and version not in self.other_versions
            and all(_has(device, word) for word in self.words)
        )


def filters_of(options: argparse.Namespace) -> Filters:
    return Filters(
        locations=tuple(options.location),
        state=getattr(options, "state", None),  # an option of `devices` only
        platforms=tuple(options.platform),
        versions=tuple(options.app_version),
        other_versions=tuple(options.app_version_not),
        words=tuple(options.search.casefold().split()),
    )


def state_of(device: Device) -> State:
    if device.revoked_at is not None:
        return "revoked"
    return "online" if device.online else "offline"


def place_of(device: Device) -> str:
    return device.location_name or device.location_id


def _is_one(values: set[str], wanted: Sequence[str]) -> bool:
    return not wanted or not values.isdisjoint(wanted)


def _has(device: Device, word: str) -> bool:
    texts = (
        device.legacy_install_id,
        device.location_id,
        device.location_name or "",
        device.app_version or "",
    )
    return str(device.instance_id).startswith(word) or any(
        word in text.casefold() for text in texts
    )
