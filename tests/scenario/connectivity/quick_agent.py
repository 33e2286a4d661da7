"""Runs the agent with a shorter grace time.

    python -m tests.scenario.connectivity.quick_agent GRACE_S CONFIG

The grace time is the time after its start in which an agent records no incident. The tests use this
module to save a minute.
"""

import asyncio
import sys
from pathlib import Path

from agent import daemon
from agent.tasks import record

if __name__ == "__main__":
    record.GRACE_S = float(sys.argv[1])  # type: ignore[misc] - a constant of the agent
    asyncio.run(daemon.run(Path(sys.argv[2]), foreground=False))
