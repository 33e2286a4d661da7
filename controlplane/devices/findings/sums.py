"""Numbers of devices by finding, location, platform and version.

Without a filter by state or search, they are read from the stored sums. Otherwise the findings of
the matching devices are counted.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Any, Final, Literal

from sqlalchemy import ColumnElement, Select, and_, exists, func, not_, select
from sqlalchemy.orm import aliased

from controlplane.devices.findings.counting import WHOLE_ORGANIZATION, day_of
from controlplane.devices.findings.rules import ANY, OF_BOTH_KINDS
from controlplane.devices.findings.storing import RECENT
from controlplane.devices.overview.listing import conditions
from controlplane.devices.overview.records import Filters
from controlplane.devices.overview.searching import words_of
from controlplane.operation.context import RequestContext
from controlplane.storage.report_tables import (
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
        return [context.visible(Device), Device.revoked_at.is_(None), *own]

    def devices(self) -> list[tuple[str, str, str, int]]:
        """Return the number of matching devices by location, platform and version."""
        columns = [column() for column in ATTRIBUTES.values()]
        query = select(*columns, func.count()).where(*self.device_conditions).group_by(*columns)
        return [(row[0], row[1], row[2], row[3]) for row in self.context.session.execute(query)]

    def by_subject(self) -> Counter[str]:
        """Return the number of devices by rule, by kind of recent report, and for `ANY`."""
        if self.are_stored:
            return self._counter(self._stored(FindingCount, FindingCount.subject))
        rules = self._counter(
            self.findings(DeviceFinding.rule, func.count()).group_by(DeviceFinding.rule)
        )
        return rules + self._counter(self._reports(JudgedReport.kind)) + Counter({ANY: self._any()})

    def by(self, attribute: Attribute, subjects: Collection[str]) -> Counter[str]:
        """Return the numbers for these subjects by an attribute of the devices.

        The subjects are rules, or a single other subject.
        """
        if self.are_stored:
            column = getattr(FindingCount, attribute)
            query = self._stored(FindingCount, column, is_by_location=attribute == "location_id")
            return self._counter(query.where(FindingCount.subject.in_(subjects)))
        column = ATTRIBUTES[attribute]()
        if set(subjects) <= {ANY, "network", "application"}:
            return self._counter(self._reports(column, *(set(subjects) - {ANY})))
        query = (
            self.findings(column, func.count())
            .select_from(DeviceFinding)
            .join(Device, Device.position == DeviceFinding.device)
        )
        return self._counter(query.where(DeviceFinding.rule.in_(subjects)).group_by(column))

    def by_location(self, rule: str | None) -> list[tuple[str, str, int]]:
        """Return rules and locations with their stored numbers of devices, which are not 0.

        Only for filters whose sums are stored.
        """
        columns = (FindingCount.subject, FindingCount.location_id)
        query = self._stored(FindingCount, *columns, is_by_location=True)
        query = query.having(func.sum(FindingCount.devices) > 0)
        if rule is None:
            query = query.where(FindingCount.subject.not_in((ANY, "network", "application")))
        else:
            query = query.where(FindingCount.subject == rule)
        return [(row[0], row[1], row[2]) for row in self.context.session.execute(query)]

    def new(self) -> Counter[str]:
        """Return the number of devices by rule that have the finding since less than a day."""
        query = self.findings(DeviceFinding.rule, func.count()).where(self.is_new)
        return self._counter(query.group_by(DeviceFinding.rule))

    @property
    def is_new(self) -> ColumnElement[bool]:
        """Return the condition for `findings` that devices have since less than a day."""
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

    def findings(self, *columns: Any) -> Select[Any]:
        """Select the findings of the matching devices, one for each device and rule."""
        query = select(*columns).where(
            self.context.visible(DeviceFinding),
            DeviceFinding.last_seen >= self.context.now - RECENT,
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

    def _reports(self, column: Any, *kinds: str) -> Select[Any]:
        """Select the number of matching devices that have recent reports, by a column."""
        query = (
            select(column, func.count(JudgedReport.device.distinct()))
            .select_from(JudgedReport)
            .join(Device, Device.position == JudgedReport.device)
            .where(JudgedReport.arrived_at >= self.context.now - RECENT, *self.device_conditions)
        )
        if kinds:
            query = query.where(JudgedReport.kind.in_(kinds))
        return query.group_by(column)

    def _any(self) -> int:
        return self._counter(self._reports(Device.organization_id)).total()

    def _counter(self, query: Select[Any]) -> Counter[str]:
        rows: Iterable[Any] = self.context.session.execute(query)
        return Counter({row[0]: row[1] for row in rows if row[1]})


def _is_first(recent: Any) -> ColumnElement[bool]:
    """Return the condition that leaves out the second of two equal findings of a device."""
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
