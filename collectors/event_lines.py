"""Formats events as JSON lines that are not longer than the parent accepts.

Each source of facts is bounded, so normally nothing is cut. If the facts are too long anyway, parts
of them are left out, and a limitation describes the cut.
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any, Final

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
    Service,
)
from collectors.network.fair_share import in_turns

_LIMITATIONS_BYTES: Final = 16 * 1024  # reserved for the limitations that describe the cut
_LINES_KEPT: Final = 16
"""How many failures and limitations are kept if there are too many, and how many limitations may
describe the cut."""
_PRINTER_ENDPOINTS_KEPT: Final = 1024


def line_of(event: Event, max_bytes: int = EVENT_MAX_BYTES) -> bytes:
    """Return the event as JSON with a newline, at most ``max_bytes`` long."""
    line = _encode(event)
    if len(line) <= max_bytes:
        return line
    if isinstance(event, Crash):
        return _encode(Crash(event.error[:TEXT_MAX]))
    if isinstance(event, Checkpoint | Result):
        return _encode(replace(event, facts=_cut(event.facts, max_bytes - _LIMITATIONS_BYTES)))
    return line  # a Progress event has one word and two numbers, so it is never too long


def _cut(facts: Facts, max_bytes: int) -> Facts:
    if isinstance(facts, NetworkFacts):
        return _cut_network(facts, max_bytes)
    return _cut_application(facts, max_bytes)


# ---------------------------------------------------------------------------- network


def _cut_network(facts: NetworkFacts, max_bytes: int) -> NetworkFacts:
    """Keep the endpoints of this machine's printers, and as many services and other endpoints as
    fit.

    Devices take turns: the first service and endpoint of every device are kept before the second
    ones of any device. So the devices with the most services and endpoints lose some of them first.
    """
    always_kept = replace(
        facts,
        hosts=tuple(replace(host, services=()) for host in facts.hosts),
        endpoints=tuple(endpoint for endpoint in facts.endpoints if endpoint.matched_printer_ids),
    )
    if len(_encode(Result(always_kept))) > max_bytes // 2:
        facts, always_kept = _with_few_lines(facts), _with_few_lines(always_kept)
    bytes_left = max_bytes - len(_encode(Result(always_kept)))
    if bytes_left < 0:
        return _without_hosts(facts)
    kept_ids: set[int] = set()
    for item in _items_in_turns(facts):
        bytes_left -= len(_json(asdict(item))) + 1  # and a comma
        if bytes_left < 0:
            break
        kept_ids.add(id(item))
    shorter = replace(
        facts,
        hosts=tuple(
            replace(
                host,
                services=tuple(service for service in host.services if id(service) in kept_ids),
            )
            for host in facts.hosts
        ),
        endpoints=tuple(e for e in facts.endpoints if id(e) in kept_ids or e.matched_printer_ids),
    )
    limitations = (*shorter.limitations, *_describe_cut(facts, shorter))
    return replace(shorter, limitations=limitations, truncated=True)


def _items_in_turns(facts: NetworkFacts) -> list[Service | Endpoint]:
    """Return every device's first service and endpoint, then every device's second, and so on."""
    items_by_owner: list[tuple[tuple[str, type], Service | Endpoint]] = [
        ((_device_id(host), Service), service) for host in facts.hosts for service in host.services
    ]
    endpoints = (endpoint for endpoint in facts.endpoints if not endpoint.matched_printer_ids)
    items_by_owner += (((_device_id(endpoint), Endpoint), endpoint) for endpoint in endpoints)
    return in_turns(items_by_owner)


def _with_few_lines(facts: NetworkFacts) -> NetworkFacts:
    """Leave out most failures and limitations."""
    cut_count = max(0, len(facts.failures) - _LINES_KEPT)
    cut_count += max(0, len(facts.limitations) - _LINES_KEPT)
    if not cut_count:
        return facts
    text = f"failures and limitations that are left out, because there are too many: {cut_count:,}"
    return replace(
        facts,
        failures=facts.failures[:_LINES_KEPT],
        limitations=(*facts.limitations[:_LINES_KEPT], text),
    )


def _device_id(host: Host | Endpoint) -> str:
    """Return the MAC of the device at an address, or the address if the MAC is not known."""
    return host.mac_address or host.address


def _describe_cut(all_facts: NetworkFacts, kept_facts: NetworkFacts) -> list[str]:
    """Return a line for each device that lost services or endpoints, the largest loss first."""
    before, after = _counts(all_facts), _counts(kept_facts)
    cut = sorted(before - after, key=lambda device: after[device] - before[device])
    names = {e.mac_address: f"{e.address} (MAC {e.mac_address})" for e in all_facts.endpoints}
    names |= {h.mac_address: f"{h.address} (MAC {h.mac_address})" for h in all_facts.hosts}
    lines = [
        f"{names.get(device, device)}: {after[device]:,} of {before[device]:,} services and ports"
        " are listed, because there are too many"
        for device in cut[:_LINES_KEPT]
    ]
    if len(cut) > _LINES_KEPT:
        lines.append(f"further devices whose lists are cut: {len(cut) - _LINES_KEPT:,}")
    return lines


def _counts(facts: NetworkFacts) -> Counter[str]:
    """Return the number of services and endpoints of each device."""
    counts = Counter(map(_device_id, facts.endpoints))
    for host in facts.hosts:
        counts[_device_id(host)] += len(host.services)
    return counts


def _without_hosts(facts: NetworkFacts) -> NetworkFacts:
    """Leave out all hosts, and all endpoints but those of this machine's printers.

    Used for facts that are too long even without services.
    """
    printer_endpoints = [e for e in facts.endpoints if e.matched_printer_ids]
    text = (
        f"the facts are too long: {len(facts.hosts):,} hosts and most of"
        f" {len(facts.endpoints):,} endpoints are left out"
    )
    return replace(
        facts,
        hosts=(),
        endpoints=tuple(printer_endpoints[:_PRINTER_ENDPOINTS_KEPT]),
        limitations=(*facts.limitations, text),
        truncated=True,
    )


# ---------------------------------------------------------------------------- application


def _cut_application(facts: ApplicationFacts, max_bytes: int) -> ApplicationFacts:
    """Remove the value of the longest field again and again until the facts fit.

    If only short fields remain, interfaces and peripherals are left out.
    """
    removed_keys: list[str] = []
    while len(_encode(Result(facts))) > max_bytes:
        fields = [*facts.fields, *facts.browser_fields]
        fields += (field for group in facts.interfaces for field in group.fields)
        fields += (field for group in facts.peripherals for field in group.fields)
        longest = max(fields, key=_length, default=None)
        if longest is None or _length(longest) < TEXT_MAX:
            facts = _without_groups(facts)
            break
        removed_keys.append(longest.key)
        facts = _without_value(facts, longest)
    lines = [f"{key} was left out: it is too long" for key in removed_keys[:_LINES_KEPT]]
    return replace(facts, limitations=(*facts.limitations, *lines), truncated=True)


def _length(field: Field) -> int:
    return len(_json(field.value)) if field.value is not None else 0


def _without_value(facts: ApplicationFacts, field: Field) -> ApplicationFacts:
    reason = f"its value of {_length(field):,} bytes is too long"
    empty = replace(field, status="collection-failed", value=None, reason=reason)

    def with_empty(fields: Sequence[Field]) -> tuple[Field, ...]:
        return tuple(empty if other is field else other for other in fields)

    return replace(
        facts,
        fields=with_empty(facts.fields),
        browser_fields=with_empty(facts.browser_fields),
        interfaces=tuple(replace(g, fields=with_empty(g.fields)) for g in facts.interfaces),
        peripherals=tuple(replace(g, fields=with_empty(g.fields)) for g in facts.peripherals),
    )


def _without_groups(facts: ApplicationFacts) -> ApplicationFacts:
    """Leave out interfaces and peripherals, and most failures and limitations.

    Used for facts with too many short fields.
    """
    text = (
        f"the facts are too long: {len(facts.interfaces):,} interfaces and"
        f" {len(facts.peripherals):,} peripherals are left out"
    )
    return replace(
        facts,
        interfaces=(),
        peripherals=(),
        failures=facts.failures[:_LINES_KEPT],
        limitations=(*facts.limitations[:_LINES_KEPT], text),
    )


def _encode(event: Event) -> bytes:
    return _json(asdict(event)).encode() + b"\n"


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)
