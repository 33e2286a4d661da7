"""Keys, devices, requests and reports as lists on a terminal, and what is known of one device."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from uuid import UUID

from rich.table import Table
from rich.text import Text

from agent.wire.operator_operations import Device, RemoteRequest, ReportSummary
from controlplane.cli.devices.filters import State, place_of, state_of
from controlplane.cli.tables import (
    age,
    console,
    ids_of,
    print_note,
    print_rows,
    status_text,
    text_of,
)

if TYPE_CHECKING:
    from controlplane.storage.tables import ApiKey

VERSIONS_SHOWN = 4
_STATE_STYLES: dict[State, str] = {"online": "green", "offline": "yellow", "revoked": "red"}


def print_keys(keys: Sequence["ApiKey"], owners: Mapping[UUID, str]) -> None:
    """``owners`` are the addresses of the people as whom keys act; most keys are nobody's."""
    now = datetime.now(UTC)
    ids = ids_of(key.id for key in keys)
    rows = [
        (
            ids[key.id],
            f"…{key.hint}",
            _state_of_key(key),
            text_of(", ".join(key.locations) or "all"),
            text_of(key.name or "–"),
            age(key.last_used_at, now),
            *((text_of(_owner_of(key, owners)),) if owners else ()),
        )
        for key in keys
    ]
    empty = "There are no keys. Make one: venue-control keys create --write"
    headings = ("id", "key", "grant", "locations", "name", "used")
    print_rows((*headings, "owner") if owners else headings, rows, empty)


def print_devices(devices: Sequence[Device], *, is_cut: bool, of: int | None = None) -> None:
    """``of`` is how many there are before they were sifted."""
    now = datetime.now(UTC)
    ids = ids_of(device.instance_id for device in devices)
    rows = [
        (
            ids[device.instance_id],
            text_of(device.legacy_install_id),
            _state(device),
            text_of(place_of(device)),
            text_of(device.app_version or "–"),
            age(device.last_seen_at, now),
        )
        for device in devices
    ]
    empty = f"None of {of} devices is like this." if of else "No device has enrolled yet."
    headings = ("instance", "name", "state", "location", "version", "seen")
    print_rows(headings, rows, empty)
    if devices:
        print_note(_counted(devices, of))
    if is_cut:
        print_note("There are more devices than could be read.")


def print_device(device: Device) -> None:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim")
    grid.add_column(overflow="fold")
    for name, value in _facts(device):
        grid.add_row(name, value if isinstance(value, Text) else text_of(value))
    console().print(grid)


def print_requests(requests: Sequence[RemoteRequest]) -> None:
    now = datetime.now(UTC)
    ids = ids_of(each.id for each in requests)
    rows = [
        (ids[each.id], each.kind, status_text(each.status), age(each.created_at, now))
        for each in requests
    ]
    print_rows(("request", "kind", "status", "asked"), rows, "No requests.", title="Requests")


def print_reports(reports: Sequence[ReportSummary]) -> None:
    now = datetime.now(UTC)
    ids = ids_of(report.report_id for report in reports)
    rows = [
        (
            ids[report.report_id],
            report.kind,
            status_text(report.outcome),
            status_text(report.tracker_status),
            age(report.created_at, now),
        )
        for report in reports
    ]
    headings = ("report", "kind", "outcome", "tracker", "received")
    print_rows(headings, rows, "No reports.", title="Reports")


def print_reports_of(found: Sequence[tuple[Device, ReportSummary]], empty: str) -> None:
    now = datetime.now(UTC)
    ids = ids_of(report.report_id for _, report in found)
    rows = [
        (
            ids[report.report_id],
            text_of(device.legacy_install_id),
            text_of(place_of(device)),
            report.kind,
            status_text(report.outcome),
            age(report.created_at, now),
        )
        for device, report in found
    ]
    headings = ("report", "device", "location", "kind", "outcome", "received")
    print_rows(headings, rows, empty)


def _counted(devices: Sequence[Device], of: int | None) -> str:
    """Return ``3 of 12 devices: 2 online, 1 offline; versions: 0.2.0 2, 0.1.0 1``."""
    total = f"{len(devices)} of {of}" if of and of > len(devices) else str(len(devices))
    states = Counter(state_of(device) for device in devices)
    told = ", ".join(f"{states[word]} {word}" for word in _STATE_STYLES if states[word])
    versions = Counter(device.app_version or "unknown" for device in devices).most_common()
    shown = [f"{version} {count}" for version, count in versions[:VERSIONS_SHOWN]]
    if len(versions) > VERSIONS_SHOWN:
        shown.append(f"{len(versions) - VERSIONS_SHOWN} more")
    noun = "device" if total == "1" else "devices"
    return f"{total} {noun}: {told}; versions: {', '.join(shown)}"


def _state(device: Device) -> Text:
    state = state_of(device)
    return Text(state, _STATE_STYLES[state])


def _facts(device: Device) -> Iterable[tuple[str, str | Text]]:
    yield "name", device.legacy_install_id
    yield "instance", str(device.instance_id)
    yield "state", _state(device)
    yield "binding", str(device.binding_id)
    yield "location", place_of(device)
    yield "organization", device.organization_name or device.organization_id
    yield "platform", f"{device.platform}, agent {device.app_version or 'of unknown version'}"
    yield "capabilities", ", ".join(device.capabilities) or "none"
    yield "last seen", f"{device.last_seen_at:%Y-%m-%d %H:%M:%S} UTC"
    yield "enrolled", f"{device.created_at:%Y-%m-%d %H:%M:%S} UTC"
    if device.revoked_at is not None:
        yield "revoked", f"{device.revoked_at:%Y-%m-%d %H:%M:%S} UTC"


def _owner_of(key: "ApiKey", owners: Mapping[UUID, str]) -> str:
    return "–" if key.owner_id is None else owners.get(key.owner_id, "gone")


def _state_of_key(key: "ApiKey") -> Text:
    if key.revoked_at:
        return Text("revoked", "red")
    return Text("write" if key.can_write else "read")
