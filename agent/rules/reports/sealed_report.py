"""A report as it is sent. The idle daemon needs this class, but not the models of reports."""

from dataclasses import dataclass
from uuid import UUID

from agent.wire.vocabulary import Kind, Outcome


@dataclass(frozen=True, slots=True)
class SealedReport:
    """``body`` is sent as it is. ``tier`` is how much was dropped to make it fit (see `sealing`).

    ``request_id`` is None for a scheduled report.
    """

    report_id: UUID
    request_id: UUID | None
    binding_id: UUID
    kind: Kind
    outcome: Outcome
    tier: int
    body: bytes
