"""The service as a process does what its OpenAPI document says, whatever it is asked.

A few thousand calls, the same every time: bodies that fit and bodies that do not, other methods and
media types, no key and a wrong one, and chains of calls. `make test-schemathesis` asks more.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from controlplane.openapi.areas import OPERATIONS
from controlplane.sandbox.loading import load
from controlplane.sandbox.plan import Plan
from controlplane.storage.database import Database
from tests.paths import ROOT
from tests.unit.controlplane.test_process import start, stop

EXAMPLES = os.environ.get("SCHEMATHESIS_EXAMPLES", "12")
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
WITHIN_S = 600 if EXAMPLES == "12" else 3600
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="stops by POSIX signals"),
]


def test_the_service_does_what_its_document_says(tmp_path: Path) -> None:
    with closing(Database(str(tmp_path / "service.db"))) as database:
        plan = Plan(days=3, goods=5, sales_per_day=20, until=NOW.date())
        database.write(lambda session: load(session, plan, NOW))
    service = start(str(tmp_path / "service.db"), "--rate", "0")
    seen_file = tmp_path / "seen.json"
    try:
        done = subprocess.run(
            [
                *(sys.executable, "-m", "schemathesis.cli", "--config-file"),
                *(str(ROOT / "tests/contract/openapi/schemathesis.toml"), "run"),
                *(f"{service.url}/openapi.json", "--checks=all", "--generation-deterministic"),
                *(f"--max-examples={EXAMPLES}", "--no-color", "--no-shrink"),
            ],
            capture_output=True,
            text=True,
            check=False,
            timeout=WITHIN_S,
            cwd=tmp_path,
            env=os.environ
            | {
                "PYTHONPATH": str(ROOT),
                "SCHEMATHESIS_URL": service.url,
                "SCHEMATHESIS_KEY": service.api_key,
                "SCHEMATHESIS_SEEN": str(seen_file),
            },
        )
    finally:
        assert stop(service) == 0
    assert done.returncode == 0, done.stdout[-10_000:] + done.stderr[-2000:]
    seen: Counter[str] = Counter(json.loads(seen_file.read_text()))
    print(done.stdout[done.stdout.index("= SUMMARY =") :])
    print(json.dumps(seen, indent=1))
    assert {each.name for each in OPERATIONS} == {key.split()[0] for key in seen if " 200" in key}
    assert not [key for key in seen if " 5" in key]
