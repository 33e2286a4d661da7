"""Kills and restarts the service of a fleet. Measures the time until all streams are open again,
and the highest rate of calls. The first part uses the agent's code in virtual time; the second part
uses fewer devices in real time.

    python -m tests.bench.fleet.restart [--devices N] [--outage SECONDS ...] [--real N]
"""

import argparse
import asyncio
import gc
import logging
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

from tests.bench.fleet.real_restart import restart_real_service
from tests.bench.fleet.simulated_fleet import (
    INTERVAL_S,
    AgentLoops,
    Costs,
    SimulatedClient,
    SimulatedService,
    caller_of,
)
from tests.fakes.virtual_clock import VirtualClock, VirtualTimeLoop, run_in_virtual_time

OUTAGES_S = (0.0, 5.0, 60.0, 600.0)
SETTLED_AFTER_S = 2 * INTERVAL_S
"""All devices start during the first interval. The steady rate is measured in the second one."""
WATCHED_S = 5 * INTERVAL_S
"""Seconds from the service's return to the end of the measurement."""
BACK_WITHIN_S = 120.0
"""Limit of the time until all streams are open again."""
PEAK_MAX = 3.0
"""Limit of the peak, as a multiple of the steady rate."""


@dataclass(frozen=True, slots=True)
class OutageResult:
    """The result of one outage. Rates are in calls per second. The peak is the rate of the busiest
    second since the service was killed, including attempts that failed to connect. The last three
    fields are those of `simulated_fleet.Tally`.
    """

    devices: int
    outage_s: float
    steady: float
    peak: float
    back_s: float
    """Time from the service's return until the last stream was open."""
    calls_without_listener: int
    refused_calls: int
    late_calls: int

    @property
    def peak_ratio(self) -> float:
        return self.peak / self.steady

    def __str__(self) -> str:
        return (
            f"{self.devices:,} devices, {self.outage_s:3.0f} s of outage: all streams back after "
            f"{self.back_s:5.1f} s  steady {self.steady:.0f}/s  peak {self.peak:.0f}/s "
            f"(×{self.peak_ratio:.1f})  "
            f"{self.calls_without_listener} calls without listener, "
            f"{self.refused_calls} refused, {self.late_calls} late"
        )


def simulate(
    devices: int, outage_s: float, *, crowd: int = 1, peak_over_s: int = 1
) -> OutageResult:
    """Stop the service of a connected fleet for ``outage_s`` seconds.

    Each simulated device represents ``crowd`` devices. The peak is an average over ``peak_over_s``
    seconds, which should be longer with few devices. Raises TimeoutError if a stream is not open
    again within `WATCHED_S`.
    """
    return run_in_virtual_time(_simulate(devices, outage_s, crowd, peak_over_s))


async def _simulate(devices: int, outage_s: float, crowd: int, peak_over_s: int) -> OutageResult:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    clock = VirtualClock()
    service = SimulatedService(clock, Costs(), crowd)
    with loop.without_sockets():
        running = [
            asyncio.create_task(_device(service, clock, number).run()) for number in range(devices)
        ]
        try:
            await clock.sleep(SETTLED_AFTER_S)
            assert service.streams == devices
            cut_s = clock.monotonic()
            service.kill()
            if outage_s:
                await clock.sleep(outage_s)
            service.restart()
            back_s = await _until_all_are_back(service, clock, devices)
            await clock.sleep(WATCHED_S - back_s)
            tally = service.tally
            return OutageResult(
                devices=devices,
                outage_s=outage_s,
                steady=tally.mean(cut_s - INTERVAL_S, cut_s),
                peak=tally.peak(cut_s, clock.monotonic(), peak_over_s),
                back_s=back_s,
                calls_without_listener=tally.calls_without_listener,
                refused_calls=tally.refused_calls,
                late_calls=tally.late_calls,
            )
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)


def _device(service: SimulatedService, clock: VirtualClock, number: int) -> AgentLoops:
    client = SimulatedClient(service, caller_of(number))
    return AgentLoops(client, clock, UUID(int=number), number)


async def _until_all_are_back(
    service: SimulatedService, clock: VirtualClock, devices: int
) -> float:
    began_s = clock.monotonic()
    async with asyncio.timeout(WATCHED_S):
        while service.streams < devices:
            await clock.sleep(0.1)
    return clock.monotonic() - began_s


def simulate_each(devices: int, outages_s: list[float]) -> Iterator[OutageResult]:
    for outage_s in outages_s:
        yield simulate(devices, outage_s)


def main() -> int:
    parser = argparse.ArgumentParser(description="Restart the service under a simulated fleet.")
    parser.add_argument("--devices", type=int, default=10_000)
    parser.add_argument("--outage", nargs="+", type=float, default=list(OUTAGES_S))
    parser.add_argument("--real", type=int, default=500)
    options = parser.parse_args()
    logging.disable()  # 10,000 agents would log too much
    gc.disable()
    has_met_goals = True
    for each in simulate_each(options.devices, options.outage):
        sys.stdout.write(f"{each}\n")
        sys.stdout.flush()
        has_met_goals &= each.back_s <= BACK_WITHIN_S and each.peak_ratio <= PEAK_MAX
    gc.enable()
    if options.real:
        sys.stdout.write(f"{restart_real_service(options.real)}\n")
    return 0 if has_met_goals else 1


if __name__ == "__main__":
    sys.exit(main())
