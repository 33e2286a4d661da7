"""Measures the heartbeats of one organization while other clients attack the service. The module
`attacker` describes the attacks.
"""

import asyncio
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from typing import Final

from controlplane.storage.database import Database
from tests.bench.fleet.attacks.heartbeats_under_attack import measure
from tests.bench.fleet.attacks.large_merchant import populate_merchant
from tests.bench.fleet.databases import temporary_database, write_fleet
from tests.bench.fleet.fleet import Member
from tests.bench.fleet.service import attacking, service

VIEWERS: Final = (1, 100)
"""Numbers of read-only API keys. A user can have at most 100 keys."""
LIMITS: Final = ("--rate", "20", "--burst", "100", "--trusted-proxy", "127.0.0.1")


def measure_during_dashboards(databases: list[str]) -> Iterator[str]:
    """Yield a line for each database and each number of keys that request dashboards."""
    for database in databases:
        for viewers in VIEWERS:
            with temporary_database(database) as url:
                member, keys = _member(url, "org-0002"), _viewers(url, viewers)
                line = _measure_during(url, member, "dashboards", *keys)
            yield f"{f'{database}, {viewers} keys':<28} {line}"


def measure_during_reports(databases: list[str]) -> Iterator[str]:
    """Yield a line for each database. During the attack, an API key submits reports."""
    for database in databases:
        with temporary_database(database) as url:
            member, greedy = _member(url, "org-0002"), _member(url, "org-0001")
            line = _measure_during(url, member, "reports", greedy.api_key, str(greedy.binding_id))
        yield f"{database:<28} {line}"


def measure_during_registrations(databases: list[str]) -> Iterator[str]:
    """Yield a line for each database. During the attack, strangers register OAuth clients."""
    for database in databases:
        with temporary_database(database) as url:
            line = _measure_during(url, _member(url, "org-0002"), "registrations")
        yield f"{database:<28} {line}"


def _measure_during(url: str, member: Member, kind: str, *words: str) -> str:
    with service(url, *LIMITS) as started:
        attack = partial(attacking, "attacks.attacker", started.port, kind, *words)
        return asyncio.run(measure(started.port, member, attack))


def _member(url: str, organization_id: str) -> Member:
    return write_fleet(url, 1, organization_id)[0]


def _viewers(url: str, count: int) -> list[str]:
    """Write a large merchant, and return ``count`` read-only API keys for it."""
    with closing(Database(url)) as database:
        return populate_merchant(database, "org-0001", count)
