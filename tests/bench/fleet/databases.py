"""A temporary database for a measurement: an SQLite file or a PostgreSQL server."""

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from controlplane.accounts.keys.key_store import DEFAULT_ORGANIZATION
from controlplane.storage.database import Database
from tests.bench.fleet.fleet import Member, populate
from tests.postgresql import postgresql


@contextlib.contextmanager
def temporary_database(name: str) -> Iterator[str]:
    """Yield the URL of an empty database. ``name``: sqlite or postgresql."""
    if name == "postgresql":
        with postgresql() as url:
            yield url
        return
    with tempfile.TemporaryDirectory(prefix="venue-fleet-") as directory:
        yield f"sqlite:///{Path(directory) / 'service.db'}"


def write_fleet(
    url: str, devices: int, organization_id: str = DEFAULT_ORGANIZATION
) -> list[Member]:
    """Write a fleet of ``devices`` devices into the database."""
    with contextlib.closing(Database(url)) as database:
        return populate(database, devices, organization_id)
