"""Compares replies with the OpenAPI documents: status, media type, code and content."""

import functools
import json
import re
from typing import Any, Final

import httpx2
import jsonschema_rs

from controlplane.web.openapi.interfaces import RETAIL_API, document_bytes

Json = dict[str, Any]


@functools.cache
def document() -> Json:
    result: Json = json.loads(document_bytes())
    return result


@functools.cache
def retail_document() -> Json:
    result: Json = json.loads(document_bytes(RETAIL_API))
    return result


_DOCUMENTS: Final = {"facade": document, "retail": retail_document}


def check(response: httpx2.Response) -> None:
    """Raise AssertionError if the documents do not permit the reply.

    The caller must have read the content of the reply.
    """
    result = _operation(response.request.method.lower(), response.request.url.path)
    if result is None:
        return
    document_name, path, operation = result
    status, name = str(response.status_code), f"{response.request.method} {path}"
    assert status in operation["responses"], f"{name} answered {status}: {response.text[:200]}"
    documented = operation["responses"][status]
    for header, described in documented["headers"].items():
        assert header in response.headers, f"{name} {status} lacks {header}: {described}"
    if "content" not in documented:
        assert response.headers.get("content-length") == "0", f"{name} {status} has a body"
        return
    media_type = response.headers["content-type"].partition(";")[0]
    assert media_type in documented["content"], f"{name} {status} has the type {media_type}"
    if media_type.endswith("json"):
        validator = _validator(document_name, response.request.method.lower(), path, status)
        problems = [error.message for error in validator.iter_errors(response.json())]
        assert not problems, f"{name} {status}: {problems[:3]}"


@functools.cache
def _operation(method: str, path: str) -> tuple[str, str, Json] | None:
    """Return the operation of a call, or None if no document has it.

    The result has the name of the document, the path as it is written there, and the operation.
    """
    for name in _DOCUMENTS:
        paths = _DOCUMENTS[name]()["paths"]
        templates = (template for template, pattern in _patterns(name) if pattern.fullmatch(path))
        for documented_path in (path, *templates):
            if method in paths.get(documented_path, ()):
                return name, documented_path, paths[documented_path][method]
    return None


@functools.cache
def _patterns(name: str) -> list[tuple[str, re.Pattern[str]]]:
    """Return the paths of a document that have parameters, each with a pattern that matches it."""
    parameter = re.compile(r"\\\{\w+\\\}")
    return [
        (path, re.compile(parameter.sub("[^/]+", re.escape(path))))
        for path in _DOCUMENTS[name]()["paths"]
        if "{" in path
    ]


@functools.cache
def _validator(
    document_name: str, method: str, path: str, status: str
) -> jsonschema_rs.Draft202012Validator:
    document = _DOCUMENTS[document_name]()
    reply = document["paths"][path][method]["responses"][status]["content"]
    (schema,) = [content["schema"] for kind, content in reply.items() if kind.endswith("json")]
    return jsonschema_rs.Draft202012Validator({"components": document["components"], **schema})
