"""Measures the heartbeats of one organization without and with an attack by others."""

import asyncio
import statistics
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from http import HTTPStatus
from typing import Final

from tests.bench.fleet.fleet import Member
from tests.bench.fleet.load import exchange, get, heartbeat

ROUNDS: Final = 5
"""Undisturbed and disturbed heartbeats are measured in turn, because other programs may also use
this machine. The result is the median of the rounds.
"""
PHASE_S: Final = 8.0
"""Seconds of each measurement."""
WARM_UP_S: Final = 3.0
PAUSE_S: Final = 0.05
FAST_CALLS: Final = 10
"""The service has recovered when this many heartbeats in a row are fast again."""
TIMEOUT_S: Final = 15.0
"""Timeout of an agent. A slower heartbeat counts as failed."""
FAST_RATIO_MAX: Final = 2.0
"""A heartbeat is fast if it takes at most this multiple of the undisturbed 95th percentile."""

Attack = Callable[[], AbstractContextManager[None]]
"""Returns a context in which the attack runs."""


async def measure(port: int, member: Member, attack: Attack) -> str:
    """Return the result as text: the 95th percentile of the heartbeats undisturbed and during the
    attack, and the time to recover.

    Raises RuntimeError if a heartbeat failed, or if /readyz did not return 200 during the attack.
    """
    await _measure_latencies_s(port, member, WARM_UP_S)
    rounds = [await _measure_round(port, member, attack) for _ in range(ROUNDS)]
    undisturbed_ms, attacked_ms, ratio, recovered_s = map(
        statistics.median, zip(*rounds, strict=True)
    )
    return (
        f"p95 {undisturbed_ms:.1f} ms undisturbed  {attacked_ms:.1f} ms during the attack"
        f"  ×{ratio:.1f}  recovered after {recovered_s:.1f} s"
    )


async def _measure_round(port: int, member: Member, attack: Attack) -> tuple[float, ...]:
    """Return the 95th percentile undisturbed and during the attack in milliseconds, their ratio,
    and the time to recover in seconds.
    """
    undisturbed_s = _p95(await _measure_latencies_s(port, member, PHASE_S))
    with attack():
        attacked_s = _p95(await _measure_latencies_s(port, member, PHASE_S))
        ready = await get(port, "/readyz")
        if ready != HTTPStatus.OK:
            raise RuntimeError(f"/readyz returned {ready}")
        stopped_s = time.perf_counter()
    recovered_s = await _measure_recovery_s(port, member, FAST_RATIO_MAX * undisturbed_s, stopped_s)
    return 1000 * undisturbed_s, 1000 * attacked_s, attacked_s / undisturbed_s, recovered_s


async def _measure_latencies_s(port: int, member: Member, for_s: float) -> list[float]:
    """Send heartbeats at a rate below the rate limit, at least one. Return their durations in
    seconds. Raises RuntimeError if one failed.
    """
    latencies: list[float] = []
    until_s = time.perf_counter() + for_s
    while not latencies or time.perf_counter() < until_s:
        tally = await exchange(port, [heartbeat(member)], 1)
        if tally.statuses != {HTTPStatus.OK: 1} or tally.latencies_s[0] > TIMEOUT_S:
            raise RuntimeError(f"a heartbeat failed: {tally.statuses} {tally.latencies_s}")
        latencies += tally.latencies_s
        await asyncio.sleep(PAUSE_S)
    return latencies


async def _measure_recovery_s(port: int, member: Member, fast_s: float, since_s: float) -> float:
    """Return the time from ``since_s`` until the first of `FAST_CALLS` fast heartbeats in a row."""
    first_s, in_a_row = since_s, 0
    while in_a_row < FAST_CALLS:
        if in_a_row == 0:
            first_s = time.perf_counter()
        (latency_s,) = await _measure_latencies_s(port, member, 0)
        in_a_row = in_a_row + 1 if latency_s <= fast_s else 0
    return first_s - since_s


def _p95(latencies_s: list[float]) -> float:
    return statistics.quantiles(latencies_s, n=20, method="inclusive")[18]
