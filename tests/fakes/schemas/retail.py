"""The retail API as JSON Schema.

It is transcribed from the tables of the contract document only, independently of the service.
Parts that the document does not show have no schema, so any value is accepted there.
"""

import functools
import re
from collections.abc import Mapping
from typing import Final

import httpx2
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from tests.fakes.schemas.compiled import CompiledValidator
from tests.fakes.schemas.contract import UUID, NotFittingError, Schema, enum, exact, null_or

TIMESTAMP: Final[Schema] = {
    "type": "string",
    "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$",
}


def text(shortest: int = 0, longest: int | None = None) -> Schema:
    bound = {} if longest is None else {"maxLength": longest}
    return {"type": "string", "minLength": shortest} | bound


def at_least(required: dict[str, Schema]) -> Schema:
    """Return the schema of an object with these keys, which may have further keys."""
    return {"type": "object", "properties": required, "required": list(required)}


EXPONENT: Final[Schema] = {"type": "integer", "maximum": 3}
PERCENTAGE: Final[Schema] = {"type": "number", "maximum": 100}
MONEY = exact(
    {
        "value": {"type": "integer", "minimum": 0, "maximum": 2**63 - 1},
        "currency_code": enum("AED"),
    }
)
EXTERNAL = at_least({"id": text(4, 128)})
CODE = exact(
    {
        "type": enum("ean_8", "ean_13", "itf_14", "upc_a", "sku", "other"),
        "value": text(4, 128),
    }
)
CODES: Final[Schema] = {"type": "array", "items": CODE, "maxItems": 20}
UOM = exact({"id": UUID, "name": text(2, 32), "symbol": text(1, 16), "exponent": EXPONENT})
VAT = exact(
    {"fee_item_id": UUID, "fee_item_name": text(2, 64)}, {"fee_item_percentage": PERCENTAGE}
)
VARIATION = exact(
    {
        "id": UUID,
        "name": null_or(text(0, 128)),
        "status": enum("active", "inactive"),
        "codes": CODES,
    },
    {
        "description": null_or(text(2, 1024)),
        "external_data": null_or(EXTERNAL),
        "default_price": MONEY,
        "image_url": null_or(text(0, 2048)),
    },
)
GOOD = exact(
    {
        "id": UUID,
        "name": text(2, 128),
        "status": enum("active", "inactive", "unknown"),
        "business_type": enum("regular"),
        "uom": UOM,
        "vat": VAT,
        "variations": {"type": "array", "items": VARIATION, "minItems": 1, "maxItems": 150},
    },
    {
        "description": null_or(text(2, 1024)),
        "external_data": null_or(EXTERNAL),
        "category_id": null_or(UUID),
    },
)
POSITION = exact(
    {
        "id": text(),
        "name": text(1, 512),
        "quantity": exact(
            {
                "value": {"type": "integer"},
                "exponent": EXPONENT,
                "uom_id": text(),
                "uom_name": text(2, 32),
                "uom_symbol": text(1, 16),
            }
        ),
        "codes": CODES,
        "catalog_good_id": null_or(UUID),
        "catalog_good_variation_id": null_or(UUID),
        "source": enum("catalog", "manual_input", "custom_amount"),
        "vat": VAT,
        "unit_price_including_tax": MONEY,
        "total_price": MONEY,
        "discount_amount": null_or(MONEY),
        "taxable_amount": MONEY,
        "tax_percentage": null_or(PERCENTAGE),
    }
)
SALE = exact(
    {
        "id": text(),
        "number": text(1, 36),
        "ticket_number": text(1, 16),
        "status": enum("completed"),
        "initiated_at": TIMESTAMP,
        "point_of_sale_id": text(),
        "initiated_by_id": null_or(text()),
        "external_data": null_or(EXTERNAL),
        "positions": null_or({"type": "array", "items": POSITION}),
        "totals": exact(
            {"taxable_amount": MONEY, "tax": MONEY, "total": MONEY, "discount": null_or(MONEY)}
        ),
        "created_at": TIMESTAMP,
        "updated_at": TIMESTAMP,
    },
    {"comment": text(0, 1024)},
)
TOKENS = exact(
    {
        "access_token": {"type": "string", "pattern": r"^[\w-]+\.[\w-]+\.[\w-]+$"},
        "expires_in": {"const": 3600},
        "refresh_token": text(1),
        "token_type": enum("Bearer"),
    }
)
FEES = at_least({"fee_items": {"type": "array", "items": at_least({"id": UUID}), "maxItems": 20}})


def page(item: Schema, count_max: int | None = 20) -> Schema:
    items: Schema = {"type": "array", "items": item} | (
        {} if count_max is None else {"maxItems": count_max}
    )
    cursor = null_or(text(1, 128))
    return {
        "type": "object",
        "properties": {"items": items, "cursor": cursor},
        "required": ["items"],
    }


SALES = page(SALE) | {"required": ["cursor", "items"]}
REPLIES: Final[Mapping[tuple[str, str], tuple[int, Schema]]] = {
    ("POST", r"/auth/tokens"): (200, TOKENS),
    ("POST", r"/auth/tokens/refresh"): (200, at_least({"access_token": text(1)})),
    ("GET", r"/catalog/goods/regular"): (200, page(GOOD)),
    ("POST", r"/catalog/goods/regular"): (201, GOOD),
    ("GET", r"/catalog/goods/regular/[^/]+"): (200, GOOD),
    ("GET", r"/catalog/categories"): (200, page(at_least({"id": UUID}))),
    ("GET", r"/employees"): (200, page(at_least({"id": text(1)}))),
    ("GET", r"/sales"): (200, SALES),
    ("GET", r"/sales/[^/]+"): (200, SALE),
    ("GET", r"/business-structure/point-of-sales"): (200, page(at_least({"id": text(1)}))),
    ("GET", r"/uoms"): (200, page(UOM)),
    ("GET", r"/fees"): (200, FEES),
}
"""The status and the body of a successful reply, by method and path pattern."""

ERROR_CODES_BY_STATUS: Final[Mapping[int, tuple[str | None, ...]]] = {
    400: ("validation_error", "invalid_request", "invalid_cursor"),
    409: ("existing_entity_conflict",),
    415: ("invalid_request",),
    429: ("unexpected_error",),
    500: ("internal_server_error",),
    503: (None,),
}
"""The permitted values of ``code`` in a problem. None means that the problem has no code. With a
status that is not listed, any code is permitted."""
STATUSES_WITHOUT_BODY: Final = {401, 403, 404}
"""The statuses of replies without a body."""
PROBLEM = exact(  # a body of the type application/problem+json (RFC 9457)
    {
        "title": text(1),
        "type": text(1),
        "instance": text(1),
        "trace_id": text(1),
        "status": {"type": "integer"},
    },
    {
        "code": text(1),
        "detail": text(1),
        "reason": text(1),
        "errors": null_or(
            {
                "type": "object",
                "additionalProperties": {"type": "array", "items": text(1), "minItems": 1},
            }
        ),
    },
)


def require_fitting(reply: httpx2.Response, base: str = "/api/v1") -> None:
    """Raise NotFittingError if a reply does not match the document's description of its operation.

    ``base`` is the part of the URL's path before the operation's path.
    """
    status = reply.status_code
    if status in STATUSES_WITHOUT_BODY:
        _require(reply, not reply.content, "401, 403 and 404 have no body")
    elif status >= 400:
        _require_problem(reply)
    else:
        _require_success(reply, base)


def _require_success(reply: httpx2.Response, base: str) -> None:
    path = reply.request.url.path.removeprefix(base)
    for (method, pattern), (status, _) in REPLIES.items():
        if method == reply.request.method and re.fullmatch(pattern, path):
            _require(reply, reply.status_code == status, f"must be {status}")
            kind = reply.headers["content-type"]
            _require(reply, kind == "application/json", f"has the content type {kind}")
            _validate(reply, (method, pattern))
            return
    raise NotFittingError(f"{reply.request.method} {path} is not in the document")


def _require_problem(reply: httpx2.Response) -> None:
    kind = reply.headers["content-type"]
    _require(reply, kind == "application/problem+json", f"has the content type {kind}")
    _validate(reply, None)
    message = reply.json()
    code = message.get("code")
    _require(reply, message["status"] == reply.status_code, "has a different status in its body")
    allowed = ERROR_CODES_BY_STATUS.get(reply.status_code, (code,))
    _require(reply, code in allowed, f"has the code {code}")
    has_errors = bool(message.get("errors"))
    _require(
        reply,
        has_errors == (code == "validation_error"),
        "must have `errors` if and only if the code is validation_error",
    )
    has_reason = message.get("reason") == "duplicate_external_data_id"
    _require(
        reply,
        has_reason == (reply.status_code == 409),
        "must have the reason duplicate_external_data_id if and only if the status is 409",
    )
    if reply.status_code == 429:
        _require(reply, reply.headers["retry-after"].isdecimal(), "has no Retry-After in seconds")


def _validate(reply: httpx2.Response, operation: tuple[str, str] | None) -> None:
    """Validate the body. ``operation`` is a key of ``REPLIES``, or None for a problem."""
    error = best_match(_validator(operation).iter_errors(reply.json()))
    if error is not None:
        path = ".".join(map(str, error.absolute_path))
        _require(reply, False, f"{path}: {error.message[:300]}")


@functools.cache
def _validator(operation: tuple[str, str] | None) -> CompiledValidator:
    schema = PROBLEM if operation is None else REPLIES[operation][1]
    return CompiledValidator(Draft202012Validator(schema))


def _require(reply: httpx2.Response, is_valid: bool, problem: str) -> None:
    if not is_valid:
        request = reply.request
        raise NotFittingError(f"{request.method} {request.url}, {reply.status_code}: {problem}")
