"""What came to a machine or went from it: disks, queues, programs, links, name servers, devices."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from agent.presentation.changes.change import Change, change
from agent.presentation.findings.connectivity import is_routable
from agent.presentation.findings.snapshot_facts import Fields, SnapshotFacts
from agent.presentation.humanize import value_in_words
from agent.presentation.plain_text import NAME_LENGTH, shorten
from agent.presentation.tone import Tone
from agent.wire.payloads.application import ApplicationPayload

Taken = tuple[ApplicationPayload, SnapshotFacts]
"""A report, and the facts in it."""

_LISTS: Final[tuple[tuple[str, str, str, Tone], ...]] = (
    ("printqueue.queues", "The print queue", "Print queues", "warn"),
    ("disk.drives", "The drive", "Drives", "warn"),
    ("disk.mounts", "The file system", "File systems", "muted"),
    ("process.watched", "The watched program", "Watched programs", "muted"),
    ("network.dnsServers", "The name server", "Name servers", "warn"),
)
"""Lists whose members come and go, what one of them is, and how grave it is that one went."""
_REAL_LINKS: Final = frozenset({"ethernet", "wifi"})
_AT_WORK: Final = frozenset(
    {"printer", "barcode-scanner", "scale", "card-reader", "payment-terminal", "cash-drawer"}
)
"""What a till cannot do without."""


def list_changes(before: Taken, after: Taken) -> tuple[list[Change], tuple[str, ...]]:
    """Return the changes, and in sentences what one of the reports did not look at."""
    (one, was), (other, now) = before, after
    changes = [*_links(dict(was.interfaces), dict(now.interfaces))]
    lines = []
    for payload, when in ((one, "The earlier report"), (other, "This report")):
        if payload.snapshot.truncated:
            lines.append(f"{when} was cut at its bounds: what it lacks was not looked at.")
    is_whole = not lines
    for key, words, plural, tone in _LISTS:
        old, new = _members(was.machine, key), _members(now.machine, key)
        if old is not None and new is not None and is_whole:
            changes += _came_and_went(key, words, tone, old, new)
        elif (old is None) != (new is None):
            when = "this time" if new is None else "in the earlier report"
            lines.append(f"{plural} were not looked at {when}.")
    if is_whole:
        changes += _peripheral_changes(before, after)
    return changes, tuple(lines)


def _came_and_went(
    key: str, words: str, tone: Tone, old: tuple[str, ...], new: tuple[str, ...]
) -> Iterator[Change]:
    for name in dict.fromkeys((*old, *new)):
        if (name in old) == (name in new):
            continue
        label = shorten(name, NAME_LENGTH)
        if name in old:
            yield change(key, name, (label, ""), tone, f"{words} {label} is gone.")
        else:
            yield change(key, name, ("", label), "muted", f"{words} {label} is new.")


def _members(fields: Fields, key: str) -> tuple[str, ...] | None:
    """Return a list's members, each once; None where nobody could read it."""
    if fields.is_absent(key):
        return ()
    return tuple(dict.fromkeys(fields.texts(key))) if fields.is_known(key) else None


# ---------------------------------------------------------------------------- interfaces


def _links(was: Mapping[str, Fields], now: Mapping[str, Fields]) -> Iterator[Change]:
    for name, one in was.items():
        other = now.get(name)
        if other is None or not {f.text("interface.type") for f in (one, other)} <= _REAL_LINKS:
            continue
        words = f"The interface {shorten(name, NAME_LENGTH)}"
        yield from _ups(name, words, one, other)
        ssids = one.text("interface.wifiSsid"), other.text("interface.wifiSsid")
        if all(ssids) and ssids[0] != ssids[1]:
            labels = tuple(shorten(each, NAME_LENGTH) for each in ssids)
            sentence = f"{words} is on the Wi-Fi {labels[1]}; it was on {labels[0]}."
            yield change("interface.wifiSsid", name, ssids, "warn", sentence)
        addresses = _addresses(one), _addresses(other)
        if all(addresses) and addresses[0] != addresses[1]:
            sentence = f"{words} has the address {addresses[1]}; it was {addresses[0]}."
            yield change("interface.addresses", name, addresses, "muted", sentence)


def _ups(name: str, words: str, one: Fields, other: Fields) -> Iterator[Change]:
    was_up, is_up = one.flag("interface.up"), other.flag("interface.up")
    if was_up is None or is_up is None:
        return
    if was_up != is_up:
        states = "up" if was_up else "down", "up" if is_up else "down"
        sentence = f"{words} is {'connected again' if is_up else 'no longer connected'}."
        yield change("interface.up", name, states, "good" if is_up else "warn", sentence)
        return
    key = "interface.speedMegabitsPerSecond"
    speeds = one.number(key), other.number(key)
    is_cable = {one.text("interface.type"), other.text("interface.type")} == {"ethernet"}
    if is_up and is_cable and speeds[0] and speeds[1] and speeds[0] != speeds[1]:
        states = value_in_words(key, speeds[0]), value_in_words(key, speeds[1])
        sentence = f"{words} runs at {states[1]}; it was {states[0]}."
        yield change(key, name, states, "warn" if speeds[1] < speeds[0] else "good", sentence)


def _addresses(link: Fields) -> str:
    """Return its IPv4 addresses: those of IPv6 change by themselves (RFC 8981)."""
    known = (each.partition("/")[0] for each in link.texts("interface.addresses"))
    return ", ".join(sorted(each for each in known if ":" not in each and is_routable(each)))


# ---------------------------------------------------------------------------- peripherals


@dataclass(frozen=True, slots=True)
class _Thing:
    """``identity`` is the same wherever it is plugged in."""

    identity: str
    name: str
    is_needed: bool


def _peripheral_changes(before: Taken, after: Taken) -> Iterator[Change]:
    for kind, what in (("usb", "USB"), ("bluetooth", "Bluetooth")):
        if not (_counted(before[1], kind) and _counted(after[1], kind)):
            continue
        was, now = _things(before[0], kind), _things(after[0], kind)
        old, new = (Counter(each.identity for each in things) for things in (was, now))
        for identity, thing in {each.identity: each for each in (*was, *now)}.items():
            if old[identity] != new[identity]:
                states = str(old[identity] or ""), str(new[identity] or "")
                is_gone = new[identity] < old[identity]
                left = f" {new[identity]} is left." if is_gone and new[identity] else ""
                sentence = (
                    f"The {what} device {thing.name} is {'gone' if is_gone else 'new'}.{left}"
                )
                tone: Tone = "warn" if is_gone and thing.is_needed else "muted"
                yield change(f"peripheral {kind}", identity, states, tone, sentence)


def _counted(facts: SnapshotFacts, kind: str) -> bool:
    key = f"peripherals.{kind}Count"
    return facts.machine.is_known(key) or facts.machine.is_absent(key)


def _things(payload: ApplicationPayload, kind: str) -> list[_Thing]:
    return [
        _thing(each.id, Fields({field.key: field for field in each.fields}))
        for each in payload.snapshot.peripherals
        if each.kind == kind
    ]


def _thing(place: str, fields: Fields) -> _Thing:
    keys = ("usb.product", "bluetooth.name", "usb.vendor", "bluetooth.kind")
    name = next((text for key in keys if (text := fields.text(key))), place)
    made = ":".join(fields.text(f"usb.{key}") for key in ("vendorId", "productId", "product"))
    identity = fields.text("usb.serialFingerprint") or made.strip(":") or place
    return _Thing(identity, shorten(name, NAME_LENGTH), fields.text("usb.guess") in _AT_WORK)
