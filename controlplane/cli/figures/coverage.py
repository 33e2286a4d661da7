"""What figures do not know, in sentences."""

from collections.abc import Iterator

from controlplane.cli.screen.money import money_in_words
from controlplane.figures.records import Coverage


def notes_of(coverage: Coverage, currency: str) -> list[str]:
    """Return a sentence for each thing that is not known; none where all is."""
    return [*_of_sales(coverage, currency), *_of_refunds(coverage, currency)]


def _of_sales(coverage: Coverage, currency: str) -> Iterator[str]:
    count = coverage.missing_sale_snapshot_count
    if count:
        amount = money_in_words(coverage.missing_sale_snapshot_cents, currency)
        yield f"{_many(count, 'sale')} of {amount} without lines: counted, but not what was sold."
    count = coverage.unresolved_imported_order_count
    if count:
        amount = money_in_words(coverage.unresolved_imported_order_cents, currency)
        yield f"{_many(count, 'order')} of {amount} that nobody resolved: not counted."
    count = coverage.sale_unknown_tax_line_count
    if count:
        yield f"{_many(count, 'line')} of sales whose tax is not known."


def _of_refunds(coverage: Coverage, currency: str) -> Iterator[str]:
    count = coverage.undated_refund_payment_count
    if count:
        amount = money_in_words(coverage.undated_refund_cents, currency)
        yield f"{_many(count, 'refund')} of {amount} without a date: not taken off."
    count = coverage.refund_unknown_components_count
    if count:
        yield f"{_many(count, 'refund')} of which only the amount is known: taken as goods."
    count = coverage.refund_unknown_tax_count
    if count:
        yield f"{_many(count, 'refund')} whose tax is not known."


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
