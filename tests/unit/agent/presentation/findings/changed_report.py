"""Creates the report of a healthy machine in which some values are changed."""

from collections.abc import Mapping
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from agent.rules.connectivity.fields import history_fields
from agent.wire.codec import validate
from agent.wire.payloads.application import ApplicationPayload, BrowserField, SnapshotField
from agent.wire.payloads.history import History
from agent.wire.vocabulary import FieldStatus
from tests.fixtures.healthy import healthy
from tests.unit.agent.histories import NOW

Value = str | bool | int | float | tuple[str, ...]


@dataclass(frozen=True)
class Missing:
    """A field without a value, and the reason why it has none."""

    status: FieldStatus
    reason: str


Changes = Mapping[str, Value | Missing]
"""The changed values by key. A field of an interface or peripheral is written as
``"<id> <key>"``, for example ``"eth0 interface.up"``.
"""


def report_with(changes: Changes, name: str = "linux-till") -> ApplicationPayload:
    """Return the report of the machine ``name`` with ``changes``.

    Fields that the report does not have are added. Only a browser field that the report does not
    have raises AssertionError.
    """
    payload = healthy(name)
    owners = [link.id for link in payload.snapshot.interfaces]
    owners += [peripheral.id for peripheral in payload.snapshot.peripherals]
    remaining = dict(changes)

    def with_changes(owner: str, fields: tuple[SnapshotField, ...]) -> tuple[SnapshotField, ...]:
        prefix = f"{owner} " if owner else ""
        fields_by_key = {field.key: field for field in fields}
        for key in [key for key in remaining if key.startswith(prefix)]:
            field_key = key.removeprefix(prefix)
            if owner or not key.startswith((*(f"{other} " for other in owners), "browser.")):
                fields_by_key[field_key] = field_of(field_key, remaining.pop(key))
        return tuple(fields_by_key.values())

    def changed_browser_field(field: BrowserField) -> BrowserField:
        if field.key not in remaining:
            return field
        return validate(as_plain(field.key, remaining.pop(field.key)), BrowserField)

    snapshot = payload.snapshot
    links = [link.model_copy(update={"fields": with_changes(link.id, link.fields)})
             for link in snapshot.interfaces]  # fmt: skip
    peripherals = [
        peripheral.model_copy(update={"fields": with_changes(peripheral.id, peripheral.fields)})
        for peripheral in snapshot.peripherals
    ]
    changed_snapshot = snapshot.model_copy(
        update={
            "interfaces": tuple(links),
            "peripherals": tuple(peripherals),
            "fields": with_changes("", snapshot.fields),
        }
    )
    browser = tuple(map(changed_browser_field, payload.browser_fields))
    assert not remaining, remaining
    return payload.model_copy(update={"snapshot": changed_snapshot, "browser_fields": browser})


def field_of(key: str, value: Value | Missing) -> SnapshotField:
    return validate(as_plain(key, value), SnapshotField)


def as_plain(key: str, value: Value | Missing) -> dict[str, object]:
    """Return the JSON object of a field."""
    if isinstance(value, Missing):
        return {"key": key, "source": "x", "status": value.status, "reason": value.reason}
    reported = list(value) if isinstance(value, tuple) else value
    return {"key": key, "source": "x", "status": "available", "value": reported}


def with_record(history: History, more: Changes | None = None) -> ApplicationPayload:
    """Return the report of a machine in Prague that has recorded ``history``.

    ``more`` are further changed values.
    """
    fields = {
        field.key: Missing(field.status, field.reason or "") if field.value is None else field.value
        for field in history_fields(history, NOW, ZoneInfo("Europe/Prague"))
    }
    payload = report_with({**fields, **(more or {})})
    snapshot = payload.snapshot.model_copy(update={"collected_at": NOW.isoformat()})
    return payload.model_copy(update={"snapshot": snapshot})
