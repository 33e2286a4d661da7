"""The differences between two application snapshots."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain
from typing import Final

from agent.presentation.changes.application_lists import list_changes
from agent.presentation.changes.change import Change, Changes, change, covers, most_severe_first
from agent.presentation.changes.findings import Match, WasChecked, finding_changes
from agent.presentation.changes.history import incident_changes
from agent.presentation.findings.disks import DISK_FILLING, DISK_FULL
from agent.presentation.findings.findings import APPLICATION_RULES
from agent.presentation.findings.snapshot_facts import Fields, SnapshotFacts, facts_of
from agent.presentation.humanize import format_bytes, format_timestamp, parse_timestamp, percent
from agent.presentation.plain_text import shorten
from agent.presentation.severity import Severity
from agent.wire.payloads.application import ApplicationPayload, BrowserField, SnapshotField

# Thresholds for the figures that this module compares. Most figures that a rule checks, such as the
# strength of the Wi-Fi, are not compared here. When such a figure crosses the threshold of its
# rule, the new or resolved finding is reported as a change.
DISK_LEVELS: Final = (0.8, DISK_FILLING, DISK_FULL)
"""Levels of a disk's used share. Crossing a level is a change if the used share changed by at least
`DISK_MOVED`."""
DISK_MOVED: Final = 0.02
"""Minimum change of a disk's used share that is reported. Without this minimum, a disk whose use
varies around a level would be reported again and again."""
BOOT_MOVED_S: Final = 60.0
"""Minimum difference between two start times of the machine or the agent, in seconds. Start times
are computed from the machine's clock, which may have been corrected between the two reports."""
STARTED_MOVED_S: Final = 10.0
"""Minimum difference between two start times of a program or service, in seconds. The system
reports these times, so a small tolerance is enough."""
MEMORY_MOVED: Final = 0.1
"""Minimum relative change of the installed memory. A smaller one may come from a new kernel
version, which reserves a different amount of memory."""
RENEWED_S: Final = 86400.0
"""Minimum change of a certificate's expiry, in seconds. A renewal moves the expiry by weeks."""

_BROWSER: Final = re.compile(r"(?:Edg|Chrome|Chromium|Firefox)/[\d.]+")
_PLACEHOLDER: Final = re.compile(r"<\w+>")
_KEY: Final = re.compile(r"[a-z]+(?:\.(?:\w+|<\w+>))+")
"""A key in the text `Rule.fields`. A key may contain a placeholder, such as ``<mount>``."""


def _browser(fields: Fields, key: str) -> str:
    # A user agent can name several browsers. The user agent of Edge, for example, names Chrome as
    # well. The last name is the name of the browser itself.
    names = _BROWSER.findall(fields.text(key))
    return names[-1].replace("/", " ") if names else ""


@dataclass(frozen=True, slots=True)
class _Text:
    """A text field of the machine. Each new value is reported as a change.

    ``read`` returns the text to compare, from the fields of the machine and ``key``.
    """

    key: str
    label: str
    severity: Severity = "muted"
    read: Callable[[Fields, str], str] = Fields.text
    sentence: str = "{label} is {new}; it was {old}."


_TEXTS: Final = (
    _Text("os.timeZone", "The time zone", "warn"),
    _Text("hardware.model", "The model of the machine", "warn"),
    _Text("network.proxy", "The web proxy", "warn"),
    _Text("network.service.tlsIssuer", "The issuer of the service's certificate", "warn"),
    _Text("os.name", "The operating system"),
    _Text("os.version", "The version of the operating system"),
    _Text("os.build", "The build of the operating system"),
    _Text("os.kernel", "The kernel"),
    _Text("hardware.firmware", "The firmware"),
    _Text("agent.version", "The version of the agent"),
    _Text("browser.userAgent", "The browser of the kiosk", read=_browser),
    _Text("agent.configDigest", "The configuration of the agent", sentence="{label} has changed."),
)


def application_changes(before: ApplicationPayload, after: ApplicationPayload) -> Changes:
    earlier, later = facts_of(before), facts_of(after)
    changes_in_lists, not_compared = list_changes(earlier, later)
    changes = [
        *_restarts(earlier, later),
        *(c for group in _GROUPS for c in _state_changes(earlier.machine, later.machine, group)),
        *changes_in_lists,
        *_texts(earlier.machine, later.machine),
        *_figures(earlier.machine, later.machine),
        *incident_changes(earlier, later),
    ]
    was_checked = _coverage(earlier, later), _coverage(later, earlier)
    changes_in_findings = finding_changes(APPLICATION_RULES, (earlier, later), was_checked)
    # If a finding about a full or nearly full disk changed, the disk's use is not reported as well.
    reported_disks = {
        change_.subject for change_ in changes_in_findings if change_.code == "finding disk-full"
    }
    disks = _disks(earlier.machine, later.machine)
    changes += (disk_use for disk_use in disks if disk_use.subject not in reported_disks)
    changes += changes_in_findings
    return Changes(before.started_at, most_severe_first(changes), not_compared)


def has_moved(before: float, after: float, by: float) -> bool:
    """Return whether a value changed by at least ``by``."""
    # The tolerance is for rounding: 0.82 - 0.80 is not exactly 0.02.
    return abs(after - before) >= by - 1e-9


# ---------------------------------------------------------------------------- starts


def _restarts(earlier: SnapshotFacts, later: SnapshotFacts) -> Iterator[Change]:
    boots = tuple(parse_timestamp(facts.machine.text("os.bootTime")) for facts in (earlier, later))
    machine = tuple(_restart_change("machine-start", "", "The machine", boots, BOOT_MOVED_S))
    starts = _agent_start(earlier), _agent_start(later)
    # A restart of the machine also restarts the agent. Only the machine's restart is reported then.
    yield from machine or _restart_change("agent-start", "", "The agent", starts, BOOT_MOVED_S)


def _agent_start(facts: SnapshotFacts) -> datetime | None:
    uptime_s = facts.machine.number("agent.uptimeSeconds")
    if uptime_s is None or facts.taken_at is None:
        return None
    try:
        return facts.taken_at - timedelta(seconds=uptime_s)
    except OverflowError:
        return None


def _program_state(fields: Fields, name: str) -> str:
    is_running = fields.flag(f"process.{name}.running")
    return {None: "", True: "running", False: "not running"}[is_running]


def _service_state(fields: Fields, role: str) -> str:
    return fields.text(f"service.{role}.state").partition(" ")[0]


@dataclass(frozen=True, slots=True)
class _Group:
    """How to read the states and the start times of all programs, or of all services.

    Their fields have keys such as ``process.NAME.startedAt``.

    Args:
        label: The code of a change, and the word for a group member in the change's sentence.
        prefix: The first part of the keys.
        aspect: The last part of the key of a field that each member of the group has.
        start_aspect: The last part of the key of the start time.
        state: Returns the state of the member with the given name; "" if it is unknown.
        severities: The severity of a change, by the new state. Other changes are "muted".
    """

    label: str
    prefix: str
    aspect: str
    start_aspect: str
    state: Callable[[Fields, str], str]
    severities: Mapping[str, Severity]


_PROGRAM_SEVERITIES: Final[Mapping[str, Severity]] = {"running": "good", "not running": "bad"}
_GROUPS: Final = (
    _Group("program", "process", "running", "startedAt", _program_state, _PROGRAM_SEVERITIES),
    _Group("service", "service", "state", "since", _service_state, {}),
)


def _state_changes(earlier: Fields, later: Fields, group: _Group) -> Iterator[Change]:
    names = (fields.names(group.prefix, group.aspect) for fields in (earlier, later))
    for name in dict.fromkeys(chain(*names)):
        key = f"{group.prefix}.{name}"
        label = f"The {group.label} {shorten(later.text(f'{key}.name') or name)}"
        old, new = group.state(earlier, name), group.state(later, name)
        if old and new and old != new:
            severity = group.severities.get(new, "muted")
            sentence = f"{label} is {new}; it was {old}."
            yield change(group.label, name, (old, new), severity, sentence)
        elif old and new and new != "not running":
            starts = tuple(
                parse_timestamp(fields.text(f"{key}.{group.start_aspect}"))
                for fields in (earlier, later)
            )
            yield from _restart_change(group.label, name, label, starts, STARTED_MOVED_S)


def _restart_change(
    code: str, subject: str, label: str, starts: tuple[datetime | None, ...], by_s: float
) -> Iterator[Change]:
    """Yield a change if the two start times of a subject differ by at least ``by_s``."""
    if _differ(starts, by_s):
        old, new = (started_at.isoformat() if started_at else "" for started_at in starts)
        sentence = f"{label} was restarted: it has been running since {format_timestamp(new)}."
        yield change(code, subject, (old, new), "muted", sentence)


def _differ(times: tuple[datetime | None, ...], by_s: float) -> bool:
    """Return whether both times are known, and differ by at least ``by_s``."""
    first, second = times
    if first is None or second is None:
        return False
    return has_moved(first.timestamp(), second.timestamp(), by_s)


# ---------------------------------------------------------------------------- texts and figures


def _texts(earlier: Fields, later: Fields) -> Iterator[Change]:
    for row in _TEXTS:
        old, new = (shorten(row.read(fields, row.key)) for fields in (earlier, later))
        if old and new and old != new:
            sentence = row.sentence.format(label=row.label, old=old, new=new)
            yield change(row.key, "", (old, new), row.severity, sentence)


def _disks(earlier: Fields, later: Fields) -> Iterator[Change]:
    for mount in earlier.names("disk", "usedFraction"):
        before, after = (fields.number(f"disk.{mount}.usedFraction") for fields in (earlier, later))
        if before is None or after is None or not has_moved(before, after, DISK_MOVED):
            continue
        old_level, new_level = (
            sum(used >= level for level in DISK_LEVELS) for used in (before, after)
        )
        if old_level != new_level:
            old, new = percent(before), percent(after)
            sentence = f"The disk {shorten(mount)} is {new} full; it was {old}."
            severity: Severity = "warn" if new_level > old_level else "good"
            yield change("disk-use", mount, (old, new), severity, sentence)


def _figures(earlier: Fields, later: Fields) -> Iterator[Change]:
    before, after = (fields.number("hardware.memoryBytes") or 0 for fields in (earlier, later))
    if before and after and has_moved(before, after, MEMORY_MOVED * max(before, after)):
        old, new = format_bytes(before), format_bytes(after)
        severity: Severity = "warn" if after < before else "muted"
        sentence = f"The installed memory is {new}; it was {old}."
        yield change("hardware.memoryBytes", "", (old, new), severity, sentence)
    key = "network.service.tlsExpiresAt"
    texts = earlier.text(key), later.text(key)
    if _differ(tuple(map(parse_timestamp, texts)), RENEWED_S):
        sentence = f"The service's certificate is valid until {format_timestamp(texts[1])}."
        yield change(key, "", texts, "muted", sentence)


# ---------------------------------------------------------------------------- coverage


def _coverage(one: SnapshotFacts, other: SnapshotFacts) -> WasChecked[SnapshotFacts]:
    """Return a function that returns whether ``one`` has the fields for a finding of ``other``.

    Without the fields, it is unknown whether the problem existed at the time of ``one``.
    """
    is_whole = not one.payload.snapshot.truncated and covers(one.payload, other.payload)

    def was_checked(match: Match[SnapshotFacts]) -> bool:
        # The subject can be ``NAME (MODEL)``, for example for a drive. Keys contain only the name.
        name = match.subject.partition(" (")[0]
        fields = _fields_of(one, name)
        for pattern in _KEY.findall(match.rule.fields):
            matching = _matching(fields, pattern, name)
            if not all(field.status in {"available", "not-applicable"} for field in matching):
                return False
            if not matching and not is_whole:
                return False
        return True

    return was_checked


def _fields_of(facts: SnapshotFacts, name: str) -> dict[str, SnapshotField | BrowserField]:
    """Return the fields of the machine by key, and of interfaces and peripherals by ``ID KEY``.

    If ``name`` is the id of an interface or peripheral, the fields of all other interfaces and
    peripherals are left out.
    """
    owners = (*facts.interfaces, *facts.peripherals)
    owners_with_name = [owner for owner in owners if owner[0] == name] or owners
    return dict(facts.machine.by_key) | {
        f"{owner} {key}": field
        for owner, fields in owners_with_name
        for key, field in fields.by_key.items()
    }


def _matching(
    fields: dict[str, SnapshotField | BrowserField], pattern: str, name: str
) -> list[SnapshotField | BrowserField]:
    """Return the field whose key is ``pattern`` with ``name`` in place of its placeholder.

    For the pattern ``disk.<mount>.sizeBytes`` and the name ``/home``, the key is
    ``disk./home.sizeBytes``. If there is no such field, return the fields of all objects that
    ``pattern`` matches.
    """
    exact_match = fields.get(_PLACEHOLDER.sub(lambda _: name, pattern))
    if exact_match is not None:
        return [exact_match]
    before, _, after = pattern.partition("<")
    after = after.partition(">")[2]
    return [
        field
        for key, field in fields.items()
        if (after and key.startswith(before) and key.endswith(after))
        or key.endswith(f" {pattern}")  # a field of an interface or peripheral
    ]
