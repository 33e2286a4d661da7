"""Numbers of devices by finding, location, platform and version.

Each number belongs to a *subject*, which is what it counts (`findings.counting`). Without a filter
by state or search, the numbers are read from the stored sums. With such a filter, the database
joins the symbols of the matching devices (`findings.counting`) into texts, and the symbols in these
texts are counted. If most devices have the selected state, the other devices are counted instead
(`SumsOfMost`).
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Container, Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from operator import itemgetter
from typing import Any, Final, Literal, NamedTuple, get_args

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Select,
    Text,
    and_,
    case,
    cast,
    exists,
    func,
    literal,
    literal_column,
    not_,
    select,
    true,
)
from sqlalchemy.orm import aliased

from agent.presentation.severity import Severity
from controlplane.devices.findings.counting import WHOLE_ORGANIZATION, day_of, symbols
from controlplane.devices.findings.rules import (
    DEVICE,
    NON_RULE_SUBJECTS,
    RULES,
    RULES_OF_BOTH_KINDS,
    rule_of,
)
from controlplane.devices.findings.storing import RECENT
from controlplane.devices.overview.listing import filter_conditions, state_is
from controlplane.devices.overview.records import Filters
from controlplane.devices.overview.searching import words_of
from controlplane.devices.priority import Priority
from controlplane.operation.context import RequestContext
from controlplane.storage.report_tables import (
    DeviceFinding,
    FindingCount,
    FindingDay,
    FindingSubject,
)
from controlplane.storage.statements import disable_jit
from controlplane.storage.tables import Device

TREND_DAYS: Final = 30
ROWS_AT_ONCE: Final = 200
"""Number of rows that the database driver reads at once if not all are needed."""
NEW_AGE_MAX: Final = timedelta(days=1)
"""Age up to which a finding is new."""
Attribute = Literal["location_id", "platform", "version"]
ATTRIBUTES: Final[tuple[Attribute, ...]] = get_args(Attribute)
LocationCount = tuple[str, str, int]
"""A rule, a location, and the number of devices at the location with the finding of the rule."""

NOT_REVOKED: Final = tuple(each.value for each in Priority if each != Priority.REVOKED)
"""The priorities of devices that are not revoked. Queries filter by priority, because the index of
devices contains the priority, but not the time of the revocation."""


class _DeviceGroup(NamedTuple):
    """The matching devices of one location, platform and version.

    ``devices`` has the row keys of the devices (``Device.position``), joined by commas. ``symbols``
    has the joined symbols of their subjects.
    """

    location_id: str
    platform: str
    version: str
    devices: str
    symbols: str


@dataclass(frozen=True)
class Sums:
    """The sums over the devices that a caller may see and that match filters.

    If ``is_state_excluded`` is True, the filter by state is inverted: the devices do not have the
    state of ``filters``.
    """

    context: RequestContext
    filters: Filters
    is_state_excluded: bool = False

    @property
    def are_stored(self) -> bool:
        """Whether the sums for these filters are stored, so that no devices need to be counted."""
        return self.filters.state is None and not words_of(self.filters.search)

    @cached_property
    def device_conditions(self) -> list[ColumnElement[bool]]:
        """Return the conditions for the matching devices that are not revoked."""
        context, filters = self.context, self.filters
        conditions = [context.visible(Device), Device.priority.in_(NOT_REVOKED)]
        if self.is_state_excluded and filters.state is not None:
            conditions.append(not_(state_is(filters.state, context.now)))
            filters = _without_state(filters)
        own = filter_conditions(filters, context.now, context.organization_id)
        return [*conditions, *own]

    @property
    def positions(self) -> Select[int]:
        """Select the matching devices that are not revoked."""
        return select(Device.position).where(*self.device_conditions)

    def by_subject(self) -> Counter[str]:
        """Return the number for each subject."""
        if self.are_stored:
            return self._counter(self._stored_sums(FindingCount, FindingCount.subject))
        counts = Counter("".join(self._texts["platform"].values()))
        return Counter({subject: counts[symbol] for subject, symbol in self._symbols.items()})

    def by(self, attribute: Attribute, subject: str) -> Counter[str]:
        """Return the numbers for a subject by an attribute of the devices."""
        if self.are_stored:
            column = getattr(FindingCount, attribute)
            query = self._stored_sums(
                FindingCount, column, is_by_location=attribute == "location_id"
            )
            return self._counter(query.where(FindingCount.subject == subject))
        symbol = self._symbols.get(subject)
        if symbol is None:
            return Counter()
        return Counter(
            {value: text.count(symbol) for value, text in self._texts[attribute].items()}
        )

    @cached_property
    def _groups(self) -> list[_DeviceGroup]:
        columns = (Device.location_id, Device.platform, Device.app_version)
        devices = func.aggregate_strings(cast(Device.position, Text), ",")
        symbols = func.aggregate_strings(Device.symbols, "")
        query = select(*columns, devices, symbols).where(*self.device_conditions)
        rows = self.context.session.execute(query.group_by(*columns))
        return [_DeviceGroup(row[0], row[1], row[2] or "", row[3], row[4]) for row in rows]

    @cached_property
    def _texts(self) -> dict[Attribute, dict[str, str]]:
        """Return the joined symbols of the matching devices, by the values of each attribute."""
        results: dict[Attribute, dict[str, str]] = {}
        for attribute in ATTRIBUTES:
            texts: defaultdict[str, list[str]] = defaultdict(list)
            for group in self._groups:
                texts[getattr(group, attribute)].append(group.symbols)
            results[attribute] = {value: "".join(each) for value, each in texts.items()}
        return results

    @cached_property
    def _locations(self) -> dict[str, str]:
        """Return the location of each matching device, by its row key as a text."""
        return {
            device: group.location_id
            for group in self._groups
            for device in group.devices.split(",")
        }

    @cached_property
    def _symbols(self) -> dict[str, str]:
        return symbols(self.context.session)

    def by_location(
        self, rule: str | None, severity: Severity, count_max: int
    ) -> Iterable[LocationCount]:
        """Return the numbers of devices by rule and location, the largest first.

        Numbers below 1 and above ``count_max`` are left out. If ``rule`` is None, the numbers are
        for all rules of ``severity``.
        """
        if self.are_stored:
            columns = (FindingCount.subject, FindingCount.location_id)
            query = self._stored_sums(FindingCount, *columns, is_by_location=True)
            query = query.where(_is_selected(FindingCount.subject, rule, severity))
            total = func.sum(FindingCount.devices)
            bound = literal(count_max, BigInteger)  # too large for an INTEGER of PostgreSQL
            query = query.having(total.between(1, bound)).order_by(total.desc())
            return self._read_counts(query)
        if rule is not None:
            selected = [each for each in self._symbols if each == rule]
        else:
            rules = [each for each in self._symbols if each not in NON_RULE_SUBJECTS]
            selected = [each for each in rules if rule_of(each).severity == severity]
        counts = (
            (subject, location_id, text.count(self._symbols[subject]))
            for location_id, text in self._texts["location_id"].items()
            for subject in selected
        )
        return _largest_first(counts, count_max)

    def _read_counts(self, query: Select[Any]) -> Iterator[LocationCount]:
        # There can be thousands of rows, and the caller needs only the first ones.
        query = query.execution_options(yield_per=ROWS_AT_ONCE)
        with self.context.session.execute(query) as rows:
            for row in rows:
                yield row[0], row[1], row[2]

    def new_by_location(
        self, rule: str | None, severity: Severity, count_max: int
    ) -> Iterable[LocationCount]:
        """Return the numbers of devices with a new finding, as `by_location` does."""
        condition = _is_selected(FindingSubject.subject, rule, severity)
        if self.are_stored:
            # Without the appended empty text, SQLite uses the index that is ordered by location,
            # and also reads the old findings. With the text, it uses the index by ``since``.
            location = DeviceFinding.location_id.concat(literal_column("''"))
            subjects = select(FindingSubject.subject).where(condition)
            query = self._new_findings(DeviceFinding.rule, location, func.count())
            query = query.where(DeviceFinding.rule.in_(subjects))
            rows = self.context.session.execute(query.group_by(DeviceFinding.rule, location))
            counts = ((row[0], row[1], row[2]) for row in rows)
            return _largest_first(counts, count_max)
        locations = self._locations
        counts = (
            (code, location_id, count)
            for code, devices in self.new_devices(condition)
            for location_id, count in Counter(
                locations[device] for device in devices if device in locations
            ).items()
        )
        return _largest_first(counts, count_max)

    def new_devices(self, condition: ColumnElement[bool]) -> Iterator[tuple[str, list[str]]]:
        """Yield each rule with the row keys of the devices whose finding is new, as texts.

        All devices at the selected locations are included, also those that do not match.
        """
        devices = func.aggregate_strings(cast(DeviceFinding.device, Text), ",")
        query = _by_rule(self._all_findings(devices, is_new=True)).where(condition)
        for rule, joined in self.context.session.execute(query):
            if joined is not None:
                yield rule, joined.split(",")

    def count(self, subject: str) -> int:
        """Return the number for a subject."""
        return sum(self.by("platform", subject).values())

    def new_by_rule(self) -> Counter[str]:
        """Return, by rule, the number of devices that have had the finding for less than a day."""
        if not self.are_stored:
            return Counter(
                {
                    rule: sum(device in self._locations for device in devices)
                    for rule, devices in self.new_devices(true())
                }
            )
        if self._filtered_positions is None:
            return self._counter(_by_rule(self._new_findings(func.count())))
        query = self._new_findings(DeviceFinding.rule, func.count())
        query = query.where(DeviceFinding.rule.in_(select(FindingSubject.subject)))
        return self._counter(query.group_by(DeviceFinding.rule))

    @property
    def _is_new(self) -> ColumnElement[bool]:
        """Return the condition for findings that devices have had for less than a day.

        A finding is not new if the reports of the other kind have had it for a day or longer.
        """
        recent, since = self.context.now - RECENT, self.context.now - NEW_AGE_MAX
        other = aliased(DeviceFinding)
        # The index contains the kind. It helps with `other.kind ==`, but not with `other.kind !=`.
        other_kind = case((DeviceFinding.kind == "network", "application"), else_="network")
        is_older = exists().where(
            other.device == DeviceFinding.device,
            other.kind == other_kind,
            other.rule == DeviceFinding.rule,
            other.last_seen >= recent,
            other.since < since,
        )
        has_older = and_(DeviceFinding.rule.in_(RULES_OF_BOTH_KINDS), is_older)
        return and_(DeviceFinding.since >= since, not_(has_older))

    def changes(self) -> dict[str, Counter[int]] | None:
        """Return the change of the sums by subject and day; None if it is not stored."""
        if not self.are_stored:
            return None
        first = day_of(self.context.now) - TREND_DAYS + 1
        query = self._stored_sums(FindingDay, FindingDay.subject, FindingDay.day)
        results: dict[str, Counter[int]] = {}
        for subject, day, change in self.context.session.execute(
            query.where(FindingDay.day >= first)
        ):
            results.setdefault(subject, Counter())[day] = change
        return results

    def device_keys(self) -> Container[str]:
        """Return the row keys of the matching devices, as texts."""
        if not self.are_stored:
            return self._locations
        query = select(func.aggregate_strings(cast(Device.position, Text), ","))
        joined = self.context.session.scalar(query.where(*self.device_conditions))
        return frozenset((joined or "").split(","))

    def device_keys_at(self, locations: Collection[str]) -> Container[str] | None:
        """Return the row keys of the matching devices at locations, as texts.

        Returns None if `findings_at` selects only the findings of matching devices.
        """
        if self.are_stored:
            return None
        groups = (each.devices for each in self._groups if each.location_id in locations)
        return frozenset(",".join(groups).split(","))

    def findings_at(self, locations: Collection[str], *columns: Any, is_new: bool) -> Select[Any]:
        """Select the findings at locations, one for each device and rule.

        The caller leaves out the devices that do not match (`device_keys_at`).
        """
        query = self._all_findings(*columns, is_new=is_new)
        query = query.where(DeviceFinding.location_id.in_(locations))
        positions = self._filtered_positions
        if positions is not None:
            positions = positions.where(Device.location_id.in_(locations))
            query = query.where(DeviceFinding.device.in_(positions))
        return query

    @property
    def _filtered_positions(self) -> Select[int] | None:
        """Select the devices that match the filters by platform and version.

        Returns None without a filter by platform or version, and for filters whose sums are not
        stored.
        """
        if (self.filters.platform is None and self.filters.version is None) or not self.are_stored:
            return None
        return self.positions

    def _new_findings(self, *columns: Any) -> Select[Any]:
        """Select the new findings of the matching devices, for filters whose sums are stored."""
        query = self._all_findings(*columns, is_new=True)
        positions = self._filtered_positions
        return query if positions is None else query.where(DeviceFinding.device.in_(positions))

    def _all_findings(self, *columns: Any, is_new: bool) -> Select[Any]:
        """Select the findings at the selected locations, one for each device and rule."""
        query = select(*columns).where(
            self.context.visible(DeviceFinding),
            # A new finding is always in a recent report, so `_is_new` needs no condition for that.
            self._is_new if is_new else DeviceFinding.last_seen >= self.context.now - RECENT,
            _is_first(self.context.now - RECENT),
        )
        if self.filters.location is not None:
            query = query.where(DeviceFinding.location_id == self.filters.location)
        return query

    def _stored_sums(self, table: Any, *columns: Any, is_by_location: bool = False) -> Select[Any]:
        """Select the sums of stored numbers by these columns.

        The table has rows for single locations, and rows for the whole organization. The rows for
        the organization are used if the caller and the filters select all locations, but never
        with ``is_by_location``.
        """
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


@dataclass(frozen=True)
class SumsOfMost:
    """The sums over devices that are selected by a state that most devices have.

    These are the stored sums over devices in any state, ``all``, minus the sums over the devices in
    other states, ``others``. The methods are those of `Sums` with the same names.
    """

    all: Sums
    others: Sums

    def by_subject(self) -> Counter[str]:
        return self.all.by_subject() - self.others.by_subject()

    def by(self, attribute: Attribute, subject: str) -> Counter[str]:
        return self.all.by(attribute, subject) - self.others.by(attribute, subject)

    def count(self, subject: str) -> int:
        return self.all.count(subject) - self.others.count(subject)

    def new_by_rule(self) -> Counter[str]:
        others = self.others.device_keys()
        return Counter(
            {
                rule: sum(device not in others for device in devices)
                for rule, devices in self.others.new_devices(true())
            }
        )

    def changes(self) -> None:
        return None


AnySums = Sums | SumsOfMost


def _largest_first(counts: Iterable[LocationCount], count_max: int) -> list[LocationCount]:
    """Return the counts from 1 to ``count_max``, the largest first."""
    selected = (each for each in counts if 1 <= each[2] <= count_max)
    return sorted(selected, key=itemgetter(2), reverse=True)


def sums_of(context: RequestContext, filters: Filters) -> Sums:
    disable_jit(context.session)
    return Sums(context, filters)


def quickest_sums(context: RequestContext, filters: Filters) -> AnySums:
    """Return the sums over the matching devices in the form that needs to read fewer devices."""
    sums = sums_of(context, filters)
    is_by_state = filters.state is not None and not words_of(filters.search)
    # `SumsOfMost.new_by_rule` does not select devices by platform and version.
    if not is_by_state or filters.platform is not None or filters.version is not None:
        return sums
    all_sums = Sums(context, _without_state(filters))
    matching = context.session.scalar(select(func.count()).where(*sums.device_conditions)) or 0
    if 2 * matching <= all_sums.count(DEVICE):
        return sums
    return SumsOfMost(all_sums, Sums(context, filters, is_state_excluded=True))


def _without_state(filters: Filters) -> Filters:
    return filters.model_copy(update={"state": None})


def _by_rule(findings: Select[Any]) -> Select[Any]:
    """Select each rule, and an aggregate over the findings of this rule.

    ``findings`` selects the aggregate over the findings of all rules. SQLite and PostgreSQL then
    read the selected findings from the index, rule by rule. If the findings are grouped instead,
    PostgreSQL reads all findings.
    """
    own = findings.where(DeviceFinding.rule == FindingSubject.subject)
    return select(FindingSubject.subject, own.correlate(FindingSubject).scalar_subquery())


def _is_selected(column: Any, rule: str | None, severity: Severity) -> ColumnElement[bool]:
    """Return the condition for a rule, or for the rules of a severity.

    A rule that this release does not have counts as muted.
    """
    codes = {code for code, text in RULES.items() if text.severity == severity}
    if rule is not None:
        is_rule: ColumnElement[bool] = column == rule
    elif severity == "muted":
        is_rule = column.not_in(sorted(RULES.keys() - codes | NON_RULE_SUBJECTS))
    else:
        is_rule = column.in_(sorted(codes))
    return is_rule


def _is_first(recent: Any) -> ColumnElement[bool]:
    """Return the condition that leaves out the second of two findings of a rule on one device.

    The finding in the network report is left out if a recent application report has it too.
    """
    other = aliased(DeviceFinding)
    of_other_kind = exists().where(
        other.device == DeviceFinding.device,
        other.kind == "application",
        other.rule == DeviceFinding.rule,
        other.last_seen >= recent,
    )
    is_second = and_(
        DeviceFinding.kind == "network", DeviceFinding.rule.in_(RULES_OF_BOTH_KINDS), of_other_kind
    )
    return not_(is_second)
