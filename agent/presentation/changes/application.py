"""What changed between two application snapshots: versions, starts, programs, disks, figures."""

import re
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Final

from agent.presentation.changes.application_lists import list_changes
from agent.presentation.changes.change import Change, Changes, change, worst_first
from agent.presentation.changes.coverage import looked_as_far
from agent.presentation.changes.findings import Seen, finding_changes
from agent.presentation.changes.thresholds import (
    BOOT_MOVED_S,
    MEMORY_MOVED,
    RENEWED_S,
    STARTED_MOVED_S,
    disk_level,
    has_grown_or_shrunk,
    has_moved,
    has_passed_level,
)
from agent.presentation.findings.findings import APPLICATION_RULES
from agent.presentation.findings.snapshot_facts import Fields, SnapshotFacts, facts_of
from agent.presentation.humanize import bytes_in_words, moment, moment_in_words, percent
from agent.presentation.plain_text import NAME_LENGTH, shorten
from agent.presentation.tone import Tone
from agent.wire.payloads.application import ApplicationPayload, BrowserField, SnapshotField

_TEXTS: Final[tuple[tuple[str, str, Tone], ...]] = (
    ("os.timeZone", "The time zone", "warn"),
    ("hardware.model", "The model of the machine", "warn"),
    ("network.proxy", "The web proxy", "warn"),
    ("network.service.tlsIssuer", "The issuer of the service's certificate", "warn"),
    ("os.name", "The operating system", "muted"),
    ("os.version", "The version of the operating system", "muted"),
    ("os.build", "The build of the operating system", "muted"),
    ("os.kernel", "The kernel", "muted"),
    ("hardware.firmware", "The firmware", "muted"),
    ("agent.version", "The version of the agent", "muted"),
)
"""Texts of which each other value is a change, what they are called, and how grave that is."""
_BROWSER: Final = re.compile(r"(?:Edg|Chrome|Chromium|Firefox)/[\d.]+")
_NAMED: Final = re.compile(r"<\w+>")
_KEY: Final = re.compile(r"[a-z]+(?:\.(?:\w+|<\w+>))+")


def application_changes(before: ApplicationPayload, after: ApplicationPayload) -> Changes:
    was, now = facts_of(before), facts_of(after)
    of_lists, lines = list_changes((before, was), (after, now))
    looked = _looked(before, was, after), _looked(after, now, before)
    changes = [
        *_restarts(was, now),
        *_programs(was.machine, now.machine),
        *_services(was.machine, now.machine),
        *of_lists,
        *_texts(was.machine, now.machine),
        *_figures(was.machine, now.machine),
    ]
    of_rules = finding_changes(APPLICATION_RULES, (was, now), looked)
    told = {each.thing for each in of_rules if each.code == "finding disk-full"}
    changes += (c for c in _disks(was.machine, now.machine) if c.thing not in told)
    return Changes(before.started_at, worst_first((*changes, *of_rules)), lines)


# ---------------------------------------------------------------------------- what was started


def _restarts(was: SnapshotFacts, now: SnapshotFacts) -> Iterator[Change]:
    boots = tuple(moment(each.machine.text("os.bootTime")) for each in (was, now))
    if _is_other(boots, BOOT_MOVED_S):
        yield _started("machine-start", "", boots, "The machine was restarted: it runs since")
        return
    starts = _agent_start(was), _agent_start(now)
    if _is_other(starts, BOOT_MOVED_S):
        yield _started("agent-start", "", starts, "The agent was restarted: it runs since")


def _agent_start(facts: SnapshotFacts) -> datetime | None:
    uptime_s = facts.machine.number("agent.uptimeSeconds")
    if uptime_s is None or facts.taken_at is None:
        return None
    try:
        return facts.taken_at - timedelta(seconds=uptime_s)
    except OverflowError:
        return None


def _programs(was: Fields, now: Fields) -> Iterator[Change]:
    for name in dict.fromkeys((*was.names("process", "running"), *now.names("process", "running"))):
        words = f"The program {shorten(name, NAME_LENGTH)}"
        ran, runs = (each.flag(f"process.{name}.running") for each in (was, now))
        if ran is None or runs is None:
            continue
        if ran != runs:
            states = _run(ran), _run(runs)
            sentence = f"{words} {'was started' if runs else 'does not run any more'}."
            yield change("program", name, states, "good" if runs else "bad", sentence)
            continue
        starts = tuple(moment(each.text(f"process.{name}.startedAt")) for each in (was, now))
        if runs and _is_other(starts, STARTED_MOVED_S):
            yield _started("program", name, starts, f"{words} was restarted: it runs since")


def _services(was: Fields, now: Fields) -> Iterator[Change]:
    for role in dict.fromkeys((*was.names("service", "state"), *now.names("service", "state"))):
        name = now.text(f"service.{role}.name") or role
        words = f"The service {shorten(name, NAME_LENGTH)}"
        states = tuple(e.text(f"service.{role}.state").partition(" ")[0] for e in (was, now))
        if not all(states):
            continue
        if states[0] != states[1]:
            sentence = f"{words} is {states[1]}; it was {states[0]}."
            yield change("service", role, (states[0], states[1]), "muted", sentence)
            continue
        starts = tuple(moment(each.text(f"service.{role}.since")) for each in (was, now))
        if _is_other(starts, STARTED_MOVED_S):
            yield _started("service", role, starts, f"{words} was restarted: it runs since")


def _run(is_running: bool) -> str:
    return "running" if is_running else "not running"


def _is_other(moments: tuple[datetime | None, ...], by_s: float) -> bool:
    first, second = moments
    return (
        first is not None
        and second is not None
        and has_moved(first.timestamp(), second.timestamp(), by_s)
    )


def _started(code: str, thing: str, moments: tuple[datetime | None, ...], words: str) -> Change:
    before, after = (each.isoformat() if each else "" for each in moments)
    return change(code, thing, (before, after), "muted", f"{words} {moment_in_words(after)}.")


# ---------------------------------------------------------------------------- texts and figures


def _texts(was: Fields, now: Fields) -> Iterator[Change]:
    for key, words, tone in _TEXTS:
        states = tuple(shorten(each.text(key), NAME_LENGTH) for each in (was, now))
        if all(states) and states[0] != states[1]:
            sentence = f"{words} is {states[1]}; it was {states[0]}."
            yield change(key, "", (states[0], states[1]), tone, sentence)
    browsers = _browser(was), _browser(now)
    if all(browsers) and browsers[0] != browsers[1]:
        sentence = f"The browser of the kiosk is {browsers[1]}; it was {browsers[0]}."
        yield change("browser.userAgent", "", browsers, "muted", sentence)
    digests = was.text("agent.configDigest"), now.text("agent.configDigest")
    if all(digests) and digests[0] != digests[1]:
        sentence = "The configuration of the agent is another."
        yield change("agent.configDigest", "", digests, "muted", sentence)


def _browser(fields: Fields) -> str:
    # The last name is the browser's own: Edge calls itself Chrome as well.
    found = _BROWSER.findall(fields.text("browser.userAgent"))
    return found[-1].replace("/", " ") if found else ""


def _disks(was: Fields, now: Fields) -> Iterator[Change]:
    for mount in was.names("disk", "usedFraction"):
        before, after = (each.number(f"disk.{mount}.usedFraction") for each in (was, now))
        if before is None or after is None or not has_passed_level(before, after):
            continue
        is_more = disk_level(after) > disk_level(before)
        states = percent(before), percent(after)
        sentence = (
            f"The disk {shorten(mount, NAME_LENGTH)} is {states[1]} full; it was {states[0]}."
        )
        yield change("disk-use", mount, states, "warn" if is_more else "good", sentence)


def _figures(was: Fields, now: Fields) -> Iterator[Change]:
    sizes = was.number("hardware.memoryBytes"), now.number("hardware.memoryBytes")
    if sizes[0] and sizes[1] and has_grown_or_shrunk(sizes[0], sizes[1], MEMORY_MOVED):
        states = bytes_in_words(sizes[0]), bytes_in_words(sizes[1])
        tone: Tone = "warn" if sizes[1] < sizes[0] else "muted"
        sentence = f"The memory fitted is {states[1]}; it was {states[0]}."
        yield change("hardware.memoryBytes", "", states, tone, sentence)
    key = "network.service.tlsExpiresAt"
    ends = moment(was.text(key)), moment(now.text(key))
    if _is_other(ends, RENEWED_S):
        texts = was.text(key), now.text(key)
        sentence = f"The service's certificate holds until {moment_in_words(texts[1])}."
        yield change(key, "", texts, "muted", sentence)


# ---------------------------------------------------------------------------- who looked how far


def _looked(
    one: ApplicationPayload, facts: SnapshotFacts, other: ApplicationPayload
) -> Callable[[Seen[SnapshotFacts]], bool]:
    """Return what tells whether ``one`` could read what a finding of ``other`` is about."""
    is_whole = not one.snapshot.truncated and looked_as_far(one, other)

    def looked(seen: Seen[SnapshotFacts]) -> bool:
        name = seen.thing.partition(" (")[0]
        fields = _fields_of(facts, name)
        for pattern in _KEY.findall(seen.rule.looks_at):
            found = _matching(fields, pattern, name)
            if not all(field.status in {"available", "not-applicable"} for field in found):
                return False
            if not found and not is_whole:
                return False
        return True

    return looked


def _fields_of(facts: SnapshotFacts, name: str) -> dict[str, SnapshotField | BrowserField]:
    """Return the machine's fields by key, and those of links and peripherals by id and key."""
    things = (*facts.interfaces, *facts.peripherals)
    named = [each for each in things if each[0] == name] or things
    return dict(facts.machine.by_key) | {
        f"{owner} {key}": field for owner, fields in named for key, field in fields.by_key.items()
    }


def _matching(
    fields: dict[str, SnapshotField | BrowserField], pattern: str, name: str
) -> list[SnapshotField | BrowserField]:
    """Return the fields of ``pattern``: of the thing that is named, else of all."""
    own = fields.get(_NAMED.sub(lambda _: name, pattern))
    if own is not None:
        return [own]
    before, _, after = pattern.partition("<")
    after = after.partition(">")[2]
    return [
        field
        for key, field in fields.items()
        if (key.startswith(before) and key.endswith(after) and after) or key.endswith(f" {pattern}")
    ]
