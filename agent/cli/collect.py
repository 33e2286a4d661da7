"""`venue-agent collect`: creates a report on this machine now, in the same way as the daemon.

Progress goes to stderr, the result to stdout. With `--ndjson`, both go to stdout.
"""

import argparse
import asyncio
import json
import platform
import signal
import sys
from collections.abc import Callable
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

from agent.adapters.clock import SystemClock
from agent.adapters.collector_process import CollectorProcess
from agent.adapters.storage.device_record import DeviceRecordFile
from agent.adapters.storage.printer_memory import PrinterMemory
from agent.adapters.storage.record import read_record
from agent.adapters.storage.state import StateDirectory
from agent.cli.terminal.options import add_config_option
from agent.config.file import load
from agent.config.model import LocalConfig
from agent.config.rights import with_config
from agent.errors import AgentError, StateError
from agent.presentation.machine_name import machine_name
from agent.reporting import describe_environment
from agent.rules.connectivity.fields import history_fields, missing_history_fields
from agent.rules.install_id import install_id_for
from agent.rules.reports.context import UNENROLLED, ReportContext, identity_of
from agent.rules.reports.jobs import job_of, printers_job
from agent.rules.reports.payload import payload_of
from agent.tasks.collection import with_limitation, with_memory
from agent.wire.codec import encode, encode_indented
from agent.wire.payloads.by_kind import ReportPayload
from agent.wire.payloads.common import Identity
from agent.wire.payloads.network import NetworkPayload
from collectors.contract import PRINTER_STEP, ApplicationJob, Field, Job, Progress


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "kind",
        choices=("network", "application"),
        help="network: printers and hosts; application: this machine and its programs",
    )
    add_config_option(parser)
    output = parser.add_mutually_exclusive_group()
    output.add_argument(
        "--json", action="store_true", help="print the exact payload that would be submitted"
    )
    output.add_argument(
        "--ndjson", action="store_true", help="print progress and the payload as JSON lines"
    )
    parser.add_argument(
        "--html", type=Path, metavar="FILE", help="also write the report as a web page"
    )


def run(options: argparse.Namespace) -> int:
    """Print a report and return 0. If nothing could be collected, raise an error: exit code 1."""
    loaded = load(LocalConfig, options.config)
    show_progress = _print_line if options.ndjson else None
    state = StateDirectory(loaded.state_dir)
    job = job_of(loaded.config, options.kind)
    payload = asyncio.run(collect_report(loaded.config, state, job, show_progress=show_progress))
    if options.json:
        sys.stdout.write(encode_indented(payload) + "\n")
    elif options.ndjson:
        sys.stdout.write(encode(payload).decode() + "\n")
    else:
        show_report(with_host_name(payload))
    if options.html is not None:
        write_page(options.html, with_host_name(payload), options.html.write_bytes)
    return 0


def with_host_name(payload: ReportPayload) -> ReportPayload:
    """Return the payload to show to a user. An unenrolled machine gets its host name as install id.

    A machine without a host name keeps "unenrolled".
    """
    identity = payload.identity
    if identity.install_id != UNENROLLED:
        return payload
    name = install_id_for(platform.node(), uuid4())
    if machine_name(name) is None:
        return payload
    return payload.model_copy(update={"identity": identity.model_copy(update={"install_id": name})})


async def check_printers(
    config: LocalConfig, state: StateDirectory, printer: str = ""
) -> tuple[NetworkPayload, str | None]:
    """Contact this machine's printers now.

    If ``printer`` is an id, a name or an address, contact only that printer. Returns the payload of
    a network report, and a message if this machine has no such printer. Raises CollectorError.
    """
    job = printers_job(config, printer)
    # No progress is shown: a check of printers takes about a second.
    payload = await collect_report(config, state, job, show_progress=lambda _: None)
    if not isinstance(payload, NetworkPayload):
        raise TypeError("the payload of a printers job must be a network report")
    reasons = (failure.reason for failure in payload.failures if failure.step == PRINTER_STEP)
    return payload, next(reasons, None)


async def collect_report(
    config: LocalConfig,
    state: StateDirectory,
    job: Job,
    *,
    show_progress: Callable[[Progress], None] | None = None,
) -> ReportPayload:
    """Collect facts and build the payload as the daemon does. Raises CollectorError.

    Without ``show_progress``, progress bars are shown. The first Ctrl-C ends the collection, and
    the report contains the facts so far. The second Ctrl-C ends the command. On Windows, the first
    Ctrl-C already ends the command.
    """
    identity = _identity(config, state)
    memory = PrinterMemory(state)
    job, limitation = with_memory(job, memory.peek, SystemClock().now())
    interruption = asyncio.Event()
    if sys.platform != "win32":
        asyncio.get_running_loop().add_signal_handler(
            signal.SIGINT, _interrupt, interruption, asyncio.current_task()
        )
    if show_progress is not None:
        result = await CollectorProcess().collect(job, show_progress, interruption)
    else:
        from agent.presentation.progress import RunProgress  # slow to import

        with RunProgress(title=f"{job.kind} report") as bars:
            result = await CollectorProcess().collect(
                job, lambda p: bars.update(p.step, p.done, p.total), interruption
            )
    context = ReportContext(
        report_id=str(uuid4()),
        finished_at=SystemClock().now().isoformat(),
        identity=identity,
        environment=describe_environment(config),
    )
    fields = _history_fields(config, state) if isinstance(job, ApplicationJob) else ()
    return payload_of(job, with_limitation(result.facts, limitation), fields, context)


def _history_fields(config: LocalConfig, state: StateDirectory) -> tuple[Field, ...]:
    """Return the fields that show what the daemon of this machine has recorded."""
    now = SystemClock().now()
    try:
        history = read_record(state, now - timedelta(days=config.recorder.keep_days), now)
    except StateError as error:
        return tuple(missing_history_fields(str(error)))
    if history.since == now:
        return tuple(missing_history_fields("the daemon has not recorded anything yet"))
    return tuple(history_fields(history, now))


def show_report(payload: ReportPayload) -> None:
    """Print a report on the terminal."""
    from rich.console import Console  # slow to import, like all modules that show reports

    from agent.presentation.terminal.report import report_view

    Console(highlight=False).print(report_view(payload, with_config))


def write_page(path: Path, payload: ReportPayload, write: Callable[[bytes], object]) -> None:
    """Write the report as a page. Raises AgentError.

    ``write`` is a function that writes the content to ``path``.
    """
    from agent.presentation.page.html import report_page  # slow to import

    try:
        write(report_page(payload).encode())
    except OSError as error:
        raise AgentError(f"{path} cannot be written: {error.strerror}") from None
    sys.stderr.write(f"written to {path}\n")


def _interrupt(interruption: asyncio.Event, task: asyncio.Task[ReportPayload] | None) -> None:
    if interruption.is_set() and task is not None:
        task.cancel()
    interruption.set()


def _identity(config: LocalConfig, state: StateDirectory) -> Identity:
    """Return the machine's identity. Parts that cannot be read are "unenrolled"."""
    record = DeviceRecordFile(state).peek()
    configured_id = config.device.legacy_install_id
    if record is None:
        return identity_of(None, configured_id)
    binding = None if record.binding is None else record.binding.record
    return identity_of(binding, configured_id or record.legacy_install_id)


def _print_line(progress: Progress) -> None:
    sys.stdout.write(json.dumps(asdict(progress)) + "\n")
    sys.stdout.flush()
