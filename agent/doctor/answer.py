"""The service's answer to one request: a record, nothing, or an error."""

from dataclasses import dataclass

from agent.errors import ServiceError
from agent.wire.device_operations import EnrollmentRecord


@dataclass(frozen=True, slots=True)
class Answer:
    """``current`` is meant only where ``error`` is None; None then means: no binding."""

    current: EnrollmentRecord | None = None
    error: ServiceError | None = None
