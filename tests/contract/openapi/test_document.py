"""The OpenAPI document agrees with the contract, the service, its client and its documentation."""

import json
import re
import uuid
from functools import partial
from itertools import product
from typing import Any, get_args

import httpx2
import pytest
from jsonschema import Draft202012Validator

from agent.wire import codec, device_operations, routes
from agent.wire.codec import encode
from agent.wire.operator_operations import (
    CreateRequestRequest,
    DeviceDetailRequest,
    ReportDetailRequest,
    RevokeRequest,
)
from agent.wire.payloads.application import BrowserField
from agent.wire.vocabulary import Kind, Outcome
from controlplane.analytics import routes as analytics
from controlplane.analytics.messages import FiguresQuery, LocationQuery, NarrowedQuery
from controlplane.client.errors import CommandError
from controlplane.client.operations import OperationsClient
from controlplane.operation.errors import Refusal
from controlplane.operation.operation import CODES, COMMON_CODES
from controlplane.remote_control.submission import parse_submission
from controlplane.support import routes as support
from controlplane.support.messages import ConfirmRequest, TokenRequest
from controlplane.web.openapi.interfaces import AREAS, OPERATIONS, document_bytes
from tests.contract import golden
from tests.contract.openapi.conformance import document
from tests.fixtures.payloads import application_snapshot, small_venue
from tests.paths import ROOT

PATHS = {
    path
    for module in (routes, support, analytics)
    for name, path in vars(module).items()
    if name.isupper() and name != "PREFIX"
}
FIGURES = {path for path in PATHS if not path.startswith((routes.PREFIX, support.PREFIX))}
DEPRECATED = {"chart", "sales", "items", "reconciliation", "trend", "venues", "venuePulse"}
READING = {
    "current", "listDevices", "deviceDetail", "reportDetail", "contact", "inspect",
    *(path.rpartition("/")[2] for path in FIGURES),
}  # fmt: skip
"""The operations without side effects. The contract names those of remoteControl. In our
interpretation, the figures and the operations `contact` and `inspect` of support have no side
effects either.
"""
REPORTS = {
    "network": json.loads(encode(small_venue())),
    "application": json.loads(encode(application_snapshot())),
    "none": None,
}


def validator(schema: dict[str, Any]) -> Draft202012Validator:
    return Draft202012Validator({"components": document()["components"], **schema})


def body_schema(name: str) -> dict[str, Any]:
    (path,) = [path for path in PATHS if path.endswith(f"/{name}")]
    operation = document()["paths"][path]["post"]
    schema: dict[str, Any] = operation["requestBody"]["content"]["application/json"]["schema"]
    return schema


def test_the_openapi_document_has_the_operations_of_the_contract() -> None:
    assert len(PATHS) == 12 + 4 + 10  # remoteControl, support, figures
    assert set(document()["paths"]) == PATHS == {operation.path for operation in OPERATIONS}
    for path, methods in document()["paths"].items():
        assert list(methods) == ["post"]
        assert methods["post"]["operationId"] == path.removeprefix("/api/public/v1/").replace(
            "/", "."
        )


def test_version_and_paths_of_the_openapi_document_are_v1() -> None:
    assert document()["info"]["version"] == "v1"
    assert all(path.startswith("/api/public/v1/") for path in document()["paths"])


def test_deprecated_operations_are_marked_and_document_their_headers() -> None:
    for path, methods in document()["paths"].items():
        is_deprecated = path in FIGURES and path.rpartition("/")[2] in DEPRECATED
        assert methods["post"].get("deprecated", False) == is_deprecated
        headers = methods["post"]["responses"]["200"]["headers"]
        assert ({"Deprecation", "Link"} <= set(headers)) == is_deprecated


def test_only_reading_operations_permit_a_read_only_key() -> None:
    assert {operation.name for operation in OPERATIONS if not operation.writes} == READING
    for path, methods in document()["paths"].items():
        codes = json.dumps(methods["post"]["responses"].get("403"))
        assert ("read_only_key" in codes) == (path.rpartition("/")[2] not in READING)


def test_names_are_unique_and_every_operation_is_described() -> None:
    ids = [f"{area.name}.{operation.name}" for area in AREAS for operation in area.operations]
    assert len(ids) == len(set(ids))
    assert all(operation.description for operation in OPERATIONS)


def test_every_schema_is_valid_and_every_reference_resolves() -> None:
    text = document_bytes().decode()
    for schema in document()["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)
    for reference in set(re.findall(r'"\$ref":"#/([^"]+)"', text)):
        result: Any = document()
        for part in reference.split("/"):
            result = result[part]
        assert result


@pytest.mark.parametrize(
    "operation", [row for row in OPERATIONS if row.body], ids=lambda row: row.name
)
def test_schemas_of_bodies_refuse_unknown_fields_and_values_other_than_objects(
    operation: Any,
) -> None:
    schema = body_schema(operation.name)
    component = document()["components"]["schemas"].get(
        schema.get("$ref", "").rpartition("/")[2], {}
    )
    for shape in component.get("oneOf", [schema]):
        problems = [error.message for error in validator(shape).iter_errors({"unknown": 1})]
        assert any("('unknown' was unexpected)" in problem for problem in problems), problems
    assert not validator(schema).is_valid([])
    assert not validator(schema).is_valid(None)


def test_a_body_field_is_required_only_if_it_is_a_constant_or_has_no_default() -> None:
    schemas = document()["components"]["schemas"]
    for name in ("FiguresQuery", "NarrowedQuery"):
        assert schemas[name]["required"] == ["locationId"]
    for name in ("ApplicationPayload", "NetworkPayload"):
        assert "version" in schemas[name]["required"]


def test_contact_is_the_only_operation_without_a_body() -> None:
    (without_body,) = [operation for operation in OPERATIONS if operation.body is None]
    described = document()["paths"][without_body.path]["post"]
    assert described["operationId"] == "support.contact"
    assert "requestBody" not in described
    assert "415" not in described["responses"]


@pytest.mark.parametrize(
    ("kind", "outcome", "report", "reason"),
    list(product(get_args(Kind), get_args(Outcome), REPORTS, (None, "collection-failed", "other"))),
)
def test_schema_and_service_accept_the_same_reports(
    kind: str, outcome: str, report: str, reason: str | None
) -> None:
    body = {"kind": kind, "outcome": outcome, "report": REPORTS[report]}
    body |= {key: str(uuid.uuid4()) for key in ("bindingId", "reportId")}
    body |= {} if reason is None else {"failureReason": reason}
    try:
        parse_submission(json.dumps(body).encode())
    except Refusal:
        is_accepted = False
    else:
        is_accepted = True
    assert validator(body_schema("submitResult")).is_valid(body) == is_accepted


@pytest.mark.parametrize(
    ("entry", "fits"),
    [
        ({"status": "available", "value": "de-AT"}, True),
        ({"status": "available", "value": ["a", "b"]}, True),
        ({"status": "available", "reason": "none"}, False),
        ({"status": "available", "value": "x", "reason": "none"}, False),
        ({"status": "unsupported", "reason": "none"}, True),
        ({"status": "unsupported", "value": "x"}, False),
        ({"status": "unsupported", "reason": "none", "value": None}, False),
        ({"status": "unsupported"}, False),
    ],
)
def test_a_browser_field_has_a_value_or_a_reason(entry: dict[str, Any], fits: bool) -> None:
    entry |= {"key": "browser.language", "source": "navigator"}
    assert validator({"$ref": "#/components/schemas/BrowserField"}).is_valid(entry) == fits
    try:
        BrowserField.model_validate(entry, strict=False)
    except ValueError:
        assert not fits
    else:
        # The service refuses null before it uses the model, so the model may accept null.
        assert fits or entry.get("value", "") is None


DEVICE_REQUESTS = {
    "challenge": ("challenge/request", device_operations.ChallengeRequest),
    "enroll": ("enroll/request", device_operations.EnrollRequest),
    "heartbeat": ("heartbeat/request", device_operations.HeartbeatRequest),
    "acknowledge": ("acknowledge/request-running", device_operations.AcknowledgeRequest),
    "submit_result": ("submitResult/request-network", device_operations.SubmitResultRequest),
}
"""Maps methods of the client to the golden message of their body, and to its model."""


def test_the_typed_client_has_a_method_for_every_operation() -> None:
    called = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        called.append(request.url.path)
        return httpx2.Response(404)

    instance_id = uuid.uuid4()
    with httpx2.Client(transport=httpx2.MockTransport(answer), base_url="http://service/") as http:
        client = OperationsClient(http)
        query = FiguresQuery(location_id="loc-1")
        narrowed_query = NarrowedQuery(location_id="loc-1")
        location = LocationQuery(location_id="loc-1")
        token = "A" * 43
        empty = device_operations.EmptyRequest()
        calls = {
            **{
                name: partial(getattr(client, name), codec.decode(golden.text_of(body), model))
                for name, (body, model) in DEVICE_REQUESTS.items()
            },
            "current": client.current,
            "on_commands": lambda: client.on_commands(empty),
            "devices": client.devices,
            "device": lambda: client.device(DeviceDetailRequest(instance_id=instance_id)),
            "create_request": lambda: client.create_request(
                CreateRequestRequest(instance_id=instance_id, kind="network")
            ),
            "report": lambda: client.report(ReportDetailRequest(report_id=instance_id)),
            "revoke": lambda: client.revoke(RevokeRequest(instance_id=instance_id)),
            "financial_summary": lambda: client.financial_summary(query),
            "dashboard": lambda: client.dashboard(query),
            "venue_financial_pulse": lambda: client.venue_financial_pulse(location),
            "chart": lambda: client.chart(query),
            "sales": lambda: client.sales(narrowed_query),
            "items": lambda: client.items(narrowed_query),
            "reconciliation": lambda: client.reconciliation(narrowed_query),
            "trend": lambda: client.trend(narrowed_query),
            "venues": lambda: client.venues(narrowed_query),
            "venue_pulse": lambda: client.venue_pulse(location),
            "support_contact": client.support_contact,
            "support_inspect": lambda: client.support_inspect(TokenRequest(token=token)),
            "support_confirm": lambda: client.support_confirm(
                ConfirmRequest(token=token, organization_id="org-1")
            ),
            "support_disconnect": lambda: client.support_disconnect(TokenRequest(token=token)),
        }
        for call in calls.values():
            with pytest.raises(CommandError, match="404"):
                call()
    public = {name for name in vars(OperationsClient) if not name.startswith("_")}
    assert public == {*calls, "post"}  # `post` is for operations outside the facade
    assert sorted(called) == sorted(operation.path for operation in OPERATIONS)


def statuses_of(code: str) -> set[int]:
    return {status for status, codes in CODES.items() if code in codes}


def test_the_documentation_lists_every_code_with_its_statuses() -> None:
    text = (ROOT / "docs/controlplane.md").read_text()
    listed: dict[str, set[int]] = {}
    for status, words in re.findall(r"^\| (\d{3}) \| (.*) \|$", text, re.MULTILINE):
        for code in re.findall(r"`([a-z]+_?[a-z_]*)`", words):
            listed.setdefault(code, set()).add(int(status))
    assert listed == {code: statuses_of(code) for codes in CODES.values() for code in codes}


def test_operations_name_only_existing_codes_and_no_common_ones() -> None:
    for operation in OPERATIONS:
        assert operation.refusals <= {code for codes in CODES.values() for code in codes}
        assert not operation.refusals & COMMON_CODES
