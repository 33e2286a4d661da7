"""`run` on a terminal ends when the terminal is closed.

Without a terminal, or under systemd, SIGHUP makes the agent reload its configuration.
"""

import asyncio
import contextlib
import fcntl
import os
import pty
import signal
import sys
import termios
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import BinaryIO

import psutil
import pytest

from tests.fakes.strict_service import StrictService
from tests.scenario.agent_process import environment, forked_agent, write_config

WITHIN_S = 120.0

AgentOnTerminal = tuple[StrictService, Process, BinaryIO]


@contextlib.asynccontextmanager
async def agent_on_a_terminal(
    home: Path, *, before: Callable[[], None] = lambda: None, **variables: str
) -> AsyncIterator[AgentOnTerminal]:
    """Run the agent as the leader of a terminal's session.

    Yield its service, the agent's process after its first heartbeat, and the other end of the
    terminal. At the end, the process is killed if it still runs.

    Args:
        before: called in the new process before the agent starts.
        variables: additional environment variables of the agent.
    """
    master, slave = pty.openpty()

    def take_the_terminal() -> None:
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the tests themselves may be run by nohup
        before()

    async with StrictService() as service:
        config = write_config(home, service.base_url)
        with os.fdopen(master, "rb", buffering=0) as terminal:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "agent", "run", "--config", str(config),
                stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
                preexec_fn=take_the_terminal, env={**environment(), **variables},
            )  # fmt: skip
            os.close(slave)
            try:
                await service.until(lambda: service.heartbeats > 0)
                yield service, process, terminal
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.wait()


def ignore_hangups() -> None:
    """Ignore SIGHUP, as nohup(1) does."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


async def child_of(pid: int) -> psutil.Process:
    """Poll until the collector's process exists, and return it."""
    async with asyncio.timeout(WITHIN_S):
        while not (children := psutil.Process(pid).children()):  # noqa: ASYNC110
            await asyncio.sleep(0.005)
    child: psutil.Process = children[0]
    return child


async def until_ended(process: Process) -> int:
    async with asyncio.timeout(WITHIN_S):
        return await process.wait()


async def test_agent_and_child_end_when_the_terminal_closes(tmp_path: Path) -> None:
    async with agent_on_a_terminal(tmp_path) as (service, process, terminal):
        await service.request_report("application")
        child = await child_of(process.pid)
        terminal.close()
        assert await until_ended(process) == 0
    assert not child.is_running()
    status = (tmp_path / "state" / "status.json").read_text()
    assert '"phase": "stopped"' in status
    assert service.violations == []


async def test_agent_started_with_nohup_continues_after_the_terminal_closes(tmp_path: Path) -> None:
    async with agent_on_a_terminal(tmp_path, before=ignore_hangups) as (service, process, terminal):
        terminal.close()
        before = service.heartbeats
        await service.until(lambda: service.heartbeats > before + 2)
        process.terminate()
        assert await until_ended(process) == 0


async def test_sighup_reloads_an_agent_that_systemd_runs_on_a_terminal(tmp_path: Path) -> None:
    """systemd can give a service a terminal (systemd.exec(5), StandardInput=tty)."""
    socket_path = str(tmp_path / "no-listener")
    async with agent_on_a_terminal(tmp_path, NOTIFY_SOCKET=socket_path) as (_, process, terminal):
        process.send_signal(signal.SIGHUP)
        output = b""
        async with asyncio.timeout(WITHIN_S):
            while b"the configuration was reloaded" not in output:
                output += await asyncio.to_thread(terminal.read, 4096)
        process.terminate()
        assert await until_ended(process) == 0


@pytest.mark.parametrize("variable", ["INVOCATION_ID", "SYSTEMD_EXEC_PID"])
async def test_an_agent_with_inherited_variables_of_systemd_ends_when_its_terminal_closes(
    tmp_path: Path, variable: str
) -> None:
    async with agent_on_a_terminal(tmp_path, **{variable: "1"}) as (_, process, terminal):
        terminal.close()
        assert await until_ended(process) == 0


async def test_sighup_reloads_an_agent_without_a_terminal(tmp_path: Path) -> None:
    async with (
        StrictService() as service,
        forked_agent(write_config(tmp_path, service.base_url)) as agent,
    ):
        await service.until(lambda: service.heartbeats > 0)
        agent.process.send_signal(signal.SIGHUP)
        await agent.until_logged("the configuration was reloaded")
        assert await agent.stop() == 0
