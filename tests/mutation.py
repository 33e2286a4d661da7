"""`python tests/mutation.py [MODULE ...]`: measures how many mutations the tests detect.

By default, all modules in ``TESTS`` are mutated. cosmic-ray changes one thing in a module at a time
(an operator, a number, a branch) and runs the tests of that module. It works in a copy of the
checkout, because it changes source files. The exit code is 1 if the score is below the minimum.
"""

import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
WORK = ROOT / "build" / "mutation"
SCORE_MIN = 0.8

TESTS = {
    "clock_skew": "test_clock_skew.py",
    "command_frames": "test_command_frames.py",
    "reports/fit": "reports/test_fit.py",
    "health": "test_binding_and_health.py",
    "lifecycle": "test_lifecycle.py",
    "replies": "test_replies.py",
    "retry": "test_retry.py",
    "reports/sealing": "reports/test_sealing.py",
    "binding": "test_binding_and_health.py",
    "time_jump": "test_time_jump.py",
}
"""The tests of each module that is mutated. The modules are in agent/rules."""

TEST_COMMAND = "-m pytest -x -q -p no:cacheprovider tests/unit/agent/rules/{tests}"
CONFIG = """\
[cosmic-ray]
module-path = "agent/rules/{module}.py"
timeout = 60.0
excluded-modules = []
test-command = "{python} {command}"
[cosmic-ray.distributor]
name = "local"
"""


def run_mutants(module: str) -> tuple[int, int, list[str]]:
    """Return the number of mutants, the number of survivors, and a description of each survivor.

    The tests must succeed without a mutation. Otherwise every mutant would count as detected.
    """
    command = TEST_COMMAND.format(tests=TESTS[module])
    (WORK / "config.toml").write_text(
        CONFIG.format(module=module, python=sys.executable, command=command)
    )
    session = WORK / f"{module.replace('/', '-')}.sqlite"
    session.unlink(missing_ok=True)
    subprocess.run([sys.executable, *command.split()], cwd=WORK, check=True, env=_environment())
    for verb in ("init", "exec"):
        words = [sys.executable, "-m", "cosmic_ray.cli", verb, "config.toml", session.name]
        subprocess.run(words, cwd=WORK, check=True, env=_environment(), stderr=subprocess.DEVNULL)
    connection = sqlite3.connect(session)
    try:
        rows = connection.execute(
            "SELECT m.operator_name, m.start_pos_row, r.test_outcome FROM mutation_specs m"
            " JOIN work_results r ON m.job_id = r.job_id"
        ).fetchall()
    finally:
        connection.close()
    survivors = [
        f"{module}.py:{row}: {name}" for name, row, outcome in rows if "SURVIVED" in outcome
    ]
    return len(rows), len(survivors), survivors


def _environment() -> dict[str, str]:
    tools = ROOT / "build" / "mutation-tools"
    return {**os.environ, "PYTHONPATH": f"{WORK}:{tools}"}


def main() -> int:
    modules = sys.argv[1:] or list(TESTS)
    shutil.rmtree(WORK, ignore_errors=True)
    for name in ("agent", "collectors", "tests"):
        shutil.copytree(ROOT / name, WORK / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", WORK)
    all_mutants = all_survivors = 0
    for module in modules:
        mutants, survivor_count, survivors = run_mutants(module)
        all_mutants, all_survivors = all_mutants + mutants, all_survivors + survivor_count
        print(f"{module:16} {mutants - survivor_count} of {mutants} detected", flush=True)
        for line in survivors:
            print(f"    {line}", flush=True)
    share = 1 - all_survivors / max(1, all_mutants)
    print(f"mutation score {share:.1%} ({all_mutants} mutants)")
    return 0 if all_mutants and share >= SCORE_MIN else 1


if __name__ == "__main__":
    sys.exit(main())
