"""The differences between the lists, network interfaces and peripherals of two snapshots.

The lists are the print queues, drives, file systems, watched programs and name servers.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from agent.presentation.changes.change import Change, change, differences
from agent.presentation.findings.connectivity import PHYSICAL_TYPES, is_routable
from agent.presentation.findings.snapshot_facts import Fields, SnapshotFacts
from agent.presentation.humanize import format_value
from agent.presentation.plain_text import shorten
from agent.presentation.severity import Severity

_LISTS: Final[tuple[tuple[str, str, str, Severity], ...]] = (
    ("printqueue.queues", "The print queue", "Print queues", "warn"),
    ("disk.drives", "The drive", "Drives", "warn"),
    ("disk.mounts", "The file system", "File systems", "muted"),
    ("process.watched", "The watched program", "Watched programs", "muted"),
    ("network.dnsServers", "The name server", "Name servers", "warn"),
)
"""The compared lists: key, label of one member, label of all members, severity of a removal."""
_ESSENTIAL: Final = frozenset(
    {"printer", "barcode-scanner", "scale", "card-reader", "payment-terminal", "cash-drawer"}
)
"""Kinds of devices that a till needs. The removal of such a device is a warning."""


def list_changes(
    earlier: SnapshotFacts, later: SnapshotFacts
) -> tuple[list[Change], tuple[str, ...]]:
    """Return the changes, and sentences about what one of the reports did not check."""
    changes = [*_interface_changes(dict(earlier.interfaces), dict(later.interfaces))]
    lines = [
        f"{report_name} was cut at its limits, so added and removed items were not compared."
        for facts, report_name in ((earlier, "The earlier report"), (later, "This report"))
        if facts.payload.snapshot.truncated
    ]
    is_whole = not lines
    for key, label, plural, severity in _LISTS:
        old, new = _members(earlier.machine, key), _members(later.machine, key)
        if old is not None and new is not None and is_whole:
            changes += _added_and_removed(key, label, severity, old, new)
        elif (old is None) != (new is None):
            when = "this time" if new is None else "in the earlier report"
            lines.append(f"{plural} were not checked {when}.")
    if is_whole:
        changes += _peripheral_changes(earlier, later)
    return changes, tuple(lines)


def _added_and_removed(
    key: str, label: str, severity: Severity, old: Mapping[str, str], new: Mapping[str, str]
) -> Iterator[Change]:
    for name, old_label, new_label in differences(old, new):
        if new_label is None:
            sentence = f"{label} {old_label} was removed."
            yield change(key, name, (old_label or "", ""), severity, sentence)
        else:
            yield change(key, name, ("", new_label), "muted", f"{label} {new_label} is new.")


def _members(fields: Fields, key: str) -> dict[str, str] | None:
    """Return the members of a list with their labels; None if it could not be read."""
    if fields.is_absent(key) or fields.is_known(key):
        return {name: shorten(name) for name in fields.texts(key)}
    return None


# ---------------------------------------------------------------------------- interfaces


def _interface_changes(
    earlier: Mapping[str, Fields], later: Mapping[str, Fields]
) -> Iterator[Change]:
    for name, old_link in earlier.items():
        new_link = later.get(name)
        if new_link is None:
            continue
        types = {link.text("interface.type") for link in (old_link, new_link)}
        if not types <= PHYSICAL_TYPES:
            continue
        label = f"The interface {shorten(name)}"
        yield from _connection_change(name, label, old_link, new_link)
        ssids = old_link.text("interface.wifiSsid"), new_link.text("interface.wifiSsid")
        if all(ssids) and ssids[0] != ssids[1]:
            old, new = (shorten(ssid) for ssid in ssids)
            sentence = f"{label} is on the Wi-Fi {new}; it was on {old}."
            yield change("interface.wifiSsid", name, ssids, "warn", sentence)
        addresses = _addresses(old_link), _addresses(new_link)
        if all(addresses) and addresses[0] != addresses[1]:
            sentence = f"{label} has the address {addresses[1]}; it was {addresses[0]}."
            yield change("interface.addresses", name, addresses, "muted", sentence)


def _connection_change(name: str, label: str, earlier: Fields, later: Fields) -> Iterator[Change]:
    """Yield a change if the link went up or down, or if a cable has another speed."""
    was_up, is_up = earlier.flag("interface.up"), later.flag("interface.up")
    if was_up is None or is_up is None:
        return
    if was_up != is_up:
        states = ("down", "up") if is_up else ("up", "down")
        sentence = f"{label} is {'connected again' if is_up else 'no longer connected'}."
        yield change("interface.up", name, states, "good" if is_up else "warn", sentence)
        return
    key = "interface.speedMegabitsPerSecond"
    before, after = earlier.number(key), later.number(key)
    is_cable = {earlier.text("interface.type"), later.text("interface.type")} == {"ethernet"}
    if is_up and is_cable and before and after and before != after:
        old, new = format_value(key, before), format_value(key, after)
        severity: Severity = "warn" if after < before else "good"
        yield change(key, name, (old, new), severity, f"{label} runs at {new}; it was {old}.")


def _addresses(interface: Fields) -> str:
    """Return the IPv4 addresses. IPv6 addresses change regularly (RFC 8981) and are left out."""
    ips = (address.partition("/")[0] for address in interface.texts("interface.addresses"))
    return ", ".join(sorted(ip for ip in ips if ":" not in ip and is_routable(ip)))


# ---------------------------------------------------------------------------- peripherals


@dataclass(frozen=True, slots=True)
class _Device:
    """A peripheral.

    ``identity`` does not depend on the port at which the peripheral is plugged in. If nothing
    except the port is known, ``identity`` is the port.
    """

    identity: str
    name: str
    is_essential: bool


def _peripheral_changes(earlier: SnapshotFacts, later: SnapshotFacts) -> Iterator[Change]:
    for kind, bus in (("usb", "USB"), ("bluetooth", "Bluetooth")):
        if not (_is_counted(earlier, kind) and _is_counted(later, kind)):
            continue
        before, after = _devices(earlier, kind), _devices(later, kind)
        by_identity = {device.identity: device for device in (*before, *after)}
        counts = (Counter(device.identity for device in devices) for devices in (before, after))
        for identity, old, new in differences(*counts):
            device, is_removed = by_identity[identity], (new or 0) < (old or 0)
            remaining_text = f" Identical devices that remain: {new}." if is_removed and new else ""
            state = "was removed" if is_removed else "is new"
            yield change(
                f"peripheral {kind}",
                identity,
                (str(old or ""), str(new or "")),
                "warn" if is_removed and device.is_essential else "muted",
                f"The {bus} device {device.name} {state}.{remaining_text}",
            )


def _is_counted(facts: SnapshotFacts, kind: str) -> bool:
    key = f"peripherals.{kind}Count"
    return facts.machine.is_known(key) or facts.machine.is_absent(key)


def _devices(facts: SnapshotFacts, kind: str) -> list[_Device]:
    kinds = (peripheral.kind for peripheral in facts.payload.snapshot.peripherals)
    return [
        _device(port, fields)
        for (port, fields), peripheral_kind in zip(facts.peripherals, kinds, strict=True)
        if peripheral_kind == kind
    ]


def _device(port: str, fields: Fields) -> _Device:
    keys = ("usb.product", "bluetooth.name", "usb.vendor", "bluetooth.kind")
    name = next((text for key in keys if (text := fields.text(key))), port)
    product_id = ":".join(fields.text(f"usb.{key}") for key in ("vendorId", "productId", "product"))
    identity = fields.text("usb.serialFingerprint") or product_id.strip(":") or port
    return _Device(identity, shorten(name), fields.text("usb.guess") in _ESSENTIAL)
