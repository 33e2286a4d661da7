"""The results of doctor as the document of `--json` and of the bundle (docs/cli.md)."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, get_args

from agent import __version__
from agent.doctor.check import CheckResult, Status
from agent.doctor.root_causes import any_failed

VERSION: Final = 1
_STATUSES: Final = get_args(Status)


def document_of(
    results: Sequence[CheckResult], *, made_at: str, duration_s: float
) -> dict[str, Any]:
    """Return the document. Its keys are stable; later versions may add checks."""
    counts = Counter(result.status for result in results)
    return {
        "version": VERSION,
        "agent": __version__,
        "madeAt": made_at,
        "durationSeconds": round(duration_s, 3),
        "ok": not any_failed(results),
        "counts": {status: counts[status] for status in _STATUSES},
        "checks": [
            {key: getattr(result, key) for key in ("name", "group", "status", "detail")}
            | {"fix": result.fix or None, "because": result.because}
            | {"durationSeconds": round(result.duration_s, 3)}
            for result in results
        ],
    }
