"""How fast and how completely the network collector sees a LAN, beside nmap on the same LAN.

    python -m tests.bench.network [--runs N] [--lan 24|22|20 ...] [--ours-only]

Each LAN is played behind a TAP device in a namespace of its own (see tap_lan.py); before every
run the neighbour table is flushed. Exit code 1 when a goal is missed, 2 where no lab can be built.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.bench.avahi import run_avahi_browse
from tests.bench.contestants import (
    Outcome,
    run_collector,
    run_nmap,
    run_scan_step,
)
from tests.lab.namespaces import namespace_prefix
from tests.lab.tap.lan import read_counters, reset_counters
from tests.lab.tap.plan import LanPlan, load_plan, plan_lan, save_plan

AVAHI_RUNS = 3
OVERFLOW_MESSAGE = "neighbor table overflow"


@dataclass(frozen=True, slots=True)
class Lan:
    """A LAN to measure on, and its goals in seconds and MiB; None: no goal."""

    subnet: str
    live: int
    scan_s: float
    whole_s: float | None
    rss_mib: float | None
    nmap_runs: dict[str, int]


LANS = {
    "24": Lan("10.77.0.0/24", 40, 2.0, 4.0, None, {"root": 3, "unprivileged": 2, "-Pn": 1}),
    "22": Lan("10.78.0.0/22", 120, 9.0, None, None, {"root": 1, "unprivileged": 1}),
    "20": Lan("10.79.0.0/20", 200, 30.0, None, 90.0, {"root": 1}),
}
NMAP_GOALS = {"nmap -Pn": 15.0, "nmap root": 3.0}
"""How many times faster the scan step must be, on the /24."""


@dataclass(frozen=True, slots=True)
class Row:
    """Medians over the runs of one contestant, except that completeness is that of the worst."""

    contestant: str
    runs: int
    median_s: float
    slowest_s: float
    hosts: int
    ports: int
    macs: int
    wrong: int
    frames: int
    harmful_bytes: int
    rss_mib: float


def contestants(plan: LanPlan, lan: Lan, runs: int, *, ours_only: bool) -> list[Row]:
    """Run all on the LAN this process is in."""
    rows = [
        measure("scan step", runs, plan, lambda: run_scan_step(plan)),
        measure("collect network", runs, plan, lambda: run_collector(plan)),
    ]
    if ours_only:
        return rows
    ways = {
        "root": ("-sS",),
        "unprivileged": ("--unprivileged", "-sT"),
        "-Pn": ("--unprivileged", "-sT", "-Pn"),
    }
    if shutil.which("avahi-browse") and os.geteuid() == 0:
        rows.append(measure("avahi-browse", AVAHI_RUNS, plan, lambda: run_avahi_browse(plan)))
    for name, count in lan.nmap_runs.items():
        options = ways[name]
        rows.append(measure(f"nmap {name}", count, plan, lambda o=options: run_nmap(plan, o)))
    return rows


def measure(name: str, runs: int, plan: LanPlan, run: Callable[[], Outcome]) -> Row:
    truth, macs = plan.open_endpoints(), plan.macs()
    outcomes: list[Outcome] = []
    frames: list[int] = []
    harmful = 0
    for number in range(runs):
        print(f"{plan.subnet}: {name}, run {number + 1} of {runs}", file=sys.stderr, flush=True)
        subprocess.run(["ip", "neigh", "flush", "all"], check=True, stderr=subprocess.DEVNULL)
        reset_counters()
        outcomes.append(run())
        counters = read_counters()
        frames.append(counters.frames)
        harmful += sum(counters.harm().values())
    others = {plan.agent_address}
    return Row(
        contestant=name,
        runs=runs,
        median_s=statistics.median(o.took_s for o in outcomes),
        slowest_s=max(o.took_s for o in outcomes),
        hosts=min(len(set(macs) & set(o.macs)) for o in outcomes),
        ports=min(len(truth & o.ports) for o in outcomes),
        macs=min(sum(o.macs.get(a) == mac for a, mac in macs.items()) for o in outcomes),
        wrong=max(len([p for p in o.ports - truth if p[0] not in others]) for o in outcomes),
        frames=round(statistics.median(frames)),
        harmful_bytes=harmful,
        rss_mib=max(o.rss_mib for o in outcomes),
    )


def missed_goals(lan: Lan, plan: LanPlan, rows: Sequence[Row]) -> list[str]:
    """Return in words what the rows fall short of."""
    by_name = {row.contestant: row for row in rows}
    scan, whole = by_name["scan step"], by_name["collect network"]
    missed: list[str] = []
    if scan.median_s > lan.scan_s:
        missed.append(f"the scan step took {scan.median_s:.2f} s, the goal is {lan.scan_s:g} s")
    if lan.whole_s is not None and whole.median_s > lan.whole_s:
        missed.append(f"the whole run took {whole.median_s:.2f} s, the goal is {lan.whole_s:g} s")
    if lan.rss_mib is not None and whole.rss_mib > lan.rss_mib:
        missed.append(f"the child used {whole.rss_mib:.0f} MiB, the goal is {lan.rss_mib:g} MiB")
    live, open_count = len(plan.hosts), len(plan.open_endpoints())
    if (whole.hosts, whole.macs, whole.ports, whole.wrong) != (live, live, open_count, 0):
        missed.append("a whole run missed a host, a MAC or a port")
    if scan.harmful_bytes or whole.harmful_bytes:
        missed.append("bytes were sent to ports that must get none")
    for name, times in NMAP_GOALS.items():
        if name in by_name and lan is LANS["24"]:
            ratio = by_name[name].median_s / scan.median_s
            if ratio < times:
                missed.append(f"only {ratio:.1f} times faster than {name}, the goal is {times:g}")
    return missed


def show(lan: Lan, plan: LanPlan, rows: Sequence[Row]) -> None:
    live, open_count = len(plan.hosts), len(plan.open_endpoints())
    scan_s = rows[0].median_s
    print(f"\n{lan.subnet}: {live} live hosts, {open_count} open ports")
    print(
        f"  {'contestant':<18}{'runs':>5}{'median s':>10}{'slowest':>9}{'× scan':>8}"
        f"{'hosts':>7}{'ports':>7}{'MACs':>6}{'wrong':>7}{'frames':>8}{'harm B':>8}{'RSS MiB':>9}"
    )
    for row in rows:
        rss = f"{row.rss_mib:.0f}" if row.rss_mib else "-"
        print(
            f"  {row.contestant:<18}{row.runs:>5}{row.median_s:>10.2f}{row.slowest_s:>9.2f}"
            f"{row.median_s / scan_s:>8.1f}{row.hosts:>7}{row.ports:>7}{row.macs:>6}"
            f"{row.wrong:>7}{row.frames:>8}{row.harmful_bytes:>8}{rss:>9}"
        )


def bench_lan(key: str, runs: int, *, ours_only: bool) -> list[str]:
    """Play the LAN, run the contestants in it, print the table; returns the missed goals."""
    lan = LANS[key]
    plan = plan_lan(lan.subnet, lan.live)
    overflows = _overflow_count()
    with tempfile.TemporaryDirectory(prefix="bench-network-") as directory:
        plan_path, rows_path = Path(directory) / "plan.json", Path(directory) / "rows.json"
        save_plan(plan, plan_path)
        inside = [sys.executable, "-m", "tests.bench.network", "--inside", str(plan_path)]
        inside += ["--rows", str(rows_path), "--lan", key, "--runs", str(runs)]
        inside += ["--ours-only"] if ours_only else []
        lan_command = [sys.executable, "-m", "tests.lab.tap.lan", str(plan_path)]
        subprocess.run([*namespace_prefix(), *lan_command, *inside], check=True)
        rows = [Row(**raw) for raw in json.loads(rows_path.read_text("utf-8"))]
    show(lan, plan, rows)
    missed = missed_goals(lan, plan, rows)
    if overflows is not None and _overflow_count() != overflows:
        missed.append("the kernel's neighbour table overflowed")
    for text in missed:
        print(f"  MISSED: {text}")
    return missed


def _overflow_count() -> int | None:
    """Return how often the kernel said that its neighbour table overflowed; None: not readable."""
    done = subprocess.run(["dmesg"], capture_output=True, check=False)
    if done.returncode != 0:
        return None
    return done.stdout.decode("utf-8", "replace").count(OVERFLOW_MESSAGE)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--lan", nargs="+", choices=LANS, default=list(LANS))
    parser.add_argument("--ours-only", action="store_true")
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--rows", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.inside is not None:
        plan, lan = load_plan(given.inside), LANS[given.lan[0]]
        rows = contestants(plan, lan, given.runs, ours_only=given.ours_only)
        given.rows.write_text(json.dumps([asdict(row) for row in rows]), "utf-8")
        return 0
    try:
        namespace_prefix()
    except LookupError as error:
        print(f"no lab can be built here: {error}", file=sys.stderr)
        return 2
    print(f"medians of {given.runs} runs; the slower tools fewer, as told; {os.cpu_count()} CPUs")
    missed = [bench_lan(key, given.runs, ours_only=given.ours_only) for key in given.lan]
    return 1 if any(missed) else 0


if __name__ == "__main__":
    sys.exit(main())
