"""Tests of the number of modules whose functions run during one call.

A module counts if one of its functions runs before the last SQL statement of the call. Each call is
made twice, and only the second call counts. By then, all modules are imported, and the credential
is cached.
"""

import asyncio
import json
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from types import FrameType
from typing import Any

import httpx2
import pytest
import uvicorn
from sqlalchemy import event
from sqlalchemy.engine import Engine
from uvicorn.server import ServerState

from agent.wire.routes import LIST_DEVICES
from controlplane.accounts.oauth.metadata import RESOURCE_PATH
from controlplane.retail.routes import GOODS
from controlplane.web.app import build_app
from controlplane.web.background import poll_changes
from controlplane.web.protocol import bounded_protocol
from tests.paths import ROOT
from tests.unit.controlplane.retail.retailer import exchange, new_key
from tests.unit.controlplane.running_service import RunningService

MODULES_MAX = 15
TIMEOUT_S = 300
PACKAGE = f"{ROOT / 'controlplane'}/"
CATALOG = {"name": "read_catalog", "arguments": {}}
CALLS: dict[str, tuple[str, str, Any, str]] = {
    "facade": ("POST", LIST_DEVICES, {}, "devices/reading.py"),
    "retail API": ("GET", GOODS, None, "retail/catalog.py"),
    "agent protocol": (
        "POST",
        RESOURCE_PATH,
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": CATALOG},
        "agent_protocol/tools/catalog.py",
    ),
}
"""Method, path and body of a call, and the module that answers it."""


class Walk:
    """The modules of the functions that ran, in order, with ``SQL`` for each statement."""

    def __init__(self) -> None:
        self.steps: list[str] = []

    def profile(self, frame: FrameType, kind: str, _argument: object) -> None:
        if kind == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            self.steps.append(frame.f_code.co_filename.removeprefix(PACKAGE))

    def record_statement(self, *_arguments: object) -> None:
        self.steps.append("SQL")

    @property
    def modules(self) -> list[str]:
        """The modules that ran before the last SQL statement, each once."""
        last = len(self.steps) - self.steps[::-1].index("SQL")
        return list(dict.fromkeys(step for step in self.steps[:last] if step != "SQL"))


@contextmanager
def record_walk() -> Iterator[Walk]:
    """Record the functions of this thread and of threads that start in the context."""
    walk = Walk()
    before = sys.getprofile()
    threading.setprofile(walk.profile)
    sys.setprofile(walk.profile)
    event.listen(Engine, "before_cursor_execute", walk.record_statement)
    try:
        yield walk
    finally:
        event.remove(Engine, "before_cursor_execute", walk.record_statement)
        sys.setprofile(before)
        threading.setprofile(None)  # type: ignore[arg-type]  # the default


@asynccontextmanager
async def serve(service: RunningService) -> AsyncIterator[httpx2.AsyncClient]:
    """Serve with the protocol class of the service. Yield a client."""
    app = build_app(service.core)
    config = uvicorn.Config(app, ws="none", lifespan="off", log_config=None)
    config.load()
    factory: Callable[[], asyncio.Protocol] = partial(
        bounded_protocol(service.core.settings),
        config=config,
        server_state=ServerState(),
        app_state={},
    )
    server = await asyncio.get_running_loop().create_server(factory, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    # Recording makes a call so slow that it may exceed the default timeout of 5 s.
    async with server, httpx2.AsyncClient(base_url=url, timeout=TIMEOUT_S) as client:
        yield client


@pytest.mark.parametrize("interface", CALLS)
async def test_a_call_runs_functions_of_few_modules(
    service: RunningService, interface: str
) -> None:
    method, path, body, answering_module = CALLS[interface]
    content = None if body is None else json.dumps(body)
    # The threads of the service start inside the context, so their functions are recorded.
    with record_walk() as walk:
        credential = service.write_key
        if interface == "retail API":
            credential = (await exchange(service, new_key(service))).json()["access_token"]
        await poll_changes(service.core)
        headers = {"authorization": f"Bearer {credential}", "content-type": "application/json"}
        async with serve(service) as client:
            for _ in range(2):
                walk.steps.clear()
                reply = await client.request(method, path, content=content, headers=headers)
                assert reply.status_code == 200
    print(f"{interface}: {len(walk.modules)} modules", *walk.modules, sep="\n  ")
    assert walk.modules[0] == "web/protocol.py"
    assert {"storage/database.py", answering_module} <= set(walk.modules)
    assert len(walk.modules) <= MODULES_MAX
