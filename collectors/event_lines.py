"""Events as lines, none longer than the parent reads.

The sources of facts bound what they tell, so that nothing here has work to do. Should one ever
tell more, what is too long is cut, the most voluminous part first, and said; all else arrives.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Final, TypeVar

from collectors.contract import (
    EVENT_MAX_BYTES,
    TEXT_MAX,
    ApplicationFacts,
    Checkpoint,
    Crash,
    Endpoint,
    Event,
    Facts,
    Field,
    Host,
    NetworkFacts,
    Result,
)

_SAID_BYTES: Final = 16 * 1024  # what saying what was cut may take
_LINES_KEPT: Final = 16

Item = TypeVar("Item")


def line_of(event: Event, most_bytes: int = EVENT_MAX_BYTES) -> bytes:
    """Return the event as JSON with a newline, at most ``most_bytes`` long."""
    line = _encoded(event)
    if len(line) <= most_bytes:
        return line
    if isinstance(event, Crash):
        return _encoded(Crash(event.error[:TEXT_MAX]))
    if isinstance(event, Checkpoint | Result):
        return _encoded(replace(event, facts=_cut(event.facts, most_bytes - _SAID_BYTES)))
    return line  # a step's word and two numbers


def _cut(facts: Facts, most_bytes: int) -> Facts:
    if isinstance(facts, NetworkFacts):
        return _cut_network(facts, most_bytes)
    return _cut_application(facts, most_bytes)


# ---------------------------------------------------------------------------- network


def _cut_network(facts: NetworkFacts, most_bytes: int) -> NetworkFacts:
    """Give every device as many bytes as are fair; who needs fewer is not cut."""
    sizes = _sizes(facts)
    if len(_encoded(Result(facts))) - sizes.total() > most_bytes // 2:
        facts = _with_few_lines(facts)
    room = most_bytes - (len(_encoded(Result(facts))) - sizes.total())
    for share in (_fair_share(tuple(sizes.values()), room) // n for n in (1, 2, 8)):
        parts = {device: share / size for device, size in sizes.items() if size > share}
        shorter = _shortened(facts, parts)
        if len(_encoded(Result(shorter))) <= most_bytes:
            break
    else:
        shorter = _without_lists(facts)
    said = _said(facts, shorter)
    return replace(shorter, limitations=(*shorter.limitations, *said), truncated=True)


def _with_few_lines(facts: NetworkFacts) -> NetworkFacts:
    """Leave out most of what is told in words."""
    left_out = max(0, len(facts.failures) - _LINES_KEPT)
    left_out += max(0, len(facts.limitations) - _LINES_KEPT)
    said = f"{left_out:,} more failures and limitations are left out: too many to be told"
    return replace(
        facts,
        failures=facts.failures[:_LINES_KEPT],
        limitations=(*facts.limitations[:_LINES_KEPT], said),
    )


def _fair_share(sizes: Sequence[int], room: int) -> int:
    """Return the size to which the largest are cut so that all fit into ``room``."""
    left = room
    for number, size in enumerate(sorted(sizes)):
        share = left // (len(sizes) - number)
        if size > share:
            return max(0, share)
        left -= size
    return max(sizes, default=0)


def _device(each: Host | Endpoint) -> str:
    return each.mac_address or each.address


def _sizes(facts: NetworkFacts) -> Counter[str]:
    sizes: Counter[str] = Counter()
    for host in facts.hosts:
        sizes[_device(host)] += len(_json(asdict(host)))
    for endpoint in facts.endpoints:
        sizes[_device(endpoint)] += len(_json(asdict(endpoint)))
    return sizes


def _shortened(facts: NetworkFacts, parts: Mapping[str, float]) -> NetworkFacts:
    """Keep that part of what a device has, the best of it first, and all that is matched."""
    owned = Counter(_device(each) for each in facts.endpoints)
    seen: Counter[str] = Counter()
    endpoints: list[Endpoint] = []
    for each in facts.endpoints:
        device = _device(each)
        seen[device] += 1
        if each.matched_printer_ids or seen[device] <= owned[device] * parts.get(device, 1.0):
            endpoints.append(each)
    hosts = (
        replace(host, services=_best(host.services, parts.get(_device(host), 1.0)))
        for host in facts.hosts
    )
    return replace(facts, hosts=tuple(hosts), endpoints=tuple(endpoints))


def _best(items: tuple[Item, ...], part: float) -> tuple[Item, ...]:
    return items[: int(len(items) * part)]


def _said(whole: NetworkFacts, kept: NetworkFacts) -> list[str]:
    """Say in words whose services and endpoints were cut, the most first."""
    before, after = _counts(whole), _counts(kept)
    cut = sorted(before - after, key=lambda each: after[each] - before[each])
    names = {e.mac_address: f"{e.address} (MAC {e.mac_address})" for e in whole.endpoints}
    names |= {h.mac_address: f"{h.address} (MAC {h.mac_address})" for h in whole.hosts}
    said = [
        f"{names.get(device, device)}: {after[device]:,} of {before[device]:,} services and ports"
        " are listed, since all of them are too many to be told"
        for device in cut[:_LINES_KEPT]
    ]
    if len(cut) > _LINES_KEPT:
        said.append(f"of {len(cut) - _LINES_KEPT:,} more devices not all is listed either")
    return said


def _counts(facts: NetworkFacts) -> Counter[str]:
    """Count the services and endpoints of each device, by its MAC or address."""
    counts = Counter(map(_device, facts.endpoints))
    for host in facts.hosts:
        counts[_device(host)] += len(host.services)
    return counts


def _without_lists(facts: NetworkFacts) -> NetworkFacts:
    """Leave out what no device has made too long."""
    said = (
        f"the facts were too long to be told: {len(facts.hosts):,} hosts and most of"
        f" {len(facts.endpoints):,} endpoints are left out"
    )
    return replace(
        facts,
        hosts=(),
        endpoints=tuple(e for e in facts.endpoints if e.matched_printer_ids)[:1024],
        limitations=(*facts.limitations, said),
    )


# ---------------------------------------------------------------------------- application


def _cut_application(facts: ApplicationFacts, most_bytes: int) -> ApplicationFacts:
    """Take the value of the longest field, until the facts fit."""
    left_out: list[str] = []
    while len(_encoded(Result(facts))) > most_bytes:
        fields = [*facts.fields, *facts.browser_fields]
        fields += (field for group in facts.interfaces for field in group.fields)
        fields += (field for group in facts.peripherals for field in group.fields)
        longest = max(fields, key=_length, default=None)
        if longest is None or _length(longest) < TEXT_MAX:
            facts = _without_groups(facts)
            break
        left_out.append(longest.key)
        facts = _without_value(facts, longest)
    said = [f"{key} was left out: it is too long to be told" for key in left_out[:_LINES_KEPT]]
    return replace(facts, limitations=(*facts.limitations, *said), truncated=True)


def _length(field: Field) -> int:
    return len(_json(field.value)) if field.value is not None else 0


def _without_value(facts: ApplicationFacts, field: Field) -> ApplicationFacts:
    reason = f"its value of {_length(field):,} bytes is too long to be told"
    empty = replace(field, status="collection-failed", value=None, reason=reason)

    def others(fields: Sequence[Field]) -> tuple[Field, ...]:
        return tuple(empty if each is field else each for each in fields)

    return replace(
        facts,
        fields=others(facts.fields),
        browser_fields=others(facts.browser_fields),
        interfaces=tuple(replace(g, fields=others(g.fields)) for g in facts.interfaces),
        peripherals=tuple(replace(g, fields=others(g.fields)) for g in facts.peripherals),
    )


def _without_groups(facts: ApplicationFacts) -> ApplicationFacts:
    """Leave out what no single field has made too long."""
    said = (
        f"the facts were too long to be told: {len(facts.interfaces):,} interfaces and"
        f" {len(facts.peripherals):,} devices are left out"
    )
    return replace(
        facts,
        interfaces=(),
        peripherals=(),
        failures=facts.failures[:_LINES_KEPT],
        limitations=(*facts.limitations[:_LINES_KEPT], said),
    )


def _encoded(event: Event) -> bytes:
    return _json(asdict(event)).encode() + b"\n"


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)
