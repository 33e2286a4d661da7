"""How far a report looked: what it does not show may be gone, or was not looked at."""

import re
from typing import Final

from agent.wire.payloads.application import ApplicationPayload
from agent.wire.payloads.network import NetworkPayload

_NUMBERS: Final = re.compile(r"\d+")


def looked_as_far(
    one: NetworkPayload | ApplicationPayload, other: NetworkPayload | ApplicationPayload
) -> bool:
    """Tell whether ``one`` would show what ``other`` shows, were it there.

    A partial report never does; a limited one where nothing limited it that did not limit
    ``other``: a machine that may not do everything is limited in each of its reports.
    """
    if one.completeness == "complete":
        return True
    return one.completeness == "limited" and _limits(one) <= _limits(other)


def _limits(payload: NetworkPayload | ApplicationPayload) -> frozenset[str]:
    """Return what limited a report, whatever it counts."""
    if isinstance(payload, ApplicationPayload):
        own = payload.snapshot.limitations
    else:
        own = payload.network_map.limitations if payload.network_map else ()
    return frozenset(_NUMBERS.sub("#", line) for line in (*payload.limitations, *own))
