"""`venue-agent status`: what the daemon is doing, and each unhealthy condition with its fix."""

import argparse
import json
import os
import sys
from typing import Any, Final

from agent.adapters.state import StateDirectory
from agent.adapters.status_file import DaemonStatus, ProblemStatus, StatusFile
from agent.cli.options import add_config_option, add_json_option
from agent.cli.screen import Screen, Style
from agent.cli.state_here import state_here
from agent.errors import StateError
from agent.presentation.moments import ago
from agent.redaction.known import redact
from agent.wire.model import replaced
from agent.wire.reading import plain_values

HEALTHY, UNHEALTHY, NOT_RUNNING = 0, 1, 2
RECENT_REQUESTS: Final = 3

_VERDICTS: Final = {HEALTHY: "healthy", UNHEALTHY: "unhealthy", NOT_RUNNING: "not running"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config_option(parser)
    add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    """Exit 0 healthy, 1 not, 2 not running."""
    state = state_here(options.config)
    _require_sight(state)
    pid = state.holder()
    status = _without_secrets(StatusFile(state).read())
    verdict = NOT_RUNNING if pid is None else _judge(status)
    if options.json:
        sys.stdout.write(json.dumps(_document(state, pid, status, verdict), indent=2) + "\n")
    elif pid is None or status is None:
        _show_absent(Screen(), state, pid, status)
    else:
        _show(Screen(), status, _recent(state), verdict)
    return verdict


def _require_sight(state: StateDirectory) -> None:
    """Raise StateError where the state directory is closed to this user."""
    try:
        # Read, since on Windows os.access knows nothing of rights.
        next(state.path.iterdir(), None)
        is_closed = not os.access(state.path, os.X_OK)
    except PermissionError:
        is_closed = True
    except OSError:
        return
    if is_closed:
        who = "an administrator" if sys.platform == "win32" else "root (sudo)"
        raise StateError(f"{state.path} belongs to another user: run this as {who}")


def _without_secrets(status: DaemonStatus | None) -> DaemonStatus | None:
    """Redact the details: the file may be of an older version."""
    if status is None:
        return None
    problems = tuple(replaced(p, detail=redact(p.detail)) for p in status.problems)
    return replaced(status, problems=problems, activity=redact(status.activity))


def _judge(status: DaemonStatus | None) -> int:
    return UNHEALTHY if status is None or status.problems or status.is_revoked else HEALTHY


def _recent(state: StateDirectory) -> list[str]:
    """Say what became of the last requests."""
    from agent.adapters.history import read_history  # noqa: PLC0415 - for people only
    from agent.cli.history import result_of  # noqa: PLC0415

    try:
        rows = read_history(state, RECENT_REQUESTS)
    except StateError as error:
        return [str(error)]
    return [f"{row.kind} {result_of(row)}, {ago(row.at)}" for row in rows]


def _document(
    state: StateDirectory, pid: int | None, status: DaemonStatus | None, verdict: int
) -> dict[str, Any]:
    """Return what `--json` prints (docs/cli.md)."""
    return {
        "verdict": _VERDICTS[verdict],
        "running": pid is not None,
        "pid": pid,
        "state_dir": str(state.path),
        "daemon": None if status is None else plain_values(status),
    }


def _show_absent(
    screen: Screen, state: StateDirectory, pid: int | None, status: DaemonStatus | None
) -> None:
    if pid is not None:
        screen.line(
            ("starting", "warn"), (f"  process {pid} has said nothing of itself yet", "none")
        )
        return
    screen.line(("not running", "bad"))
    if status is not None:
        screen.fact("last seen", f"{ago(status.written_at)}, version {status.version}")
    screen.fact("state", str(state.path))
    screen.paragraph("→ start it: `venue-agent service start`, or by hand `venue-agent run`")


def _show(screen: Screen, status: DaemonStatus, requests: list[str], verdict: int) -> None:
    count = len(status.problems)
    headline: tuple[str, Style] = ("healthy", "good")
    if verdict != HEALTHY:
        headline = (f"{count} problem{'' if count == 1 else 's'}" if count else "revoked", "bad")
    process = f"venue-agent {status.version}, process {status.pid}"
    screen.line(headline, (f"  {process}, started {ago(status.started_at)}", "quiet"))
    for problem in status.problems:
        _show_problem(screen, problem)
    screen.blank()
    for name, value in _facts(status):
        screen.fact(name, value)
    for at, words in enumerate(requests):
        screen.fact("" if at else "requests", words)


def _show_problem(screen: Screen, problem: ProblemStatus) -> None:
    style: Style = "bad" if problem.severity == "error" else "warn"
    screen.blank()
    screen.line((f"{problem.severity}: {problem.title}", style))
    screen.paragraph(f"{problem.detail} (since {ago(problem.since)})", indent="  ")
    screen.paragraph(f"→ {problem.fix}", indent="  ")


def _facts(status: DaemonStatus) -> list[tuple[str, str]]:
    binding = status.binding
    by = f"by {status.delivery}" if status.delivery else "not asked for yet"
    received = status.counters.get("commands_received", 0)
    facts = [
        ("service", "not enrolled" if binding is None else binding.base_url),
        ("heartbeat", ago(status.last_heartbeat_at)),
        ("commands", f"{by}, {received} since the start"),
        ("last answer", ago(status.last_contact_at)),
        ("doing", status.activity if status.phase == "running" else status.phase),
        ("outbox", _outbox(status)),
        ("config", status.config_path or "the environment alone"),
    ]
    if binding is not None:
        where = f"{binding.location_id} of {binding.organization_id}"
        revoked = " (revoked)" if status.is_revoked else ""
        facts[1:1] = [
            ("location", where),
            ("device", binding.instance_id),
            ("binding", f"{binding.binding_id}{revoked}"),
        ]
    return facts


def _outbox(status: DaemonStatus) -> str:
    if not status.outbox_reports:
        return "empty"
    plural = "" if status.outbox_reports == 1 else "s"
    size = f"{max(1, status.outbox_bytes // 1024)} KiB"
    oldest = ago(status.outbox_oldest_at)
    return f"{status.outbox_reports} report{plural} waiting, {size}, the oldest from {oldest}"
