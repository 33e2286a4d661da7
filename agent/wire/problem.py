"""An error body: `application/problem+json` (RFC 9457, with the service's extensions).

The contract does not define the facade's error bodies. This is the form of the retail API, where
every key is optional.
"""

from typing import Annotated, TypeVar

from pydantic import Field

from agent.wire.base import Array, Tolerant

MEDIA_TYPE = "application/problem+json"

T = TypeVar("T")

Unpromised = Annotated[T | None, Field(exclude_if=lambda value: value is None)]
"""A key that may be missing or null, and is omitted without a value."""


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
