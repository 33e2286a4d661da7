"""The fields that replies contained, and the forms of each field.

The forms of a field are the cases that a reader of replies must handle: null, absent, true, false,
each value of an enum, and each object or type that the field can have. All other values have the
form "a value". The fields and their possible forms come from the schemas that were transcribed from
the tables of the contract.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import httpx2

from controlplane.accounts.oauth.metadata import RESOURCE_PATH as AGENT_PROTOCOL
from tests.fakes.remote_control import schema as devices
from tests.fakes.schemas import contract as payloads
from tests.fakes.schemas import figures, retail
from tests.fakes.schemas.contract import Schema, violations
from tests.fakes.support import schema as support

Forms = dict[tuple[str, str], set[str]]
"""The forms of each field, by object and field."""
VALUE, NULL, ABSENT = "a value", "null", "left out"

OBJECTS: Final[Mapping[str, Schema]] = {
    "Challenge": devices.CHALLENGE,
    "Enrolled device": devices.ENROLLMENT,
    "Heartbeat's reply": devices.HEARTBEAT,
    "Acknowledgement's reply": devices.ACKNOWLEDGED,
    "Submitted result": devices.SUBMITTED,
    "Created request": devices.CREATED_REQUEST,
    "Page of devices": devices.DEVICES,
    "Device's detail": devices.DEVICE_DETAIL,
    "Device": devices.DEVICE,
    "Remote request": devices.REMOTE_REQUEST,
    "Report summary": devices.REPORT_SUMMARY,
    "Report detail": devices.REPORT_DETAIL,
    "Revoke's reply": devices.REVOKED,
    "Version-2 payload": payloads.NETWORK_PAYLOAD,
    "Endpoint": payloads.ENDPOINT,
    "Printer": payloads.PRINTER,
    "Network map": payloads.MAP,
    "Host": payloads.HOST,
    "running": payloads.RUNNING,
    "succeeded": payloads.SUCCEEDED,
    "failed": payloads.FAILED,
    "unsupported": payloads.UNSUPPORTED,
    "Version-1 payload": payloads.APPLICATION_PAYLOAD,
    "Snapshot field": payloads.FIELD,
    "Browser field, available": payloads.BROWSER_AVAILABLE,
    "Browser field, not available": payloads.BROWSER_NOT_AVAILABLE,
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


def documented_forms() -> Forms:
    """Return every field of the contract's objects with all forms that the field can have."""
    forms: Forms = {}
    for name, schema in OBJECTS.items():
        forms.update(_fields(name, schema))
    return forms


def _fields(owner: str, schema: Schema) -> Iterator[tuple[tuple[str, str], set[str]]]:
    for field, part in schema["properties"].items():
        forms = set(_forms_of_schema(part))
        if field not in schema.get("required", ()) and NULL not in forms:
            forms.add(ABSENT)  # a nullable field without a value is sent as null
        yield (owner, field), forms
        for inner in _alternatives(part):
            items = inner.get("items", {})
            for alternative in (inner, *_alternatives(items)):
                if "properties" in alternative and id(alternative) not in _NAMES:
                    yield from _fields(f"{owner}: {field}", alternative)


def _forms_of_schema(schema: Schema) -> Iterator[str]:
    alternatives = _alternatives(schema)
    if len(alternatives) < len(schema.get("anyOf", ())):
        yield NULL
    for inner in alternatives:
        items = inner.get("items", {})
        if len(alternatives) > 1:
            yield _name(inner)
        elif "const" in inner:
            yield str(inner["const"]).lower()
        elif inner.get("type") == "boolean":
            yield from ("true", "false")
        elif "enum" in inner or "enum" in items:
            yield from inner.get("enum") or items["enum"]
        else:
            yield VALUE


def _alternatives(schema: Schema) -> list[Schema]:
    return [
        alternative
        for alternative in schema.get("anyOf", [schema])
        if alternative != {"type": "null"}
    ]


def _name(schema: Schema) -> str:
    """Return the name of one of several alternatives: the object's name, or the type."""
    return _NAMES.get(id(schema)) or str(schema["type"])


def _fitting(schema: Schema, value: Any) -> Schema:
    """Return the alternative that a value matches."""
    alternatives = _alternatives(schema)
    if len(alternatives) == 1:
        return alternatives[0]
    return next(alternative for alternative in alternatives if not violations(alternative, value))


def forms_in(replies: Iterable[httpx2.Response]) -> Forms:
    """Return every field that the replies contained, and its forms."""
    forms: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for reply in replies:
        schema = _schema_of(reply)
        if schema is not None and reply.content:
            _collect_forms(schema, reply.json(), "", forms)
    # A key is the owner of a field and the field. The owner is "", or begins with ":", if no object
    # around the field is in OBJECTS. Such fields are left out.
    return {key: field_forms for key, field_forms in forms.items() if key[0] and key[0][0] != ":"}


def _schema_of(reply: httpx2.Response) -> Schema | None:
    path = reply.request.url.path
    if path.startswith(devices.PREFIX):
        schemas = devices.OPERATIONS.get(path.removeprefix(devices.PREFIX))
        return schemas[1] if schemas and reply.status_code == 200 else None
    if path.startswith(figures.PREFIX):
        schemas = figures.OPERATIONS.get(path.removeprefix(figures.PREFIX))
        return schemas[1] if schemas and reply.status_code == 200 else None
    if path == AGENT_PROTOCOL or path.startswith(support.PREFIX):
        return None
    if reply.status_code >= 400:
        return retail.PROBLEM
    retail_path = path.removeprefix("/api/v1")
    for (method, pattern), (_, schema) in retail.REPLIES.items():
        if method == reply.request.method and re.fullmatch(pattern, retail_path):
            # The contract does not show the reply to a refresh of tokens. That reply has the same
            # fields as the reply to the exchange of an API key for tokens.
            return retail.TOKENS if retail_path.startswith("/auth/") else schema
    return None


def _collect_forms(
    schema: Schema, value: Any, owner: str, forms: defaultdict[tuple[str, str], Any]
) -> None:
    if value is None:
        return
    schema = _fitting(schema, value)
    name = _NAMES.get(id(schema), owner)
    if isinstance(value, list):
        for item in value:
            _collect_forms(schema.get("items", {}), item, owner, forms)
    elif isinstance(value, dict):
        for field, part in schema.get("properties", {}).items():
            if field not in value:
                forms[name, field].add(ABSENT)
                continue
            forms[name, field].update(_forms_of_value(part, value[field]))
            _collect_forms(part, value[field], f"{name}: {field}", forms)


def _forms_of_value(schema: Schema, value: Any) -> Iterator[str]:
    if value is None:
        yield NULL
    elif len(_alternatives(schema)) > 1:
        yield _name(_fitting(schema, value))
    elif isinstance(value, bool) or "const" in _fitting(schema, value):
        yield str(value).lower()
    elif "enum" in _fitting(schema, value):
        yield value
    elif "enum" in _fitting(schema, value).get("items", {}):
        yield from value
    else:
        yield VALUE
