"""The services a venue depends on: who plays a role is the platform's, the keys are the same."""

from collections.abc import Iterable

ASPECTS = ("name", "state", "startType", "since", "restarts")


def service_keys(roles: Iterable[str]) -> tuple[str, ...]:
    """The keys of each role, in the order of the aspects."""
    return tuple(f"service.{role}.{aspect}" for role in roles for aspect in ASPECTS)
