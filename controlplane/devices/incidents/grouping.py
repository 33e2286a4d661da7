"""Incidents that the devices of a location share. All functions are pure."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from agent.wire.payloads.history import CAUSES, Cause

SHARED_WITHIN_S: Final = 60
"""Incidents that begin within this many seconds after the first one of a group belong to it."""

LOSSES: Final[Mapping[Cause, str]] = {
    "link-down": "lost their link",
    "no-address": "got no address",
    "address-conflict": "had an address that another machine uses",
    "gateway-silent": "lost the gateway",
    "name-servers-silent": "lost the name servers",
    "provider-down": "lost the internet",
    "service-down": "lost the service",
    "service-refuses": "were refused by the service",
    "unreachable": "could not reach the service",
}
"""What happened to the devices, as the predicate of a sentence."""
_SUSPECTS: Final[Mapping[Cause, str]] = {
    "link-down": "a switch or access point, not the tills",
    "no-address": "the router or another DHCP server, not the tills",
    "address-conflict": "two of these machines probably use one address",
    "gateway-silent": "the router, not the tills",
    "name-servers-silent": "the name servers or the router, not the tills",
    "provider-down": "the provider or the router, not the tills",
    "service-down": "the service, not the tills",
    "service-refuses": "the service or its API key, not the tills",
    "unreachable": "the provider or the service, not the tills",
}
"""What is to blame for a shared incident, by cause, if it affected most devices of a location."""
_SUSPECT_OF_FEW: Final = (
    "a switch or access point that they share; the other devices kept their connection"
)
"""What is to blame for a shared incident that affected at most half of the devices.

This does not apply to the causes in `_SAME_FOR_ANY_SHARE`.
"""
_SAME_FOR_ANY_SHARE: Final = frozenset(
    {"link-down", "address-conflict", "service-down", "service-refuses"}
)
"""Causes whose suspect does not depend on how many of the location's devices were affected."""


@dataclass(frozen=True, slots=True)
class Incident:
    """An incident of a device. The fields are columns of `DeviceIncident`.

    ``position`` is the row key of the incident, and ``device`` that of the device.
    """

    position: int
    location_id: str
    device: int
    cause: Cause
    began_s: int
    ended_s: int | None
    downtime_s: int
    count: int
    evidence: str
    correction_s: int


Group = tuple[Incident, ...]
"""Incidents of one location that began together, in the order in which they began."""


class Period(NamedTuple):
    """A period in which a device would have recorded an incident. See `RecordPeriod`."""

    location_id: str
    device: int
    since_s: int
    until_s: int


class Explanation(NamedTuple):
    """``loss`` is a predicate, and ``suspect`` names what is to blame, without a full stop."""

    loss: str
    suspect: str


def groups_of(incidents: Iterable[Incident]) -> list[Group]:
    """Return the groups of incidents of one location, the oldest first.

    The first incident that belongs to no group begins the next group. A group of one device is not
    shared.
    """
    groups: list[list[Incident]] = []
    for each in sorted(incidents, key=lambda each: (each.began_s, each.position)):
        if not groups or each.began_s > groups[-1][0].began_s + SHARED_WITHIN_S:
            groups.append([])
        groups[-1].append(each)
    return [tuple(group) for group in groups]


def devices_of(group: Group) -> frozenset[int]:
    return frozenset(each.device for each in group)


def is_shared(group: Group) -> bool:
    return len(devices_of(group)) > 1


def cause_of(group: Group) -> Cause:
    """Return the cause that most devices name.

    If several causes are named equally often, return the one that is nearest to the devices.
    """
    counts = _count_devices_by_cause(group)
    return min(counts, key=lambda cause: (-counts[cause], CAUSES.index(cause)))


def observers_of(group: Group, periods: Iterable[Period]) -> frozenset[int]:
    """Return the devices that took part, and those whose reports cover the start of the group."""
    location_id, began_s = group[0].location_id, group[0].began_s
    return devices_of(group) | {
        each.device
        for each in periods
        if each.location_id == location_id and each.since_s <= began_s <= each.until_s
    }


def explanation_of(group: Group, observer_count: int) -> Explanation | None:
    """Return what happened to a location; None if only one device took part.

    Args:
        observer_count: number of devices that would have recorded the incident.
    """
    device_count, cause = len(devices_of(group)), cause_of(group)
    if device_count < 2:
        return None
    is_majority = 2 * device_count > observer_count
    has_own_suspect = is_majority or cause in _SAME_FOR_ANY_SHARE
    suspect = _SUSPECTS[cause] if has_own_suspect else _SUSPECT_OF_FEW
    affected_count = _count_devices_by_cause(group)[cause]
    if affected_count == device_count:
        return Explanation(LOSSES[cause], suspect)
    return Explanation(
        "were interrupted", f"{affected_count} of them {LOSSES[cause]}, so {suspect}"
    )


def _count_devices_by_cause(group: Group) -> Counter[Cause]:
    return Counter(cause for cause, _ in {(each.cause, each.device) for each in group})
