"""Runs the long checks, which CI does not run. A releaser runs them before a release.

Usage: python -m release.long_checks [--list] [CHECK ...]
"""

import argparse
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from release import ROOT

CHECKS: Final = (
    "audit",
    # the service, the agent and the collectors
    "test-crash",
    "soak",
    "test-hostile",
    "test-absence",
    "test-connectivity",
    "test-demo",
    "test-liar",
    "test-venues",
    "test-week",
    "test-month",
    "test-failover",
    "test-figures",
    "test-schemathesis",
    "test-mcp-conformance",
    "bench-restart",
    "test-random-examples",
    "fuzz",
    "soak-day",
    # the packages
    "test-reproducible",
    "test-bare ARGS=--all",
    "test-wheel ARGS=--pipx",
    "test-service-install ARGS=--all",
    "test-wine ARGS=--all",
    "test-apt",
    "test-rpm",
    "test-msi ARGS=--all",
    "test-upgrade",
    "deb-arm64",
    "test-arm64",
    "test-container",
    # the tests themselves
    "seeded-defects",
    "mutation",
)
"""The checks, in the order in which they run. Each is a target of make, with variables if it needs
any."""


@dataclass(frozen=True, slots=True)
class Result:
    check: str
    code: int
    seconds: float


def run(check: str, makefile: Path, log: Path) -> Result:
    """Run a check with its output in the file ``log``."""
    # These variables of the calling make would change the checks.
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in {"MAKEFLAGS", "MAKELEVEL", "MFLAGS", "PYTHONPATH"}
    }
    command = ("make", "--file", str(makefile), *check.split())
    began = time.monotonic()
    with log.open("wb") as output:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=output,
            stderr=subprocess.STDOUT, check=False,
        )  # fmt: skip
    return Result(check, done.returncode, time.monotonic() - began)


def table(results: list[Result]) -> list[str]:
    """Return the lines of a table with the result and the duration of each check."""
    width = max(len(each.check) for each in results)
    lines = [f"{'check':{width}}  result   minutes"]
    for each in results:
        verdict = "ok" if each.code == 0 else "FAILED"
        lines.append(f"{each.check:{width}}  {verdict:7}  {each.seconds / 60:7.1f}")
    failed = sum(each.code != 0 for each in results)
    lines.append(f"{len(results) - failed} of {len(results)} checks passed")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the long checks before a release.")
    parser.add_argument("--list", action="store_true", help="print the checks")
    parser.add_argument("--makefile", type=Path, default=ROOT / "Makefile")
    parser.add_argument("--logs", type=Path, default=ROOT / "build/release-checks")
    parser.add_argument("checks", nargs="*", help='targets of make, such as "test-bare ARGS=--all"')
    options = parser.parse_args()
    if options.list:
        sys.stdout.write("".join(f"{check}\n" for check in CHECKS))
        return 0
    options.logs.mkdir(parents=True, exist_ok=True)
    results = []
    for check in options.checks or CHECKS:
        log = options.logs / f"{check.replace(' ', '-').replace('/', '-')}.txt"
        result = run(check, options.makefile, log)
        results.append(result)
        sys.stdout.write(table([result])[1] + "\n")
        if result.code != 0:
            sys.stdout.write(log.read_text(errors="replace")[-2000:] + f"The whole output: {log}\n")
        sys.stdout.flush()
    sys.stdout.write("\n" + "\n".join(table(results)) + "\n")
    return 1 if any(each.code != 0 for each in results) else 0


if __name__ == "__main__":
    sys.exit(main())
