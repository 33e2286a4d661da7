from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.unit.agent.tasks.agent_parts import AgentParts, agent_parts


@pytest.fixture
async def bound_agent(tmp_path: Path) -> AsyncIterator[AgentParts]:
    """A device with a confirmed binding, and its tasks."""
    with agent_parts(tmp_path) as device:
        yield device


@pytest.fixture
async def unbound_agent(tmp_path: Path) -> AsyncIterator[AgentParts]:
    """A device without a binding, and its tasks."""
    with agent_parts(tmp_path, has_binding=False) as device:
        yield device
