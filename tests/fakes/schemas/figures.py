"""The operations of analytics and reports as JSON Schema.

They are transcribed from the tables of the contract document only, independently of the service.
Reply bodies that the document does not show have no schema, so any value is accepted there.
"""

import functools
from collections.abc import Iterator, Mapping
from typing import Any, Final

import httpx2
from jsonschema import Draft202012Validator, FormatChecker

from tests.fakes.schemas.compiled import CompiledValidator
from tests.fakes.schemas.contract import (
    BOOLEAN,
    COUNT,
    NUMBER,
    SAFE,
    NotFittingError,
    Schema,
    array,
    each,
    enum,
    exact,
    null_or,
)

PREFIX: Final = "/api/public/v1/"
SOME_TEXT: Final[Schema] = {"type": "string", "minLength": 1}
TEXT: Final[Schema] = {"type": "string"}
DATE: Final[Schema] = {"type": "string", "format": "date", "pattern": r"^\d{4}-\d\d-\d\d$"}
INTEGER: Final[Schema] = {"type": "integer", "minimum": -SAFE, "maximum": SAFE}
HOUR: Final[Schema] = {"type": "integer", "minimum": 0, "maximum": 23}
ANYTHING: Final[Schema] = {}


# ---------------------------------------------------------------------------- bodies

_REQUIRED_FIELDS: Final[dict[str, Schema]] = {"locationId": SOME_TEXT}
_COMMON_FIELDS: Final[dict[str, Schema]] = {
    "period": enum("today", "yesterday", "last7", "thisMonth", "custom"),
    **each("from to", DATE),
    "locationMode": enum("single", "all"),
}
_PAYMENT_TYPES: Final[Schema] = {
    **array(enum("cash", "card", "wallet", "mixed", "other")),
    "minItems": 1,
}
LOCATION_QUERY = exact(_REQUIRED_FIELDS)
COMMON_QUERY = exact(_REQUIRED_FIELDS, _COMMON_FIELDS)
NARROWED_QUERY = exact(_REQUIRED_FIELDS, {**_COMMON_FIELDS, "paymentTypes": _PAYMENT_TYPES})
"""The body of a query that can be limited to some payment types."""

# ---------------------------------------------------------------------------- replies

COVERAGE = exact(
    each(
        "missingSaleSnapshotCount unresolvedImportedOrderCount undatedRefundPaymentCount"
        " saleUnknownTaxLineCount refundUnknownTaxCount refundUnknownComponentsCount"
        " timezoneFallbackCount",
        COUNT,
    )
    | each(
        "missingSaleSnapshotCents unresolvedImportedOrderCents undatedRefundCents",
        INTEGER,
    )
    | each("salesComplete refundsComplete vatComplete", BOOLEAN)
)
QUANTITY = exact({"quantityUnit": null_or(TEXT), "quantityMilli": INTEGER, "lineCount": COUNT})
FIGURES = exact(
    each(
        "grossCents discountCents saleCents refundCents netCents refundAmountCents"
        " municipalityFeeCents refundedFeeCents refundTipCents knownVatCents",
        INTEGER,
    )
    | each("saleCount refundCount", COUNT)
    | each("vatCents netWithoutVatCents", null_or(INTEGER))
    | each("averageSaleCents averageItemsPerSale", null_or(NUMBER))
    | {"quantities": array(QUANTITY), "coverage": COVERAGE}
)
WINDOW = exact(
    each("locationId fromDate toDate timeZone", TEXT) | {"fellBackToUtc": BOOLEAN},
    {"intervals": array(exact(each("startUtc endUtc", TEXT)))},
)
METHOD = exact(
    {"paymentType": TEXT, "paymentMethodName": null_or(TEXT)}
    | each("saleCents refundedCents netCents refundAmountCents", INTEGER)
    | {"unknownRefundCount": COUNT, "sharePercent": null_or(NUMBER)}
)
LOCATION = exact({"locationId": TEXT, "figures": FIGURES, "sharePercent": null_or(NUMBER)})
BUCKET = exact(
    each("locationId localDate", TEXT)
    | {"localHour": HOUR}
    | each("grossCents discountCents refundCents netCents tradingRevenueCents", INTEGER)
    | each("saleCount refundCount", COUNT)
)
SUMMARY_CURRENCY = exact(
    {
        "currency": TEXT,
        "figures": FIGURES,
        "methods": array(METHOD),
        "locations": array(LOCATION),
        "buckets": array(BUCKET),
    }
)
SUMMARY_PERIOD = exact({"windows": array(WINDOW), "currencies": array(SUMMARY_CURRENCY)})
# The document does not show which fields follow `previous`, so further fields are accepted.
FINANCIAL_SUMMARY: Final[Schema] = {
    "type": "object",
    "properties": {"current": SUMMARY_PERIOD, "previous": SUMMARY_PERIOD},
    "required": ["current", "previous"],
}
POINT = exact({"cents": INTEGER})
PULSE_CURRENCY = exact(
    {"currency": TEXT}
    | each("todayCents yesterdayCents", INTEGER)
    | each("complete comparisonComplete", BOOLEAN)
    | {"deltaPercent": null_or(NUMBER)}
    | each("points peakPoints", array(POINT))
)
ACTIVITY = exact(
    {
        "weekday": {"type": "integer", "minimum": 1, "maximum": 7},
        "hour": HOUR,
        "orderCount": COUNT,
    }
)
VENUE = exact(
    {
        "locationId": TEXT,
        "activityComplete": BOOLEAN,
        "currencies": array(PULSE_CURRENCY),
        "activity": array(ACTIVITY),
    }
)
FINANCIAL_PULSE = exact({"venues": array(VENUE)})

OPERATIONS: Final[Mapping[str, tuple[Schema, Schema]]] = {
    "analytics/dashboard": (COMMON_QUERY, ANYTHING),
    "analytics/chart": (COMMON_QUERY, ANYTHING),
    "analytics/sales": (NARROWED_QUERY, ANYTHING),
    "analytics/items": (NARROWED_QUERY, ANYTHING),
    "analytics/reconciliation": (NARROWED_QUERY, ANYTHING),
    "analytics/trend": (NARROWED_QUERY, ANYTHING),
    "analytics/venues": (NARROWED_QUERY, ANYTHING),
    "analytics/venueFinancialPulse": (LOCATION_QUERY, FINANCIAL_PULSE),
    "analytics/venuePulse": (LOCATION_QUERY, ANYTHING),
    "reports/financialSummary": (COMMON_QUERY, FINANCIAL_SUMMARY),
}
"""The schemas of the request body and of the reply body, by the operation's path below PREFIX."""


def require_fitting(reply: httpx2.Response) -> None:
    """Raise NotFittingError if a reply of analytics or reports does not match the document.

    Refusals are not checked, because the document does not show them.
    """
    request = reply.request
    if request.url.path.removeprefix(PREFIX) not in OPERATIONS or reply.status_code >= 400:
        return
    name = request.url.path.removeprefix(PREFIX)
    if (request.method, reply.status_code) != ("POST", 200):
        raise NotFittingError(f"{request.method} {name} answered {reply.status_code}")
    kind = reply.headers["content-type"]
    if kind != "application/json":
        raise NotFittingError(f"{name} has the content type {kind}")
    for mistake in mistakes(name, reply.json()):
        raise NotFittingError(f"{name}: {mistake}")


def mistakes(name: str, body: Any, *, is_request: bool = False) -> Iterator[str]:
    """Yield each error in the body of a reply, or of a request if ``is_request``."""
    return _validator(name, is_request=is_request).mistakes(body)


@functools.cache
def _validator(name: str, *, is_request: bool) -> CompiledValidator:
    schema = OPERATIONS[name][0 if is_request else 1]
    return CompiledValidator(Draft202012Validator(schema, format_checker=FormatChecker()))
