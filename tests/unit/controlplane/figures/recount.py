"""Computes figures from all rows: slowly, simply, and without code of the service.

The definitions are those of docs/figures.md. Rows are read with plain SQL. The results have the
form of the service's JSON replies.
"""

from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from sqlalchemy import text
from sqlalchemy.orm import Session

Json = dict[str, Any]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass
class Line:
    """A line of a sale. ``tax`` is None if it is unknown."""

    name: str
    good: str | None
    variation: str | None
    unit: str | None
    exponent: int
    quantity: int
    gross: int
    discount: int
    tax: int | None


@dataclass
class Refund:
    """A refund.

    ``payment`` is the type and the name of the payment method. ``lines`` contains each refunded
    line with the refunded quantity and amount.
    """

    at: datetime | None
    goods: int
    fee: int
    tip: int
    tax: int | None
    has_known_components: bool
    payment: tuple[str, str | None]
    lines: list[tuple[Line, int, int]]


@dataclass
class Sale:
    """A sale.

    ``location`` is the position of a `Venue`. ``gross`` is the amount before discounts, and
    ``total`` the amount after them. ``lines`` is None if the service stores no lines of the sale.
    """

    location: int
    at: datetime
    currency: str
    status: str
    gross: int
    total: int
    fee: int
    tip: int
    tax: int
    payment: tuple[str, str | None]
    lines: list[Line] | None
    refunds: list[Refund]


@dataclass
class Venue:
    """A location. ``fell_back`` means that it has no valid time zone, so that UTC is used."""

    position: int
    id: str
    currency: str
    zone: tzinfo
    zone_name: str
    fell_back: bool


class Recount:
    """Reads all rows of an organization, and computes figures from them.

    Most methods take ``days``: the id of each counted location, with its first and its last day.
    Some methods take ``types``, the payment types to count; None means all.
    """

    def __init__(self, session: Session, organization: str, now: datetime) -> None:
        self.now = now
        self.venues = [
            self._venue(*row)
            for row in session.execute(
                text("SELECT position, id, currency, zone FROM locations"
                     " WHERE organization_id = :o ORDER BY id"), {"o": organization})
        ]  # fmt: skip
        self.sales = self._read(session, organization)

    # ------------------------------------------------------------------ replies

    def windows(self, days: dict[str, tuple[date, date]]) -> list[Json]:
        return [
            {"locationId": venue.id, "fromDate": days[venue.id][0].isoformat(),
             "toDate": days[venue.id][1].isoformat(), "timeZone": venue.zone_name,
             "fellBackToUtc": venue.fell_back}
            for venue in self.venues if venue.id in days
        ]  # fmt: skip

    def days(
        self, ids: list[str], period: str, first: date | None, last: date | None
    ) -> dict[str, tuple[date, date]]:
        """Return the first and the last day of the period, by location id."""
        dates = {}
        for venue in self.venues:
            if venue.id not in ids:
                continue
            today = self.now.astimezone(venue.zone).date()
            if period == "custom":
                assert first is not None
                assert last is not None
                dates[venue.id] = (first, last)
            elif period == "thisMonth":
                dates[venue.id] = (date(today.year, today.month, 1), today)
            else:
                days_ago, length = {"today": (0, 1), "yesterday": (1, 1), "last7": (0, 7)}[period]
                end = today - timedelta(days=days_ago)
                dates[venue.id] = (end - timedelta(days=length - 1), end)
        return dates

    @staticmethod
    def previous(days: dict[str, tuple[date, date]]) -> dict[str, tuple[date, date]]:
        """Return the days of the period of the same length that directly precedes ``days``."""
        return {
            venue: (first - ((last - first) + timedelta(days=1)), first - timedelta(days=1))
            for venue, (first, last) in days.items()
        }

    def currencies(
        self, days: dict[str, tuple[date, date]], types: list[str] | None = None
    ) -> list[Json]:
        venues = [venue for venue in self.venues if venue.id in days]
        currencies_by_venue = {
            venue.position: self._currencies_of(venue, days[venue.id], types) for venue in venues
        }
        names = {venue.currency for venue in venues}
        names |= {currency for each in currencies_by_venue.values() for currency in each}
        result = []
        for currency in sorted(names):
            venues_of_currency = [
                venue for venue in venues
                if venue.currency == currency or currency in currencies_by_venue[venue.position]
            ]  # fmt: skip
            parts = {v.id: self._part(v, days[v.id], currency, types) for v in venues_of_currency}
            whole = merge(list(parts.values()))
            net = whole.net()
            result.append({
                "currency": currency,
                "figures": whole.figures(sum(v.fell_back for v in venues_of_currency)),
                "methods": sorted(methods(whole, net), key=order_of_method),
                "locations": [
                    {"locationId": v.id, "figures": parts[v.id].figures(int(v.fell_back)),
                     "sharePercent": share_percent(parts[v.id].net(), net)}
                    for v in venues_of_currency
                ],
            })  # fmt: skip
        return result

    def buckets(self, days: dict[str, tuple[date, date]], currency: str) -> list[Json]:
        hours: dict[tuple[str, str, int], Json] = {}

        def bucket(venue: Venue, at: datetime) -> Json | None:
            local = at.astimezone(venue.zone)
            first, last = days[venue.id]
            if not first <= local.date() <= last:
                return None
            key = (venue.id, local.date().isoformat(), local.hour)
            return hours.setdefault(key, {
                "locationId": key[0], "localDate": key[1], "localHour": key[2], "grossCents": 0,
                "discountCents": 0, "refundCents": 0, "netCents": 0, "tradingRevenueCents": 0,
                "saleCount": 0, "refundCount": 0,
            })  # fmt: skip

        for venue in self.venues:
            if venue.id not in days:
                continue
            for sale in self._completed(venue, currency):
                sums = bucket(venue, sale.at)
                if sums is not None:
                    sums["grossCents"] += sale.gross
                    sums["discountCents"] += sale.gross - sale.total
                    sums["netCents"] += sale.total
                    sums["tradingRevenueCents"] += sale.total
                    sums["tradingRevenueCents"] -= sum(r.goods for r in sale.refunds)
                    sums["saleCount"] += 1
                for refund in sale.refunds:
                    sums = None if refund.at is None else bucket(venue, refund.at)
                    if sums is not None:
                        sums["refundCents"] += refund.goods
                        sums["netCents"] -= refund.goods
                        sums["refundCount"] += 1
        return [hours[key] for key in sorted(hours)]

    def items(  # noqa: C901 - counts sales and refunds in one loop
        self, days: dict[str, tuple[date, date]], types: list[str] | None = None
    ) -> dict[str, list[Json]]:
        sums: dict[str, dict[tuple[Any, ...], Json]] = defaultdict(dict)

        def item(currency: str, line: Line | None) -> Json:
            key = (None, None) if line is None else (line.variation or line.name, line.unit)
            return sums[currency].setdefault(key, {
                "goodId": line and format_uuid(line.good),
                "variationId": line and format_uuid(line.variation),
                "name": line and line.name, "quantityUnit": line and line.unit,
                "quantityMilli": 0, "lineCount": 0, "grossCents": 0, "discountCents": 0,
                "saleCents": 0, "refundedQuantityMilli": 0, "refundCents": 0, "netCents": 0,
            })  # fmt: skip

        for venue in self.venues:
            if venue.id not in days:
                continue
            for sale in self._completed(venue):
                if self._within(sale.at, venue, days) and has_type(sale.payment, types):
                    for line in sale.lines or [None]:  # type: ignore[list-item]
                        sums_of_item = item(sale.currency, line)
                        gross = sale.gross if line is None else line.gross
                        discount = sale.gross - sale.total if line is None else line.discount
                        sums_of_item["grossCents"] += gross
                        sums_of_item["discountCents"] += discount
                        sums_of_item["saleCents"] += gross - discount
                        sums_of_item["netCents"] += gross - discount
                        if line is not None:
                            sums_of_item["lineCount"] += 1
                            sums_of_item["quantityMilli"] += milli(line.quantity, line.exponent)
                for refund in sale.refunds:
                    if not self._within(refund.at, venue, days) or not has_type(
                        refund.payment, types
                    ):
                        continue
                    for line, quantity, amount in refund.lines or [(None, 0, refund.goods)]:
                        sums_of_item = item(sale.currency, line)
                        sums_of_item["refundCents"] += amount
                        sums_of_item["netCents"] -= amount
                        if line is not None:
                            sums_of_item["refundedQuantityMilli"] += milli(quantity, line.exponent)
        for rows in sums.values():
            net = sum(row["netCents"] for row in rows.values())
            for row in rows.values():
                row["sharePercent"] = share_percent(row["netCents"], net)
        return {
            currency: sorted(rows.values(), key=lambda row: (-row["netCents"], str(row["name"])))
            for currency, rows in sums.items()
        }

    def trading(
        self, days: dict[str, tuple[date, date]], types: list[str] | None = None
    ) -> dict[str, dict[str, tuple[int, int]]]:
        """Return revenue and number of sales, by currency and date."""
        revenues: dict[str, dict[str, tuple[int, int]]] = defaultdict(dict)
        for venue in self.venues:
            if venue.id not in days:
                continue
            for sale in self._completed(venue):
                if self._within(sale.at, venue, days) and has_type(sale.payment, types):
                    day = sale.at.astimezone(venue.zone).date().isoformat()
                    revenue, count = revenues[sale.currency].get(day, (0, 0))
                    revenue += sale.total - sum(refund.goods for refund in sale.refunds)
                    revenues[sale.currency][day] = (revenue, count + 1)
        return revenues

    # ------------------------------------------------------------------ rows

    def _completed(self, venue: Venue, currency: str | None = None) -> list[Sale]:
        return [
            sale for sale in self.sales
            if sale.location == venue.position and sale.status == "completed"
            and currency in {None, sale.currency}
        ]  # fmt: skip

    def _within(
        self, at: datetime | None, venue: Venue, days: dict[str, tuple[date, date]]
    ) -> bool:
        first, last = days[venue.id]
        return at is not None and first <= at.astimezone(venue.zone).date() <= last

    def _currencies_of(
        self, venue: Venue, days: tuple[date, date], types: list[str] | None
    ) -> set[str]:
        days_of_venue, currencies = {venue.id: days}, set()
        for sale in self.sales:
            if sale.location != venue.position:
                continue
            if self._within(sale.at, venue, days_of_venue) and has_type(sale.payment, types):
                currencies.add(sale.currency)
            if any(self._within(refund.at, venue, days_of_venue) and has_type(refund.payment, types)
                   for refund in sale.refunds):  # fmt: skip
                currencies.add(sale.currency)
        return currencies

    def _part(
        self, venue: Venue, days: tuple[date, date], currency: str, types: list[str] | None
    ) -> "Part":
        part, days_of_venue = Part(), {venue.id: days}
        for sale in self.sales:
            if sale.location != venue.position or sale.currency != currency:
                continue
            is_sold = self._within(sale.at, venue, days_of_venue) and has_type(sale.payment, types)
            if is_sold and sale.status == "completed":
                part.sold.append(sale)
            elif is_sold:
                part.unresolved.append(sale)
            for refund in sale.refunds:
                if refund.at is None and is_sold:
                    part.undated.append(refund)
                if self._within(refund.at, venue, days_of_venue) and has_type(
                    refund.payment, types
                ):
                    part.refunds.append(refund)
        return part

    @staticmethod
    def _venue(position: int, venue_id: str, currency: str, zone: str | None) -> Venue:
        try:
            return Venue(position, venue_id, currency, ZoneInfo(zone or ""), zone or "", False)
        except (KeyError, ValueError, OSError):
            return Venue(position, venue_id, currency, UTC, "UTC", True)

    def _read(self, session: Session, organization: str) -> list[Sale]:
        def rows(query: str) -> Any:
            return session.execute(text(query), {"o": organization})

        names = dict(
            rows("SELECT position, name FROM payment_methods WHERE organization_id = :o").all()
        )
        lines: dict[int, dict[int, Line]] = defaultdict(dict)
        for sale, number, *values in rows(
            "SELECT l.sale, l.number, n.name, n.good_id, n.variation_id, n.uom_symbol, n.exponent,"
            " l.quantity, l.gross, l.discount + l.share, l.tax FROM sale_lines l"
            " JOIN line_snapshots n ON n.position = l.snapshot WHERE n.organization_id = :o"
        ):
            lines[sale][number] = Line(*values)
        refund_lines: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
        for refund, *values in rows("SELECT refund, line, quantity, amount FROM refund_lines"):
            refund_lines[refund].append(tuple(values))
        refunds: dict[int, list[Refund]] = defaultdict(list)
        for position, sale, at, goods, fee, tip, tax, known, kind, method in rows(
            "SELECT position, sale, refunded_at, goods, fee, tip, tax, has_components,"
            " payment_type, payment_method FROM refunds WHERE organization_id = :o"
        ):
            refunds[sale].append(Refund(
                None if at is None else EPOCH + timedelta(microseconds=at), goods, fee, tip, tax,
                bool(known), (kind, names.get(method)),
                [(lines[sale][line], quantity, amount)
                 for line, quantity, amount in refund_lines[position]],
            ))  # fmt: skip
        return [
            Sale(location, EPOCH + timedelta(microseconds=at), currency, status, gross, total, fee,
                 tip, tax, (kind, names.get(method)),
                 list(lines[position].values()) if has_lines else None, refunds[position])
            for (position, location, at, currency, status, gross, total, fee, tip, tax, kind,
                 method, has_lines) in rows(
                "SELECT position, location, initiated_at, currency, status, gross, total,"
                " municipality_fee, tip, tax, payment_type, payment_method, has_lines FROM sales"
                " WHERE organization_id = :o ORDER BY position")
        ]  # fmt: skip


class Part:
    """The sales and refunds of one set of figures.

    The sums count ``sold`` and ``refunds``. Refunds without a date (``undated``) and orders
    that were not resolved (``unresolved``) are counted only in ``coverage``.
    """

    def __init__(self) -> None:
        self.sold: list[Sale] = []
        self.refunds: list[Refund] = []
        self.undated: list[Refund] = []
        self.unresolved: list[Sale] = []

    def net(self) -> int:
        return sum(s.total for s in self.sold) - sum(r.goods for r in self.refunds)

    def figures(self, fallbacks: int) -> Json:
        sold, refunds, count = self.sold, self.refunds, len(self.sold)
        sale, refund = sum(s.total for s in sold), sum(r.goods for r in refunds)
        lines = [line for s in sold for line in s.lines or []]
        missing = [s for s in sold if s.lines is None]
        sale_taxes = [line.tax for line in lines if line.tax is not None]
        vat = sum(sale_taxes) - sum(r.tax for r in refunds if r.tax is not None)
        unknown_lines = sum(line.tax is None for line in lines)
        unknown_refunds = sum(r.tax is None for r in refunds)
        unknown_components = sum(not r.has_known_components for r in refunds)
        sales_complete = not missing and not self.unresolved
        refunds_complete = not self.undated and not unknown_components
        vat_complete = (
            sales_complete and refunds_complete and not unknown_lines and not unknown_refunds
        )
        pieces = sum(line.quantity if line.exponent == 0 else 1 for line in lines)
        units: dict[str | None, list[int]] = defaultdict(lambda: [0, 0])
        for line in lines:
            units[line.unit][0] += milli(line.quantity, line.exponent)
            units[line.unit][1] += 1
        return {
            "grossCents": sum(s.gross for s in sold),
            "discountCents": sum(s.gross - s.total for s in sold),
            "saleCents": sale,
            "refundCents": refund,
            "netCents": sale - refund,
            "saleCount": count,
            "refundCount": len(refunds),
            "refundAmountCents": sum(r.goods + r.fee + r.tip for r in refunds),
            "municipalityFeeCents": sum(s.fee for s in sold),
            "refundedFeeCents": sum(r.fee for r in refunds),
            "refundTipCents": sum(r.tip for r in refunds),
            "knownVatCents": vat,
            "vatCents": vat if vat_complete else None,
            "netWithoutVatCents": sale - refund - vat if vat_complete else None,
            "averageSaleCents": sale / count if count else None,
            "averageItemsPerSale": pieces / count if count else None,
            "quantities": [
                {"quantityUnit": unit, "quantityMilli": quantity, "lineCount": line_count}
                for unit, (quantity, line_count) in sorted(units.items(), key=lambda u: u[0] or "")
            ],
            "coverage": {
                "missingSaleSnapshotCount": len(missing),
                "missingSaleSnapshotCents": sum(s.total for s in missing),
                "unresolvedImportedOrderCount": len(self.unresolved),
                "unresolvedImportedOrderCents": sum(s.total for s in self.unresolved),
                "undatedRefundCents": sum(r.goods + r.fee + r.tip for r in self.undated),
                "undatedRefundPaymentCount": len(self.undated),
                "salesComplete": sales_complete,
                "refundsComplete": refunds_complete,
                "vatComplete": vat_complete,
                "saleUnknownTaxLineCount": unknown_lines,
                "refundUnknownTaxCount": unknown_refunds,
                "refundUnknownComponentsCount": unknown_components,
                "timezoneFallbackCount": fallbacks,
            },
        }


def merge(parts: list[Part]) -> Part:
    whole = Part()
    for part in parts:
        for name, values in vars(part).items():
            getattr(whole, name).extend(values)
    return whole


def methods(part: Part, net: int) -> list[Json]:
    rows = []
    payments = {s.payment for s in part.sold} | {r.payment for r in part.refunds}
    for payment in payments:
        sale = sum(s.total for s in part.sold if s.payment == payment)
        refunds_of_method = [r for r in part.refunds if r.payment == payment]
        refund = sum(r.goods for r in refunds_of_method)
        rows.append({
            "paymentType": payment[0],
            "paymentMethodName": payment[1],
            "saleCents": sale,
            "refundedCents": refund,
            "netCents": sale - refund,
            "refundAmountCents": sum(r.goods + r.fee + r.tip for r in refunds_of_method),
            "unknownRefundCount": sum(not r.has_known_components for r in refunds_of_method),
            "sharePercent": share_percent(sale - refund, net),
        })  # fmt: skip
    return rows


def order_of_method(method: Json) -> tuple[int, str, str]:
    return (-method["netCents"], method["paymentType"], method["paymentMethodName"] or "")


def has_type(payment: tuple[str, str | None], types: list[str] | None) -> bool:
    return types is None or payment[0] in types


def format_uuid(value: Any) -> str | None:
    return None if value is None else str(UUID(str(value)))


def share_percent(part: int, whole: int) -> float | None:
    return None if whole == 0 else 100 * part / whole


def milli(quantity: int, exponent: int) -> int:
    thousandths = 1000 * quantity
    for _ in range(exponent):
        thousandths //= 10
    return thousandths
