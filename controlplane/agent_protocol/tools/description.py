"""describe_business_data: the datasets, described by the models of their rows."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final, Literal

from pydantic import BaseModel, Field

from agent.wire.base import Absent, Array, Exact, Tolerant
from agent.wire.operator_operations import Device, RemoteRequest
from controlplane.agent_protocol.tools import merchant_data
from controlplane.agent_protocol.tools import record_models as models
from controlplane.agent_protocol.tools.business_context import OrganizationContext
from controlplane.agent_protocol.tools.business_records import SOURCES
from controlplane.agent_protocol.tools.catalog import GoodRow
from controlplane.agent_protocol.tools.query_sales import SalesRow
from controlplane.agent_protocol.tools.sales_groups import GROUPINGS, METRICS
from controlplane.agent_protocol.tools.tool import Json, ToolContext, schema_of, tool

DatasetName = Literal[
    "salesFigures", models.Dataset, "organization", "locations", "fees", "uoms", "paymentMethods",
    "catalog",
]  # fmt: skip


class DescribeBusinessDataArguments(Exact):
    dataset: Absent[DatasetName] = Field(default=None, description="default: all")


class FieldDescription(Tolerant):
    name: str
    type: str
    description: str | None


class Grouping(Tolerant):
    name: str
    description: str


class MetricDescription(Tolerant):
    name: str
    description: str


class Example(Tolerant):
    question: str
    arguments: dict[str, Any]


class DatasetDescription(Tolerant):
    dataset: DatasetName
    tool: str = Field(description="the tool that reads the dataset")
    fields: Array[FieldDescription]
    filters: Array[str]
    groupings: Array[Grouping]
    metrics: Array[MetricDescription]
    examples: Array[Example]


class BusinessDataDescription(Tolerant):
    datasets: Array[DatasetDescription]


def describe_business_data(
    _context: ToolContext, arguments: DescribeBusinessDataArguments
) -> tuple[str, BusinessDataDescription]:
    names = [arguments.dataset] if arguments.dataset is not None else list(_TOOLS_AND_ROWS)
    answer = BusinessDataDescription(datasets=tuple(_describe(name) for name in names))
    return f"Datasets: {', '.join(names)}.", answer


_RECORDS_TOOL: Final = "read_business_records"
_MERCHANT_TOOL: Final = "read_merchant_data"
_TOOLS_AND_ROWS: Final[Mapping[DatasetName, tuple[str, type[BaseModel]]]] = {
    "salesFigures": ("query_sales", SalesRow),
    "sales": (_RECORDS_TOOL, models.SaleRecord),
    "refunds": (_RECORDS_TOOL, models.RefundRecord),
    "employees": (_RECORDS_TOOL, models.EmployeeRecord),
    "pointsOfSale": (_RECORDS_TOOL, models.PointOfSaleRecord),
    "devices": (_RECORDS_TOOL, Device),
    "deviceRequests": (_RECORDS_TOOL, RemoteRequest),
    "deviceReports": (_RECORDS_TOOL, models.DeviceReportRecord),
    "findings": (_RECORDS_TOOL, models.DeviceFindingRecord),
    "incidents": (_RECORDS_TOOL, models.DeviceIncidentRow),
    "organization": (_MERCHANT_TOOL, OrganizationContext),
    "locations": (_MERCHANT_TOOL, merchant_data.LocationRow),
    "fees": (_MERCHANT_TOOL, merchant_data.FeeRow),
    "uoms": (_MERCHANT_TOOL, merchant_data.UomRow),
    "paymentMethods": (_MERCHANT_TOOL, merchant_data.PaymentMethodRow),
    "catalog": ("read_catalog", GoodRow),
}
"""The tool that reads each dataset, and the model of its rows."""
_FILTERS: Final[Mapping[str, tuple[str, ...]]] = {
    "salesFigures": ("locations", "period", "from", "to", "hours", "currency"),
    "catalog": ("search", "category", "status"),
    **{name: source.filters for name, source in SOURCES.items()},
}
_FIGURES_EXAMPLES: Final = (
    ("What sold best in the last seven days?",
     {"period": "last7", "groupBy": ["item"], "metrics": ["netCents", "quantityMilli"],
      "limit": 10}),
    ("How did each location do in October, day by day?",
     {"from": "2026-10-01", "to": "2026-10-31", "groupBy": ["location", "day"], "limit": 500}),
    ("What was the net of each month of the last year?",
     {"from": "2025-11-01", "to": "2026-10-31", "groupBy": ["month"], "metrics": ["netCents"]}),
    ("Which goods are sold before noon?",
     {"period": "last7", "hours": list(range(12)), "groupBy": ["item"],
      "metrics": ["netCents", "quantityMilli"]}),
    ("At which hours is the venue busy?",
     {"period": "thisMonth", "groupBy": ["weekday", "hour"], "metrics": ["saleCount"],
      "limit": 200}),
)  # fmt: skip
_CATALOG_EXAMPLES: Final = (
    ("Which goods are not offered?", {"status": "inactive"}),
    ("Find a good by its barcode", {"search": "4006381333931"}),
)


@cache
def _describe(name: DatasetName) -> DatasetDescription:
    tool, row = _TOOLS_AND_ROWS[name]
    groupings, metrics = (GROUPINGS, METRICS) if name == "salesFigures" else ({}, {})
    return DatasetDescription(
        dataset=name,
        tool=tool,
        fields=tuple(_fields(row)),
        filters=_FILTERS.get(name, ()),
        groupings=tuple(Grouping(name=each, description=groupings[each]) for each in groupings),
        metrics=tuple(MetricDescription(name=each, description=metrics[each]) for each in metrics),
        examples=tuple(
            Example(question=question, arguments=args) for question, args in _examples(name)
        ),
    )


def _examples(name: DatasetName) -> tuple[tuple[str, Json], ...]:
    if name == "salesFigures":
        return _FIGURES_EXAMPLES
    if name == "catalog":
        return _CATALOG_EXAMPLES
    if name == "sales":
        receipt = {"number": "0001-261120-00042"}
        return (("Show a receipt", {"dataset": name, "filters": receipt}),)
    if name == "deviceReports":
        return (("What did the newest report find?", {"dataset": name, "limit": 1}),)
    if name in SOURCES:
        return ((f"The first {name}", {"dataset": name, "limit": 10}),)
    return ((f"All of {name}", {"section": name}),)


def _fields(row: type[BaseModel]) -> Iterator[FieldDescription]:
    """Yield the fields of a row. Names of fields in inner objects are paths with dots."""
    schema = schema_of(row, "serialization")
    yield from _fields_of_object(schema, schema.get("$defs", {}), "")


def _fields_of_object(schema: Json, definitions: Json, prefix: str) -> Iterator[FieldDescription]:
    for name, field in schema.get("properties", {}).items():
        kind, inner = _type(field, definitions)
        text = field.get("description")
        yield FieldDescription(name=f"{prefix}{name}", type=kind, description=text)
        if inner is not None:
            yield from _fields_of_object(inner, definitions, f"{prefix}{name}.")


def _type(field: Json, definitions: Json) -> tuple[str, Json | None]:
    """Return the name of a field's type, and the schema of the object in the field, if any."""
    if "$ref" in field:
        field = definitions[field["$ref"].rpartition("/")[2]]
    if "anyOf" in field:
        parts = [_type(schema, definitions) for schema in field["anyOf"]]
        kinds = list(dict.fromkeys(kind for kind, _ in parts))
        inner = next((inner_type for _, inner_type in parts if inner_type is not None), None)
        return " or ".join(kinds), inner
    if "enum" in field or "const" in field:
        values = field["enum"] if "enum" in field else [field["const"]]
        return "one of " + ", ".join(map(str, values)), None
    if field.get("type") == "array":
        kind, inner = _type(field.get("items", {}), definitions)
        return f"list of {kind}", inner
    kind = str(field.get("format") or field.get("type", "any"))
    return kind, field if "properties" in field else None


DESCRIBE_BUSINESS_DATA = tool(
    describe_business_data,
    "Datasets",
    "Datasets with their fields, types, filters, groupings, metrics and examples of arguments, and"
    " the tool that reads each dataset.",
)
