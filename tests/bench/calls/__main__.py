"""Measures the processor time of the service for frequent calls: `make bench-calls`.

A real service on SQLite has a sandbox of three locations and 40 days, and a device. Eight clients
send the same call as often as they can. The table shows the processor time of one call for the
service, and for the framework alone. The framework alone is a process with the server and the
router of the service (`tests.bench.calls.bare`). It sends a copy of the service's reply to each
call. Both figures are medians of several rounds. Each round measures first the service, and then
the framework.

Usage: python -m tests.bench.calls [--rounds N]
"""

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from sqlalchemy.orm import Session

from agent.wire import routes
from controlplane.accounts.keys import key_store
from controlplane.accounts.keys.key_store import DEFAULT_ORGANIZATION
from controlplane.accounts.oauth.metadata import RESOURCE_PATH
from controlplane.analytics.routes import DASHBOARD
from controlplane.retail import routes as retail
from controlplane.retail.credentials import clients
from controlplane.sandbox.loading import load
from controlplane.sandbox.plan import Plan
from controlplane.storage.database import Database
from tests.bench.fleet.fleet import Member, populate
from tests.bench.fleet.load import HEAD_END, exchange, heartbeat
from tests.bench.fleet.service import Service, running, service

CLIENTS: Final = 8
LOCATIONS: Final = 3
DAYS: Final = 40
ROUNDS: Final = 7
CALLS: Final = 240


@dataclass(frozen=True, slots=True)
class Call:
    name: str
    method: str
    path: str
    request: bytes


@dataclass(frozen=True, slots=True)
class Keys:
    """An API key of the facade, a retail API key, and a device with its own API key."""

    api_key: str
    retail_key: str
    device: Member


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        database = Database(str(Path(folder) / "calls.db"))
        keys = fill(database)
        database.close()
        print(f"processor time of a call in ms, median of {rounds} rounds of {CALLS} calls")
        print(f"{'call':<28} {'service':>9} {'framework':>10} {'ratio':>6} {'bytes':>8}")
        with service(str(Path(folder) / "calls.db")) as started:
            for call in calls(keys, access_token(started.port, keys.retail_key)):
                print(measure_line(started, call, Path(folder) / "reply", rounds))
    return 0


def fill(database: Database) -> Keys:
    now = datetime.now(UTC)
    plan = Plan(locations=LOCATIONS, days=DAYS, until=now.date(), is_awkward=True)

    def work(session: Session) -> tuple[str, str]:
        load(session, plan, now)
        common: dict[str, Any] = {
            "name": "bench", "can_write": False, "organization_id": DEFAULT_ORGANIZATION, "now": now
        }  # fmt: skip
        _, api_key = key_store.create_key(session, locations=(), **common)
        _, retail_key = clients.create_key(session, environment="test", **common)
        return api_key, retail_key

    return Keys(*database.write(work), populate(database, 1, "org-0002")[0])


def access_token(port: int, retail_key: str) -> str:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{retail.TOKENS}",
        json.dumps({"api_key": retail_key}).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request) as reply:
        return str(json.load(reply)["access_token"])


def calls(keys: Keys, token: str) -> Iterator[Call]:
    for name, method, params in (
        ("tools/list", "tools/list", {}),
        ("business_context", "tools/call", {"name": "business_context", "arguments": {}}),
        (
            "query_sales by day",
            "tools/call",
            {"name": "query_sales", "arguments": {"period": "last7", "groupBy": ["day"]}},
        ),
    ):
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        yield _call(name, "POST", RESOURCE_PATH, keys.api_key, body)
    dashboard = {"locationId": "loc-0001", "period": "last7"}
    yield _call("analytics/dashboard", "POST", DASHBOARD, keys.api_key, dashboard)
    sales = f"{retail.SALES}?status=completed&sort=created_at_desc"
    yield _call("GET /sales", "GET", sales, token)
    yield Call("heartbeat", "POST", routes.HEARTBEAT, heartbeat(keys.device))


def _call(name: str, method: str, path: str, credential: str, body: object = None) -> Call:
    content = b"" if body is None else json.dumps(body).encode()
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: service\r\nAuthorization: Bearer {credential}\r\n"
        "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
        f"Content-Length: {len(content)}\r\n\r\n"
    )
    return Call(name, method, path, head.encode() + content)


def measure_line(started: Service, call: Call, file: Path, rounds: int) -> str:
    """Measure a call, and return its line of the table. ``file`` receives the reply."""
    reply = asyncio.run(reply_to(started.port, call.request))
    file.write_bytes(reply)
    served, framework = [], []
    with running(
        "tests.bench.calls.bare", str(file), call.method, call.path.partition("?")[0]
    ) as bare:
        for each in (started, bare):
            cost_ms(each, call)  # warm-up
        for _ in range(rounds):
            served.append(cost_ms(started, call))
            framework.append(cost_ms(bare, call))
    service_ms, framework_ms = statistics.median(served), statistics.median(framework)
    ratio = service_ms / framework_ms
    return f"{call.name:<28} {service_ms:9.2f} {framework_ms:10.2f} {ratio:6.1f} {len(reply):8,}"


async def reply_to(port: int, request: bytes) -> bytes:
    """Return the body of a reply."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    head = (await reader.readuntil(HEAD_END)).lower()
    body = await reader.readexactly(int(head.partition(b"content-length:")[2].split(b"\r")[0]))
    writer.close()
    await writer.wait_closed()
    if not head.startswith(b"http/1.1 200 "):
        raise RuntimeError(f"refused: {body.decode()[:200]}")
    return body


def cost_ms(started: Service, call: Call) -> float:
    """Return the processor time that ``started`` uses for one call, in milliseconds."""
    before_s = started.cpu_s
    tally = asyncio.run(exchange(started.port, [call.request] * CALLS, CLIENTS))
    if tally.statuses != {200: CALLS}:
        raise RuntimeError(f"{call.name}: {tally.statuses}")
    return 1000 * (started.cpu_s - before_s) / CALLS


if __name__ == "__main__":
    sys.exit(main())
