"""docs/service.md matches a running service for every operation, and names existing tests."""

import ast
import asyncio
from collections import Counter
from collections.abc import Iterator
from datetime import date, datetime
from typing import Any

import httpx2
import pytest

from controlplane.web.openapi.interfaces import OPERATIONS
from tests.contract.service.calls.recorder import Recorder
from tests.contract.service.coverage.forms import NEVER_SENT, TESTED_SEPARATELY
from tests.contract.service.coverage.reply_forms import documented_forms, forms_in
from tests.contract.service.coverage.tables import TABLES
from tests.contract.service.document import PATH, document_text, operations
from tests.contract.service.examples import record_calls
from tests.fakes.schemas.retail import require_fitting
from tests.paths import ROOT

pytestmark = pytest.mark.medium


@pytest.fixture(scope="module")
def recorder(tmp_path_factory: pytest.TempPathFactory) -> Recorder:
    return asyncio.run(record_calls(tmp_path_factory.mktemp("service")))


def test_the_document_matches_the_service(recorder: Recorder) -> None:
    output = document_text(recorder.texts)
    differing = [
        f"line {number}: the service returns {new!r}, the document has {old!r}"
        for number, (new, old) in enumerate(
            zip(output.splitlines(), PATH.read_text("utf-8").splitlines(), strict=False), start=1
        )
        if new != old
    ]
    assert differing[:3] == [], "run `make service-doc`"
    assert output == PATH.read_text("utf-8"), "run `make service-doc`"


def test_every_operation_has_an_example(recorder: Recorder) -> None:
    assert set(operations()) <= set(recorder.texts)
    # The numbers of operations of remoteControl, support, figures and the retail API, and the
    # number of tools.
    assert len(operations()) >= 12 + 4 + 10 + 12 + 7


def test_every_retail_reply_fits_the_documented_schema(recorder: Recorder) -> None:
    retail_replies = [
        reply for reply in recorder.replies if reply.request.url.path.startswith("/api/v1/")
    ]
    for reply in retail_replies:
        require_fitting(reply)
    assert {reply.status_code for reply in retail_replies} == {
        200, 201, 400, 401, 403, 404, 409, 415, 429, 500, 503,
    }  # fmt: skip


def test_replies_contain_every_field_in_every_form(recorder: Recorder) -> None:
    permitted = {(*key, form) for key, forms in documented_forms().items() for form in forms}
    seen = {(*key, form) for key, forms in forms_in(recorder.replies).items() for form in forms}
    assert permitted - seen == set(TESTED_SEPARATELY) | set(NEVER_SENT)


def names_in(path: str) -> Iterator[str]:
    for node in ast.parse((ROOT / path).read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
        if isinstance(node, ast.ClassDef):
            for part in node.body:
                if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield f"{node.name}::{part.name}"


def test_every_statement_names_existing_tests_or_a_reason() -> None:
    tests = {test for table in TABLES for row in table.rows for test in row.tests}
    tests |= set(TESTED_SEPARATELY.values())
    for path in sorted({test.partition("::")[0] for test in tests}):
        test_names = {test.partition("::")[2] for test in tests if test.startswith(path)}
        assert test_names <= set(names_in(path)), path
    for row in (row for table in TABLES for row in table.rows):
        assert bool(row.tests) != bool(row.why), row.statement


def facade_replies(recorder: Recorder) -> Iterator[httpx2.Response]:
    for reply in recorder.replies:
        if reply.request.url.path.startswith("/api/public/v1/") and reply.status_code < 400:
            yield reply


def test_success_is_200_with_json(recorder: Recorder) -> None:
    results = {
        (reply.status_code, reply.headers["content-type"].partition(";")[0])
        for reply in facade_replies(recorder)
    }
    assert results == {(200, "application/json")}
    paths = {reply.request.url.path for reply in facade_replies(recorder)}
    assert paths == {operation.path for operation in OPERATIONS}


def values_in(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each value of a reply with its field. Payloads are skipped: devices wrote them."""
    if isinstance(value, dict):
        for field, part in value.items():
            if field != "payload":
                yield from values_in(part, field)
    elif isinstance(value, list):
        for part in value:
            yield from values_in(part, name)
    elif value is not None:
        yield name, value


def test_amounts_timestamps_and_numbers_have_the_documented_form(recorder: Recorder) -> None:
    seen: Counter[str] = Counter()
    for name, value in (
        pair for reply in facade_replies(recorder) for pair in values_in(reply.json())
    ):
        if name.endswith("Cents") or name == "cents":
            seen["amounts"] += 1
            # The only amount that need not be an integer is an average.
            assert type(value) is int or name.startswith("average"), name
        if name.endswith("At") or name in {"startUtc", "endUtc"}:
            seen["timestamps"] += 1
            assert datetime.fromisoformat(value).tzinfo is not None, name
        if name.endswith("Date"):
            seen["dates"] += 1
            assert value == date.fromisoformat(value).isoformat(), name
        if type(value) is int:
            seen["integers"] += 1
            assert abs(value) <= 2**53 - 1, name
    assert min(seen[kind] for kind in ("amounts", "timestamps", "dates", "integers")) > 100
