"""Measures the latency of one organization's calls while an API key of another organization sends
as much as it can.
"""

import asyncio
import statistics
import time
from collections.abc import Iterator

from tests.bench.fleet.databases import temporary_database, write_fleet
from tests.bench.fleet.fleet import Member
from tests.bench.fleet.load import exchange, heartbeat, list_devices
from tests.bench.fleet.service import Service, attacking, service

CALLS = 400
FULL_AFTER_S = 10
"""Seconds until the attack has its full effect: its streams are open, and it has used up the burst
that the rate limit permits.
"""


def measure_beside_busy_organization(databases: list[str]) -> Iterator[str]:
    """Yield a line for each database: the 95th percentile of the latency without and with the
    attack of the module `greedy`, and the ratio of both. The last figure is the ratio if the attack
    is on another service of this machine. Such an attack takes only processor time from the
    measured service.
    """
    for database in databases:
        with temporary_database(database) as url, temporary_database(database) as other_url:
            (greedy, victim), (other_greedy, _) = _organizations(url), _organizations(other_url)
            with (
                service(url, "--rate", "20") as started,
                service(other_url, "--rate", "20") as other_service,
            ):
                undisturbed_ms = _p95_ms(started.port, victim)
                attacked_ms = _attacked_p95_ms(started, victim, started, greedy)
                other_attacked_ms = _attacked_p95_ms(started, victim, other_service, other_greedy)
            ratio, other_ratio = attacked_ms / undisturbed_ms, other_attacked_ms / undisturbed_ms
            yield (
                f"{database:<28} p95 {undisturbed_ms:.1f} ms undisturbed  {attacked_ms:.1f} ms"
                f" during the attack  ×{ratio:.1f}  ×{other_ratio:.1f} if it is on another service"
            )


def _attacked_p95_ms(started: Service, victim: Member, attacked: Service, greedy: Member) -> float:
    """Return the 95th percentile of the latency of ``victim`` at the service ``started``, while
    ``greedy`` attacks the service ``attacked``.
    """
    with attacking("greedy", attacked.port, greedy.api_key, str(greedy.binding_id)):
        time.sleep(FULL_AFTER_S)
        return _p95_ms(started.port, victim)


def _organizations(url: str) -> tuple[Member, Member]:
    return write_fleet(url, 1, "org-0001")[0], write_fleet(url, 1, "org-0002")[0]


def _p95_ms(port: int, member: Member) -> float:
    """Return the 95th percentile of the latency, in milliseconds. The calls are heartbeats and
    device lists in turn, at a rate below the rate limit.
    """
    latencies: list[float] = []

    async def send() -> None:
        for number in range(CALLS):
            request = list_devices(member) if number % 2 else heartbeat(member)
            tally = await exchange(port, [request], 1)
            if tally.statuses != {200: 1}:
                raise RuntimeError(f"a measured call was refused: {tally.statuses}")
            latencies.extend(tally.latencies_s)
            await asyncio.sleep(0.05)

    asyncio.run(send())
    return 1000 * statistics.quantiles(latencies, n=20)[18]
