"""The keys of the facts about the services that a venue depends on.

A role, such as the print spooler, is filled by a different program on each platform.
"""

from collections.abc import Iterable

ASPECTS = ("name", "state", "startType", "since", "restarts")


def service_keys(roles: Iterable[str]) -> tuple[str, ...]:
    """Return the keys of each role, in the order of `ASPECTS`."""
    return tuple(f"service.{role}.{aspect}" for role in roles for aspect in ASPECTS)
