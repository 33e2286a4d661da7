"""Compares the memory of the idle, packaged daemon with a recorded baseline.

Fails if the proportional set size (PSS, see proc(5)) is more than `GROWTH_MAX` above the baseline.
In CI, also fails if there is no baseline for this architecture and version of Python.
The memory hardly depends on how busy the machine is. The number of wake-ups is printed, but not
compared: it depends on how busy the machine is, and differs by a third from one minute to the next.
Needs root and the package that `make onedir` builds. The daemon runs in a network namespace that
has only loopback.

Usage: python -m tests.packaging.verify_idle [--record]
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from tests.bench.daemon import LOOPBACK_ONLY, PACKAGED, running, write_config
from tests.bench.processes import Cost, cost_of
from tests.packaging.local_service import local_service, until
from tests.paths import ROOT

BASELINE: Final = ROOT / "tests/packaging/idle_baseline.json"
"""The PSS in MiB for each processor architecture and version of Python."""
GROWTH_MAX: Final = 0.03
SETTLED_AFTER_S: Final = 75.0
"""Time from the start of the daemon to the measurement of its memory. By then, the daemon has
released memory and sent another heartbeat."""
WINDOW_S: Final = 60.0
ENROLLED_WITHIN_S: Final = 120.0
IN_NAMESPACE: Final = "VENUE_IDLE_IN_NAMESPACE"
"""The environment variable that is set when this script runs itself again in the namespace."""


def build_name() -> str:
    """Return the architecture and the version of Python, on which the memory use depends."""
    return f"{platform.machine()}, Python {platform.python_version()}"


def growth_problem(pss_mib: float, baseline_mib: float | None) -> str | None:
    """Return what is wrong and what to do, or None if the memory is within the limit."""
    if baseline_mib is None:
        return f"no baseline for {build_name()}: record one with `make idle-baseline`"
    growth = pss_mib / baseline_mib - 1
    if growth <= GROWTH_MAX:
        return None
    return (
        f"the idle daemon uses {100 * growth:.1f} % more memory than the baseline of"
        f" {baseline_mib:.1f} MiB: find what has grown (docs/testing.md), or record the growth"
        " with `make idle-baseline`"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare the memory of the idle daemon.")
    parser.add_argument("--record", action="store_true", help="record the memory as the baseline")
    options = parser.parse_args()
    if IN_NAMESPACE not in os.environ:
        words = (*LOOPBACK_ONLY, sys.executable, "-m", "tests.packaging.verify_idle")
        environment = {**os.environ, IN_NAMESPACE: "1"}
        return subprocess.run((*words, *sys.argv[1:]), env=environment, check=False).returncode
    with tempfile.TemporaryDirectory(prefix="venue-idle-") as place:
        cost, wakeups = measure(Path(place))
    sys.stdout.write(
        f"the idle daemon: {cost.pss_mib:.2f} MiB PSS, {wakeups} wake-ups in a minute\n"
    )
    baselines: dict[str, float] = json.loads(BASELINE.read_text())
    if options.record:
        baselines[build_name()] = round(cost.pss_mib, 2)
        BASELINE.write_text(json.dumps(baselines, indent=2) + "\n")
        return 0
    baseline_mib = baselines.get(build_name())
    problem = growth_problem(cost.pss_mib, baseline_mib)
    if problem is not None:
        sys.stdout.write(f"{problem}\n")
    is_failure = baseline_mib is not None or "CI" in os.environ
    return 1 if problem is not None and is_failure else 0


def measure(place: Path) -> tuple[Cost, int]:
    """Return the resource use of an idle daemon, and the number of its wake-ups in the `WINDOW_S`
    seconds after this measurement.

    The package is copied. Otherwise its pages could be shared with other running programs.
    """
    shutil.copytree(PACKAGED.parent, place / "package", symlinks=True)
    command = (str(place / "package" / PACKAGED.name),)
    with local_service(place) as service:
        config = write_config(place / "agent", service.base_url, service.api_key)
        with running(command, config):
            service.enrolled_device(ENROLLED_WITHIN_S)
        # A daemon that has just enrolled uses more memory: restart it.
        with running(command, config) as agent:
            until(lambda: time.monotonic() > agent.began + SETTLED_AFTER_S, 2 * SETTLED_AFTER_S)
            cost = cost_of(agent.process.pid)
            time.sleep(WINDOW_S)
            return cost, cost_of(agent.process.pid).wakeups - cost.wakeups


if __name__ == "__main__":
    sys.exit(main())
