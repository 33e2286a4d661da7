"""Writes docs/crash-matrix.md from the results of the full crash matrix: `make crash-matrix`.

If the variable ``CRASH_RESULTS`` names a directory, each case of tests/scenario/crash/test_crash.py
stores its result in this directory.
"""

import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from agent.adapters.failpoints import Failpoint
from tests.paths import ROOT
from tests.scenario.crash.matrix import NOT_IN_A_REQUEST, SCENES, Case, Ending, Scene, cases

DOCUMENT: Final = ROOT / "docs" / "crash-matrix.md"
INTRODUCTION: Final = ROOT / "tests" / "scenario" / "crash" / "crash-matrix-introduction.md"
RESULTS: Final = os.environ.get("CRASH_RESULTS")
TITLES: Final = {
    "plain": "A request of a new device",
    "too-large": "The service refuses the size of the report (413)",
    "rejected": "The service rejects the report (400)",
    "refused": "The service refuses every report (409)",
    "learned": "A report with printers that the agent remembers",
}
ROW: Final = re.compile(
    r"^\| `([\w-]+)` \| (before|after)(?:, pass (\d+))? \| (.+) \|$", re.MULTILINE
)


def describe(ending: Ending) -> str:
    """Return how the request of a case ended, in the words of the document."""
    collection_count = ending.trace["child-started:before"]
    collected = {0: "no collection", 1: "one collection", 2: "two collections"}[collection_count]
    outcomes = [str(report["outcome"]) for report in ending.reports]
    if len(outcomes) == 1:
        reports = f"one report, {outcomes[0]}"
    else:
        reports = f"{len(outcomes)} reports" if outcomes else "no report"
    return f"{ending.state}; {reports}; {collected}"


def is_published(case: Case, ending: Ending) -> bool:
    """Return whether the document has this result.

    The number of collections is not compared. If the agent is killed at a heartbeat, it depends on
    the speed of the machine whether the collection had begun.
    """
    return published()[str(case)].rpartition("; ")[0] == describe(ending).rpartition("; ")[0]


def store(case: Case, ending: Ending) -> None:
    """Store the result of a case for `make crash-matrix`."""
    assert RESULTS is not None
    folder = Path(RESULTS)
    folder.mkdir(parents=True, exist_ok=True)
    name = str(case).replace(":", "-")
    (folder / f"{name}.json").write_text(json.dumps([str(case), describe(ending)]))


def document(results: dict[str, str]) -> str:
    """Return the text of the document. ``results`` has the result of each case by its name."""
    lines = [INTRODUCTION.read_text(encoding="utf-8").rstrip("\n")]
    for scene in SCENES:
        lines += [f"\n## {TITLES[scene.name]}\n", *_table(scene, results)]
    lines += ["\n## Failpoints without a case\n", "| failpoint | reason |", "|---|---|"]
    lines += [f"| `{failpoint}` | {reason} |" for failpoint, reason in NOT_IN_A_REQUEST.items()]
    return "\n".join(lines) + "\n"


def _table(scene: Scene, results: dict[str, str]) -> Iterator[str]:
    kinds = " | ".join(f"{kind} report" for kind in scene.kinds)
    yield f"| failpoint | killed | {kinds} |"
    yield "|---|---|" + "---|" * len(scene.kinds)
    for failpoint, times in scene.occurrences.items():
        for side in ("before", "after"):
            for number in range(1, times + 1):
                plan = f"{failpoint}:{side}:{number}"
                endings = " | ".join(results[str(Case(scene, k, plan))] for k in scene.kinds)
                yield f"| `{failpoint}` | {_kill_label(side, number, times)} | {endings} |"


def _kill_label(side: str, number: int, times: int) -> str:
    return side if times == 1 else f"{side}, pass {number}"


def published() -> dict[str, str]:
    """Return the result of each case in the document, by the name of the case."""
    results = {}
    parts = DOCUMENT.read_text(encoding="utf-8").split("\n## ")
    for scene in SCENES:
        (part,) = (part for part in parts if part.startswith(f"{TITLES[scene.name]}\n"))
        for failpoint, side, number, cells in ROW.findall(part):
            plan = f"{failpoint}:{side}:{number or 1}"
            for kind, description in zip(scene.kinds, cells.split(" | "), strict=True):
                results[str(Case(scene, kind, plan))] = description
    return results


def failpoints_of_document() -> set[str]:
    rows = re.findall(r"^\| `([\w-]+)` \|", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)
    return {Failpoint(name) for name in rows}


def main() -> None:
    results = dict(json.loads(path.read_text()) for path in Path(sys.argv[1]).glob("*.json"))
    missing = [str(case) for case in cases() if str(case) not in results]
    if missing:
        raise SystemExit(f"no result of {len(missing)} cases, such as {missing[0]}")
    DOCUMENT.write_text(document(results), encoding="utf-8")


if __name__ == "__main__":
    main()
