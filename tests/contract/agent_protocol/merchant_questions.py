"""Questions of a merchant. Tools answer each question, and a recount of raw rows checks the answer.

An answer uses only what `tools/list` publishes: names of tools, arguments and fields of results.
"""

from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

from tests.contract.agent_protocol.raw_rows import Entry, RawRows, sums_by

Json = dict[str, Any]
CALLS_MAX: Final = 3
TODAY: Final = date(2026, 11, 20)
MONTH: Final = (TODAY - timedelta(days=29), TODAY)
"""The last 30 days."""
YEAR: Final = (date(2025, 12, 1), TODAY)
"""This month and the eleven months before it."""
WEEK: Final = (TODAY - timedelta(days=6), TODAY)
NOON: Final = 12


class Assistant:
    """Calls tools for one question, and counts the calls."""

    def __init__(self, call: Callable[[str, Json], Awaitable[Json]]) -> None:
        self._call = call
        self.calls = 0

    async def call(self, tool: str, **arguments: Any) -> Json:
        self.calls += 1
        assert self.calls <= CALLS_MAX, f"more than {CALLS_MAX} calls"
        return await self._call(tool, arguments)

    async def sales(self, days: tuple[date, date], *groups: str, **more: Any) -> Json:
        """Call query_sales for the local days from ``days[0]`` to ``days[1]``, both included."""
        dates = {"from": days[0].isoformat(), "to": days[1].isoformat()}
        return await self.call("query_sales", groupBy=list(groups), **dates, **more)

    async def records(self, dataset: str, limit: int = 100, **filters: Any) -> list[Json]:
        page = await self.call(
            "read_business_records", dataset=dataset, filters=filters, limit=limit
        )
        rows: list[Json] = page["rows"]
        return rows


@dataclass(frozen=True)
class Question:
    text: str
    answer: Callable[[Assistant], Awaitable[Any]]
    recount: Callable[[RawRows], Any]

    def __str__(self) -> str:
        return self.text


def metric_by_row(result: Json, metric: str) -> dict[Any, Any]:
    """Return a metric of each row, by currency and the values of the groups."""
    assert result["omittedCount"] == 0
    return {
        (row["currency"], *row["group"].values()): row["metrics"][metric] for row in result["rows"]
    }


def metric_by_currency(result: Json, metric: str) -> dict[str, Any]:
    """Return a metric of each currency that has a sale or refund."""
    listed = {row["currency"] for row in result["rows"]}
    return {
        total["currency"]: total["metrics"][metric]
        for total in result["totals"]
        if total["currency"] in listed
    }


def best(values: dict[Any, Any]) -> dict[str, Any]:
    """Return for each currency the group with the highest value, and this value."""
    winners: dict[str, tuple[Any, Any]] = {}
    for (currency, group), value in values.items():
        if currency not in winners or value > winners[currency][1]:
            winners[currency] = (group, value)
    return winners


def currency(entry: Entry) -> str:
    return entry.currency


def net(entry: Entry) -> int:
    return entry.net


def is_sale(entry: Entry) -> bool:
    return entry.is_sale


def some_receipt(raw: RawRows) -> Json:
    """Return one of yesterday's sales at the first location: the one with the most lines."""
    day = TODAY - timedelta(days=1)
    entries = raw.between(day, day, lambda entry: entry.is_sale and entry.location == "loc-0001")
    return max(entries, key=lambda entry: (len(entry.items), entry.row["number"])).row


def item_sums(entries: list[Entry], attribute: str, value: str) -> dict[Any, int]:
    """Add up an attribute of all items of the entries. Return the sums by currency and group.

    ``value`` is the name of the attribute that is added up. ``attribute`` is the name of the
    attribute by which the items are grouped.
    """
    sums: dict[Any, int] = defaultdict(int)
    for entry in entries:
        for item in entry.items:
            sums[entry.currency, getattr(item, attribute)] += getattr(item, value)
    return dict(sums)


# ---------------------------------------------------------------------------- periods


async def net_of_yesterday(assistant: Assistant) -> Any:
    return metric_by_currency(await assistant.call("query_sales", period="yesterday"), "netCents")


async def year_against_year(assistant: Assistant) -> Any:
    years = []
    for year in (2026, 2025):
        days = (date(year, 1, 1), TODAY.replace(year=year))
        years.append(
            metric_by_currency(await assistant.sales(days, metrics=["netCents"]), "netCents")
        )
    return years


async def net_by_month(assistant: Assistant) -> Any:
    return metric_by_row(await assistant.sales(YEAR, "month"), "netCents")


async def best_month(assistant: Assistant) -> Any:
    return best(await net_by_month(assistant))


async def location_by_day(assistant: Assistant) -> Any:
    result = await assistant.call(
        "query_sales", period="last7", groupBy=["location", "day"], metrics=["netCents"]
    )
    return metric_by_row(result, "netCents")


async def busiest_hour(assistant: Assistant) -> Any:
    return best(
        metric_by_row(await assistant.sales(MONTH, "hour", metrics=["saleCount"]), "saleCount")
    )


async def best_weekday(assistant: Assistant) -> Any:
    return best(metric_by_row(await assistant.sales(YEAR, "weekday"), "netCents"))


# -------------------------------------------------- goods, employees, payment types, locations


async def top_of_the_euro_venue(assistant: Assistant) -> Any:
    context = await assistant.call("business_context")
    (venue,) = [location for location in context["locations"] if location["currency"] == "EUR"]
    result = await assistant.sales(
        MONTH, "item", locations=[venue["locationId"]], currency=venue["currency"], limit=3
    )
    return [(row["group"]["item"], row["metrics"]["netCents"]) for row in result["rows"]]


async def top_of_each_currency(assistant: Assistant) -> Any:
    result = await assistant.sales(MONTH, "item", metrics=["netCents"], limit=1)
    return {
        row["currency"]: (row["group"]["item"], row["metrics"]["netCents"])
        for row in result["rows"]
    }


async def before_noon(assistant: Assistant) -> Any:
    result = await assistant.sales(
        MONTH, "item", hours=list(range(NOON)), metrics=["quantityMilli"], limit=500
    )
    sums = metric_by_row(result, "quantityMilli")
    return {key: value for key, value in sums.items() if value}


async def hours_of_articles(assistant: Assistant) -> Any:
    result = await assistant.sales(WEEK, "item", "hour", metrics=["quantityMilli"], limit=500)
    sums = metric_by_row(result, "quantityMilli")
    return {key: value for key, value in sums.items() if value}


async def best_category(assistant: Assistant) -> Any:
    result = await assistant.sales(MONTH, "category", metrics=["netCents"], limit=1)
    return {row["currency"]: (row["label"], row["metrics"]["netCents"]) for row in result["rows"]}


async def best_employee(assistant: Assistant) -> Any:
    result = await assistant.sales(MONTH, "employee", metrics=["saleCents"], limit=500)
    known = [row for row in result["rows"] if row["group"]["employee"] is not None]
    return best(
        {
            (row["currency"], (row["group"]["employee"], row["label"])): row["metrics"]["saleCents"]
            for row in known
        }
    )


async def share_of_cards(assistant: Assistant) -> Any:
    sales = metric_by_row(
        await assistant.sales(MONTH, "paymentType", metrics=["saleCents"]), "saleCents"
    )
    totals: dict[str, int] = defaultdict(int)
    for (code, _), cents in sales.items():
        totals[code] += cents
    return {code: sales.get((code, "card"), 0) / cents for code, cents in totals.items() if cents}


async def best_location(assistant: Assistant) -> Any:
    result = await assistant.sales(MONTH, "location", currency="AED", limit=1)
    (row,) = result["rows"]
    return row["label"], row["metrics"]["netCents"]


# ---------------------------------------------------------------------------- sums


async def refunds(assistant: Assistant) -> Any:
    result = await assistant.sales(MONTH, metrics=["refundCount", "refundAmountCents"])
    counts = metric_by_currency(result, "refundCount")
    return {code: (counts[code], cents)
            for code, cents in metric_by_currency(result, "refundAmountCents").items()}  # fmt: skip


async def average_sale(assistant: Assistant) -> Any:
    return metric_by_currency(
        await assistant.sales(MONTH, metrics=["averageSaleCents"]), "averageSaleCents"
    )


async def known_vat(assistant: Assistant) -> Any:
    days = (date(2026, 10, 1), date(2026, 10, 31))
    return metric_by_currency(
        await assistant.sales(days, metrics=["knownVatCents"]), "knownVatCents"
    )


async def discounts(assistant: Assistant) -> Any:
    return metric_by_currency(
        await assistant.sales(MONTH, metrics=["discountCents"]), "discountCents"
    )


async def unknown_articles(assistant: Assistant) -> Any:
    result = await assistant.sales(YEAR)
    return {
        total["currency"]: total["coverage"]["missingSaleSnapshotCount"]
        for total in result["totals"]
    }


# ---------------------------------------------------------------------------- records


def receipt_by_number(number: str) -> Callable[[Assistant], Awaitable[Any]]:
    async def answer(assistant: Assistant) -> Any:
        (row,) = await assistant.records("sales", number=number)
        return row["saleCents"], row["currency"], len(row["lines"])

    return answer


def receipt_by_ticket(ticket: str) -> Callable[[Assistant], Awaitable[Any]]:
    async def answer(assistant: Assistant) -> Any:
        context = await assistant.call("business_context")
        venue = next(
            location for location in context["locations"] if location["locationId"] == "loc-0001"
        )
        midnight = datetime.combine(TODAY - timedelta(days=1), time(), ZoneInfo(venue["timeZone"]))
        (row,) = await assistant.records(
            "sales",
            ticketNumber=ticket,
            locations=[venue["locationId"]],
            **{"from": midnight.isoformat(), "to": (midnight + timedelta(days=1)).isoformat()},
        )
        return row["number"], row["saleCents"]

    return answer


async def last_report(assistant: Assistant) -> Any:
    (report,) = await assistant.records("deviceReports", limit=1)
    return report["headline"], [finding["sentences"] for finding in report["findings"]]


async def not_offered(assistant: Assistant) -> Any:
    rows = (await assistant.call("read_catalog", status="inactive", limit=100))["rows"]
    return sorted(row["name"] for row in rows)


def price_by_barcode(barcode: str) -> Callable[[Assistant], Awaitable[Any]]:
    async def answer(assistant: Assistant) -> Any:
        (good,) = (await assistant.call("read_catalog", search=barcode))["rows"]
        return [
            (variation["priceCents"], variation["currency"])
            for variation in good["variations"]
            if barcode in {each["value"] for each in variation["codes"]}
        ]

    return answer


def recounted_price(raw: RawRows, barcode: str) -> Any:
    ids = {row["variation_id"] for row in raw.codes if row["value"] == barcode}
    return [(row["price"], row["currency"]) for row in raw.variations if row["id"] in ids]


def recounted_shares(raw: RawRows) -> Any:
    totals = sums_by(raw.between(*MONTH, is_sale), currency, net)
    card_sales = raw.between(*MONTH, lambda entry: entry.is_sale and entry.payment_type == "card")
    cards = sums_by(card_sales, currency, net)
    return {code: cards.get(code, 0) / cents for code, cents in totals.items() if cents}


def recounted_refunds(raw: RawRows) -> Any:
    entries = raw.between(*MONTH)
    counts = sums_by(entries, currency, lambda entry: int(not entry.is_sale))
    money = sums_by(
        entries,
        currency,
        lambda entry: (
            0 if entry.is_sale else sum(entry.row[name] for name in ("goods", "fee", "tip"))
        ),
    )
    return {code: (counts[code], cents) for code, cents in money.items()}


def recounted_average(raw: RawRows) -> Any:
    entries = raw.between(*MONTH)
    cents = sums_by(entries, currency, lambda entry: entry.net * entry.is_sale)
    counts = sums_by(entries, currency, lambda entry: entry.is_sale)
    return {code: cents[code] / counts[code] if counts[code] else None for code in cents}


def recounted_employees(raw: RawRows) -> Any:
    entries = raw.between(*MONTH, lambda entry: entry.is_sale and entry.employee is not None)
    names = raw.names["employees"]
    employee = by_currency_and(lambda entry: (entry.employee, names[entry.employee]))
    return best(sums_by(entries, employee, net))


def recounted_categories(raw: RawRows) -> Any:
    winners = best(item_sums(raw.between(*MONTH), "category", "net"))
    names = {key.replace("-", ""): name for key, name in raw.names["categories"].items()}
    return {
        code: (names.get((key or "").replace("-", "")), cents)
        for code, (key, cents) in winners.items()
    }


def recounted_locations(raw: RawRows) -> Any:
    entries = raw.between(*MONTH, lambda entry: entry.currency == "AED")
    (winner,) = best(sums_by(entries, lambda entry: ("AED", entry.location), net)).values()
    return raw.names["locations"][winner[0]], winner[1]


def recounted_euro_venue(raw: RawRows) -> Any:
    (venue,) = [row["id"] for row in raw.locations if row["currency"] == "EUR"]
    entries = raw.between(*MONTH, lambda entry: entry.location == venue and entry.currency == "EUR")
    sums = item_sums(entries, "key", "net")
    ranked = sorted(sums.items(), key=lambda entry: -entry[1])
    return [(key, cents) for (_, key), cents in ranked[:3]]


def recounted_before_noon(raw: RawRows) -> Any:
    entries = raw.between(*MONTH, lambda entry: entry.local.hour < NOON)
    sums = item_sums(entries, "key", "quantity_milli")
    return {key: value for key, value in sums.items() if value}


def recounted_hours(raw: RawRows) -> Any:
    sums: dict[Any, int] = defaultdict(int)
    for entry in raw.between(*WEEK):
        for item in entry.items:
            sums[entry.currency, item.key, entry.local.hour] += item.quantity_milli
    return {key: value for key, value in sums.items() if value}


def recounted_vat(raw: RawRows) -> Any:
    entries = raw.between(date(2026, 10, 1), date(2026, 10, 31))
    return sums_by(
        entries, currency, lambda entry: (entry.row["tax"] or 0) * (1 if entry.is_sale else -1)
    )


def recounted_unknown(raw: RawRows) -> Any:
    sums = sums_by(
        raw.between(*YEAR),
        currency,
        lambda entry: int(entry.is_sale and not entry.row["has_lines"]),
    )
    return {row["currency"]: 0 for row in raw.locations} | sums


def by_currency_and(key: Callable[[Entry], Any]) -> Callable[[Entry], Any]:
    return lambda entry: (entry.currency, key(entry))


def questions(raw: RawRows) -> tuple[Question, ...]:
    """Return the questions about this merchant."""
    receipt = some_receipt(raw)
    barcode = max(row["value"] for row in raw.codes)
    yesterday = (TODAY - timedelta(days=1), TODAY - timedelta(days=1))
    months = by_currency_and(lambda entry: entry.local.strftime("%Y-%m"))
    return (
        Question("What did we earn yesterday?", net_of_yesterday,
                 lambda raw: sums_by(raw.between(*yesterday), currency, net)),
        Question("How does this year compare with the last one, up to the same day?",
                 year_against_year,
                 lambda raw: [
                     sums_by(raw.between(date(year, 1, 1), TODAY.replace(year=year)), currency, net)
                     for year in (2026, 2025)
                 ]),
        Question("What was the net of each month of the last year?", net_by_month,
                 lambda raw: sums_by(raw.between(*YEAR), months, net)),
        Question("Which month was the best?", best_month,
                 lambda raw: best(sums_by(raw.between(*YEAR), months, net))),
        Question("How did each location do on each of the last seven days?", location_by_day,
                 lambda raw: sums_by(
                     [entry for entry in raw.entries
                      if is_in_last_days(raw, entry, day_count(WEEK))],
                     lambda entry: (entry.currency, entry.location, entry.local.date().isoformat()),
                     net)),
        Question("At which hour are most sales made?", busiest_hour,
                 lambda raw: best(sums_by(raw.between(*MONTH),
                                        by_currency_and(lambda entry: entry.local.hour),
                                        lambda entry: entry.is_sale))),
        Question("Which weekday is the best?", best_weekday,
                 lambda raw: best(sums_by(raw.between(*YEAR),
                                        by_currency_and(lambda entry: entry.local.isoweekday()),
                                        net))),
        Question("What are the three best goods of the venue that takes euros?",
                 top_of_the_euro_venue, recounted_euro_venue),
        Question("What is the best article of each currency?", top_of_each_currency,
                 lambda raw: best(item_sums(raw.between(*MONTH), "key", "net"))),
        Question("What do we sell before noon?", before_noon, recounted_before_noon),
        Question("At which hours is each article sold?", hours_of_articles, recounted_hours),
        Question("Which category earns most?", best_category, recounted_categories),
        Question("Who sells most?", best_employee, recounted_employees),
        Question("Which share of the sales is paid by card?", share_of_cards, recounted_shares),
        Question("Which location earns most dirhams?", best_location, recounted_locations),
        Question("How many refunds were there, and how much money?", refunds, recounted_refunds),
        Question("How high is the average sale?", average_sale, recounted_average),
        Question("How much VAT did we take in October?", known_vat, recounted_vat),
        Question("How much discount did we give?", discounts,
                 lambda raw: sums_by(raw.between(*MONTH), currency,
                                   lambda entry: (entry.row["gross"] - entry.row["total"])
                                   if entry.is_sale else 0)),
        Question("For how many sales is it unknown what was sold?", unknown_articles,
                 recounted_unknown),
        Question("Show a receipt by its number", receipt_by_number(receipt["number"]),
                 lambda raw: recounted_receipt(raw, receipt)),
        Question("Show yesterday's receipt with this ticket number",
                 receipt_by_ticket(receipt["ticket_number"]),
                 lambda _: (receipt["number"], receipt["total"])),
        Question("Which goods are not offered?", not_offered,
                 lambda raw: sorted(row["name"] for row in raw.goods
                                    if row["status"] == "inactive")),
        Question("What does the good with this barcode cost?", price_by_barcode(barcode),
                 lambda raw: recounted_price(raw, barcode)),
    )  # fmt: skip


def recounted_receipt(raw: RawRows, receipt: Json) -> Any:
    (entry,) = [entry for entry in raw.entries if entry.is_sale and entry.row == receipt]
    return receipt["total"], receipt["currency"], len(entry.items)


def day_count(days: tuple[date, date]) -> int:
    return (days[1] - days[0]).days + 1


def is_in_last_days(raw: RawRows, entry: Entry, count: int) -> bool:
    """Return whether an entry is in the last ``count`` local days of its location."""
    now = datetime.combine(TODAY, time(NOON), ZoneInfo("UTC"))
    today = now.astimezone(raw.zone(entry.location)).date()
    return today - timedelta(days=count) < entry.local.date() <= today
