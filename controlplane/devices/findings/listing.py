"""Counts the devices with each finding, by location, platform and version, and lists these devices.

In the list, all devices of one location with the same finding are one entry.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice
from operator import itemgetter
from typing import Final, NamedTuple

from sqlalchemy import DateTime, select, tuple_, type_coerce

from agent.presentation.severity import SEVERITY_ORDER, Severity
from controlplane.accounts.names import names_of
from controlplane.devices.findings import records
from controlplane.devices.findings.counting import day_of
from controlplane.devices.findings.rules import ANY, DEVICE, NON_RULE_SUBJECTS, PROBLEM, rule_of
from controlplane.devices.findings.sums import (
    ATTRIBUTES,
    TREND_DAYS,
    AnySums,
    Attribute,
    Sums,
    quickest_sums,
    sums_of,
)
from controlplane.devices.priority import health_of
from controlplane.operation.context import RequestContext
from controlplane.operation.cursors import SortKey
from controlplane.storage.report_tables import DeviceFinding
from controlplane.storage.statements import in_steps
from controlplane.storage.tables import Device, Report

LOCATIONS_MAX: Final = 500
_FILTER_NAMES: Final[dict[Attribute, str]] = {
    "location_id": "location", "platform": "platform", "version": "version",
}  # fmt: skip
_SEVERITY_STEP: Final = 1 << 40
"""Difference between the ranks of adjacent severities. No location has so many devices."""


def findings(context: RequestContext, body: records.FindingsRequest) -> records.FindingsReply:
    """Return the number of devices by finding, and by location, platform and version."""
    sums = quickest_sums(context, body)
    total = sums.count(DEVICE)
    counts = sums.by_subject()
    groups = {attribute: _groups(sums, body, attribute) for attribute in ATTRIBUTES}
    locations = groups["location_id"]
    return records.FindingsReply(
        device_count=total,
        unknown_count=total - counts[ANY],
        findings=tuple(_findings(sums, body, counts, total, day_of(context.now))),
        locations=_with_names(context, locations[:LOCATIONS_MAX]),
        more_locations=max(0, len(locations) - LOCATIONS_MAX),
        platforms=tuple(groups["platform"]),
        versions=tuple(groups["version"]),
    )


def _findings(
    sums: AnySums, body: records.FindingsRequest, counts: Counter[str], total: int, today: int
) -> list[records.FindingRecord]:
    changes = sums.changes()
    days = range(today - TREND_DAYS + 1, today + 1)
    codes = {subject for subject in counts if counts[subject] > 0} | set(changes or ())
    codes -= NON_RULE_SUBJECTS
    new_counts = sums.new_by_rule()
    results = []
    for code in codes:
        rule = rule_of(code)
        results.append(
            records.FindingRecord(
                rule=code,
                title=rule.title,
                severity=rule.severity,
                fix=rule.fix,
                kinds=rule.kinds,
                device_count=counts[code],
                unknown_count=total - counts[rule.subject],
                new_count=new_counts[code],
                trend=None
                if changes is None
                else trend_of(counts[code], changes.get(code, Counter()), days),
                link=records.link_of(body, rule=code),
            )
        )
    return sorted(
        results,
        key=lambda each: (SEVERITY_ORDER.index(each.severity), -each.device_count, each.rule),
    )


def trend_of(count_now: int, changes: Counter[int], days: Iterable[int]) -> tuple[int, ...]:
    """Return the number of devices at the end of each day, the oldest day first.

    The numbers are computed backwards, from ``count_now`` and the changes of each day.
    """
    numbers = []
    count = count_now
    for day in sorted(days, reverse=True):
        numbers.append(count)
        count -= changes[day]
    return tuple(reversed(numbers))


def _groups(
    sums: AnySums, body: records.FindingsRequest, attribute: Attribute
) -> list[records.FindingGroup]:
    subject = ANY if body.rule is None else rule_of(body.rule).subject
    counts = sums.by(attribute, PROBLEM if body.rule is None else body.rule)
    known_counts = sums.by(attribute, subject)
    groups = [
        records.FindingGroup(
            value=value,
            name=None,
            count=counts[value],
            unknown_count=total - known_counts[value],
            link=records.link_of(body, rule=body.rule, **{_FILTER_NAMES[attribute]: value}),
        )
        for value, total in sums.by(attribute, DEVICE).items()
    ]
    return sorted(groups, key=lambda each: (-each.count, -each.unknown_count, each.value))


def _with_names(
    context: RequestContext, groups: list[records.FindingGroup]
) -> tuple[records.FindingGroup, ...]:
    organization_id = context.organization_id
    names = names_of(context.session, ((organization_id, each.value) for each in groups))
    return tuple(
        each.model_copy(update={"name": names.location(organization_id, each.value)})
        for each in groups
    )


def _rank(severity: Severity, devices: int) -> int:
    """Return a number that is lower for a higher severity, and then for more devices."""
    return (SEVERITY_ORDER.index(severity) + 1) * _SEVERITY_STEP - devices


class _Group(NamedTuple):
    """The devices of a location with the same finding: one entry of the list.

    ``devices`` is the number of these devices.
    """

    rule: str
    location_id: str
    devices: int

    @property
    def sort_key(self) -> SortKey:
        """Return the sort key of an entry: severe findings first, then findings of many devices.

        The digest orders entries with the same rank. A cursor can contain it, because it is a
        number.
        """
        rank = _rank(rule_of(self.rule).severity, self.devices)
        name = f"{self.rule} {self.location_id}".encode()
        digest = hashlib.sha256(name).digest()[:8]
        return SortKey(rank, int.from_bytes(digest) >> 1)  # a cursor has signed 64-bit numbers


def finding_devices(
    context: RequestContext, body: records.FindingDevicesRequest
) -> records.FindingDevicesReply:
    """Return a page of findings at locations, with their devices. Problems come first."""
    size = body.size or records.PAGE_DEFAULT
    listing = (context.organization_id, "findings", body.rule or "", str(body.is_new))
    sums = sums_of(context, body)
    after = None if body.cursor is None else context.cursors.read(listing, body.cursor)
    groups = list(islice(_groups_after(sums, body, after), size + 1))
    page = groups[:size]
    return records.FindingDevicesReply(
        entries=_entries(sums, body, page),
        next_cursor=context.cursors.write(listing, page[-1].sort_key)
        if len(groups) > size
        else None,
        unknown_count=unknown_device_count(sums, body.rule),
    )


def unknown_device_count(sums: Sums, rule: str | None) -> int:
    """Return how many matching devices have no recent report to which ``rule`` applies.

    If ``rule`` is None, return how many matching devices have no recent report of any kind.
    """
    return sums.count(DEVICE) - sums.count(ANY if rule is None else rule_of(rule).subject)


def _groups_after(
    sums: Sums, body: records.FindingDevicesRequest, after: SortKey | None
) -> Iterator[_Group]:
    """Yield the sorted entries after a sort key. Reads the rows of one severity at a time."""
    severities = SEVERITY_ORDER if body.rule is None else (rule_of(body.rule).severity,)
    first = SortKey(0, 0) if after is None else after
    for severity in severities:
        count_max = _rank(severity, 0) - first.value  # entries on earlier pages have more devices
        if count_max <= 0:
            continue
        counts = sums.new_by_location if body.is_new else sums.by_location
        # The rows are sorted by count, largest first. Rows with equal counts must still be sorted.
        for _, tied in groupby(counts(body.rule, severity, count_max), key=itemgetter(2)):
            ordered = sorted((_Group(*row) for row in tied), key=lambda each: each.sort_key)
            yield from (each for each in ordered if each.sort_key > first)


def _entries(
    sums: Sums, body: records.FindingDevicesRequest, page: Sequence[_Group]
) -> tuple[records.FindingEntry, ...]:
    context, organization_id = sums.context, sums.context.organization_id
    names = names_of(context.session, ((organization_id, each.location_id) for each in page))
    devices = _read_devices(sums, body, page)

    def entry_of(group: _Group) -> records.FindingEntry | None:
        rule = rule_of(group.rule)
        listed = devices.get((group.rule, group.location_id))
        if not listed:  # the reports are too old now, but the stored sums still contain them
            return None
        return records.FindingEntry(
            rule=group.rule,
            title=rule.title,
            severity=rule.severity,
            fix=rule.fix,
            location_id=group.location_id,
            location_name=names.location(organization_id, group.location_id),
            device_count=group.devices,
            since=listed[0].since,
            devices=tuple(listed),
            link=records.link_of(body, rule=group.rule, location=group.location_id),
        )

    return tuple(filter(None, map(entry_of, page)))


def _read_devices(
    sums: Sums, body: records.FindingDevicesRequest, page: Sequence[_Group]
) -> dict[tuple[str, str], list[records.FindingDevice]]:
    """Return the devices of each entry, by rule and location.

    The devices that have had the finding longest come first.
    """
    positions = _read_positions(sums, body, page)
    query = (
        select(DeviceFinding, Device, Report.id)
        .join(Device, Device.position == DeviceFinding.device)
        .outerjoin(Report, Report.position == DeviceFinding.report)
        .order_by(DeviceFinding.since, DeviceFinding.device)
    )
    rows = [
        row
        for step in in_steps(positions)
        for row in sums.context.session.execute(query.where(DeviceFinding.position.in_(step)))
    ]
    results: dict[tuple[str, str], list[records.FindingDevice]] = {}
    for finding, device, report_id in rows:
        results.setdefault((finding.rule, finding.location_id), []).append(
            records.FindingDevice(
                instance_id=device.instance_id,
                name=device.legacy_install_id,
                platform=device.platform,
                app_version=device.app_version,
                health=health_of(device.priority, device.severity),
                kind=finding.kind,
                sentence=finding.sentence,
                since=finding.since,
                last_seen=finding.last_seen,
                report_id=report_id,
            )
        )
    return results


def _read_positions(
    sums: Sums, body: records.FindingDevicesRequest, page: Sequence[_Group]
) -> list[int]:
    """Return the row keys of the listed findings (``DeviceFinding.position``), oldest first."""
    entry_key = (DeviceFinding.rule, DeviceFinding.location_id)
    since = type_coerce(DeviceFinding.since, DateTime)
    columns = (since, DeviceFinding.device, DeviceFinding.position, *entry_key)
    locations = {each.location_id for each in page}
    query = (
        sums.findings_at(locations, *columns, is_new=bool(body.is_new))
        # The condition for pairs of rule and location would be enough. But SQLite uses the index of
        # these columns only if each column has a condition of its own.
        .where(DeviceFinding.rule.in_({each.rule for each in page}))
        .where(tuple_(*entry_key).in_([(each.rule, each.location_id) for each in page]))
    )
    # The rows are sorted in Python. If the query sorted them, SQLite would use an index that is
    # ordered by `since`, and would read the findings of all locations.
    rows = sorted(sums.context.session.execute(query), key=itemgetter(0, 1))
    matching = sums.device_keys_at(locations)
    limit = body.devices or records.DEVICES_DEFAULT
    counts = Counter[tuple[str, str]]()
    positions: list[int] = []
    for _, device, position, rule, location_id in rows:
        is_matching = matching is None or str(device) in matching
        if is_matching and counts[rule, location_id] < limit:
            counts[rule, location_id] += 1
            positions.append(position)
    return positions
