"""Which locations a call is about: those that are named, or all that the caller may see."""

from collections.abc import Sequence

from controlplane.agent_protocol.tools.tool import ToolContext
from controlplane.analytics.question import place, visible_places
from controlplane.figures.financial import Place

LOCATIONS_MAX = 100
"""Locations that one call may name."""


def named_places(context: ToolContext, named: Sequence[str] | None) -> list[Place]:
    """Return the locations, each once. Raises the refusal of one that the caller may not see."""
    if named is None:
        return visible_places(context)
    return [place(context, location_id) for location_id in dict.fromkeys(named)]
