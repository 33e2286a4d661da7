from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from agent.rules.learned_printers import KEPT, PRINTERS_MAX, TEXT_MAX, still_known, updated
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


def facts(*learned: LearnedPrinter, there: tuple[str, ...] = (KITCHEN.id, BAR.id)) -> NetworkFacts:
    printers = tuple(Printer(each, each, "network", "unreachable") for each in there)
    return NetworkFacts(
        "local-network", "linux", None, "2026-11-21", printers=printers, learned=learned
    )


def test_what_was_not_seen_stays_as_it_was_known() -> None:
    moved = replace(BAR, address="192.168.1.77")
    assert updated((KITCHEN, BAR), facts(moved), NOW) == (KITCHEN, moved)


def test_what_was_not_told_this_time_is_kept_of_the_same_printer() -> None:
    assert updated((KITCHEN,), facts(replace(KITCHEN, serial=None)), NOW) == (KITCHEN,)


def test_of_a_printer_that_was_set_up_anew_nothing_old_is_kept() -> None:
    anew = replace(KITCHEN, setup="192.168.1.60", serial=None)
    assert updated((KITCHEN,), facts(anew), NOW) == (anew,)


def test_a_printer_that_is_gone_from_the_machine_is_forgotten() -> None:
    assert updated((KITCHEN, BAR), facts(there=(BAR.id,)), NOW) == (BAR,)


@pytest.mark.parametrize(
    "changes",
    [
        {"printers": None},
        {"printers": ()},
        {"failures": (Failure("printers", "CUPS does not answer"),)},
        {"cancelled": True},
    ],
)
def test_nothing_is_forgotten_where_the_printers_were_not_all_told(
    changes: dict[str, object],
) -> None:
    told = replace(facts(there=(BAR.id,)), **changes)  # type: ignore[arg-type]
    assert updated((KITCHEN, BAR), told, NOW) == (KITCHEN, BAR)


@pytest.mark.parametrize(
    ("unseen", "is_known"), [(timedelta(days=6), True), (timedelta(days=7), False)]
)
def test_a_printer_that_was_replaced_is_forgotten_after_a_week(
    unseen: timedelta, is_known: bool
) -> None:
    replaced = replace(facts(), replaced=(KITCHEN.id,))
    kept = updated((KITCHEN, BAR), replaced, NOW + unseen)
    assert kept == ((KITCHEN, BAR) if is_known else (BAR,))


def test_it_is_bounded_in_number_and_length() -> None:
    many = tuple(replace(KITCHEN, id=f"cups:{n}") for n in range(PRINTERS_MAX + 3))
    kept = updated((), facts(*many), NOW)
    assert len(kept) == PRINTERS_MAX
    assert len(still_known(many, NOW)) == PRINTERS_MAX
    assert updated((), facts(replace(KITCHEN, model="x" * (TEXT_MAX + 1))), NOW) == ()


def test_no_secret_is_kept() -> None:
    (kept,) = updated((), facts(replace(KITCHEN, model="http://till:geheim7@10.0.0.1/")), NOW)
    assert "geheim7" not in (kept.model or "")


@pytest.mark.parametrize("seen_at", ["", "yesterday", (NOW - KEPT).isoformat(), "2026-11-21"])
def test_what_is_too_old_or_has_no_time_is_not_known(seen_at: str) -> None:
    assert still_known((replace(KITCHEN, seen_at=seen_at),), NOW) == ()
    recent = replace(KITCHEN, seen_at=(NOW - KEPT + timedelta(seconds=1)).isoformat())
    assert still_known((recent,), NOW) == (recent,)
