"""Tests of access to the OpenAPI documents. tests/contract/openapi tests their content."""

import pytest

from controlplane.web.openapi.interfaces import RETAIL_API, document_bytes
from tests.unit.controlplane.running_service import RunningService

DOCUMENTS = [
    ("/openapi.json", document_bytes()),
    ("/api/v1/openapi.json", document_bytes(RETAIL_API)),
]


@pytest.mark.parametrize(("path", "content"), DOCUMENTS)
async def test_the_document_is_served_without_a_key(
    service: RunningService, path: str, content: bytes
) -> None:
    response = await service.http.get(path)
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    assert response.headers["cache-control"] == "public, max-age=300"
    assert response.content == content
    assert response.json()["openapi"] == "3.1.0"


@pytest.mark.parametrize(("path", "content"), DOCUMENTS)
async def test_head_requests_for_the_documents_are_served(
    service: RunningService, path: str, content: bytes
) -> None:
    response = await service.http.head(path)
    assert response.status_code == 200
    assert response.headers["content-length"] == str(len(content))


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
@pytest.mark.parametrize("path", ["/openapi.json", "/api/v1/openapi.json"])
async def test_the_document_refuses_other_methods(
    service: RunningService, method: str, path: str
) -> None:
    response = await service.http.request(method, path)
    assert response.status_code == 405
    assert response.headers["allow"] == "GET, HEAD"
