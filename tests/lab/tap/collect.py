"""Runs collectors inside the simulated LAN and stores their results for a test outside of it.

    python -m tests.lab.tap.collect JOBS.json RESULT.json CANCEL_STEP

The script runs one collector for each job, all at the same time. Unless ``CANCEL_STEP`` is empty,
each is cancelled at the first progress event of that step. Before the collectors start, the entries
under ``stale`` in JOBS.json are added to the neighbour table.
"""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from controlplane.demo.lan.tap import DEVICE
from tests.bench.contestants import peak_rss_kib
from tests.lab.namespaces import namespace_prefix
from tests.lab.tap.counters import LanCounters, counters_from_json, counters_to_json
from tests.lab.tap.lan import read_counters
from tests.lab.tap.plan import LabPlan, save_plan
from tests.paths import ROOT

TIME_LIMIT_S = 600.0


@dataclass
class ChildRun:
    """The last facts of a collector, its events, its duration and its peak memory."""

    facts: dict[str, Any] = field(default_factory=dict)
    events: list[str] = field(default_factory=list)
    took_s: float = 0.0
    peak_mib: float = 0.0


@dataclass
class LabResult:
    runs: list[ChildRun]
    counters: LanCounters


def collect_in_lan(
    plan: LabPlan,
    job: dict[str, Any],
    directory: Path,
    *,
    runs: int = 1,
    others: Sequence[dict[str, Any]] = (),
    cancel_at: str = "",
    stale: Mapping[str, str] = MappingProxyType({}),
    module: str = "collectors",
    prefix: tuple[str, ...] | None = None,
) -> LabResult:
    """Simulate ``plan`` in a new namespace, and run collectors in it at the same time.

    ``job`` runs ``runs`` times, and each job in ``others`` once. Each collector is cancelled at its
    first progress event of the step ``cancel_at``; "" means never. ``stale`` are stale entries of
    the neighbour table: MACs by address. ``module`` is the collectors' main module. ``prefix`` is
    the command prefix that creates the namespace; the default is `namespace_prefix`.
    """
    plan_path, jobs_path, result_path = (directory / f"{n}.json" for n in ("plan", "job", "result"))
    save_plan(replace(plan, excluded=tuple(job.get("exclude", ()))), plan_path)
    instructions = {"jobs": [*[job] * runs, *others], "stale": dict(stale), "module": module}
    jobs_path.write_text(json.dumps(instructions), "utf-8")
    inside = [sys.executable, "-m", "tests.lab.tap.collect", str(jobs_path), str(result_path)]
    lan = [sys.executable, "-m", "tests.lab.tap.lan", str(plan_path)]
    command = [*(prefix or namespace_prefix()), *lan, *inside, cancel_at]
    subprocess.run(command, check=True, cwd=ROOT, timeout=TIME_LIMIT_S)
    raw = json.loads(result_path.read_text("utf-8"))
    return LabResult([ChildRun(**run) for run in raw["runs"]], counters_from_json(raw["counters"]))


def run_child(job: str, module: str, cancel_at: str, run: ChildRun) -> None:
    """Run one collector to its end, as the agent does."""
    start_s = time.monotonic()
    command = [sys.executable, "-m", module, json.loads(job).get("kind", "network")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(job.encode() + b"\n")
        child.stdin.flush()
        for line in child.stdout:
            run.peak_mib = max(run.peak_mib, peak_rss_kib(child.pid) / 1024)
            event = json.loads(line)
            run.events.append(event["event"])
            if event["event"] == "progress" and event["step"] == cancel_at:
                cancel_at = ""
                child.stdin.write(b"cancel\n")
                child.stdin.flush()
            run.facts = event.get("facts", run.facts)
    run.took_s = time.monotonic() - start_s


def main() -> int:
    jobs_path, result_path, cancel_at = sys.argv[1:4]
    # A job must be one line, because the collector reads further lines as commands.
    instructions = json.loads(Path(jobs_path).read_text("utf-8"))
    jobs = [json.dumps(job) for job in instructions["jobs"]]
    for address, mac in instructions["stale"].items():
        entry = ["ip", "neigh", "replace", address, "lladdr", mac, "nud", "stale", "dev", DEVICE]
        subprocess.run(entry, check=True)
    runs = [ChildRun() for _ in jobs]
    threads = [
        threading.Thread(target=run_child, args=(job, instructions["module"], cancel_at, run))
        for job, run in zip(jobs, runs, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    counters = counters_to_json(read_counters())
    document = {"runs": [vars(run) for run in runs], "counters": counters}
    Path(result_path).write_text(json.dumps(document), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
