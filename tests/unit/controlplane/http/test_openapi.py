"""Where the OpenAPI document is served, and to whom. What is in it: tests/contract/openapi."""

import pytest

from controlplane.openapi.document import document_bytes
from tests.unit.controlplane.running_service import RunningService


async def test_the_document_is_served_without_a_key(service: RunningService) -> None:
    response = await service.http.get("/openapi.json")
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    assert response.headers["cache-control"] == "public, max-age=300"
    assert response.content == document_bytes()
    assert response.json()["openapi"] == "3.1.0"


async def test_its_head_is_served(service: RunningService) -> None:
    response = await service.http.head("/openapi.json")
    assert response.status_code == 200
    assert response.headers["content-length"] == str(len(document_bytes()))


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
async def test_nothing_else_is_done_with_it(service: RunningService, method: str) -> None:
    response = await service.http.request(method, "/openapi.json")
    assert response.status_code == 405
    assert response.headers["allow"] == "GET, HEAD"
