"""The facts of an application snapshot by their keys."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from agent.presentation.humanize import parse_timestamp
from agent.wire.payloads.application import ApplicationPayload, BrowserField, SnapshotField

_LARGEST: Final = 1e18
"""Numbers of this size or more count as missing. Very large integers do not fit into a float."""


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of the machine, an interface or a peripheral.

    A value whose type is not the requested one counts as missing.
    """

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
        """Return a text; "" if there is none."""
        value = self._value(key)
        return value if isinstance(value, str) else ""

    def texts(self, key: str) -> tuple[str, ...]:
        value = self._value(key)
        return value if isinstance(value, tuple) else ()

    def is_known(self, key: str) -> bool:
        return self._value(key) is not None

    def why_failed(self, key: str) -> str | None:
        """Return the reason why the field could not be read; None if reading did not fail."""
        field = self.by_key.get(key)
        if field is None or field.status != "collection-failed":
            return None
        return field.reason or "no reason was given"

    def is_absent(self, key: str) -> bool:
        """Return whether the field does not apply, such as the charge of a missing battery."""
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
    """The facts of the snapshot in ``payload``, taken at ``taken_at``.

    ``machine`` has the fields of the machine and of its browser. ``interfaces`` and ``peripherals``
    are pairs of an id and the fields of the interface or peripheral with this id.
    """

    payload: ApplicationPayload
    machine: Fields
    interfaces: tuple[tuple[str, Fields], ...]
    peripherals: tuple[tuple[str, Fields], ...]
    taken_at: datetime | None


def all_fields(payload: ApplicationPayload) -> Iterator[tuple[str, SnapshotField | BrowserField]]:
    """Yield pairs of an id and a field.

    The id is that of the interface or peripheral that the field describes. It is "" for the fields
    of the machine and its browser.
    """
    snapshot = payload.snapshot
    yield from (("", field) for field in snapshot.fields)
    for link in snapshot.interfaces:
        yield from ((link.id, field) for field in link.fields)
    for peripheral in snapshot.peripherals:
        yield from ((peripheral.id, field) for field in peripheral.fields)
    yield from (("", field) for field in payload.browser_fields)


def facts_of(payload: ApplicationPayload) -> SnapshotFacts:
    snapshot = payload.snapshot
    return SnapshotFacts(
        payload=payload,
        machine=_fields((*snapshot.fields, *payload.browser_fields)),
        interfaces=tuple((link.id, _fields(link.fields)) for link in snapshot.interfaces),
        peripherals=tuple((each.id, _fields(each.fields)) for each in snapshot.peripherals),
        taken_at=parse_timestamp(snapshot.collected_at),
    )


def _fields(fields: tuple[SnapshotField | BrowserField, ...]) -> Fields:
    return Fields({field.key: field for field in fields})
