"""Computes the figures of a period from sums, by currency, method and location."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from controlplane.figures import records
from controlplane.figures.local_time import Clock, date_of, intervals
from controlplane.figures.money import percent, ratio
from controlplane.figures.sums import DaySums, UnitSums, add_part, total
from controlplane.figures.windows import Days

Units = Mapping[str, UnitSums]
"""Sums by unit. Lines without a unit are summed under the key ``""``."""


@dataclass(frozen=True, slots=True)
class QueryLocation:
    """A location of a query.

    ``position`` is its row key (`Location.position`), and ``currency`` is its usual currency.
    """

    position: int
    location_id: str
    currency: str
    clock: Clock


class MethodKey(NamedTuple):
    """A payment type and the name of a payment method.

    ``name`` is None if several methods were used, or if the method is unknown.
    """

    payment_type: str
    name: str | None


@dataclass(slots=True)
class Movements:
    """The sums of the movements of one location in one currency.

    A movement is a sale or a refund.
    """

    by_method: dict[MethodKey, DaySums] = field(default_factory=dict)
    units: dict[str, UnitSums] = field(default_factory=dict)

    @property
    def sums(self) -> DaySums:
        return total(DaySums, self.by_method.values())


LedgerKey = tuple[int, str]
"""The position of a location, and a currency."""
Ledger = Mapping[LedgerKey, Movements]


def window(location: QueryLocation, days: Days) -> records.Window:
    return records.Window(
        location_id=location.location_id,
        from_date=date_of(days.first).isoformat(),
        to_date=date_of(days.last).isoformat(),
        time_zone=location.clock.name,
        fell_back_to_utc=location.clock.fell_back,
        intervals=tuple(
            records.Interval(start_utc=_utc_text(start), end_utc=_utc_text(end))
            for start, end in intervals(location.clock.zone, days.first, days.last)
        ),
    )


def by_currency(
    locations: Sequence[QueryLocation], ledger: Ledger
) -> list[records.CurrencyFigures]:
    """Return figures for each currency that has movements or is a location's usual currency.

    The figures of a currency include each location that usually takes this currency, and each
    location with movements in this currency.
    """
    return [
        _figures_of(currency, _locations_with(currency, locations, ledger), ledger)
        for currency in currencies(locations, ledger)
    ]


def totals(
    locations: Sequence[QueryLocation], sums: Mapping[LedgerKey, DaySums]
) -> dict[str, records.Figures]:
    """Return figures for the same currencies as `by_currency`, without quantities."""
    totals_by_currency = {}
    for currency in currencies(locations, sums):
        included_locations = _locations_with(currency, locations, sums)
        parts = [sums.get((each.position, currency), DaySums()) for each in included_locations]
        fallbacks = sum(each.clock.fell_back for each in included_locations)
        totals_by_currency[currency] = figures(total(DaySums, parts), {}, fallbacks)
    return totals_by_currency


def currencies(locations: Iterable[QueryLocation], ledger: Collection[LedgerKey]) -> list[str]:
    return sorted(
        {location.currency for location in locations} | {currency for _, currency in ledger}
    )


def figures(sums: DaySums, units: Units, fallbacks: int) -> records.Figures:
    """Return figures of sums. ``fallbacks`` is the number of locations without a valid zone."""
    data_coverage = coverage(sums, fallbacks)
    vat = sums.sale_tax - sums.refund_tax
    return records.Figures(
        gross_cents=sums.gross,
        discount_cents=sums.discount,
        sale_cents=sums.sale,
        refund_cents=sums.refund,
        net_cents=sums.net,
        sale_count=sums.sale_count,
        refund_count=sums.refund_count,
        refund_amount_cents=sums.refund_amount,
        municipality_fee_cents=sums.municipality_fee,
        refunded_fee_cents=sums.refunded_fee,
        refund_tip_cents=sums.refunded_tip,
        known_vat_cents=vat,
        vat_cents=vat if data_coverage.vat_complete else None,
        net_without_vat_cents=sums.net - vat if data_coverage.vat_complete else None,
        average_sale_cents=ratio(sums.sale, sums.sale_count),
        average_items_per_sale=ratio(sums.pieces, sums.sale_count),
        quantities=tuple(
            records.Quantity(
                quantity_unit=unit or None,
                quantity_milli=sold.quantity_milli,
                line_count=sold.line_count,
            )
            for unit, sold in sorted(units.items())
            if sold.line_count
        ),
        coverage=data_coverage,
    )


def coverage(sums: DaySums, fallbacks: int) -> records.Coverage:
    sales_complete = not (sums.missing_count or sums.unresolved_count)
    refunds_complete = not (sums.undated_count or sums.refund_unknown_components)
    taxes_known = not (sums.unknown_tax_lines or sums.refund_unknown_tax)
    return records.Coverage(
        missing_sale_snapshot_count=sums.missing_count,
        missing_sale_snapshot_cents=sums.missing_amount,
        unresolved_imported_order_count=sums.unresolved_count,
        unresolved_imported_order_cents=sums.unresolved_amount,
        undated_refund_cents=sums.undated_amount,
        undated_refund_payment_count=sums.undated_count,
        sales_complete=sales_complete,
        refunds_complete=refunds_complete,
        vat_complete=sales_complete and refunds_complete and taxes_known,
        sale_unknown_tax_line_count=sums.unknown_tax_lines,
        refund_unknown_tax_count=sums.refund_unknown_tax,
        refund_unknown_components_count=sums.refund_unknown_components,
        timezone_fallback_count=fallbacks,
    )


def _figures_of(
    currency: str, locations: Sequence[QueryLocation], ledger: Ledger
) -> records.CurrencyFigures:
    methods: dict[MethodKey, DaySums] = {}
    units: dict[str, UnitSums] = {}
    location_sums: list[tuple[QueryLocation, DaySums, Units]] = []
    for location in locations:
        movements = ledger.get((location.position, currency)) or Movements()
        for key, sums in movements.by_method.items():
            add_part(methods, key, sums)
        for unit, sold in movements.units.items():
            add_part(units, unit, sold)
        location_sums.append((location, movements.sums, movements.units))
    total_sums = total(DaySums, methods.values())
    return records.CurrencyFigures(
        currency=currency,
        figures=figures(total_sums, units, sum(location.clock.fell_back for location in locations)),
        methods=tuple(
            _method(key, sums, total_sums.net)
            for key, sums in sorted(methods.items(), key=_by_net)
            if sums.sale_count or sums.refund_count
        ),
        locations=tuple(
            records.LocationFigures(
                location_id=location.location_id,
                figures=figures(sums, units, int(location.clock.fell_back)),
                share_percent=percent(sums.net, total_sums.net),
            )
            for location, sums, units in location_sums
        ),
    )


def _method(key: MethodKey, sums: DaySums, total_net: int) -> records.Method:
    return records.Method(
        payment_type=key.payment_type,
        payment_method_name=key.name,
        sale_cents=sums.sale,
        refunded_cents=sums.refund,
        net_cents=sums.net,
        refund_amount_cents=sums.refund_amount,
        unknown_refund_count=sums.refund_unknown_components,
        share_percent=percent(sums.net, total_net),
    )


def _by_net(entry: tuple[MethodKey, DaySums]) -> tuple[int, str, str]:
    key, sums = entry
    return -sums.net, key.payment_type, key.name or ""


def _locations_with(
    currency: str, locations: Iterable[QueryLocation], ledger: Collection[LedgerKey]
) -> list[QueryLocation]:
    return [
        each
        for each in locations
        if each.currency == currency or (each.position, currency) in ledger
    ]


def _utc_text(timestamp: datetime) -> str:
    return timestamp.isoformat().replace("+00:00", "Z")
