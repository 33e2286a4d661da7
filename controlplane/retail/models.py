"""The objects of the retail API, with the limits of the contract (contract: Resources, Endpoints).

Names on the wire are snake_case. `RequestModel` is the base of objects that a client can send:
their unknown fields are errors. `ReplyModel` is the base of objects that only the service sends:
their unknown fields are ignored, because they are of later versions. If requests and replies have
different models of an object, the name of the request's model begins with `Given`, as in
`GivenGood` and `Good`. Lengths of strings are in characters. This service adds fields to objects
that the contract does not define completely.
"""

from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    SerializeAsAny,
    StringConstraints,
    model_validator,
)
from pydantic_core import PydanticCustomError

from agent.wire.base import WHOLE, Absent, Array, MaxItems, Model, Timestamp, Uuid
from controlplane.operation.records import PRICE_MAX
from controlplane.operation.storable_text import STORABLE
from controlplane.retail.limits import CODES_MAX, CURSOR_MAX, VARIATIONS_MAX
from controlplane.retail.texts import FREE_KEYS_SCHEMA, LINES, mistake_in_free_data

CodeType = Literal["ean_8", "ean_13", "itf_14", "upc_a", "sku", "other"]
GoodStatus = Literal["active", "inactive", "unknown"]
VariationStatus = Literal["active", "inactive"]
Currency = Literal["AED"]
Entry = TypeVar("Entry", bound=Model)
SaleStatus = Literal["completed", "unknown"]
Source = Literal["catalog", "manual_input", "custom_amount"]
SaleOrder = Literal[
    "initiated_at_asc",
    "initiated_at_desc",
    "created_at_asc",
    "created_at_desc",
    "updated_at_asc",
    "updated_at_desc",
    "number_asc",
    "number_desc",
]


def _text(shortest: int, longest: int) -> StringConstraints:
    return StringConstraints(min_length=shortest, max_length=longest)


GoodName = Annotated[str, _text(2, 128)]
Description = Annotated[str, _text(2, 1024)]
VariationName = Annotated[str, _text(1, 128)]
GivenDescription = Annotated[Description, *LINES]
Exponent = Annotated[int, Field(ge=0, le=3)]
Percentage = Annotated[float, Field(ge=0, le=100, strict=False)]


LEFT_OUT = Field(exclude_if=lambda value: value is None)
"""An optional field that can be null. It is left out of the JSON if its value is None."""


def _require_one(value: Any) -> Any:
    # With `min_length`, pydantic would also report a list of invalid entries as too short. This
    # function runs before the entries are validated.
    if isinstance(value, list | tuple) and not value:
        raise PydanticCustomError("too_few", "must have at least one entry")
    return value


_ONE_OR_MORE_VARIATIONS = (MaxItems(VARIATIONS_MAX), BeforeValidator(_require_one))


class RequestModel(Model):
    """A part of a request."""

    model_config = ConfigDict(extra="forbid")


class ReplyModel(Model):
    """A part of a reply."""


class Money(ReplyModel):
    """An amount. ``value`` is in minor units of the currency. The contract has one currency."""

    value: Annotated[int, Field(ge=0, le=PRICE_MAX), WHOLE]
    currency_code: Currency


class GivenMoney(Money, RequestModel):
    """An amount. ``value`` is in minor units of the currency. The contract has one currency."""


class ExternalData(Model):
    """``id`` is unique among the categories, goods and variations of a company."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Any]

    id: Annotated[str, _text(4, 128)]


class GivenExternalData(ExternalData):
    """``id`` is unique among the categories, goods and variations of a company."""

    model_config = ConfigDict(json_schema_extra=FREE_KEYS_SCHEMA)

    id: Annotated[str, _text(4, 128), *STORABLE]

    @model_validator(mode="after")
    def _require_storable(self) -> "GivenExternalData":
        if mistake := mistake_in_free_data(self.__pydantic_extra__):
            raise PydanticCustomError("free_data", "{mistake}", {"mistake": mistake})
        return self


class Code(ReplyModel):
    type: CodeType
    value: Annotated[str, _text(4, 128)]


class GivenCode(Code, RequestModel):
    value: Annotated[str, _text(4, 128), *STORABLE]


class Uom(ReplyModel):
    id: Uuid
    name: Annotated[str, _text(2, 32)]
    symbol: Annotated[str, _text(1, 16)]
    exponent: Exponent


class Vat(ReplyModel):
    """``fee_item_percentage`` is left out if the fee is exempt or not a percentage."""

    fee_item_id: Uuid
    fee_item_name: Annotated[str, _text(2, 64)]
    fee_item_percentage: Absent[Percentage] = None


class Variation(ReplyModel):
    """``name`` is None if the good has only one variation."""

    id: Uuid
    name: Annotated[str, StringConstraints(max_length=128)] | None
    description: Description | None = None
    external_data: ExternalData | None = None
    status: VariationStatus
    default_price: Absent[Money] = None
    image_url: Annotated[str, StringConstraints(max_length=2048)] | None = None
    codes: Annotated[tuple[Code, ...], MaxItems(CODES_MAX)]


class Good(ReplyModel):
    id: Uuid
    name: GoodName
    description: Description | None = None
    external_data: ExternalData | None = None
    status: GoodStatus
    category_id: Uuid | None = None
    business_type: Literal["regular"] = "regular"
    uom: Uom
    vat: Vat
    variations: Annotated[tuple[Variation, ...], *_ONE_OR_MORE_VARIATIONS]


class GivenVat(RequestModel):
    fee_item_id: Uuid


class GivenVariation(RequestModel):
    name: Absent[Annotated[VariationName, *STORABLE]] = None
    description: Absent[GivenDescription] = None
    external_data: Annotated[GivenExternalData | None, LEFT_OUT] = None
    status: VariationStatus = "active"
    default_price: Absent[GivenMoney] = None
    codes: Annotated[tuple[GivenCode, ...], MaxItems(CODES_MAX)] = ()


def _narrow_variations(schema: dict[str, Any]) -> None:
    """Add to the schema that a single variation has no name, and several variations have names."""
    schema["properties"]["variations"] |= {
        "minItems": 1,
        "anyOf": [
            {"maxItems": 1, "items": {"properties": {"name": False}}},
            {"minItems": 2, "items": {"required": ["name"]}},
        ],
    }


class GivenGood(RequestModel):
    """The body of ``POST /catalog/goods/regular``."""

    model_config = ConfigDict(json_schema_extra=_narrow_variations)

    name: Annotated[GoodName, *STORABLE]
    description: Absent[GivenDescription] = None
    external_data: Annotated[GivenExternalData | None, LEFT_OUT] = None
    category_id: Uuid | None = None
    uom_id: Uuid
    vat: GivenVat
    variations: Annotated[tuple[GivenVariation, ...], *_ONE_OR_MORE_VARIATIONS]


class GoodQuery(RequestModel):
    good_id: Uuid


class PageQuery(RequestModel):
    # The length is not validated here: a cursor that is too long is refused as `invalid_cursor`.
    cursor: Absent[Annotated[str, Field(json_schema_extra={"maxLength": CURSOR_MAX})]] = None


class SalesQuery(PageQuery):
    """``initiated_at_from`` and ``initiated_at_to`` are inclusive.

    The contract has no name for the parameter that sorts. This service names it ``sort``.
    """

    status: Literal["completed"]
    sort: SaleOrder = "initiated_at_desc"
    initiated_at_from: Absent[Timestamp] = None
    initiated_at_to: Absent[Timestamp] = None


class SaleQuery(RequestModel):
    sale_id: Annotated[str, StringConstraints(max_length=128)]


class Quantity(ReplyModel):
    """``value`` divided by ten to the power of ``exponent`` is the quantity."""

    value: int
    exponent: Exponent
    uom_id: str
    uom_name: Annotated[str, _text(2, 32)]
    uom_symbol: Annotated[str, _text(1, 16)]


class Position(ReplyModel):
    """A line of a sale."""

    id: str
    name: Annotated[str, _text(1, 512)]
    quantity: Quantity
    codes: Annotated[tuple[Code, ...], MaxItems(CODES_MAX)]
    catalog_good_id: Uuid | None
    catalog_good_variation_id: Uuid | None
    source: Source
    vat: Vat
    unit_price_including_tax: Money
    total_price: Money
    discount_amount: Money | None
    taxable_amount: Money
    tax_percentage: Percentage | None


class Totals(ReplyModel):
    discount: Money | None
    taxable_amount: Money
    tax: Money
    total: Money


class Sale(ReplyModel):
    id: str
    number: Annotated[str, _text(1, 36)]
    ticket_number: Annotated[str, _text(1, 16)]
    status: SaleStatus
    initiated_at: Timestamp
    comment: Absent[Annotated[str, StringConstraints(max_length=1024)]] = None
    point_of_sale_id: str
    initiated_by_id: str | None
    external_data: ExternalData | None
    positions: Array[Position] | None
    totals: Totals
    created_at: Timestamp
    updated_at: Timestamp


class Category(ReplyModel):
    """The contract names only the fields ``id`` and ``external_data``."""

    id: Uuid
    name: str
    parent_id: Uuid | None
    external_data: ExternalData | None = None


class Employee(ReplyModel):
    """The contract names only the field ``id``."""

    id: str
    name: str


class PointOfSale(ReplyModel):
    """The contract names only the field ``id``."""

    id: str
    name: str
    location_id: str
    location_name: str


class FeeItem(ReplyModel):
    """An entry of ``fee_items[]``. The contract names these three fields."""

    id: Uuid
    name: Annotated[str, _text(2, 64)]
    percentage: Absent[Percentage] = None


class Page(ReplyModel, Generic[Entry]):
    """``cursor`` is None on the last page."""

    cursor: str | None
    items: Array[Entry]


class SalePage(Page[Sale]):
    """A page of sales."""

    # The service fills a page with dictionaries (`controlplane.retail.sales`).
    items: Array[SerializeAsAny[Sale]]


class GoodPage(Page[Good]):
    """A page of goods."""


class CategoryPage(Page[Category]):
    """A page of categories."""


class EmployeePage(Page[Employee]):
    """A page of employees."""


class PointOfSalePage(Page[PointOfSale]):
    """A page of points of sale."""


class UomPage(Page[Uom]):
    """A page of units of measure."""


class FeePage(Page[FeeItem]):
    """A page of fees."""

    items: Array[FeeItem] = Field(alias="fee_items")


class TokenRequest(RequestModel):
    """The body of ``POST /auth/tokens``."""

    api_key: Annotated[str, StringConstraints(max_length=256)]


class RefreshRequest(RequestModel):
    """The body of ``POST /auth/tokens/refresh``."""

    refresh_token: Annotated[str, StringConstraints(max_length=256)]


class Tokens(ReplyModel):
    """``expires_in`` is in seconds."""

    access_token: str
    expires_in: int
    refresh_token: str
    token_type: Literal["Bearer"] = "Bearer"  # noqa: S105 - the name of a scheme
