from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from agent.rules.learned_printers import (
    DETAILS_AGE_MAX,
    PRINTERS_MAX,
    REPLACEMENT_REPORTED,
    TEXT_MAX,
    RememberedPrinters,
    Replacement,
    still_known,
    update_memory,
)
from collectors.contract import Failure, LearnedPrinter, NetworkFacts, Printer

NOW = datetime(2026, 11, 21, tzinfo=UTC)
KITCHEN = LearnedPrinter(
    id="cups:kitchen",
    setup="192.168.1.50",
    seen_at=NOW.isoformat(),
    address="192.168.1.50",
    mac_address="00:1b:a9:00:00:01",
    serial="X3B7001",
)
BAR = replace(KITCHEN, id="cups:bar", mac_address="00:1b:a9:00:00:02")


def facts(
    *learned: LearnedPrinter, printer_ids: tuple[str, ...] = (KITCHEN.id, BAR.id)
) -> NetworkFacts:
    printers = tuple(
        Printer(printer_id, printer_id, "network", "unreachable") for printer_id in printer_ids
    )
    return NetworkFacts(
        "local-network", "linux", None, "2026-11-21", printers=printers, learned=learned
    )


def printers_after(
    known: tuple[LearnedPrinter, ...], collected: NetworkFacts
) -> tuple[LearnedPrinter, ...]:
    return update_memory(RememberedPrinters(known), collected, NOW).printers


def test_printers_that_a_report_lacks_keep_their_learned_details() -> None:
    moved = replace(BAR, address="192.168.1.77")
    assert printers_after((KITCHEN, BAR), facts(moved)) == (KITCHEN, moved)


def test_a_value_that_a_later_report_lacks_is_kept_for_the_same_printer() -> None:
    assert printers_after((KITCHEN,), facts(replace(KITCHEN, serial=None))) == (KITCHEN,)


def test_a_printer_with_a_new_configured_address_loses_its_learned_details() -> None:
    reconfigured = replace(KITCHEN, setup="192.168.1.60", serial=None)
    assert printers_after((KITCHEN,), facts(reconfigured)) == (reconfigured,)


def test_a_printer_that_is_gone_from_the_machine_is_forgotten() -> None:
    assert printers_after((KITCHEN, BAR), facts(printer_ids=(BAR.id,))) == (BAR,)


@pytest.mark.parametrize(
    "changes",
    [
        {"printers": None},
        {"printers": ()},
        {"failures": (Failure("printers", "CUPS does not answer"),)},
        {"cancelled": True},
    ],
)
def test_a_report_with_an_incomplete_printer_list_removes_no_learned_details(
    changes: dict[str, object],
) -> None:
    output = replace(facts(printer_ids=(BAR.id,)), **changes)  # type: ignore[arg-type]
    assert printers_after((KITCHEN, BAR), output) == (KITCHEN, BAR)


NEW = replace(KITCHEN, mac_address="00:1b:a9:00:00:03", serial=None)
HOUR = timedelta(hours=1)


def after_reports(
    memory: RememberedPrinters, *facts_by_age: tuple[timedelta, NetworkFacts]
) -> RememberedPrinters:
    for age, collected in facts_by_age:
        memory = update_memory(memory, collected, NOW + age)
    return memory


def stranger(printer: LearnedPrinter = NEW) -> NetworkFacts:
    """Return facts in which a different device answers at the kitchen printer's address."""
    return replace(facts(), strangers=(printer,))


def test_a_device_that_stays_at_the_address_replaces_the_printer() -> None:
    known = RememberedPrinters((KITCHEN,))
    reported_twice = after_reports(known, (HOUR, stranger()), (2 * HOUR, stranger()))
    since = (NOW + HOUR).isoformat(timespec="seconds")
    assert reported_twice == RememberedPrinters((KITCHEN,), (Replacement(NEW, since, 2),))
    # Only 23 hours have passed since the first report of the new device.
    assert after_reports(reported_twice, (24 * HOUR, stranger())).printers == (KITCHEN,)
    # Reports without the new device do not change the memory.
    off_for_a_night = after_reports(reported_twice, (20 * HOUR, facts()), (26 * HOUR, facts()))
    assert off_for_a_night == reported_twice
    replaced = RememberedPrinters((replace(NEW, replaced_at=since),))
    assert after_reports(off_for_a_night, (27 * HOUR, stranger())) == replaced

    mention_ends_at = NOW + HOUR + REPLACEMENT_REPORTED
    assert still_known(replaced.printers, mention_ends_at - HOUR) == replaced.printers
    assert still_known(replaced.printers, mention_ends_at) == (NEW,)


def test_two_reports_of_a_new_device_do_not_replace_the_printer() -> None:
    known = after_reports(
        RememberedPrinters((KITCHEN,)), (HOUR, stranger()), (48 * HOUR, stranger())
    )
    assert known.printers == (KITCHEN,)


@pytest.mark.parametrize(
    "between",
    [
        facts(replace(KITCHEN, address="192.168.1.77")),
        stranger(replace(NEW, mac_address="00:1b:a9:00:00:04")),
    ],
    ids=["the old printer is seen again", "a third device has the address"],
)
def test_the_count_of_a_replacement_restarts_after_a_different_report(
    between: NetworkFacts,
) -> None:
    known = after_reports(
        RememberedPrinters((KITCHEN,)), (HOUR, stranger()), (2 * HOUR, stranger())
    )
    memory_after = after_reports(known, (3 * HOUR, between), (27 * HOUR, stranger()))
    (printer,), (replacement,) = memory_after.printers, memory_after.replacements
    assert printer.mac_address == KITCHEN.mac_address
    assert (replacement.printer, replacement.reports) == (NEW, 1)


def test_a_forgotten_printer_loses_its_possible_replacement() -> None:
    known = after_reports(RememberedPrinters((KITCHEN, BAR)), (HOUR, stranger()))
    assert update_memory(known, facts(printer_ids=(BAR.id,)), NOW) == RememberedPrinters((BAR,))
    assert known.without(KITCHEN.id) == RememberedPrinters((BAR,))


def test_learned_printers_are_bounded_in_number_and_length() -> None:
    many = tuple(replace(KITCHEN, id=f"cups:{n}") for n in range(PRINTERS_MAX + 3))
    learned = printers_after((), facts(*many))
    assert len(learned) == PRINTERS_MAX
    assert len(still_known(many, NOW)) == PRINTERS_MAX
    assert printers_after((), facts(replace(KITCHEN, model="x" * (TEXT_MAX + 1)))) == ()


def test_learned_details_contain_no_secret() -> None:
    (learned,) = printers_after((), facts(replace(KITCHEN, model="http://till:geheim7@10.0.0.1/")))
    assert "geheim7" not in (learned.model or "")


@pytest.mark.parametrize(
    "seen_at", ["", "yesterday", (NOW - DETAILS_AGE_MAX).isoformat(), "2026-11-21"]
)
def test_learned_printers_with_an_old_or_invalid_time_are_ignored(seen_at: str) -> None:
    assert still_known((replace(KITCHEN, seen_at=seen_at),), NOW) == ()
    recent = replace(KITCHEN, seen_at=(NOW - DETAILS_AGE_MAX + timedelta(seconds=1)).isoformat())
    assert still_known((recent,), NOW) == (recent,)
