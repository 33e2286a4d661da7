"""The body of an error reply: `application/problem+json` (RFC 9457) with extensions of the service.

The contract does not define the error bodies of the device operations. This model has the keys that
the contract defines for the error bodies of the retail API. Here, every key is optional.
"""

from typing import Annotated, TypeVar

from pydantic import Field

from agent.wire.base import Array, Tolerant

MEDIA_TYPE = "application/problem+json"

T = TypeVar("T")

OptionalKey = Annotated[T | None, Field(exclude_if=lambda value: value is None)]
"""A key that can be missing or null. It is omitted from output if it has no value."""


class Problem(Tolerant):
    title: OptionalKey[str] = None
    type: OptionalKey[str] = None
    instance: OptionalKey[str] = None
    trace_id: OptionalKey[str] = Field(default=None, alias="trace_id")
    status: OptionalKey[int] = None
    code: OptionalKey[str] = None
    detail: OptionalKey[str] = None
    reason: OptionalKey[str] = None
    errors: OptionalKey[dict[str, Array[str]]] = None
