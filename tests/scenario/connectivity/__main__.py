"""Plays real faults of several lengths, and prints how accurately the agent recorded them.

    python -m tests.scenario.connectivity [--lengths 3,10,60] [--repeat 1] [--pairs 6] [KIND ...]

All venues run at the same time. Unlike in the tests, the agent's grace time is not shortened (see
`quick_agent`). The heartbeat interval is 60 s, and 15 s for faults that the agent detects only when
it calls the service. The exit code is 1 if a fault that had to be recorded was not recorded
correctly, or if an incident was recorded in the healthy venue.
"""

import argparse
import resource
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from random import Random

from agent.tasks.record import GRACE_S
from tests.scenario.connectivity.faults import FAULTS
from tests.scenario.connectivity.play import (
    HEARTBEAT_S,
    Case,
    Result,
    pair,
    play_cases,
    play_healthy,
    run_venues,
    single,
)
from tests.scenario.forked_process import stop_server

ERROR_MAX_S = 10.0
"""Maximum error of a recorded time."""
REQUIRED_FROM_S = {"change": 3.0, "silence": 10.0, "call": 60.0}
"""Minimum length of a fault that must be recorded, by how the agent detects it (`NoticedBy`). A
shorter fault is recorded only by chance."""
SHORT_S = 10.0
SHARE_OF_SHORT = 0.95
"""Share of the faults shorter than `SHORT_S` that must be recorded."""
RETRY_S = 900.0
"""Maximum time after which the agent tries a refused key again."""
ROW = "{:21} {:>5} {:>9} {:>7} {:>15} {:>15}"


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.scenario.connectivity")
    parser.add_argument("--lengths", default="3,10,60", help="lengths of the faults, in seconds")
    parser.add_argument("--repeat", type=int, default=1, help="runs of each fault")
    parser.add_argument("--pairs", type=int, default=6, help="pairs of overlapping faults")
    parser.add_argument("kinds", nargs="*", default=[*FAULTS], metavar="KIND")
    options = parser.parse_args(arguments)
    lengths = [float(length) for length in options.lengths.split(",")]
    singles = [single(kind, length) for kind in options.kinds for length in lengths]
    pairs = [pair(Random(seed)) for seed in range(options.pairs)]
    began_s = time.monotonic()
    with ThreadPoolExecutor(1) as thread:
        future = thread.submit(run_venues, [play_healthy], [HEARTBEAT_S["call"]], GRACE_S)
        results = play_cases([*singles * options.repeat, *pairs], GRACE_S)
        (healthy,) = future.result()
    print(ROW.format("fault", "s", "recorded", "cause", "begin error s", "end error s"))
    failures = [_print_row(case, [r for r in results if r.case == case]) for case in singles]
    failures += [_print_pair_row(result) for result in results if len(result.case.parts) > 1]
    print(f"a healthy venue: {len(healthy.incidents)} incidents, {len(healthy.events)} events")
    _print_costs(began_s)
    return int(any(failures) or bool(healthy.incidents))


def _print_row(case: Case, results: Sequence[Result]) -> bool:
    """Print the row of a fault. Return whether it violates a requirement."""
    part = case.parts[0]
    noticed_by = FAULTS[part.kind].noticed_by
    recorded_results = [result for result in results if result.incidents]
    correct_results = [result for result in recorded_results if result.causes == case.expected]
    begins = [result.begin_error_s for result in recorded_results]
    ends = [result.end_error_s for result in recorded_results]
    counts = (
        f"{len(recorded_results)}/{len(results)}",
        f"{len(correct_results)}/{len(recorded_results)}",
    )
    line = ROW.format(
        part.kind, f"{part.length_s:g}", *counts, _format_range(begins), _format_range(ends)
    )
    is_required = part.length_s >= REQUIRED_FROM_S[noticed_by]
    share = SHARE_OF_SHORT if part.length_s < SHORT_S else 1.0
    # The next call can be a whole heartbeat interval later. The intervals vary by 10 %.
    begin_max_s = ERROR_MAX_S + (1.1 * HEARTBEAT_S["call"] if noticed_by == "call" else 0.0)
    end_max_s = RETRY_S if part.kind == "key-refused" else ERROR_MAX_S
    is_wrong = is_required and (
        len(recorded_results) < share * len(results)
        or len(correct_results) < len(recorded_results)
        or any(not -ERROR_MAX_S <= error_s <= begin_max_s for error_s in begins)
        or any(not -ERROR_MAX_S <= error_s <= end_max_s for error_s in ends)
    )
    if is_wrong:
        line += "  WRONG"
    elif not is_required:
        line += "  (by chance)"
    print(line)
    for result in results:
        if is_wrong:
            print(f"    {result.incidents}")
    return is_wrong


def _print_pair_row(result: Result) -> bool:
    """Print the row of a pair of faults. Return whether its causes are wrong."""
    is_wrong = result.causes != result.case.expected
    print(f"{result.case!s:48} {', '.join(result.causes)}{'  WRONG' if is_wrong else ''}")
    if is_wrong:
        print(f"    expected {result.case.expected}: {result.case.parts} {result.incidents}")
    return is_wrong


def _format_range(values: Sequence[float]) -> str:
    if not values:
        return "-"
    low, high = min(values), max(values)
    return f"{low:+.1f}" if len(values) == 1 else f"{low:+.1f} to {high:+.1f}"


def _print_costs(began_s: float) -> None:
    stop_server()
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_CHILDREN, resource.RUSAGE_SELF)]
    processor_s = sum(usage.ru_utime + usage.ru_stime for usage in usages)
    print(f"{time.monotonic() - began_s:.0f} s, of which {processor_s:.0f} s of processor time")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
