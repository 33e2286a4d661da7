"""Checks of the running agent: its process, its version, its unit, its conditions."""

import functools
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final, get_args

from agent import __version__
from agent.adapters.storage.record import read_record
from agent.adapters.storage.status_file import DaemonStatus, StatusFile
from agent.adapters.storage.visibility import is_closed
from agent.adapters.upgrade.record import read_upgrade
from agent.config.rights import how_to_start, with_sudo
from agent.doctor.check import Outcome, fail, fail_by, ok, skipped, warn
from agent.doctor.context import Context
from agent.doctor.public_status import (
    UnitFacts,
    combine_status,
    describe,
    describe_processes,
    other_agents,
    read_unit,
)
from agent.errors import StateError, UnavailableCause
from agent.presentation.connectivity.sentences import (
    connection_sentence,
    is_empty,
    open_interruption,
)
from agent.presentation.humanize import age_s, ago, counted, times

NO_REPLY_S: Final = 300.0
"""Maximum time between two replies of the service to a healthy agent, in seconds. `doctor` also
warns if a report waits longer than this time."""

RECORD_PERIOD: Final = timedelta(days=7)
CONNECTION_CHECKS: Final = (
    "interfaces", "gateway", "name-resolution", "connection", "proxy", "captive-portal", "service",
    "credential",
)  # fmt: skip
"""Checks whose failure explains why there is no connection now."""

COVERED_CONDITIONS: Final = frozenset(
    {
        *get_args(UnavailableCause), "credential-refused", "not-enrolled", "revoked",
        "clock-skew", "state-failing", "reports-waiting",
    }
)  # fmt: skip
"""Conditions of the daemon (rules.health) that other checks cover."""


def daemon(context: Context) -> Outcome:
    state = context.state
    if state is None:
        return skipped("the state directory is unknown")
    if context.is_hidden or is_closed(state.path):
        return _check_public_facts(context)
    pid = state.holder()
    try:
        status = StatusFile(state).read()
    except StateError as error:
        return fail_by(error).with_facts(daemon_pid=pid)
    if pid is None:
        last = f"; it last wrote its status {ago(status.written_at)}" if status else ""
        return _not_running(context, f"the agent does not run{last}")
    if status is None or status.pid != pid:
        process = f"process {pid}" if pid else "an unknown process"
        return warn(
            f"{process} uses the state directory and writes no status",
            "wait some seconds; if it persists, restart the agent",
        ).with_facts(daemon_pid=pid)
    contact_age_s = age_s(status.last_contact_at) if status.last_contact_at else None
    return ok(
        f"process {status.pid}, started {ago(status.started_at)}, {status.activity}"
    ).with_facts(daemon_pid=pid, daemon=status, contact_age_s=contact_age_s)


def _check_public_facts(context: Context) -> Outcome:
    """Return an outcome from facts that every user can see.

    Used if this user is not permitted to read the daemon's status.
    """
    status = combine_status(context.unit, other_agents(None))
    if status.is_running is False:
        return _not_running(context, describe(status))
    detail = f"{describe(status)}; its state is not visible to you"
    return Outcome("unseen", detail).with_facts(daemon_pid=next(iter(status.pids), None))


def _not_running(context: Context, detail: str) -> Outcome:
    is_installed = context.unit is not None and context.unit.is_installed
    return fail(
        detail,
        how_to_start(is_installed=is_installed, is_system_agent=context.is_system_agent),
        explained_by=("configuration", "api-key", "disk-space", "boot"),
    )


def _if_running(check: Callable[[Context, DaemonStatus], Outcome]) -> Callable[[Context], Outcome]:
    """Decorate a check of the daemon's status so that it is skipped if no daemon runs."""

    @functools.wraps(check)
    def checked(context: Context) -> Outcome:
        status = context.daemon
        return check(context, status) if status else skipped("the agent does not run")

    return checked


@_if_running
def version(_: Context, status: DaemonStatus) -> Outcome:
    """Check which version runs, and whether the last upgrade has succeeded."""
    if (upgrade := read_upgrade()) is not None and upgrade.advice:
        return warn(upgrade.describe(), upgrade.advice)
    if status.version != __version__:
        return warn(
            f"the agent runs version {status.version}, but version {__version__} is installed",
            "restart it: `venue-agent service stop`, then `start`",
        )
    return ok(__version__)


def boot(context: Context) -> Outcome:
    """Check that the agent starts with the machine."""
    unit = (context.unit_reader or read_unit)()
    return _check_unit(unit).with_facts(unit=unit)


def _check_unit(unit: UnitFacts | None) -> Outcome:
    if unit is None:
        return skipped("no supported service manager answers")
    if not unit.is_installed:
        return warn(
            f"{unit.manager} has no service for the agent: it does not start with the machine",
            f"install it: {with_sudo('venue-agent service install')}",
            may_cause=True,
        )
    if unit.is_masked:
        return fail(
            f"the service is masked: {unit.manager} will never start it",
            f"{with_sudo('systemctl unmask venue-agent')}, then"
            f" {with_sudo('venue-agent service install')}",
        )
    if not unit.starts_at_boot:
        return fail(
            "the service is disabled: it does not start with the machine",
            f"run {with_sudo('venue-agent service install')}: it enables an installed service",
        )
    restarts = f", restarted {times(unit.restarts)}" if unit.restarts else ""
    return ok(f"{unit.manager} starts it with the machine{restarts}")


def other_agent(context: Context) -> Outcome:
    """Check for a second agent, or for an agent that the service manager did not start."""
    holder, unit = context.daemon_pid, context.unit
    other_pids = other_agents(holder)
    if other_pids is None:
        return skipped("processes cannot be listed here")
    if other_pids:
        return fail(
            f"another agent runs on this machine: {describe_processes(other_pids)}",
            "end it: two agents with one API key interfere with each other",
        )
    if holder and unit and unit.is_running and unit.pid not in {None, holder}:
        return warn(
            f"process {holder} was not started by {unit.manager}",
            "end it and let the service manager start the agent",
        )
    return ok("none")


@_if_running
def conditions(_: Context, status: DaemonStatus) -> Outcome:
    """Return the problems that the daemon reports and that no other check covers."""
    other_problems = [
        problem for problem in status.problems if problem.code not in COVERED_CONDITIONS
    ]
    if not other_problems:
        return ok("none")
    return warn("; ".join(f"{p.title}: {p.detail}" for p in other_problems), other_problems[0].fix)


@_if_running
def interruptions(context: Context, _: DaemonStatus) -> Outcome:
    """Warn if an interruption is open. Otherwise, return ok with the last interruption, if any."""
    now = datetime.now(UTC)
    state = context.state
    if state is None:
        return skipped("the state directory is unknown")
    try:
        history = read_record(state, now - RECORD_PERIOD, now)
    except StateError as error:
        return skipped(str(error))  # the check `journal` reports it
    if is_empty(history, now):
        return skipped("nothing is recorded yet, or the recorder is off")
    sentence = connection_sentence(history, now)
    if open_interruption(history.incidents) is None:
        return ok(sentence)
    return warn(
        sentence,
        "see `venue-agent timeline` for earlier interruptions with this cause",
        explained_by=CONNECTION_CHECKS,
    )


@_if_running
def outbox(_: Context, status: DaemonStatus) -> Outcome:
    if not status.outbox_reports:
        return ok("no report is waiting")
    reports = counted(status.outbox_reports, "waiting report")
    text = f"{reports}, {status.outbox_bytes // 1024} KiB"
    oldest = status.outbox_oldest_at
    if oldest and (age_s(oldest) or 0) > NO_REPLY_S:
        return warn(
            f"{text}, the oldest from {ago(oldest)}",
            "the agent sends them once the service is reachable",
            explained_by=("connection", "proxy", "certificate", "service", "credential", "binding"),
        )
    return ok(text)


@_if_running
def commands(context: Context, status: DaemonStatus) -> Outcome:
    """Check that the daemon requests commands and gets replies."""
    if status.delivery is None:
        return warn(
            "the agent has not requested commands yet",
            "wait a minute; if it persists, see `venue-agent status` and the log",
        )
    if context.contact_age_s is None or context.contact_age_s > NO_REPLY_S:
        return warn(
            f"by {status.delivery}, but the last reply was {ago(status.last_contact_at)}",
            "if doctor reaches the service, restart the agent",
        )
    received_count = status.counters.get("commands_received", 0)
    last = ago(status.last_contact_at)
    received = f"{received_count} received since the agent started"
    return ok(f"by {status.delivery}, last reply {last}, {received}")
