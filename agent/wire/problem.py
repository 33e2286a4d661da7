"""An error body: `application/problem+json` (RFC 9457, with the service's extensions).

The facade's error bodies are not in the contract; this is the shape its sister interface uses,
and every key is optional because nothing promises any of them.
"""

from typing import Annotated, TypeVar

from pydantic import Field

from agent.wire.base import Array, Tolerant

MEDIA_TYPE = "application/problem+json"

T = TypeVar("T")

Unpromised = Annotated[T | None, Field(exclude_if=lambda value: value is None)]
"""A key that may be missing or null, and is left out when there is nothing to say."""


class Problem(Tolerant):
    title: Unpromised[str] = None
    type: Unpromised[str] = None
    instance: Unpromised[str] = None
    trace_id: Unpromised[str] = Field(default=None, alias="trace_id")
    status: Unpromised[int] = None
    code: Unpromised[str] = None
    detail: Unpromised[str] = None
    reason: Unpromised[str] = None
    errors: Unpromised[dict[str, Array[str]]] = None
