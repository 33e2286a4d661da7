"""Replies of the service, which runs as a process, conform to its OpenAPI documents.

Schemathesis generates a few thousand calls, which are the same in each run. Their bodies are valid
or invalid. Some calls have a wrong method, a wrong media type, a wrong API key or no API key. Other
calls use the replies to earlier calls.
`make test-schemathesis` makes more calls.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import httpx2
import pytest
from sqlalchemy.orm import Session

from controlplane.clock import system_clock
from controlplane.retail import routes
from controlplane.retail.credentials import clients
from controlplane.retail.registry import OPERATIONS as RETAIL
from controlplane.sandbox.loading import load
from controlplane.sandbox.plan import ORGANIZATION, Plan
from controlplane.storage.database import Database
from controlplane.support.links import make_link
from controlplane.web.openapi.interfaces import OPERATIONS
from tests.paths import ROOT
from tests.sizes import amount
from tests.unit.controlplane.test_process import Process, run, start, stop

EXAMPLES = amount(medium=5, large=12, variable="SCHEMATHESIS_EXAMPLES")
TOKENS = 64
"""Number of support tokens. The calls of one run use fewer."""
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
WITHIN_S = 3600
pytestmark = [
    pytest.mark.medium,
    pytest.mark.skipif(
        sys.platform == "win32", reason="the test stops the service with POSIX signals"
    ),
]


@pytest.mark.large  # medium runs make the same checks with the retail document, which is smaller
def test_the_service_matches_its_document(tmp_path: Path) -> None:
    with closing(Database(str(tmp_path / "service.db"))) as database:
        plan = Plan(days=3, goods=5, sales_per_day=20, until=NOW.date(), is_awkward=True)
        database.write(lambda session: load(session, plan, NOW))
        tokens = database.write(create_tokens)
    service = start(str(tmp_path / "service.db"), "--rate", "0")
    try:
        environment = {
            "SCHEMATHESIS_KEY": service.api_key,
            "SCHEMATHESIS_TOKENS": ",".join(tokens),
        }
        counts = run_schemathesis(
            service, "/openapi.json", "schemathesis.toml", environment, tmp_path
        )
    finally:
        assert stop(service) == 0
    assert {operation.name for operation in OPERATIONS} == {
        key.split()[0] for key in counts if " 200" in key
    }
    assert not [key for key in counts if " 5" in key]


def test_the_retail_api_matches_its_document(tmp_path: Path) -> None:
    database = str(tmp_path / "service.db")
    loaded = run("sandbox", "load", "--database", database, "--days", "3", "--sales-per-day", "20")
    assert loaded.returncode == 0, loaded.stderr
    api_key = retail_key(database)
    service = start(database, "--rate", "0")
    try:
        token_reply = httpx2.post(service.url + routes.TOKENS, json={"api_key": api_key})
        environment = {
            "SCHEMATHESIS_KEY": token_reply.json()["access_token"],
            "SCHEMATHESIS_API_KEY": api_key,
        }
        counts = run_schemathesis(service, routes.DOCUMENT, "retail.toml", environment, tmp_path)
    finally:
        assert stop(service) == 0
    reached = {" ".join(key.split()[:2]) for key in counts if key.split()[2] in {"200", "201"}}
    token_operations = {f"POST {path}" for path in (routes.TOKENS, routes.REFRESH)}
    assert reached == token_operations | {
        f"{operation.method} {operation.path}" for operation in RETAIL
    }
    assert not [key for key in counts if key.split()[2].startswith("5")]


def create_tokens(session: Session) -> list[str]:
    return [
        make_link(session, channel="chat", requested_by="Ada", now=system_clock()).token
        for _ in range(TOKENS)
    ]


def retail_key(database: str) -> str:
    with closing(Database(database, connections=1)) as opened:
        return opened.write(
            lambda session: clients.create_key(
                session,
                name="schemathesis",
                organization_id=ORGANIZATION,
                environment="test",
                can_write=True,
                now=system_clock(),
            )
        )[1]


def run_schemathesis(
    service: Process, document: str, config: str, environment: dict[str, str], folder: Path
) -> Counter[str]:
    """Run schemathesis. Return how often each operation replied with each status and code.

    A key is an operation, a status and a code, such as ``listDevices 400 invalid_cursor``. In the
    retail API, an operation is a method and a path.
    """
    seen_file = folder / "counts.json"
    result = subprocess.run(
        [
            *(sys.executable, "-m", "schemathesis.cli", "--config-file"),
            *(str(ROOT / "tests/contract/openapi" / config), "run"),
            *(f"{service.url}{document}", "--checks=all", "--generation-deterministic"),
            *(f"--max-examples={EXAMPLES}", "--no-color", "--no-shrink"),
            "--max-response-time=120",  # the default of 10 s is too short on a busy machine
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=WITHIN_S,
        cwd=folder,
        env=os.environ
        | {
            "PYTHONPATH": str(ROOT),
            # hypothesis stores its tables of Unicode here. Otherwise each run computes them.
            "HYPOTHESIS_STORAGE_DIRECTORY": str(ROOT / ".hypothesis"),
            "SCHEMATHESIS_URL": service.url,
            "SCHEMATHESIS_SEEN": str(seen_file),
        }
        | environment,
    )
    assert result.returncode == 0, result.stdout[-10_000:] + result.stderr[-2000:]
    counts: Counter[str] = Counter(json.loads(seen_file.read_text()))
    print(result.stdout[result.stdout.index("= SUMMARY =") :])
    print(json.dumps(counts, indent=1))
    return counts
