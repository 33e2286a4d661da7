"""Tests of stored findings: when they begin and end, how they are counted and evaluated again."""

from functools import partial
from typing import Any
from unittest.mock import Mock

import pytest
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from agent.presentation.findings.findings import APPLICATION_RULES, NETWORK_RULES
from agent.wire import routes
from controlplane.devices.findings.counting import add_subjects, symbols
from controlplane.devices.findings.judging import judge_again, stop_counting_old_reports
from controlplane.devices.findings.rules import (
    NON_RULE_SUBJECTS,
    RULES_OF_BOTH_KINDS,
    RULES_VERSION,
    version_number,
)
from controlplane.devices.overview import summaries
from controlplane.storage.report_tables import DeviceFinding, JudgedReport, PrinterProblem
from controlplane.storage.tables import Device
from tests.unit.controlplane.devices.findings.fleet import payload
from tests.unit.controlplane.devices.test_newest_reports import NETWORK_REPORT, call_console, enroll
from tests.unit.controlplane.running_service import RunningService

DAY_S = 86_400
NO_FAULTS = frozenset[str]()


async def counts(service: RunningService, **filters: Any) -> dict[str, tuple[int, int, int]]:
    """Return three numbers of devices for each rule: those that have its finding, those whose
    reports do not show whether they have the finding, and those that have had the finding for less
    than a day.
    """
    reply = await call_console(service, "findings", **filters)
    return {
        each["rule"]: (each["deviceCount"], each["unknownCount"], each["newCount"])
        for each in reply["findings"]
    }


async def entries(service: RunningService, **filters: Any) -> list[Any]:
    return list((await call_console(service, "findings/devices", **filters))["entries"])


def test_rules_with_the_same_code_have_the_same_severity_sentence_and_fix() -> None:
    by_code = {rule.code: rule for rule in APPLICATION_RULES}
    shared_codes = {rule.code for rule in NETWORK_RULES} & by_code.keys()
    assert shared_codes == set(RULES_OF_BOTH_KINDS)
    for rule in NETWORK_RULES:
        if rule.code in shared_codes:
            other = by_code[rule.code]
            assert (rule.severity, rule.sentence, rule.fix) == (
                other.severity,
                other.sentence,
                other.fix,
            )
    assert not NON_RULE_SUBJECTS & {*by_code, *(r.code for r in NETWORK_RULES)}


def test_a_later_release_has_a_larger_version_of_the_rules() -> None:
    numbers = [version_number(each) for each in ("0.9.9", "1.0.0", "1.0.1", "1.10.0", "2.0.0")]
    assert numbers == sorted(set(numbers))


async def test_a_subject_keeps_its_character(service: RunningService) -> None:
    """A subject is something for which the service counts devices, such as a rule.

    `Device.symbols` stores one character for each subject, so the character of a subject must not
    change.
    """
    first = service.database.write(lambda session: add_subjects(session, {"b", "a"}))
    later = service.database.write(lambda session: add_subjects(session, {"a", "c", "b"}))
    assert first.items() < later.items()
    assert len(set(later.values())) == len(later) == 3
    assert service.database.read(symbols) == later


async def test_a_finding_is_counted_as_soon_as_its_report_is_accepted(
    service: RunningService,
) -> None:
    bar = await enroll(service, "bar")
    await enroll(service, "office")
    await bar.submit(NETWORK_REPORT)
    assert await counts(service) == {"printer-moved": (1, 1, 1), "printer-unreachable": (1, 1, 1)}
    await bar.submit(payload("network", frozenset({"kitchen"})))
    assert (await counts(service))["printer-unreachable"] == (0, 1, 0)
    reply = await call_console(service, "findings", rule="printer-moved")
    (location,) = reply["locations"]
    assert (location["count"], location["unknownCount"]) == (1, 1)
    assert location["link"] == "/#/findings?location=loc-0001&rule=printer-moved"


async def test_devices_of_a_location_with_the_same_finding_are_one_entry(
    service: RunningService,
) -> None:
    for name, location in (("bar", "loc-0001"), ("office", "loc-0001"), ("till", "loc-0002")):
        await (await enroll(service, name, location)).submit(NETWORK_REPORT)
    entry_list = await entries(service, rule="printer-moved")
    assert [(each["locationId"], each["deviceCount"]) for each in entry_list] == [
        ("loc-0001", 2),
        ("loc-0002", 1),
    ]
    assert [each["name"] for each in entry_list[0]["devices"]] == ["bar", "office"]


async def test_the_same_problem_in_both_reports_counts_once(service: RunningService) -> None:
    bar = await enroll(service, "bar")
    await bar.submit(payload("application", frozenset({"scale"})), kind="application")
    await bar.submit(payload("network", frozenset({"scale on the network"})))
    for filters in ({}, {"search": "bar"}):
        assert (await counts(service, **filters))["device-absent"] == (1, 0, 1)
        (entry,) = await entries(service, rule="device-absent", **filters)
        assert (entry["deviceCount"], len(entry["devices"])) == (1, 1)


async def test_a_finding_begins_with_the_first_of_consecutive_reports_that_have_it(
    service: RunningService,
) -> None:
    bar = await enroll(service, "bar")
    begins = []
    for report in (
        NETWORK_REPORT,
        NETWORK_REPORT,
        payload("network", NO_FAULTS),
        NETWORK_REPORT,
        None,
    ):
        service.clock.advance(60)
        await bar.submit(report)
        begins += [each["since"] for each in await entries(service, rule="printer-moved")]
    first, same, again, after_empty = begins
    assert first == same < again == after_empty


async def test_findings_of_old_reports_and_of_revoked_devices_are_not_counted(
    service: RunningService,
) -> None:
    bar, office = await enroll(service, "bar"), await enroll(service, "office")
    await bar.submit(NETWORK_REPORT)
    await office.submit(NETWORK_REPORT)
    await office.call(routes.REVOKE, instanceId=office.instance_id)
    assert (await counts(service))["printer-moved"] == (1, 0, 1)
    service.clock.advance(8 * DAY_S)
    step = partial(stop_counting_old_reports, now=service.clock())
    assert service.database.write(step) == 1
    assert service.database.write(step) == 0
    assert (await counts(service))["printer-moved"] == (0, 1, 0)
    reply = await call_console(service, "findings")
    assert (reply["deviceCount"], reply["unknownCount"]) == (1, 1)
    (moved,) = (each for each in reply["findings"] if each["rule"] == "printer-moved")
    assert moved["trend"][-9:] == [1] * 8 + [0]
    await bar.submit(NETWORK_REPORT)
    assert (await counts(service))["printer-moved"] == (1, 0, 0)


async def test_a_new_release_evaluates_the_newest_reports_again(service: RunningService) -> None:
    bar = await enroll(service, "bar")
    await bar.submit(NETWORK_REPORT)
    before = await entries(service, rule="printer-moved")
    service.clock.advance(60)

    def make_outdated(session: Session) -> None:
        session.execute(update(JudgedReport).values(rules_version=RULES_VERSION - 1))
        moved = DeviceFinding.rule == "printer-moved"
        session.execute(update(DeviceFinding).where(moved).values(sentence="Old words."))
        other = DeviceFinding.rule == "printer-unreachable"
        session.execute(update(DeviceFinding).where(other).values(rule="removed-rule"))
        session.execute(update(Device).values(symbols=""))

    service.database.write(make_outdated)
    step = partial(judge_again, now=service.clock())
    assert service.database.write(step) == 1
    assert service.database.write(step) == 0
    assert await entries(service, rule="printer-moved") == before
    assert (await counts(service))["printer-unreachable"] == (1, 0, 1)
    assert await counts(service, search="bar") == await counts(service)
    rules = service.database.read(lambda session: session.scalars(select(DeviceFinding.rule)).all())
    assert sorted(rules) == ["printer-moved", "printer-unreachable"]


async def test_findings_remain_if_the_rules_of_a_new_release_fail(
    service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    bar = await enroll(service, "bar")
    await bar.submit(NETWORK_REPORT)
    before = await entries(service, rule="printer-moved")
    service.database.write(
        lambda session: session.execute(
            update(JudgedReport).values(rules_version=RULES_VERSION - 1)
        )
    )
    monkeypatch.setattr(summaries, "findings_of", Mock(side_effect=ValueError))
    step = partial(judge_again, now=service.clock())
    assert [service.database.write(step) for _ in range(2)] == [1, 0]
    assert before
    assert await entries(service, rule="printer-moved") == before


async def test_a_printer_is_not_broken_during_weeks_without_reports(
    service: RunningService,
) -> None:
    bar = await enroll(service, "bar")
    await bar.submit(NETWORK_REPORT)
    service.clock.advance(3600)
    await bar.submit(NETWORK_REPORT)
    service.clock.advance(20 * 86_400)
    await bar.submit(payload("network", NO_FAULTS))
    reply = await call_console(service, "findings/printers")
    assert [each["brokenSeconds"] for each in reply["printers"]] == [3600, 3600]


async def test_only_the_last_thirty_days_of_a_problem_count(service: RunningService) -> None:
    bar = await enroll(service, "bar")
    await bar.submit(payload("network", frozenset({"kitchen"})))
    for _ in range(2):
        service.clock.advance(DAY_S)
        await bar.submit(payload("network", frozenset({"kitchen"})))
    service.clock.advance(3600)
    await bar.submit(payload("network", NO_FAULTS))
    service.database.write(lambda session: session.execute(update(PrinterProblem).values(name="?")))
    service.clock.advance(29 * DAY_S)
    (printer,) = (await call_console(service, "findings/printers"))["printers"]
    assert (printer["brokenSeconds"], printer["brokenCount"]) == (DAY_S, 1)
    assert printer["name"] != "?", "the newest report has the newest name"
    service.clock.advance(2 * DAY_S)
    assert (await call_console(service, "findings/printers"))["printers"] == []


async def test_worst_printers_are_those_that_were_broken_longest(service: RunningService) -> None:
    bar, office = await enroll(service, "bar"), await enroll(service, "office")
    await bar.submit(NETWORK_REPORT)
    await office.submit(payload("network", frozenset({"kitchen"})))
    service.clock.advance(3600)
    await bar.submit(payload("network", NO_FAULTS))
    service.clock.advance(3600)
    reply = await call_console(service, "findings/printers")
    worst = [
        (each["deviceName"], each["id"], each["state"], each["brokenSeconds"], each["brokenCount"])
        for each in reply["printers"]
    ]
    assert worst[0] == ("office", "kitchen", "broken", 7200, 1)
    assert sorted(worst[1:]) == [
        ("bar", "kitchen", "healthy", 3600, 1),
        ("bar", "office", "healthy", 3600, 1),
    ]
    assert reply["unknownCount"] == 0


@pytest.mark.parametrize("is_new", [None, True])
async def test_pages_of_entries_are_complete(service: RunningService, is_new: bool | None) -> None:
    for number in range(5):
        await (await enroll(service, f"till-{number}", f"loc-{number:04}")).submit(NETWORK_REPORT)
    filters: dict[str, Any] = {} if is_new is None else {"isNew": is_new}
    keys, cursor = list[Any](), dict[str, str]()
    while True:
        page = await call_console(service, "findings/devices", size=3, **filters, **cursor)
        keys += [(each["rule"], each["locationId"]) for each in page["entries"]]
        if page["nextCursor"] is None:
            break
        cursor = {"cursor": page["nextCursor"]}
    assert len(keys) == len(set(keys)) == 10
