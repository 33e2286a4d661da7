"""`venue-agent collect`: a report here and now. The same child, facts and payload as the daemon's.

Progress goes to stderr, the result to stdout. Ctrl-C asks for what has been found so far; a second
one ends the command.
"""

import argparse
import asyncio
import json
import signal
import sys
from dataclasses import asdict
from pathlib import Path
from uuid import uuid4

from rich.console import Console

from agent.adapters.clock import SystemClock
from agent.adapters.collector_process import CollectorProcess
from agent.adapters.storage.device_record import DeviceRecordFile
from agent.adapters.storage.printer_memory import PrinterMemory
from agent.adapters.storage.state import StateDirectory
from agent.cli.options import add_config_option
from agent.config.capabilities import capabilities_of
from agent.config.file import Loaded, load
from agent.config.model import LocalConfig
from agent.errors import AgentError
from agent.presentation.page.html import report_page
from agent.presentation.progress import RunProgress
from agent.presentation.terminal.report import report_view
from agent.reporting import environment_here
from agent.rules.reports.context import ReportContext, identity_of
from agent.rules.reports.sealing import Payload
from agent.tasks.collection import with_limitation, with_memory
from agent.tasks.report_maker import application_job, network_job, payload_of
from agent.wire.codec import encode, encode_indented
from agent.wire.payloads.common import Identity
from agent.wire.vocabulary import Kind
from collectors.contract import Job, Progress


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", choices=("network", "application"))
    add_config_option(parser)
    output = parser.add_mutually_exclusive_group()
    output.add_argument(
        "--json", action="store_true", help="print the exact payload that would be submitted"
    )
    output.add_argument(
        "--ndjson", action="store_true", help="print progress and the payload as JSON lines"
    )
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a page as well")


def run(options: argparse.Namespace) -> int:
    """Exit 0 with a report, 1 when nothing at all could be collected."""
    loaded = load(LocalConfig, options.config)
    payload = asyncio.run(_collect(loaded, options.kind, as_lines=options.ndjson))
    if options.html is not None:
        _write_page(options.html, payload)
    if options.json:
        sys.stdout.write(encode_indented(payload) + "\n")
    elif options.ndjson:
        sys.stdout.write(encode(payload).decode() + "\n")
    elif options.html is None:
        Console(highlight=False).print(report_view(payload))
    return 0


async def _collect(loaded: Loaded[LocalConfig], kind: Kind, *, as_lines: bool) -> Payload:
    config = loaded.config
    identity = _identity(loaded.state_dir)
    job: Job = network_job(config) if kind == "network" else application_job(config)
    memory = PrinterMemory(StateDirectory(loaded.state_dir))
    job, limitation = with_memory(job, memory.peek, SystemClock().now())
    interrupted = asyncio.Event()
    loop = asyncio.get_running_loop()
    if sys.platform != "win32":
        loop.add_signal_handler(signal.SIGINT, _interrupt, interrupted, asyncio.current_task())
    with RunProgress() as bars:

        def show(progress: Progress) -> None:
            if as_lines:
                _print_line(progress)
            else:
                bars.update(progress.step, progress.done, progress.total)

        collected = await CollectorProcess().collect(job, show, interrupted)
    context = ReportContext(
        report_id=str(uuid4()),
        finished_at=SystemClock().now().isoformat(),
        identity=identity,
        environment=environment_here(capabilities_of(config)),
    )
    return payload_of(job, with_limitation(collected.facts, limitation), (), context)


def _interrupt(interrupted: asyncio.Event, task: asyncio.Task[Payload] | None) -> None:
    if interrupted.is_set() and task is not None:
        task.cancel()
    interrupted.set()


def _identity(state: Path) -> Identity:
    """Say who this machine is, where it is enrolled and the state may be read."""
    record = DeviceRecordFile(StateDirectory(state)).peek()
    binding = None if record is None or record.binding is None else record.binding.record
    return identity_of(
        organization_id=None if binding is None else binding.organization_id,
        location_id=None if binding is None else binding.location_id,
        install_id=None if record is None else record.legacy_install_id,
    )


def _print_line(progress: Progress) -> None:
    sys.stdout.write(json.dumps(asdict(progress)) + "\n")
    sys.stdout.flush()


def _write_page(path: Path, payload: Payload) -> None:
    try:
        path.write_text(report_page(payload), encoding="utf-8")
    except OSError as error:
        raise AgentError(f"{path} cannot be written: {error.strerror}") from None
    sys.stderr.write(f"written to {path}\n")
