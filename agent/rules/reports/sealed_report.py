"""A report as it is sent. The idle daemon needs this class, but not the models of reports."""

from dataclasses import dataclass
from uuid import UUID

from agent.wire.vocabulary import Kind, Outcome


@dataclass(frozen=True, slots=True)
class SealedReport:
    """A sealed report, whose ``body`` is sent as it is.

    ``tier`` is the level of reduction that made the body fit (see `sealing`); at 0, it is whole.
    ``request_id`` is None for a scheduled report.
    """

    report_id: UUID
    request_id: UUID | None
    binding_id: UUID
    kind: Kind
    outcome: Outcome
    tier: int
    body: bytes
