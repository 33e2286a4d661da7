"""How many devices have each finding, and where."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from agent.presentation.severity import SEVERITY_ORDER
from controlplane.accounts.names import names_of
from controlplane.devices.findings import records
from controlplane.devices.findings.counting import day_of
from controlplane.devices.findings.rules import ANY, DEVICE, NON_RULE_SUBJECTS, PROBLEM, rule_of
from controlplane.devices.findings.sums import (
    ATTRIBUTES,
    TREND_DAYS,
    AnySums,
    Attribute,
    quickest_sums,
)
from controlplane.operation.context import RequestContext

LOCATIONS_MAX: Final = 500
_FILTER_NAMES: Final[dict[Attribute, str]] = {
    "location_id": "location", "platform": "platform", "version": "version",
}  # fmt: skip


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
