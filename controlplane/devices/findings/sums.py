"""Numbers of devices by finding, location, platform and version.

Without a filter by state or search, they are read from the stored sums. Otherwise the findings of
the matching devices are counted.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Any, Final, Literal, NamedTuple

from sqlalchemy import ColumnElement, Select, and_, exists, func, not_, select
from sqlalchemy.orm import aliased

from agent.presentation.severity import Severity
from controlplane.devices.findings.counting import WHOLE_ORGANIZATION, day_of
from controlplane.devices.findings.rules import ANY, OF_BOTH_KINDS, OTHER_SUBJECTS, RULES
from controlplane.devices.findings.storing import RECENT
from controlplane.devices.overview.listing import conditions
from controlplane.devices.overview.records import Filters
from controlplane.devices.overview.searching import words_of
from controlplane.devices.priority import Priority
from controlplane.operation.context import RequestContext
from controlplane.storage.report_tables import (
    CountedDevice,
    DeviceFinding,
    FindingCount,
    FindingDay,
    JudgedReport,
)
from controlplane.storage.tables import Device

TREND_DAYS: Final = 30
NEW: Final = timedelta(days=1)
"""Age up to which a finding is new."""
Attribute = Literal["location_id", "platform", "version"]
ATTRIBUTES: Final[dict[Attribute, Callable[[], Any]]] = {
    "location_id": lambda: Device.location_id,
    "platform": lambda: Device.platform,
    "version": lambda: func.coalesce(Device.app_version, ""),
}


BOUND: Final = tuple(each.value for each in Priority if each != Priority.REVOKED)
"""The priorities of devices that are not revoked. Queries filter by priority, because the index of
devices contains it and does not contain the time of the revocation."""


class _Counted(NamedTuple):
    """The location, platform and version of a device, and the subjects that count it."""

    location_id: str
    platform: str
    version: str
    subjects: list[str]


@dataclass(frozen=True)
class Sums:
    """The sums over the devices that a caller may see and that match filters."""

    context: RequestContext
    filters: Filters

    @property
    def are_stored(self) -> bool:
        return self.filters.state is None and not words_of(self.filters.search)

    @cached_property
    def device_conditions(self) -> list[ColumnElement[bool]]:
        """Return the conditions for the matching devices that are not revoked."""
        context = self.context
        own = conditions(self.filters, context.now, context.organization_id)
        return [context.visible(Device), Device.priority.in_(BOUND), *own]

    def devices(self) -> list[tuple[str, str, str, int]]:
        """Return the number of matching devices by location, platform and version."""
        columns = [column() for column in ATTRIBUTES.values()]
        query = select(*columns, func.count()).where(*self.device_conditions)
        # In this order, SQLite does not choose an index that begins with the location.
        query = query.group_by(*reversed(columns))
        return [(row[0], row[1], row[2], row[3]) for row in self.context.session.execute(query)]

    def by_subject(self) -> Counter[str]:
        """Return the number of devices by rule, by kind of recent report, and for `ANY`."""
        if self.are_stored:
            return self._counter(self._stored(FindingCount, FindingCount.subject))
        return Counter(each for row in self._counted for each in row.subjects)

    def by(self, attribute: Attribute, subject: str) -> Counter[str]:
        """Return the numbers for a subject by an attribute of the devices."""
        if self.are_stored:
            column = getattr(FindingCount, attribute)
            query = self._stored(FindingCount, column, is_by_location=attribute == "location_id")
            return self._counter(query.where(FindingCount.subject == subject))
        counts = Counter[str]()
        for row in self._counted:
            counts[getattr(row, attribute)] += row.subjects.count(subject)
        return counts

    @cached_property
    def _counted(self) -> list["_Counted"]:
        """Return the attributes and the subjects of each matching device."""
        columns = [getattr(CountedDevice, name) for name in (*ATTRIBUTES, "subjects")]
        query = (
            select(*columns)
            .join(Device, Device.position == CountedDevice.device)
            .where(*self.device_conditions)
        )
        rows = self.context.session.execute(query)
        return [_Counted(row[0], row[1], row[2], row[3]) for row in rows]

    def by_location(self, condition: ColumnElement[bool]) -> list[tuple[str, str, int]]:
        """Return the stored numbers of devices by rule and location, without zeros.

        Only for filters whose sums are stored. ``condition`` selects the rules.
        """
        columns = (FindingCount.subject, FindingCount.location_id)
        query = self._stored(FindingCount, *columns, is_by_location=True)
        query = query.where(condition).having(func.sum(FindingCount.devices) > 0)
        return [(row[0], row[1], row[2]) for row in self.context.session.execute(query)]

    def known_count(self, subject: str) -> int:
        """Return the number of devices with a recent report of a kind, or of any kind."""
        if self.are_stored:
            return self.by_subject()[subject]
        recent = exists().where(JudgedReport.device == Device.position, JudgedReport.is_recent)
        if subject != ANY:
            recent = recent.where(JudgedReport.kind == subject)
        query = select(func.count()).select_from(Device).where(*self.device_conditions, recent)
        return self.context.session.scalars(query).one()

    def new(self, rules: Iterable[str]) -> Counter[str]:
        """Return, by rule, the number of devices that have had the finding for less than a day.

        The condition for ``rules`` lets the database use an index and read only new findings.
        """
        query = self.findings(DeviceFinding.rule, func.count(), is_new=True)
        query = query.where(DeviceFinding.rule.in_(sorted(rules)))
        return self._counter(query.group_by(DeviceFinding.rule))

    @property
    def _is_new(self) -> ColumnElement[bool]:
        """Return the condition for `findings` that devices have had for less than a day."""
        recent, since = self.context.now - RECENT, self.context.now - NEW
        other = aliased(DeviceFinding)
        is_older = exists().where(
            other.device == DeviceFinding.device,
            other.kind != DeviceFinding.kind,
            other.rule == DeviceFinding.rule,
            other.last_seen >= recent,
            other.since < since,
        )
        has_older = and_(DeviceFinding.rule.in_(OF_BOTH_KINDS), is_older)
        return and_(DeviceFinding.since >= since, not_(has_older))

    def changes(self) -> dict[str, Counter[int]] | None:
        """Return the change of the sums by rule and day; None if it is not stored."""
        if not self.are_stored:
            return None
        first = day_of(self.context.now) - TREND_DAYS + 1
        query = self._stored(FindingDay, FindingDay.subject, FindingDay.day)
        results: dict[str, Counter[int]] = {}
        for subject, day, change in self.context.session.execute(
            query.where(FindingDay.day >= first)
        ):
            results.setdefault(subject, Counter())[day] = change
        return results

    def device_count(self) -> int:
        """Return the number of matching devices."""
        query = select(func.count()).select_from(Device).where(*self.device_conditions)
        return self.context.session.scalars(query).one()

    def findings(self, *columns: Any, is_new: bool = False) -> Select[Any]:
        """Select the findings of the matching devices, one for each device and rule."""
        query = select(*columns).where(
            self.context.visible(DeviceFinding),
            # A new finding is in a recent report.
            self._is_new if is_new else DeviceFinding.last_seen >= self.context.now - RECENT,
            _is_first(self.context.now - RECENT),
        )
        filters = self.filters
        if filters.location is not None:
            query = query.where(DeviceFinding.location_id == filters.location)
        if self.are_stored and filters.platform is None and filters.version is None:
            return query
        positions = select(Device.position).where(*self.device_conditions)
        return query.where(DeviceFinding.device.in_(positions))

    def _stored(self, table: Any, *columns: Any, is_by_location: bool = False) -> Select[Any]:
        """Select the sums of stored numbers by these columns."""
        amount = table.devices if table is FindingCount else table.change
        query = select(*columns, func.sum(amount)).where(
            table.organization_id == self.context.organization_id
        )
        visible, filters = self.context.caller.locations, self.filters
        if filters.location is not None:
            query = query.where(table.location_id == filters.location)
        if visible:
            query = query.where(table.location_id.in_(visible))
        elif filters.location is None:
            is_whole = table.location_id == WHOLE_ORGANIZATION
            query = query.where(not_(is_whole) if is_by_location else is_whole)
        if filters.platform is not None:
            query = query.where(table.platform == filters.platform)
        if filters.version is not None:
            query = query.where(table.version == filters.version)
        return query.group_by(*columns)

    def _counter(self, query: Select[Any]) -> Counter[str]:
        rows: Iterable[Any] = self.context.session.execute(query)
        return Counter({row[0]: row[1] for row in rows if row[1]})


def has_severity(rule: Any, severity: Severity) -> ColumnElement[bool]:
    """Return the condition for rules of a severity. Rules that this release lacks are muted."""
    codes = {code for code, text in RULES.items() if text.severity == severity}
    is_rule: ColumnElement[bool] = rule.in_(sorted(codes))
    if severity == "muted":
        is_rule = rule.not_in(sorted(RULES.keys() - codes | OTHER_SUBJECTS))
    return is_rule


def _is_first(recent: Any) -> ColumnElement[bool]:
    """Return the condition that counts a rule once, if reports of both kinds have the finding."""
    other = aliased(DeviceFinding)
    of_other_kind = exists().where(
        other.device == DeviceFinding.device,
        other.kind == "application",
        other.rule == DeviceFinding.rule,
        other.last_seen >= recent,
    )
    is_second = and_(
        DeviceFinding.rule.in_(OF_BOTH_KINDS), DeviceFinding.kind == "network", of_other_kind
    )
    return not_(is_second)
