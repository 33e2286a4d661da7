"""What doctor found, as the document that `--json` prints and the bundle holds (docs/cli.md)."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, get_args

from agent import __version__
from agent.doctor.check import Outcome, Status
from agent.doctor.judgement import none_failed

VERSION: Final = 1
_STATUSES: Final = get_args(Status)


def document_of(outcomes: Sequence[Outcome], *, made_at: str, duration_s: float) -> dict[str, Any]:
    """Return the document; its keys are stable, checks may be added."""
    counts = Counter(outcome.status for outcome in outcomes)
    return {
        "version": VERSION,
        "agent": __version__,
        "madeAt": made_at,
        "durationSeconds": round(duration_s, 3),
        "ok": none_failed(outcomes),
        "counts": {status: counts[status] for status in _STATUSES},
        "checks": [_entry(outcome) for outcome in outcomes],
    }


def _entry(outcome: Outcome) -> dict[str, Any]:
    return {
        "name": outcome.name,
        "group": outcome.group,
        "status": outcome.status,
        "detail": outcome.detail,
        "fix": outcome.fix or None,
        "because": outcome.because,
        "durationSeconds": round(outcome.duration_s, 3),
    }
