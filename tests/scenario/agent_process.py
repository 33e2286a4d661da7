"""Runs the agent as a real process, with its own configuration and state."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from tests.fakes.strict_service import API_KEY
from tests.scenario.forked_process import ForkedProcess, run_forked, start_forked


def write_config(home: Path, base_url: str, **sections: str) -> Path:
    """Write the configuration of an agent that contacts only its service, and no other device.

    ``sections`` maps the name of a table to further lines of this table.
    """
    key = home / "api-key"
    if not key.exists():
        key.write_text(API_KEY + "\n")
        key.chmod(0o600)
    lines = {
        "service": f'base_url = "{base_url}"\nlocation_id = "loc-1"\napi_key_file = "{key}"',
        "device": f'state_dir = "{home / "state"}"',
        "network": "device_only = true",
        "heartbeat": "interval_seconds = 1",
        "commands": "poll_interval_seconds = 0.1",
    }
    for section, further_lines in sections.items():
        lines[section] = f"{lines.get(section, '')}\n{further_lines}"
    path = home / "config.toml"
    path.write_text("".join(f"[{name}]\n{text}\n" for name, text in lines.items()))
    return path


def environment() -> dict[str, str]:
    """Return the environment of the tests without the variables that configure an agent.

    Variables that a service manager sets are left out as well.
    """
    prefixes = ("VENUE_AGENT_", "NOTIFY_SOCKET", "SYSTEMD_EXEC_PID", "INVOCATION_ID", "WATCHDOG_")
    return {k: v for k, v in os.environ.items() if not k.startswith(prefixes)}


class AgentProcess:
    """A process of the agent. ``home`` is the directory of its configuration, state and log."""

    def __init__(
        self, process: asyncio.subprocess.Process | ForkedProcess, home: Path, log: Path
    ) -> None:
        self.process = process
        self.home = home
        self._log = log

    @property
    def log(self) -> str:
        return self._log.read_text()

    def status(self) -> dict[str, Any]:
        status: dict[str, Any] = json.loads((self.home / "state" / "status.json").read_text())
        return status

    async def until_logged(self, text: str, within_s: float = 120) -> None:
        """Wait until the agent has logged ``text``."""
        async with asyncio.timeout(within_s):
            while text not in self.log:
                assert self.process.returncode is None, self.log
                await asyncio.sleep(0.02)

    async def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and return the exit code."""
        self.process.send_signal(number)
        return await self.process.wait()


@contextlib.asynccontextmanager
async def killed_at_the_end(agent: AgentProcess) -> AsyncIterator[AgentProcess]:
    """Yield the agent. Kill it at the end if it still runs."""
    try:
        yield agent
    finally:
        if agent.process.returncode is None:
            agent.process.kill()
            await agent.process.wait()


@contextlib.asynccontextmanager
async def running_agent(config: Path, *words: str) -> AsyncIterator[AgentProcess]:
    """Run `venue-agent run`, or the command ``words``. Kill it at the end if it still runs."""
    home = config.parent
    log = home / "agent.log"
    with log.open("ab") as output:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "agent", *(words or ("run",)), "--config", str(config),
            stdout=output, stderr=output, stdin=asyncio.subprocess.DEVNULL, env=environment(),
        )  # fmt: skip
    async with killed_at_the_end(AgentProcess(process, home, log)) as agent:
        yield agent


@contextlib.asynccontextmanager
async def forked_agent(config: Path, *words: str) -> AsyncIterator[AgentProcess]:
    """Run `venue-agent run`, or the command ``words``, in a fork (tests.scenario.forked_process).

    Kill it at the end if it still runs.
    """
    home = config.parent
    log = home / "agent.log"
    log.touch()  # `start_forked` may return before the fork has created the file
    process = start_forked(
        "agent", *(words or ("run",)), "--config", str(config),
        environment=environment(), output=log,
    )  # fmt: skip
    async with killed_at_the_end(AgentProcess(process, home, log)) as agent:
        yield agent


async def run_forked_agent(config: Path | None, *words: str) -> tuple[int, str, str]:
    """Run a command of the agent in a fork to its end; return exit code, stdout and stderr."""
    extra = () if config is None else ("--config", str(config))
    return await run_forked("agent", *words, *extra, environment=environment())


async def run_agent(config: Path | None, *words: str) -> tuple[int, str, str]:
    """Run a command of the agent to its end; return exit code, stdout and stderr."""
    extra = () if config is None else ("--config", str(config))
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "agent", *words, *extra,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, env=environment(),
    )  # fmt: skip
    output, errors = await asyncio.wait_for(process.communicate(), timeout=120)
    assert process.returncode is not None
    return process.returncode, output.decode(), errors.decode()
