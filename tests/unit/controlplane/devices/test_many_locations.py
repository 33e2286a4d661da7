"""Tests of queries over more locations than fit into one statement."""

from controlplane.devices.locations.locations import zones
from tests.unit.controlplane.running_service import RunningService

LOCATIONS = 20_000


def test_time_zones_of_many_locations_can_be_queried(service: RunningService) -> None:
    keys = [(f"org-{number % 7}", f"loc-{number:05}") for number in range(LOCATIONS)]
    # One statement with all keys would exceed the depth of PostgreSQL's stack.
    assert service.database.read(lambda session: zones(session, keys)) == {}
