"""A service that misbehaves, and the real daemon beside it: what it costs, and that it goes on."""

import asyncio
import itertools
import json
import os
import uuid
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.adapters.moments import Moment
from tests.fakes.http_server import Reply, Request
from tests.fakes.strict_service import Json, StrictService
from tests.scenario.agent_process import running_agent, write_config
from tests.scenario.crash_matrix import NEVER, crashing_agent

REQUESTS = int(os.environ.get("QUEUED_REQUESTS", "1000"))
"""`WAITING_MAX` of them wait at once; a shorter run shows the same with fewer."""
COLLECTIONS_MAX = 3


async def test_many_requests_of_a_kind_are_answered_from_few_collections(memory_home: Path) -> None:
    async with StrictService() as service:
        limits = "min_collection_interval_seconds = 2"
        config = write_config(memory_home, service.base_url, limits=limits, logging='level = "info"')
        wanted = [await service.request_report("application", expires_in_s=900) for _ in range(REQUESTS)]
        trace = memory_home / "trace"
        async with crashing_agent(NEVER, config, trace) as agent:
            await service.until(lambda: len(service.reports) == REQUESTS, 300)
            assert await agent.stop() == 0
    passed = Counter(trace.read_text().split())
    assert passed[f"{Moment.CHILD_STARTED}:before"] <= COLLECTIONS_MAX
    assert service.violations == []
    assert sorted(r["requestId"] for r in service.reports) == sorted(wanted)
    assert len({r["reportId"] for r in service.reports}) == REQUESTS
    assert all(r["report"]["reportId"] == r["reportId"] for r in service.reports)
    assert len(service.bodies) == REQUESTS, "each was taken the first time"
    told = Counter(service.acknowledged)
    assert set(told) == {(r, s) for r in wanted for s in ("received", "running")}
    assert len(agent.log.splitlines()) <= 400
