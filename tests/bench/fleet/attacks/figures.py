"""Measures the heartbeats of one organization while read-only API keys of another organization
request an expensive dashboard without a pause.
"""

import asyncio
from collections.abc import Iterator
from functools import partial
from typing import Final

from controlplane.storage.database import Database
from tests.bench.fleet.attacks.heartbeats_beside import measure
from tests.bench.fleet.attacks.large_merchant import populate_merchant
from tests.bench.fleet.databases import opened
from tests.bench.fleet.fleet import Member, populate
from tests.bench.fleet.service import attacking, service

KEYS: Final = (1, 100)
"""Numbers of read-only API keys. A user can have at most 100 keys."""


def beside_figures(databases: list[str]) -> Iterator[str]:
    """Yield a line for each database and number of keys."""
    for database in databases:
        for keys in KEYS:
            with opened(database) as url:
                other, attacking_keys = _organizations(url, keys)
                with service(url, "--rate", "20", "--burst", "100") as started:
                    attack = partial(
                        attacking, "attacks.greedy_viewer", started.port, *attacking_keys
                    )
                    line = asyncio.run(measure(started.port, other, attack))
            yield f"{f'{database}, {keys} keys':<28} {line}"


def _organizations(url: str, keys: int) -> tuple[Member, list[str]]:
    database = Database(url)
    try:
        other = populate(database, 1, "org-0002")[0]
        return other, populate_merchant(database, "org-0001", keys)
    finally:
        database.close()
