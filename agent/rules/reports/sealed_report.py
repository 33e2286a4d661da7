"""A report in the form in which it is sent.

This class has its own module, because the idle daemon needs it. To save memory, this module does
not import the models of reports.
"""

from dataclasses import dataclass
from uuid import UUID

from agent.wire.vocabulary import Kind, Outcome


@dataclass(frozen=True, slots=True)
class SealedReport:
    """A sealed report, whose ``body`` is sent unchanged.

    ``tier`` is the level of reduction that made the body fit (see `sealing`). At tier 0, nothing
    was removed. ``request_id`` is None for a scheduled report.
    """

    report_id: UUID
    request_id: UUID | None
    binding_id: UUID
    kind: Kind
    outcome: Outcome
    tier: int
    body: bytes
