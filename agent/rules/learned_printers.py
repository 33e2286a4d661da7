"""How what is known of this machine's printers follows from what a report has learned. Pure."""

from collections.abc import Iterable
from dataclasses import fields, replace
from datetime import datetime, timedelta
from typing import Final

from agent.redaction.known import redact
from agent.rules.reports.redacted_facts import redacted
from collectors.contract import LearnedPrinter, NetworkFacts

PRINTERS_MAX: Final = 256
TEXT_MAX: Final = 1024
KEPT: Final = timedelta(days=180)
"""A printer that was not seen for so long tells nothing any more."""

REPLACED_AFTER: Final = timedelta(days=7)
"""After so long, another device at the printer's address is the one that replaced it."""

Learned = tuple[LearnedPrinter, ...]


def still_known(learned: Learned, now: datetime) -> Learned:
    """Leave out what is too old, and what was not written by this agent."""
    return tuple(each for each in learned if _is_seen_within(KEPT, each, now))[:PRINTERS_MAX]


def updated(known: Learned, facts: NetworkFacts, now: datetime) -> Learned:
    """Return what is known after a report: of a printer that was not seen what was known before.

    A printer that is gone from the machine is forgotten. Where none is left of those that one
    spooler had, it may only have been stopped. One that was replaced is forgotten, once it was not
    seen for a week.
    """
    if facts.cancelled:
        return known
    before = {each.id: each for each in known}
    new = {
        each.id: _merged(before.get(each.id), each)
        for each in (redacted(each, redact) for each in facts.learned)
        if _is_short(each)
    }
    kept = {
        id_: each
        for id_, each in before.items()
        if _is_there(id_, facts)
        and (id_ not in facts.replaced or _is_seen_within(REPLACED_AFTER, each, now))
    }
    return tuple((kept | new).values())[-PRINTERS_MAX:]


def _merged(before: LearnedPrinter | None, now: LearnedPrinter) -> LearnedPrinter:
    """Keep of the same printer what was not told this time."""
    if before is None or before.setup != now.setup:
        return now
    missing = {f.name: getattr(before, f.name) for f in fields(now) if not getattr(now, f.name)}
    return replace(now, **missing)


def _is_there(printer_id: str, facts: NetworkFacts) -> bool:
    if facts.printers is None or facts.failures:
        return True
    there = {each.id for each in facts.printers}
    return printer_id in there or _source(printer_id) not in {_source(each) for each in there}


def _source(printer_id: str) -> str:
    """Return who told of a printer: ``cups:kitchen``; a configured one has an id of its own."""
    return printer_id.partition(":")[0] if ":" in printer_id else ""


def _is_short(learned: LearnedPrinter) -> bool:
    return all(len(text) <= TEXT_MAX for text in _texts(learned))


def _texts(learned: LearnedPrinter) -> Iterable[str]:
    return filter(None, (getattr(learned, each.name) for each in fields(learned)))


def _is_seen_within(period: timedelta, learned: LearnedPrinter, now: datetime) -> bool:
    try:
        return now - datetime.fromisoformat(learned.seen_at) < period
    except (ValueError, TypeError):
        return False
