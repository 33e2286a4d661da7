"""What is said where there is no configuration: where it was looked for, and what makes one."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from agent.config.model import config_places, is_there
from agent.config.rights import by_root, has_service_manager

_INSTALL: Final = "venue-agent service install --base-url URL --location ID --api-key-file FILE"


def no_configuration() -> str:
    """Return it as one sentence without its full stop."""
    places = config_places()
    looked = " or ".join(str(place) for place in places)
    return f"there is no configuration at {looked}: {_way_to_one(places)}"


def _way_to_one(places: Sequence[Path]) -> str:
    if has_service_manager() and "VENUE_AGENT_CONFIG" not in os.environ:
        return f"{by_root(_INSTALL)} makes one"
    place = places[0]
    is_made = sys.platform == "win32" or is_there(place.parent)
    directory = "" if is_made else f"mkdir -p {place.parent} && "
    return f"`{directory}venue-agent config example >{place}` makes one to fill in"
