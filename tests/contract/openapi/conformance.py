"""Judges replies by the OpenAPI document: status, media type, code and content."""

import functools
import json
from typing import Any

import httpx2
from jsonschema import Draft202012Validator

from controlplane.openapi.document import document_bytes

Json = dict[str, Any]


@functools.cache
def document() -> Json:
    read: Json = json.loads(document_bytes())
    return read


def check(response: httpx2.Response) -> None:
    """Raise AssertionError where the document does not permit a reply whose content was read."""
    if response.request.method != "POST" or response.request.url.path not in document()["paths"]:
        return
    path, status = response.request.url.path, str(response.status_code)
    documented = document()["paths"][path]["post"]["responses"]
    assert status in documented, f"{path} answered {status}: {response.text[:200]}"
    media_type = response.headers["content-type"].partition(";")[0]
    assert media_type in documented[status]["content"], f"{path} {status} is {media_type}"
    for name, header in documented[status]["headers"].items():
        assert name in response.headers, f"{path} {status} lacks {name}: {header}"
    if media_type.endswith("json"):
        problems = [
            error.message for error in _validator(path, status).iter_errors(response.json())
        ]
        assert not problems, f"{path} {status}: {problems[:3]}"


@functools.cache
def _validator(path: str, status: str) -> Draft202012Validator:
    reply = document()["paths"][path]["post"]["responses"][status]["content"]
    (schema,) = [each["schema"] for kind, each in reply.items() if kind.endswith("json")]
    return Draft202012Validator({"components": document()["components"], **schema})
