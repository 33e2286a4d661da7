"""The body of an error reply: `application/problem+json` (RFC 9457) with extensions of the service.

The contract does not define the error bodies of remoteControl. This model has the form that the
contract defines for the retail API, in which every key is optional.
"""

from typing import Annotated, TypeVar

from pydantic import Field

from agent.wire.base import Array, Tolerant

MEDIA_TYPE = "application/problem+json"

T = TypeVar("T")

Unpromised = Annotated[T | None, Field(exclude_if=lambda value: value is None)]
"""A key that can be missing or null. It is omitted from output if it has no value."""


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
