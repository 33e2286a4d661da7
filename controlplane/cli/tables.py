"""Tables for a terminal, fit for 80 columns; below 72 they are lists."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from agent.presentation.humanize import seconds_in_words
from agent.presentation.plain_text import plain
from agent.wire.operator_operations import Device, RemoteRequest, ReportSummary

if TYPE_CHECKING:
    from controlplane.storage.tables import ApiKey

STATUS_STYLES = {
    "queued": "cyan",
    "received": "cyan",
    "running": "blue",
    "completed": "green",
    "partial": "yellow",
    "failed": "red",
    "expired": "dim",
    "sent": "green",
    "pending": "cyan",
    "disabled": "dim",
}
TABLES_FROM = 72
FREE_TEXT = frozenset({"location", "locations", "name"})


def console() -> Console:
    return Console(highlight=False, soft_wrap=False)


def print_keys(keys: Sequence["ApiKey"]) -> None:
    now = datetime.now(UTC)
    rows = [
        (
            str(key.id),
            f"…{key.hint}",
            _state_of_key(key),
            _text(", ".join(key.locations) or "all"),
            _text(key.name or "–"),
            age(key.last_used_at, now),
        )
        for key in keys
    ]
    empty = "There are no keys. Make one: venue-control keys create --write"
    _print(("id", "key", "grant", "locations", "name", "used"), rows, empty)


def print_devices(devices: Sequence[Device], *, is_cut: bool) -> None:
    now = datetime.now(UTC)
    rows = [
        (
            str(device.instance_id),
            _text(device.legacy_install_id),
            state_of(device),
            _text(device.location_name or device.location_id),
            age(device.last_seen_at, now),
        )
        for device in devices
    ]
    _print(("instance", "name", "state", "location", "seen"), rows, "No device has enrolled yet.")
    if is_cut:
        console().print("There are more devices than are shown.")


def print_device(device: Device) -> None:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim")
    grid.add_column(overflow="fold")
    for name, value in _facts(device):
        grid.add_row(name, value if isinstance(value, Text) else _text(value))
    console().print(grid)


def print_lines(lines: Sequence[str]) -> None:
    """Print them below an empty one; nothing where there are none."""
    for line in ("", *lines) if lines else ():
        console().print(Text(line), soft_wrap=True)


def print_requests(requests: Sequence[RemoteRequest]) -> None:
    now = datetime.now(UTC)
    rows = [
        (str(each.id), each.kind, _status(each.status), age(each.created_at, now))
        for each in requests
    ]
    _print(("request", "kind", "status", "asked"), rows, "No requests.", title="Requests")


def print_reports(reports: Sequence[ReportSummary]) -> None:
    now = datetime.now(UTC)
    rows = [
        (
            str(report.report_id),
            report.kind,
            _status(report.outcome),
            _status(report.tracker_status),
            age(report.created_at, now),
        )
        for report in reports
    ]
    headings = ("report", "kind", "outcome", "tracker", "received")
    _print(headings, rows, "No reports.", title="Reports")


def state_of(device: Device) -> Text:
    if device.revoked_at is not None:
        return Text("revoked", "red")
    return Text("online", "green") if device.online else Text("offline", "yellow")


def age(moment: datetime | None, now: datetime) -> str:
    """Return how long ago ``moment`` was, in the largest whole unit: ``29 min``."""
    if moment is None:
        return "never"
    return seconds_in_words(max(0, int((now - moment).total_seconds())), units=1)


def _facts(device: Device) -> Iterable[tuple[str, str | Text]]:
    yield "name", device.legacy_install_id
    yield "instance", str(device.instance_id)
    yield "state", state_of(device)
    yield "binding", str(device.binding_id)
    yield "location", device.location_name or device.location_id
    yield "organization", device.organization_name or device.organization_id
    yield "platform", f"{device.platform}, agent {device.app_version or 'of unknown version'}"
    yield "capabilities", ", ".join(device.capabilities) or "none"
    yield "last seen", f"{device.last_seen_at:%Y-%m-%d %H:%M:%S} UTC"
    yield "enrolled", f"{device.created_at:%Y-%m-%d %H:%M:%S} UTC"
    if device.revoked_at is not None:
        yield "revoked", f"{device.revoked_at:%Y-%m-%d %H:%M:%S} UTC"


def _print(
    headings: Sequence[str], rows: Sequence[Sequence[str | Text]], empty: str, title: str = ""
) -> None:
    """Print a table; on a narrow terminal each row as its id and, below it, the rest."""
    to = console()
    if not rows:
        to.print(Text(empty, "dim"))
    elif to.width >= TABLES_FROM:
        to.print(_table(headings, rows, title))
    else:
        if title:
            to.print(Text(title, "italic"))
        for first, *others in rows:
            to.print(first)
            words = (Text(each) if isinstance(each, str) else each for each in others)
            to.print(Padding(Text(" · ").join(words), (0, 0, 0, 2)))


def _table(headings: Sequence[str], rows: Sequence[Sequence[str | Text]], title: str) -> Table:
    table = Table(
        title=title or None, title_justify="left", box=None, pad_edge=False, header_style="dim"
    )
    for heading in headings:
        # What people named may be long and is folded; ids are there to be copied whole.
        table.add_column(heading, no_wrap=heading not in FREE_TEXT, overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def _state_of_key(key: "ApiKey") -> Text:
    if key.revoked_at:
        return Text("revoked", "red")
    return Text("write" if key.can_write else "read")


def _text(value: str) -> Text:
    return Text(plain(value))


def _status(status: str) -> Text:
    return Text(status, STATUS_STYLES.get(status, ""))
