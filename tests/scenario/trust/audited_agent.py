"""Runs an agent and records what it does on this machine.

    python -m tests.scenario.trust.audited_agent TRACE CONFIG

TRACE gets a line of JSON for each opened file, change of a file, connection and started program
(Python's audit events), and for each job of a collector. SQLite writes its files without audit
events. Instead of the collector, a fast child process sends a few facts.
"""

import asyncio
import json
import os
import sys
from asyncio.subprocess import Process
from dataclasses import asdict
from pathlib import Path
from typing import Any

from agent import daemon
from agent.adapters.collector_process import CollectorProcess
from collectors.contract import Job
from tests.fakes.collectors.command import command_of

RECORDED_EVENTS = (
    "open", "os.", "shutil.", "socket.", "subprocess.", "sqlite3.", "ctypes.dlopen", "pty.",
    "tempfile.", "urllib.", "http.", "ftplib.", "smtplib.", "webbrowser.", "pickle.", "winreg.",
)  # fmt: skip
JOB = "job"


def record_to(trace: int) -> None:
    """Record audit events and jobs, until the process ends."""

    def record(event: str, values: list[Any]) -> None:
        os.write(trace, json.dumps([event, values]).encode() + b"\n")

    def hook(event: str, values: tuple[Any, ...]) -> None:
        if event.startswith(RECORDED_EVENTS):
            # The first value of most events about sockets is the socket.
            record(event, [repr(v) for v in values if type(v).__name__ != "socket"])

    start = CollectorProcess._start

    async def start_and_record(self: CollectorProcess, job: Job) -> Process:
        record(JOB, [repr(asdict(job))])
        return await start(self, job)

    CollectorProcess._start = start_and_record  # type: ignore[method-assign]
    sys.addaudithook(hook)


if __name__ == "__main__":
    trace_path, config = sys.argv[1:]
    record_to(os.open(trace_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
    asyncio.run(daemon.run(Path(config), foreground=False, collector_command=command_of("quick")))
