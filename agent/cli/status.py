"""`venue-agent status`: the daemon's state, and each unhealthy condition with its fix."""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from agent.adapters.storage.device_record import DeviceRecordFile
from agent.adapters.storage.state import StateDirectory
from agent.adapters.storage.status_file import DaemonStatus, StatusFile
from agent.adapters.upgrade.record import read_upgrade, upgrade_document
from agent.cli.resolve_state import ResolvedState, resolve_state
from agent.cli.terminal.options import add_config_and_json_options
from agent.cli.terminal.screen import Screen, Style, print_json
from agent.config.model import is_system_config
from agent.config.rights import how_to_run_as_root, how_to_start
from agent.errors import ConfigMissing, StateError
from agent.presentation.humanize import ago, counted
from agent.presentation.machine_name import machine_name
from agent.redaction.known import redact
from agent.rules.health import Problem
from agent.wire.codec import to_plain

HEALTHY, UNHEALTHY, NOT_RUNNING, NOT_VISIBLE = 0, 1, 2, 3
RECENT_REQUESTS: Final = 3
RECORD_PERIOD: Final = timedelta(days=7)

_REFUSED: Final = {"credential-refused", "not-enrolled", "commands-rejected", "revoked"}
"""Conditions under which this device receives no commands (rules.health)."""
_VERDICTS: Final = {
    HEALTHY: "healthy",
    UNHEALTHY: "unhealthy",
    NOT_RUNNING: "not running",
    NOT_VISIBLE: "not visible",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config_and_json_options(parser)


def run(options: argparse.Namespace) -> int:
    """Return 0 healthy, 1 unhealthy, 2 not running, 3 not visible to this user."""
    resolved = resolve_state(options.config)
    if not options.json:
        return show_status(Screen(), resolved, options.config)
    document, verdict = (
        _public_document(resolved) if resolved.is_closed else _document(resolved.state)
    )
    print_json(document)
    return verdict


def show_status(screen: Screen, resolved: ResolvedState, config: Path | None) -> int:
    """Print the status, and return the exit code. Raises StateError."""
    if resolved.is_closed:
        return _show_public(screen, resolved)
    snapshot = _snapshot(resolved.state)
    if name := machine_name(snapshot.machine or ""):
        screen.paragraph(name, "strong")
    show_upgrade(screen)
    if snapshot.pid is None:
        _show_not_running(screen, resolved, snapshot.status, config)
    elif snapshot.status is None:
        screen.line(("starting", "warn"))
        screen.paragraph(f"process {snapshot.pid} has not written its status yet")
    else:
        _show(screen, snapshot.status, _connection(resolved.state), snapshot.verdict)
        for number, line in enumerate(_recent_request_lines(resolved.state)):
            screen.fact("" if number else "requests", line)
    return snapshot.verdict


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """The content of the state directory.

    ``pid`` is None if no daemon runs. ``machine`` is the machine's name at the service and in
    reports, usually its host name (`legacy_install_id` of the contract). ``status`` is the last
    status that a daemon wrote; None if there is none.
    """

    pid: int | None
    machine: str | None
    status: DaemonStatus | None

    @property
    def verdict(self) -> int:
        """The exit code of `status`."""
        if self.pid is None:
            return NOT_RUNNING
        status = self.status
        is_bad = status is None or status.problems or status.is_revoked
        return UNHEALTHY if is_bad else HEALTHY


def _snapshot(state: StateDirectory) -> _Snapshot:
    pid, record = state.holder(), DeviceRecordFile(state).peek()
    machine = None if record is None else record.legacy_install_id
    return _Snapshot(pid, machine, _without_secrets(StatusFile(state).read()))


def show_upgrade(screen: Screen) -> None:
    """Print the last upgrade if it was rolled back, is not complete or is not verified yet."""
    if (upgrade := read_upgrade()) is None:
        return
    screen.paragraph(upgrade.describe(), "warn")
    if upgrade.log:
        screen.paragraph(f"log of {upgrade.new_version}: {upgrade.log}", indent="  ")
    if upgrade.advice:
        screen.paragraph(f"→ {upgrade.advice}", indent="  ")


def _document(state: StateDirectory) -> tuple[dict[str, Any], int]:
    """Return what `--json` prints (docs/cli.md)."""
    snapshot = _snapshot(state)
    return {
        "verdict": _VERDICTS[snapshot.verdict],
        "running": snapshot.pid is not None,
        "pid": snapshot.pid,
        "state_dir": str(state.path),
        "machine": snapshot.machine,
        "connection": _connection(state) or None,
        "daemon": None if snapshot.status is None else to_plain(snapshot.status),
        "upgrade": upgrade_document(),
    }, snapshot.verdict


def _public_document(resolved: ResolvedState) -> tuple[dict[str, Any], int]:
    """Return what `--json` prints if this user is not permitted to read the state directory.

    The document has only facts that every user can see.
    """
    from agent.doctor.public_status import public_status  # only this command needs it

    status = public_status()
    return {
        "verdict": _VERDICTS[NOT_VISIBLE],
        "running": status.is_running,
        "pid": status.pids[0] if len(status.pids) == 1 else None,
        "state_dir": None if resolved.guessed_because else str(resolved.state.path),
        "machine": None,
        "connection": None,
        "daemon": None,
        "upgrade": upgrade_document(),
    }, NOT_VISIBLE


def _show_public(screen: Screen, resolved: ResolvedState) -> int:
    """Print what every user can see, and how to see more."""
    from agent.doctor.public_status import describe, public_status  # only this command needs it

    screen.line(("not visible to you", "warn"))
    show_upgrade(screen)
    screen.fact("agent", describe(public_status()))
    screen.fact(
        "state", str(resolved.guessed_because or f"{resolved.state.path} is closed to this user")
    )
    screen.paragraph(f"→ to see its state: {how_to_run_as_root('status')}")
    return NOT_VISIBLE


def _without_secrets(status: DaemonStatus | None) -> DaemonStatus | None:
    """Redact the details of the problems, and the activity.

    An older version may have written the file with secrets.
    """
    if status is None:
        return None
    problems = tuple(p.model_copy(update={"detail": redact(p.detail)}) for p in status.problems)
    return status.model_copy(update={"problems": problems, "activity": redact(status.activity)})


def _recent_request_lines(state: StateDirectory) -> list[str]:
    """Return a line for each of the last requests, with the headline of its report."""
    from agent.adapters.storage.history import read_history  # not needed for --json
    from agent.cli.history import headlines_of, result_of

    try:
        rows = read_history(state, RECENT_REQUESTS)
        headlines = headlines_of(state, rows)
    except StateError as error:
        return [str(error)]
    lines = ((row, headlines.get(row.report_id or "", ("", "none"))[0]) for row in rows)
    return [
        f"{row.kind} {result_of(row)}, {ago(row.at)}" + (f": {headline}" if headline else "")
        for row, headline in lines
    ]


def _show_not_running(
    screen: Screen, resolved: ResolvedState, status: DaemonStatus | None, config: Path | None
) -> None:
    screen.line(("not running", "bad"))
    if status is not None:
        screen.fact("last status", f"{ago(status.written_at)}, version {status.version}")
    screen.fact("state", str(resolved.state.path))
    for line in _advice(resolved, config):
        screen.paragraph(f"→ {line}")


def _advice(resolved: ResolvedState, config: Path | None) -> Iterator[str]:
    """Yield advice on how to start the agent.

    Without a valid configuration, the agent cannot start. The advice is then how to create or
    correct the configuration.
    """
    # These imports are only needed if no agent runs.
    from agent.doctor.public_status import describe_processes, other_agents, read_unit

    if resolved.guessed_because is not None and (others := other_agents(None)):
        processes = describe_processes(others)
        yield f"an agent runs with another configuration ({processes}): use --config"
    if isinstance(resolved.guessed_because, ConfigMissing):
        yield str(resolved.guessed_because)
    elif resolved.guessed_because is not None:
        yield "correct the configuration first: `venue-agent config check`"
    else:
        unit = read_unit()
        yield how_to_start(
            is_installed=unit is not None and unit.is_installed,
            is_system_agent=is_system_config(config),
        )


def _connection(state: StateDirectory) -> str:
    """Return a sentence about the open or last interruption; "" if nothing was recorded."""
    from agent.adapters.storage.record import read_record  # only this command needs it
    from agent.presentation.connectivity.sentences import connection_sentence, is_empty

    now = datetime.now(UTC)
    try:
        history = read_record(state, now - RECORD_PERIOD, now)
    except StateError as error:
        return str(error)
    return "" if is_empty(history, now) else redact(connection_sentence(history, now))


def _show(screen: Screen, status: DaemonStatus, connection: str, verdict: int) -> None:
    count = len(status.problems)
    headline: tuple[str, Style] = ("healthy", "good")
    if verdict != HEALTHY:
        headline = (counted(count, "problem") if count else "revoked", "bad")
    process = f"venue-agent {status.version}, process {status.pid}"
    screen.beside(headline, (f"{process}, started {ago(status.started_at)}", "quiet"))
    for problem in status.problems:
        _show_problem(screen, problem)
    screen.blank()
    for name, value in _facts(status, connection):
        screen.fact(name, value)


def _show_problem(screen: Screen, problem: Problem) -> None:
    style: Style = "bad" if problem.severity == "error" else "warn"
    screen.blank()
    screen.line((f"{problem.severity}: {problem.title}", style))
    screen.paragraph(f"{problem.detail} (since {ago(problem.since)})", indent="  ")
    screen.paragraph(f"→ {problem.fix}", indent="  ")


def _facts(status: DaemonStatus, connection: str) -> Iterator[tuple[str, str]]:
    binding = status.binding
    if binding is None:
        yield "service", "not enrolled"
    else:
        revoked = " (revoked)" if status.is_revoked else ""
        yield "service", binding.base_url
        yield "location", f"{binding.location_id} of {binding.organization_id}"
        yield "device", binding.instance_id
        yield "binding", f"{binding.binding_id}{revoked}"
    yield "heartbeat", ago(status.last_heartbeat_at)
    if connection:
        yield "connection", connection
    yield "commands", _commands(status)
    yield "last reply", ago(status.last_contact_at)
    yield "doing", status.activity if status.phase == "running" else status.phase
    yield "outbox", _outbox(status)
    yield "config", status.config_path or "the environment alone"


def _commands(status: DaemonStatus) -> str:
    """Describe how commands arrive.

    A refusal is shown even while the stream is open: the service may refuse the device first and
    close the stream later.
    """
    is_refused = status.is_revoked or any(p.code in _REFUSED for p in status.problems)
    by = f"by {status.delivery}" if status.delivery else "not received now"
    received = status.counters.get("commands_received", 0)
    return f"{'refused' if is_refused else by}; {received} received since the start"


def _outbox(status: DaemonStatus) -> str:
    if not status.outbox_reports:
        return "empty"
    size = f"{max(1, status.outbox_bytes // 1024)} KiB"
    oldest = ago(status.outbox_oldest_at)
    return f"{counted(status.outbox_reports, 'report')} waiting, {size}, the oldest from {oldest}"
