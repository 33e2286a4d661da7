"""Tests of access to the OpenAPI documents. tests/contract/openapi tests their content."""

import gzip
import hashlib
import re

import pytest

from controlplane.web.openapi.interfaces import RETAIL_API, document_bytes
from controlplane.web.openapi.viewer import FILES, read_file
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
async def test_the_document_refuses_methods_except_get_and_head(
    service: RunningService, method: str, path: str
) -> None:
    response = await service.http.request(method, path)
    assert response.status_code == 405
    assert response.headers["allow"] == "GET, HEAD"


@pytest.mark.parametrize("path", FILES)
async def test_the_viewer_is_served_with_a_strict_policy(
    service: RunningService, path: str
) -> None:
    response = await service.http.get(path)
    assert response.status_code == 200
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'; script-src 'self'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert (await service.http.post(path)).status_code == 405


async def test_a_client_without_gzip_gets_the_same_file(service: RunningService) -> None:
    path = "/docs/swagger-ui.css"
    plain = await service.http.get(path, headers={"accept-encoding": "identity"})
    packed = await service.http.get(path, headers={"accept-encoding": "gzip"})
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert plain.content == packed.content


def test_vendored_files_have_the_documented_checksums_and_their_licenses() -> None:
    readme = read_file("README.md").decode()
    documented = dict(re.findall(r"^\| `([\w.-]+)` \| `([0-9a-f]{64})` \|$", readme, re.MULTILINE))
    assert documented.keys() == {"swagger-ui-bundle.js", "swagger-ui.css"}
    for name, checksum in documented.items():
        content = gzip.decompress(read_file(f"{name}.gz"))
        assert hashlib.sha256(content).hexdigest() == checksum, name
    assert b"Apache License" in read_file("LICENSE")
    assert b"SmartBear" in read_file("NOTICE")


def test_the_page_has_no_inline_script_and_names_both_documents() -> None:
    page, script = read_file("index.html").decode(), read_file("viewer.js").decode()
    assert re.findall(r"<script(?! src=)|<style|\son\w+=|style=", page) == []
    assert re.findall(r'(?:src|href)="(?!/|data:)', page) == []
    for path, _ in DOCUMENTS:
        assert f'"{path}"' in script
