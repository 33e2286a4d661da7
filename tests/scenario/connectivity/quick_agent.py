"""Runs the agent with a shorter grace time.

    python -m tests.scenario.connectivity.quick_agent GRACE_S CONFIG READY_FILE

An agent records no incident in the grace time after its start. The tests use this module to save a
minute. The agent creates READY_FILE when the gateway has answered a probe. From then on, the agent
detects that the gateway is silent even while the neighbour table still has a valid entry for the
gateway.
"""

import asyncio
import sys
from pathlib import Path
from typing import Any

from agent import daemon
from agent.adapters.connectivity import sensors
from agent.adapters.connectivity.gateway import GatewayProbe
from agent.tasks import record


class ReportingProbe(GatewayProbe):
    """Creates READY_FILE when the gateway answers."""

    async def answers(self, *arguments: Any) -> bool | None:
        has_answered = await super().answers(*arguments)
        if has_answered:
            Path(sys.argv[3]).touch()
        return has_answered


if __name__ == "__main__":
    record.GRACE_S = float(sys.argv[1])  # type: ignore[misc] - a constant of the agent
    sensors.GatewayProbe = ReportingProbe  # type: ignore[misc]
    asyncio.run(daemon.run(Path(sys.argv[2]), foreground=False))
