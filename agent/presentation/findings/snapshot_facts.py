"""The facts of an application snapshot by their keys, as the rules look at them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from agent.presentation.humanize import moment
from agent.wire.payloads.application import ApplicationPayload, BrowserField, SnapshotField

_LARGEST: Final = 1e18
"""No fact of a machine is larger; a float, and so arithmetic, holds it."""


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of one thing; a value of another type than asked for counts as missing."""

    by_key: Mapping[str, SnapshotField | BrowserField]

    def number(self, key: str) -> float | None:
        value = self._value(key)
        if not isinstance(value, int | float) or isinstance(value, bool):
            return None
        return float(value) if abs(value) < _LARGEST else None

    def flag(self, key: str) -> bool | None:
        value = self._value(key)
        return value if isinstance(value, bool) else None

    def text(self, key: str) -> str:
        """Return a text; "" where there is none."""
        value = self._value(key)
        return value if isinstance(value, str) else ""

    def texts(self, key: str) -> tuple[str, ...]:
        value = self._value(key)
        return value if isinstance(value, tuple) else ()

    def is_known(self, key: str) -> bool:
        return self._value(key) is not None

    def why_failed(self, key: str) -> str | None:
        """Return why reading it broke; None where it did not."""
        field = self.by_key.get(key)
        if field is None or field.status != "collection-failed":
            return None
        return field.reason or "no reason was given"

    def is_absent(self, key: str) -> bool:
        """Tell whether there is no such thing on this machine."""
        field = self.by_key.get(key)
        return field is not None and field.status == "not-applicable"

    def names(self, group: str, aspect: str) -> Iterator[str]:
        """Yield each ``NAME`` of the keys ``group.NAME.aspect``, in the snapshot's order."""
        before, after = f"{group}.", f".{aspect}"
        for key in self.by_key:
            if key.startswith(before) and key.endswith(after) and len(key) > len(before + after):
                yield key[len(before) : -len(after)]

    def _value(self, key: str) -> object:
        field = self.by_key.get(key)
        return field.value if field is not None and field.status == "available" else None


@dataclass(frozen=True, slots=True)
class SnapshotFacts:
    """``machine`` has the fields of snapshot and browser, ``taken_at`` when they were read."""

    machine: Fields
    interfaces: tuple[tuple[str, Fields], ...]
    peripherals: tuple[tuple[str, Fields], ...]
    taken_at: datetime | None


def facts_of(payload: ApplicationPayload) -> SnapshotFacts:
    snapshot = payload.snapshot
    return SnapshotFacts(
        machine=Fields(
            {f.key: f for f in snapshot.fields} | {f.key: f for f in payload.browser_fields}
        ),
        interfaces=tuple((link.id, _fields(link.fields)) for link in snapshot.interfaces),
        peripherals=tuple((thing.id, _fields(thing.fields)) for thing in snapshot.peripherals),
        taken_at=moment(snapshot.collected_at),
    )


def _fields(fields: tuple[SnapshotField, ...]) -> Fields:
    return Fields({field.key: field for field in fields})
