"""Updates the remembered details of printers and watched devices after a report.

docs/adr/0023-remembered-printers.md has the reasons.
"""

from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from typing import Final

from agent.redaction.known import redact
from agent.rules.reports.redacted_facts import redacted
from collectors.contract import Facts, LearnedPrinter, NetworkFacts

PRINTERS_MAX: Final = 256
TEXT_MAX: Final = 1024
"""A printer is not remembered if one of its texts is longer than this."""
DETAILS_AGE_MAX: Final = timedelta(days=180)
"""Details of a printer that was not seen for this time are dropped."""

REPLACED_AFTER: Final = timedelta(days=1)
REPLACED_AFTER_REPORTS: Final = 3
"""A device at a printer's address counts as the replacement of the printer after this time and this
number of reports, if the printer itself was not seen."""

REPLACEMENT_REPORTED: Final = timedelta(days=7)
"""Time during which reports mention the replacement."""

LearnedPrinters = tuple[LearnedPrinter, ...]


@dataclass(frozen=True, slots=True)
class Replacement:
    """A device at a printer's address that is not this printer.

    Args:
        printer: The details of the device. The ``id`` is the id of the printer.
        since: When the device was first seen there.
        reports: The number of reports that saw it there.
    """

    printer: LearnedPrinter
    since: str
    reports: int = 1


@dataclass(frozen=True, slots=True)
class RememberedPrinters:
    """The stored details of printers, and the devices that might have replaced some of them."""

    printers: LearnedPrinters = ()
    replacements: tuple[Replacement, ...] = ()

    def without(self, printer_id: str) -> "RememberedPrinters":
        """Return everything except the details of one printer."""
        return RememberedPrinters(
            tuple(printer for printer in self.printers if printer.id != printer_id),
            tuple(
                replacement
                for replacement in self.replacements
                if replacement.printer.id != printer_id
            ),
        )


NOTHING_LEARNED: Final = RememberedPrinters()


def still_known(learned: LearnedPrinters, now: datetime) -> LearnedPrinters:
    """Return the printers whose details are not too old.

    ``replaced_at`` becomes None if it is at least `REPLACEMENT_REPORTED` ago.
    """
    recent = [printer for printer in learned if _is_within(DETAILS_AGE_MAX, printer.seen_at, now)]
    return tuple(
        printer
        if _is_within(REPLACEMENT_REPORTED, printer.replaced_at or "", now)
        else replace(printer, replaced_at=None)
        for printer in recent[:PRINTERS_MAX]
    )


def update_memory(memory: RememberedPrinters, facts: Facts, now: datetime) -> RememberedPrinters:
    """Return the details to store after a report. Printers that were not seen keep their details.

    ``facts.strangers`` are the devices that answer at the address of a printer that did not answer.

    Printers that were removed from the machine are dropped. If a spooler lists no printers at all,
    it might only be stopped, so its printers are kept.
    """
    if facts.cancelled:
        return memory
    known_printers = still_known(memory.printers, now)
    before_by_id = {
        printer.id: printer for printer in known_printers if _may_still_exist(printer.id, facts)
    }
    seen_by_id = _by_id(facts.learned)
    new_by_id = {id_: _merge(before_by_id.get(id_), printer) for id_, printer in seen_by_id.items()}
    replacements = _replacements(memory, facts, now)
    for stranger in facts.strangers:
        replacement = replacements.get(stranger.id)
        if replacement is not None and _has_replaced(replacement, now):
            new_by_id.setdefault(
                stranger.id, replace(replacement.printer, replaced_at=replacement.since)
            )
    return RememberedPrinters(
        tuple((before_by_id | new_by_id).values())[-PRINTERS_MAX:],
        tuple(
            replacement
            for id_, replacement in replacements.items()
            if id_ in before_by_id and id_ not in new_by_id
        ),
    )


def _replacements(
    memory: RememberedPrinters, facts: Facts, now: datetime
) -> dict[str, Replacement]:
    """Return the devices that might have replaced a printer, by the printer's id.

    A device stays in the result even if this report did not see it: it might be switched off.
    """
    replacements = {replacement.printer.id: replacement for replacement in memory.replacements}
    for id_, stranger in _by_id(facts.strangers).items():
        earlier = replacements.get(id_)
        if earlier is not None and _is_same(earlier.printer, stranger):
            replacements[id_] = Replacement(
                _merge(earlier.printer, stranger), earlier.since, earlier.reports + 1
            )
        else:
            replacements[id_] = Replacement(stranger, now.isoformat(timespec="seconds"))
    return replacements


def _has_replaced(replacement: Replacement, now: datetime) -> bool:
    is_new = _is_within(REPLACED_AFTER, replacement.since, now)
    return replacement.reports >= REPLACED_AFTER_REPORTS and not is_new


def _by_id(printers: LearnedPrinters) -> dict[str, LearnedPrinter]:
    return {printer.id: redacted(printer, redact) for printer in printers if _is_short(printer)}


def _is_same(one: LearnedPrinter, other: LearnedPrinter) -> bool:
    pairs = [(a, b) for a, b in zip(_identifiers(one), _identifiers(other), strict=True) if a and b]
    return bool(pairs) and all(a == b for a, b in pairs)


def _identifiers(printer: LearnedPrinter) -> tuple[str | None, ...]:
    return (printer.mac_address, printer.serial, printer.uuid)


def _merge(before: LearnedPrinter | None, current: LearnedPrinter) -> LearnedPrinter:
    """Return the details of this report. Earlier details fill in what this report lacks.

    Earlier details are not used if the printer's setup has changed.
    """
    if before is None or before.setup != current.setup:
        return current
    missing = {
        f.name: getattr(before, f.name) for f in fields(current) if not getattr(current, f.name)
    }
    return replace(current, **missing)


def _may_still_exist(printer_id: str, facts: Facts) -> bool:
    """Return False only if the facts show that the printer was removed from the machine."""
    if not isinstance(facts, NetworkFacts) or facts.printers is None or facts.failures:
        return True
    present_ids = {printer.id for printer in facts.printers}
    return printer_id in present_ids or _source(printer_id) not in {
        _source(present_id) for present_id in present_ids
    }


def _source(printer_id: str) -> str:
    """Return the source of a printer, such as ``cups`` of ``cups:kitchen``; "" without one."""
    return printer_id.partition(":")[0] if ":" in printer_id else ""


def _is_short(learned: LearnedPrinter) -> bool:
    texts = (getattr(learned, field.name) for field in fields(learned))
    return all(len(text) <= TEXT_MAX for text in texts if text)


def _is_within(period: timedelta, timestamp: str, now: datetime) -> bool:
    try:
        return now - datetime.fromisoformat(timestamp) < period
    except (ValueError, TypeError):
        return False
