"""docs/service.md is what a running service says, of every operation; the tests it names exist."""

import ast
import asyncio
from collections.abc import Iterator

import pytest

from tests.contract.service.calls.recorder import Recorder
from tests.contract.service.document import PATH, operations, written
from tests.contract.service.examples import recorded
from tests.contract.service.proven.seen import documented, seen_in
from tests.contract.service.proven.tables import TABLES
from tests.contract.service.proven.ways import NEVER, SEEN_ELSEWHERE
from tests.fakes.retail_schema import require_fitting
from tests.paths import ROOT


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Recorder:
    return asyncio.run(recorded(tmp_path_factory.mktemp("service")))


def test_it_tells_what_the_service_says(service: Recorder) -> None:
    told = written(service.texts)
    differing = [
        f"line {number}: the service says {new!r}, the document {old!r}"
        for number, (new, old) in enumerate(
            zip(told.splitlines(), PATH.read_text("utf-8").splitlines(), strict=False), start=1
        )
        if new != old
    ]
    assert differing[:3] == [], "make service-doc"
    assert told == PATH.read_text("utf-8"), "make service-doc"


def test_every_operation_has_an_example(service: Recorder) -> None:
    assert set(operations()) <= set(service.texts)
    assert len(operations()) >= 12 + 4 + 10 + 12 + 7


def test_every_retail_reply_is_the_documents(service: Recorder) -> None:
    of_retail = [each for each in service.replies if each.request.url.path.startswith("/api/v1/")]
    for reply in of_retail:
        require_fitting(reply)
    assert {each.status_code for each in of_retail} == {
        200, 201, 400, 401, 403, 404, 409, 415, 429, 500, 503,
    }  # fmt: skip


def test_every_field_was_seen(service: Recorder) -> None:
    permitted = {(*place, way) for place, ways in documented().items() for way in ways}
    seen = {(*place, way) for place, ways in seen_in(service.replies).items() for way in ways}
    assert permitted - seen == set(SEEN_ELSEWHERE) | set(NEVER)


def names_in(path: str) -> Iterator[str]:
    for node in ast.parse((ROOT / path).read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
        if isinstance(node, ast.ClassDef):
            for part in node.body:
                if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield f"{node.name}::{part.name}"


def test_every_test_that_it_names_exists() -> None:
    named = {test for table in TABLES for row in table.rows for test in row.tests}
    named |= set(SEEN_ELSEWHERE.values())
    for path in sorted({test.partition("::")[0] for test in named}):
        wanted = {test.partition("::")[2] for test in named if test.startswith(path)}
        assert wanted <= set(names_in(path)), path
    assert all(row.tests for table in TABLES for row in table.rows)
