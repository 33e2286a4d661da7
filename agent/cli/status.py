"""`venue-agent status`: what the daemon is doing, and each unhealthy condition with its fix."""

import argparse
import json
import sys
from datetime import UTC, datetime

from agent.adapters.state import StateDirectory
from agent.adapters.status_file import DaemonStatus, StatusFile
from agent.cli.options import add_config_option, add_json_option
from agent.config import LocalConfig, state_dir
from agent.config_file import load

HEALTHY, UNHEALTHY, NOT_RUNNING = 0, 1, 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config_option(parser)
    add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    """Exit 0 healthy, 1 not, 2 not running."""
    state = StateDirectory(state_dir(load(LocalConfig, options.config).config.device))
    status = StatusFile(state).read()
    pid = state.holder()
    verdict = NOT_RUNNING if pid is None or status is None else _judge(status)
    if options.json:
        document = None if status is None else status.model_dump(mode="json")
        sys.stdout.write(json.dumps({"running": pid is not None, "daemon": document}) + "\n")
    elif verdict == NOT_RUNNING:
        sys.stdout.write(f"not running (state in {state.path})\n")
        if status is not None:
            sys.stdout.write(f"last seen {ago(status.written_at)}\n")
    else:
        _show(status)
    return verdict


def _judge(status: DaemonStatus) -> int:
    return UNHEALTHY if status.problems or status.is_revoked else HEALTHY


def _show(status: DaemonStatus | None) -> None:
    if status is None:
        return
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    console = Console(highlight=False)
    table = Table.grid(padding=(0, 2))
    for name, value in _facts(status):
        table.add_row(Text(name, "dim"), Text(value))
    console.print(table)
    for problem in status.problems:
        style = "red" if problem.severity == "error" else "yellow"
        console.print()
        console.print(Text(f"{problem.severity}: {problem.title}", f"bold {style}"))
        console.print(Text(f"  {problem.detail} (since {ago(problem.since)})"))
        console.print(Text(f"  fix: {problem.fix}"))
    if not status.problems:
        console.print(Text("healthy", "bold green"))


def _facts(status: DaemonStatus) -> list[tuple[str, str]]:
    binding = status.binding
    waiting = "empty"
    if status.outbox_reports:
        kib = status.outbox_bytes // 1024
        since = ago(status.outbox_oldest_at)
        waiting = f"{status.outbox_reports} reports, {kib} KiB, oldest from {since}"
    return [
        ("agent", f"{status.version}, process {status.pid}, started {ago(status.started_at)}"),
        ("service", "not enrolled" if binding is None else binding.base_url),
        ("location", "" if binding is None else binding.location_id),
        ("binding", "revoked" if status.is_revoked else binding.binding_id if binding else "none"),
        ("heartbeat", ago(status.last_heartbeat_at)),
        ("commands by", status.delivery or "nothing yet"),
        ("doing", status.activity),
        ("outbox", waiting),
    ]


def ago(moment: str | None) -> str:
    """Say how long ago an ISO 8601 moment was."""
    if moment is None:
        return "never"
    seconds = int((datetime.now(UTC) - datetime.fromisoformat(moment)).total_seconds())
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if abs(seconds) >= size:
            return f"{seconds // size} {unit} ago"
    return f"{max(seconds, 0)} s ago"
