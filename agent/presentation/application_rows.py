"""The rows of an application snapshot for users, grouped by the first part of each key."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from agent.presentation.findings.snapshot_facts import all_fields
from agent.presentation.humanize import counted, do_not_apply, format_value
from agent.presentation.labels import OBJECT_LABELS, field_label
from agent.presentation.plain_text import plain, shorten
from agent.presentation.severity import Severity
from agent.wire.payloads.application import (
    ApplicationPayload,
    BrowserField,
    Peripheral,
    SnapshotField,
)

_TITLES: Final = {
    "os": "Operating system",
    "hardware": "Hardware",
    "memory": "Memory",
    "cpu": "Processor",
    "disk": "Disks",
    "display": "Display",
    "network": "Network",
    "process": "Programs",
    "device": "Watched devices",
    "service": "Services",
    "printqueue": "Print queues",
    "peripherals": "USB and Bluetooth",
    "kiosk": "Kiosk page",
    "history": "Record of the connection",
    "agent": "Agent",
}
_RECORD_LINES: Final = frozenset({"history.hours", "history.recent", "history.events"})
"""Lists of the record of the connection. They get no rows here: `connectivity.view` shows them."""
_ABSENCES: Final[dict[str, tuple[str, Severity]]] = {
    "collection-failed": ("failed", "bad"),
    "permission-denied": ("permission denied", "warn"),
    "unsupported": ("not supported here", "muted"),
    "not-applicable": ("does not apply", "muted"),
}
"""For each status of a missing fact: the status as text for users, and its severity.
`absence_rows` returns its rows in the order of this table."""


@dataclass(frozen=True, slots=True)
class FieldRow:
    label: str
    value: str
    source: str


@dataclass(frozen=True, slots=True)
class Section:
    """The fields of one object in a group, such as a disk or a program.

    The section with the fields of the group itself has an empty title.
    """

    title: str
    rows: tuple[FieldRow, ...]


@dataclass(frozen=True, slots=True)
class Group:
    title: str
    sections: tuple[Section, ...]


@dataclass(frozen=True, slots=True)
class AbsenceRow:
    """The missing facts that have the same status and reason.

    ``status`` is a text of `_ABSENCES`. ``facts`` lists the keys of these facts. Keys with a common
    prefix share one entry: ``browser.permission: camera, microphone``. ``count`` is the number of
    keys.
    """

    status: str
    severity: Severity
    reason: str
    facts: tuple[str, ...]
    count: int


def snapshot_groups(payload: ApplicationPayload) -> tuple[Group, ...]:
    """Return the available fields by group. The groups of `_TITLES` come first, in its order."""
    by_prefix: dict[str, list[SnapshotField]] = {prefix: [] for prefix in _TITLES}
    for field in payload.snapshot.fields:
        if field.status == "available" and field.key not in _RECORD_LINES:
            by_prefix.setdefault(field.key.partition(".")[0], []).append(field)
    return tuple(_group(prefix, fields) for prefix, fields in by_prefix.items() if fields)


def interface_and_peripheral_groups(payload: ApplicationPayload) -> tuple[Group, ...]:
    """Return the interfaces, the peripherals and the kiosk's browser; only groups with content."""
    snapshot = payload.snapshot
    browser = tuple(_row(field) for field in payload.browser_fields if field.value is not None)
    groups = {
        "Network interfaces": [_section(link.id, link.fields) for link in snapshot.interfaces],
        "Peripherals": [
            _section(_peripheral_title(peripheral), peripheral.fields)
            for peripheral in snapshot.peripherals
        ],
        "Kiosk browser": [Section("", browser)] if browser else [],
    }
    return tuple(Group(title, tuple(sections)) for title, sections in groups.items() if sections)


def absence_rows(payload: ApplicationPayload) -> tuple[AbsenceRow, ...]:
    """Return one row for each status and reason of missing facts, failures first.

    Facts that this machine does not have or support have the severity "muted" and come last.
    """
    absent: dict[tuple[str, str], list[str]] = {}
    for owner, field in all_fields(payload):
        if field.status != "available":
            reason = plain(field.reason or "") or "No reason was given."
            name = shorten(f"{owner} {field.key}".strip())
            absent.setdefault((field.status, reason), []).append(name)
    order = tuple(_ABSENCES)
    rows = sorted(absent.items(), key=lambda item: order.index(item[0][0]))
    return tuple(
        AbsenceRow(*_ABSENCES[status], reason=reason, facts=_by_prefix(keys), count=len(keys))
        for (status, reason), keys in rows
    )


def inapplicable_note(rows: Iterable[AbsenceRow]) -> str:
    """Return how many facts of the rows do not apply; "" if all of them apply."""
    count = sum(row.count for row in rows if row.severity == "muted")
    return f"{counted(count, 'fact')} {do_not_apply(count)} to this machine" if count else ""


def _by_prefix(keys: list[str]) -> tuple[str, ...]:
    """Return the entries of `AbsenceRow.facts`."""
    keys_by_prefix: dict[str, list[str]] = {}
    for key in keys:
        keys_by_prefix.setdefault(key.rpartition(".")[0], []).append(key)
    return tuple(
        members[0]
        if len(members) == 1
        else f"{prefix}: " + ", ".join(key.rpartition(".")[2] for key in members)
        for prefix, members in keys_by_prefix.items()
    )


def snapshot_limitation_lines(payload: ApplicationPayload) -> tuple[str, ...]:
    lines = [*payload.limitations, *payload.snapshot.limitations]
    if payload.snapshot.truncated:
        lines.append("The snapshot was cut at its limits: it does not contain everything.")
    return tuple(dict.fromkeys(plain(line) for line in lines))


def _group(prefix: str, fields: list[SnapshotField]) -> Group:
    """Create a group with a section for each object in it, such as each disk or each program.

    The middle of a key names the object: ``disk./home.sizeBytes`` belongs to ``/home``. A key
    without a middle part belongs to the group itself. If an object has only one field, it gets no
    section, and this field becomes a row of the group itself.
    """
    fields_by_object: dict[str, list[SnapshotField]] = {"": []}
    for field in fields:
        object_name = field.key.partition(".")[2].rpartition(".")[0]
        fields_by_object.setdefault(object_name, []).append(field)
    rows_of_group = [_row(field) for field in fields_by_object.pop("")]
    sections: list[Section] = []
    for name, object_fields in fields_by_object.items():
        label = OBJECT_LABELS.get(f"{prefix}.{name}") or _object_title(name)
        if len(object_fields) == 1:
            rows_of_group.append(_row(object_fields[0], f"{label}: "))
        else:
            sections.append(_section(label, object_fields))
    if rows_of_group:
        sections.insert(0, Section("", tuple(rows_of_group)))
    title = _TITLES.get(prefix) or shorten(prefix[:1].upper() + prefix[1:]) or "Other"
    return Group(title, tuple(sections))


def _object_title(name: str) -> str:
    """Return the title of an object: ``core 0`` for ``core.0``. A path keeps its dots."""
    is_path = name.startswith("/") or "\\" in name
    return shorten(name if is_path else name.replace(".", " "))


def _peripheral_title(peripheral: Peripheral) -> str:
    """Return the name and id of a peripheral, ``TM-T20III (usb-1-3)``, or only its id."""
    keys = ("usb.product", "bluetooth.name", "usb.vendor")
    texts = {field.key: field.value for field in peripheral.fields if isinstance(field.value, str)}
    name = next((texts[key] for key in keys if texts.get(key)), "")
    return f"{shorten(name)} ({peripheral.id})" if name else peripheral.id


def _section(title: str, fields: Iterable[SnapshotField]) -> Section:
    rows = tuple(_row(field) for field in fields if field.status == "available")
    return Section(shorten(title), rows)


def _row(field: SnapshotField | BrowserField, label_prefix: str = "") -> FieldRow:
    label = field_label(field.key)
    if label_prefix:
        label = label_prefix + label[:1].lower() + label[1:]
    return FieldRow(
        label=shorten(label),
        value="" if field.value is None else format_value(field.key, field.value),
        source=shorten(field.source),
    )
