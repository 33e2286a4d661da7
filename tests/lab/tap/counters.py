"""The counters of the simulated LAN, to and from JSON."""

from collections import Counter
from dataclasses import fields

from controlplane.demo.lan.counters import LanCounters


def counters_to_json(counters: LanCounters) -> dict[str, object]:
    # Not asdict(): before Python 3.12 it breaks on Counter.
    return {
        entry.name: dict(value) if isinstance(value, Counter) else value
        for entry in fields(counters)
        for value in (getattr(counters, entry.name),)
    }


def counters_from_json(raw: dict[str, object]) -> LanCounters:
    fields = dict(raw)
    for name in ("payload_bytes", "syns_by_port"):
        table = fields[name]
        assert isinstance(table, dict)
        fields[name] = Counter({int(port): int(count) for port, count in table.items()})
    return LanCounters(**fields)  # type: ignore[arg-type]
