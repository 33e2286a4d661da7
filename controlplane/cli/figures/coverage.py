"""Sentences about data that figures do not include or that is incomplete."""

from collections.abc import Iterator

from controlplane.cli.screen.money import money_in_words
from controlplane.figures.records import Coverage


def notes_of(coverage: Coverage, currency: str) -> list[str]:
    """Return a sentence for each kind of incomplete data; empty if everything is known."""
    return list(_notes(coverage, currency))


def _notes(coverage: Coverage, currency: str) -> Iterator[str]:
    if count := coverage.missing_sale_snapshot_count:
        amount = money_in_words(coverage.missing_sale_snapshot_cents, currency)
        yield f"{_many(count, 'sale')} of {amount} without lines: included, but not by article."
    if count := coverage.unresolved_imported_order_count:
        amount = money_in_words(coverage.unresolved_imported_order_cents, currency)
        yield f"{_many(count, 'unresolved order')} of {amount}: not included."
    if count := coverage.sale_unknown_tax_line_count:
        yield f"{_many(count, 'line')} of sales with an unknown tax."
    if count := coverage.undated_refund_payment_count:
        amount = money_in_words(coverage.undated_refund_cents, currency)
        yield f"{_many(count, 'refund')} of {amount} without a date: not subtracted."
    if count := coverage.refund_unknown_components_count:
        yield f"{_many(count, 'refund')} with only the amount known: counted as goods."
    if count := coverage.refund_unknown_tax_count:
        yield f"{_many(count, 'refund')} with an unknown tax."


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
