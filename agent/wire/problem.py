"""An error body: `application/problem+json` (RFC 9457, with the service's extensions).

The facade's error bodies are not in the contract; this is the shape its sister interface uses,
and every key is optional because nothing promises any of them.
"""

from msgspec import field

from agent.wire.base import Tolerant

MEDIA_TYPE = "application/problem+json"


class Problem(Tolerant, omit_defaults=True):
    title: str | None = None
    type: str | None = None
    instance: str | None = None
    trace_id: str | None = field(default=None, name="trace_id")
    status: int | None = None
    code: str | None = None
    detail: str | None = None
    reason: str | None = None
    errors: dict[str, tuple[str, ...]] | None = None
