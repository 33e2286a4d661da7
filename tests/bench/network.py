"""Compares the speed and the completeness of the network collector and nmap on the same LAN.

    python -m tests.bench.network [--runs N] [--lan 24|silent|22|20 ...] [--all]

Each LAN is simulated behind a TAP device in a separate namespace (see tests/lab/tap/lan.py). 35 %
of its hosts are simulated as Wi-Fi devices, and some have web ports that never respond. The
contestants take turns. The kernel's neighbour table is flushed before every run. The exit code is 1
if a goal is missed, and 2 if this machine cannot simulate a LAN. ``--all`` adds more contestants:
the collector's scan step alone, nmap without root, and avahi-browse.
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
from functools import partial
from pathlib import Path

from tests.bench.avahi import run_avahi_browse
from tests.bench.contestants import Outcome, run_collector, run_nmap, run_scan_step
from tests.lab.namespaces import namespace_prefix
from tests.lab.tap.lan import read_counters, reset_counters
from tests.lab.tap.plan import (
    LabPlan,
    load_plan,
    plan_lan,
    save_plan,
    with_mute_pages,
    with_silent_hosts,
)

OURS, NMAP = "collect network", "nmap -sS as root"
OVERFLOW_MESSAGE = "neighbor table overflow"


@dataclass(frozen=True, slots=True)
class Lan:
    """A LAN with the number of runs and the goals. It has ``live`` hosts, and ``mute_pages`` web
    ports that never respond. After every ``nmap_every`` runs of the collector, each other
    contestant runs once. A run of the collector may take ``whole_s`` and use ``peak_mib``. It must
    be ``nmap_times`` times as fast as nmap. If ``has_silent_hosts``, a quarter of the hosts drop
    packets to closed ports, and all Wi-Fi hosts lose their first ARP request.
    """

    subnet: str
    live: int
    mute_pages: int
    runs: int
    nmap_every: int
    whole_s: float
    peak_mib: float = 60.0
    nmap_times: float = 0.0
    has_silent_hosts: bool = False


LANS = {
    "24": Lan("10.77.0.0/24", 40, 4, 10, 2, 3.0, nmap_times=2.0),
    "silent": Lan("10.76.0.0/24", 40, 4, 10, 2, 3.2, nmap_times=1.8, has_silent_hosts=True),
    "22": Lan("10.78.0.0/22", 150, 12, 3, 3, 6.5),
    "20": Lan("10.79.0.0/20", 250, 20, 2, 2, 22.0),
}


@dataclass(frozen=True, slots=True)
class Row:
    """The result of one run. ``hosts``, ``macs`` and ``ports`` count the results that are correct.
    ``wrong`` is the number of reported ports that do not exist. ``frames`` is the number of frames
    that were sent to the LAN. ``harmful_bytes`` is the number of bytes that were sent to ports that
    must receive none.
    """

    contestant: str
    took_s: float
    hosts: int
    macs: int
    ports: int
    wrong: int
    frames: int
    harmful_bytes: int
    peak_mib: float


def contestants(plan: LabPlan, *, every: bool) -> dict[str, Callable[[], Outcome]]:
    runs: dict[str, Callable[[], Outcome]] = {OURS: partial(run_collector, plan)}
    if shutil.which("nmap") and os.geteuid() == 0:
        runs[NMAP] = partial(run_nmap, plan, ("-sS",))
    if every:
        runs["scan alone"] = partial(run_scan_step, plan)
        runs["nmap -sT"] = partial(run_nmap, plan, ("--unprivileged", "-sT"))
        runs["nmap -sT -Pn"] = partial(run_nmap, plan, ("--unprivileged", "-sT", "-Pn"))
        if shutil.which("avahi-browse") and os.geteuid() == 0:
            runs["avahi-browse"] = partial(run_avahi_browse, plan)
    return runs


def run_all(plan: LabPlan, lan: Lan, runs: int, *, every: bool) -> list[Row]:
    """Run all contestants in turns, on the LAN of this process's network namespace."""
    others = contestants(plan, every=every)
    ours = others.pop(OURS)
    rows: list[Row] = []
    for number in range(1, runs + 1):
        rows.append(measure(OURS, ours, plan))
        if number % lan.nmap_every == 0:
            rows += [measure(name, run, plan) for name, run in others.items()]
    return rows


def measure(name: str, run: Callable[[], Outcome], plan: LabPlan) -> Row:
    truth, macs = plan.open_endpoints(), plan.macs()
    subprocess.run(["ip", "neigh", "flush", "all"], check=True, stderr=subprocess.DEVNULL)
    reset_counters()
    outcome = run()
    counters = read_counters()
    print(f"{plan.subnet}: {name}: {outcome.took_s:.2f} s", file=sys.stderr, flush=True)
    return Row(
        contestant=name,
        took_s=outcome.took_s,
        hosts=len(set(macs) & set(outcome.macs)),
        macs=sum(outcome.macs.get(a) == mac for a, mac in macs.items()),
        ports=len(truth & outcome.ports),
        wrong=len([p for p in outcome.ports - truth if p[0] != plan.agent_address]),
        frames=counters.frames,
        harmful_bytes=sum(counters.harm().values()),
        peak_mib=outcome.rss_mib,
    )


def missed_goals(key: str, plan: LabPlan, rows: Sequence[Row]) -> list[str]:
    """Return a description of each goal that the rows miss."""
    lan = LANS[key]
    ours = [row for row in rows if row.contestant == OURS]
    missed: list[str] = []
    if (worst_s := max(row.took_s for row in ours)) > lan.whole_s:
        missed.append(f"the worst run took {worst_s:.2f} s, the goal is {lan.whole_s:g} s")
    if (peak_mib := max(row.peak_mib for row in ours)) > lan.peak_mib:
        missed.append(f"the collector used {peak_mib:.0f} MiB, the goal is {lan.peak_mib:g} MiB")
    if not all(is_complete(row, plan) for row in ours):
        missed.append("a run missed a host, a MAC or a port, or reported one that does not exist")
    if any(row.harmful_bytes for row in ours):
        missed.append("bytes were sent to ports that must receive none")
    theirs = [row for row in rows if row.contestant == NMAP]
    if theirs and (times := _median_s(theirs) / _median_s(ours)) < lan.nmap_times:
        missed.append(f"only {times:.1f} times as fast as nmap, the goal is {lan.nmap_times:g}")
    return missed


def is_complete(row: Row, plan: LabPlan) -> bool:
    live = len(plan.hosts)
    return (row.hosts, row.macs, row.ports, row.wrong) == (
        live, live, len(plan.open_endpoints()), 0,
    )  # fmt: skip


def show(lan: Lan, plan: LabPlan, rows: Sequence[Row]) -> None:
    live, ports = len(plan.hosts), len(plan.open_endpoints())
    print(
        f"\n{lan.subnet}: {live} live hosts, {ports} open ports, {lan.mute_pages} of them web ports"
        f" that never respond; goals: {lan.whole_s:g} s, {lan.peak_mib:g} MiB"
    )
    print(
        f"  {'contestant':<18}{'runs':>5}{'median s':>10}{'worst s':>9}{'× ours':>8}"
        f"{'complete':>10}{'hosts':>7}{'MACs':>6}{'ports':>7}{'wrong':>7}{'frames':>8}"
        f"{'harm B':>8}{'peak MiB':>10}"
    )
    ours_s = _median_s([row for row in rows if row.contestant == OURS])
    for name in dict.fromkeys(row.contestant for row in rows):
        runs = [row for row in rows if row.contestant == name]
        complete = f"{sum(is_complete(row, plan) for row in runs)}/{len(runs)}"
        peak_mib = max(row.peak_mib for row in runs)
        print(
            f"  {name:<18}{len(runs):>5}{_median_s(runs):>10.2f}{max(r.took_s for r in runs):>9.2f}"
            f"{_median_s(runs) / ours_s:>8.1f}{complete:>10}"
            f"{min(r.hosts for r in runs):>7}{min(r.macs for r in runs):>6}"
            f"{min(r.ports for r in runs):>7}{max(r.wrong for r in runs):>7}"
            f"{round(statistics.median(r.frames for r in runs)):>8}"
            f"{sum(r.harmful_bytes for r in runs):>8}{f'{peak_mib:.0f}' if peak_mib else '-':>10}"
        )
    print("  ours, s:", *(f"{row.took_s:.2f}" for row in rows if row.contestant == OURS))


def bench_lan(key: str, runs: int | None, *, every: bool) -> list[str]:
    """Simulate the LAN, run the contestants, and print the results. Return the missed goals."""
    lan = LANS[key]
    plan = with_mute_pages(plan_lan(lan.subnet, lan.live), lan.mute_pages)
    plan = with_silent_hosts(plan) if lan.has_silent_hosts else plan
    overflows = _overflow_count()
    with tempfile.TemporaryDirectory(prefix="bench-network-") as directory:
        plan_path, rows_path = Path(directory) / "plan.json", Path(directory) / "rows.json"
        save_plan(plan, plan_path)
        inside = [sys.executable, "-m", "tests.bench.network", "--inside", str(plan_path)]
        inside += ["--rows", str(rows_path), "--lan", key, "--runs", str(runs or lan.runs)]
        inside += ["--all"] if every else []
        lan_command = [sys.executable, "-m", "tests.lab.tap.lan", str(plan_path)]
        subprocess.run([*namespace_prefix(), *lan_command, *inside], check=True)
        rows = [Row(**raw) for raw in json.loads(rows_path.read_text("utf-8"))]
    show(lan, plan, rows)
    missed = missed_goals(key, plan, rows)
    if overflows is not None and (_overflow_count() or 0) > overflows:
        missed.append("the kernel's neighbour table overflowed")
    for goal in missed:
        print(f"  MISSED: {goal}")
    return missed


def _median_s(rows: Sequence[Row]) -> float:
    return statistics.median(row.took_s for row in rows)


def _overflow_count() -> int | None:
    """Return how often the neighbour table of the kernel overflowed; None if it is unreadable."""
    result = subprocess.run(["dmesg"], capture_output=True, check=False)
    if result.returncode != 0:
        return None
    return result.stdout.decode("utf-8", "replace").count(OVERFLOW_MESSAGE)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--runs", type=int, help="number of runs of our collector; the default depends on the LAN"
    )
    parser.add_argument("--lan", nargs="+", choices=LANS, default=list(LANS))
    parser.add_argument(
        "--all",
        action="store_true",
        dest="every",
        help="run all contestants, not only our collector and nmap -sS",
    )
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--rows", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside is not None:
        plan, lan = load_plan(options.inside), LANS[options.lan[0]]
        rows = run_all(plan, lan, options.runs, every=options.every)
        options.rows.write_text(json.dumps([asdict(row) for row in rows]), "utf-8")
        return 0
    try:
        namespace_prefix()
    except LookupError as error:
        print(f"this machine cannot simulate a LAN: {error}", file=sys.stderr)
        return 2
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    print(
        f"times of whole runs, including the start of the interpreter; {os.cpu_count()} CPUs{load}"
    )
    missed = [bench_lan(key, options.runs, every=options.every) for key in options.lan]
    return 1 if any(missed) else 0


if __name__ == "__main__":
    sys.exit(main())
