"""Which fields of the documents replies held, and how: a value, null, left out, words of an enum.

Fields are those of the schemas that were transcribed from the documents' tables.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import httpx2

from controlplane.agent_protocol.refusals import PATH as AGENT_PROTOCOL
from tests.fakes import figures_schema as figures
from tests.fakes import retail_schema as retail
from tests.fakes.contract_schema import Schema

Ways = dict[tuple[str, str], set[str]]
"""By object and field: ways in which a field can stand, or was seen to."""
VALUE, NULL, ABSENT = "a value", "null", "left out"

OBJECTS: Final[Mapping[str, Schema]] = {
    "Tokens": retail.TOKENS,
    "Regular good": retail.GOOD,
    "Variation": retail.VARIATION,
    "Code entry": retail.CODE,
    "Unit of measure": retail.UOM,
    "VAT": retail.VAT,
    "Money": retail.MONEY,
    "External data": retail.EXTERNAL,
    "Page of sales": retail.SALES,
    "Sale": retail.SALE,
    "Position": retail.POSITION,
    "Problem": retail.PROBLEM,
    "Financial summary": figures.FINANCIAL_SUMMARY,
    "Period of a summary": figures.SUMMARY_PERIOD,
    "Currency of a summary": figures.SUMMARY_CURRENCY,
    "Figures": figures.FIGURES,
    "Quantity": figures.QUANTITY,
    "Coverage": figures.COVERAGE,
    "Window": figures.WINDOW,
    "Method": figures.METHOD,
    "Location": figures.LOCATION,
    "Bucket": figures.BUCKET,
    "Venue financial pulse": figures.FINANCIAL_PULSE,
    "Venue": figures.VENUE,
    "Currency of a venue": figures.PULSE_CURRENCY,
    "Point": figures.POINT,
    "Activity": figures.ACTIVITY,
}
_NAMES: Final = {id(schema): name for name, schema in OBJECTS.items()}


def documented() -> Ways:
    """Return every field of the documents' objects with all ways in which it can stand."""
    ways: Ways = {}
    for name, schema in OBJECTS.items():
        ways.update(_fields(name, schema))
    return ways


def _fields(owner: str, schema: Schema) -> Iterator[tuple[tuple[str, str], set[str]]]:
    for field, part in schema["properties"].items():
        ways = set(_ways(part))
        if field not in schema.get("required", ()) and NULL not in ways:
            ways.add(ABSENT)  # what may be null is null here where there is none
        yield (owner, field), ways
        inner = _without_null(part)
        if "properties" in inner and id(inner) not in _NAMES:
            yield from _fields(f"{owner}: {field}", inner)
        items = inner.get("items", {})
        if "properties" in items and id(items) not in _NAMES:
            yield from _fields(f"{owner}: {field}", items)


def _ways(schema: Schema) -> Iterator[str]:
    inner = _without_null(schema)
    if inner is not schema:
        yield NULL
    if inner.get("type") == "boolean":
        yield from ("true", "false")
    elif "enum" in inner:
        yield from inner["enum"]
    else:
        yield VALUE


def _without_null(schema: Schema) -> Schema:
    return next((each for each in schema.get("anyOf", ()) if each != {"type": "null"}), schema)


def seen_in(replies: Iterable[httpx2.Response]) -> Ways:
    """Return every field that the replies held, and how."""
    ways: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for reply in replies:
        schema = _schema_of(reply)
        if schema is not None and reply.content:
            _look(schema, reply.json(), "", ways)
    return {place: found for place, found in ways.items() if place[0] and place[0][0] != ":"}


def _schema_of(reply: httpx2.Response) -> Schema | None:
    path = reply.request.url.path
    if path.startswith(figures.PREFIX):
        of_figures = figures.OPERATIONS.get(path.removeprefix(figures.PREFIX))
        return of_figures[1] if of_figures and reply.status_code == 200 else None
    if path == AGENT_PROTOCOL:
        return None
    if reply.status_code >= 400:
        return retail.PROBLEM
    below = path.removeprefix("/api/v1")
    for (method, form), (_, schema) in retail.REPLIES.items():
        if method == reply.request.method and re.fullmatch(form, below):
            # The document does not show the refreshed tokens: they are those of an exchange.
            return retail.TOKENS if below.startswith("/auth/") else schema
    return None


def _look(schema: Schema, value: Any, owner: str, ways: defaultdict[tuple[str, str], Any]) -> None:
    schema = _without_null(schema)
    name = _NAMES.get(id(schema), owner)
    if isinstance(value, list):
        for each in value:
            _look(schema.get("items", {}), each, owner, ways)
    elif isinstance(value, dict):
        for field, part in schema.get("properties", {}).items():
            if field not in value:
                ways[name, field].add(ABSENT)
                continue
            ways[name, field].add(_way(part, value[field]))
            _look(part, value[field], f"{name}: {field}", ways)


def _way(schema: Schema, value: Any) -> str:
    if value is None:
        return NULL
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if "enum" in _without_null(schema) else VALUE
