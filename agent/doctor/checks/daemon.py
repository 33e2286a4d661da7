"""Checks of the running agent: its process, its version, its unit, its conditions."""

from typing import Final

from agent import __version__
from agent.adapters.storage.status_file import StatusFile
from agent.adapters.storage.visibility import is_closed
from agent.config.rights import by_root, how_to_start
from agent.doctor.check import Finding, fail, ok, skipped, warn
from agent.doctor.context import Context
from agent.doctor.processes import other_agents
from agent.doctor.public_status import in_words, judge_public_status
from agent.doctor.service_unit import UnitFacts, read_unit
from agent.presentation.humanize import age_s, ago

SILENT_S: Final = 300.0
"""A running agent has had an answer of the service within this time."""

OWN_CHECKS: Final = frozenset(
    {
        "name-resolution", "connection-refused", "connection-lost", "timeout", "tls", "proxy",
        "redirect", "captive-portal", "server-error", "bad-reply", "throttled",
        "credential-refused", "not-enrolled", "revoked", "clock-skew",
        "state-failing", "reports-waiting",
    }
)  # fmt: skip
"""Conditions of the daemon (rules.health) that doctor looks at with its own eyes."""


def daemon(context: Context) -> Finding:
    state = context.state
    if state is None:
        return skipped("the state directory is not known")
    if context.is_hidden or is_closed(state.path):
        return _from_outside(context)
    context.daemon_pid = state.holder()
    status = StatusFile(state).read()
    if context.daemon_pid is None:
        seen = f"; it was last seen {ago(status.written_at)}" if status else ""
        return fail(
            f"the agent does not run{seen}",
            _how_to_start(context),
            explained_by=("configuration", "api-key", "disk-space", "boot"),
        )
    if status is None or status.pid != context.daemon_pid:
        return warn(
            f"process {context.daemon_pid} holds the state directory and says nothing of itself",
            "wait some seconds; if it persists, restart the agent",
        )
    context.daemon = status
    if status.last_contact_at:
        context.contact_age_s = age_s(status.last_contact_at)
    return ok(f"process {status.pid}, started {ago(status.started_at)}, {status.activity}")


def _from_outside(context: Context) -> Finding:
    """Tell what the system tells everybody; what the daemon says of itself is closed."""
    status = judge_public_status(context.unit, other_agents(None))
    if status.is_running is False:
        return fail(
            f"the agent does not run, {status.by} says",
            _how_to_start(context),
            explained_by=("configuration", "api-key", "disk-space", "boot"),
        )
    context.daemon_pid = status.pids[0] if status.pids else None
    return Finding("unseen", f"{in_words(status)}; what it does is not visible to you")


def _how_to_start(context: Context) -> str:
    return how_to_start(
        is_installed=context.unit is not None and context.unit.is_installed,
        is_of_the_machine=context.is_of_the_machine,
    )


def version(context: Context) -> Finding:
    status = context.daemon
    if status is None:
        return skipped("the agent does not run")
    if status.version != __version__:
        return warn(
            f"the agent runs version {status.version}, installed is {__version__}",
            "restart it: `venue-agent service stop`, then `start`",
        )
    return ok(__version__)


def boot(context: Context) -> Finding:
    """Will the agent come back after a restart of the machine?"""
    unit = (context.unit_reader or read_unit)()
    context.unit = unit
    if unit is None:
        return skipped("no service manager can be asked here")
    if not unit.is_installed:
        return warn(
            f"{unit.manager} knows no service of the agent: it does not start with the machine",
            f"install it: {by_root('venue-agent service install')}",
            may_cause=True,
        )
    if unit.is_masked:
        return fail(
            f"the service is masked: {unit.manager} will never start it",
            f"{by_root('systemctl unmask venue-agent')}, then"
            f" {by_root('venue-agent service install')}",
        )
    if not unit.is_enabled:
        return fail(
            "the service is disabled: it does not start with the machine",
            f"enable it: {by_root('venue-agent service install')} (it enables what is installed)",
        )
    restarts = f", restarted {unit.restarts} times" if unit.restarts else ""
    return ok(f"{unit.manager} starts it with the machine{restarts}")


def other_agent(context: Context) -> Finding:
    """Is there a second agent, or one that the service manager did not start?"""
    holder, unit = context.daemon_pid, context.unit
    others = other_agents(holder)
    if others is None:
        return skipped("processes cannot be listed here")
    if others:
        numbers = ", ".join(str(pid) for pid in others)
        return fail(
            f"another agent runs on this machine: process {numbers}",
            "end it: two agents with one API key push each other out",
        )
    if holder and _is_foreign(unit, holder):
        return warn(
            f"process {holder} was not started by {unit.manager if unit else 'the manager'}",
            "end it and let the service manager start the agent",
        )
    return ok("none")


def conditions(context: Context) -> Finding:
    """What the daemon itself complains of, and no other check here looks at."""
    status = context.daemon
    if status is None:
        return skipped("the agent does not run")
    rest = [problem for problem in status.problems if problem.code not in OWN_CHECKS]
    if not rest:
        return ok("none")
    return warn("; ".join(f"{p.title}: {p.detail}" for p in rest), rest[0].fix)


def outbox(context: Context) -> Finding:
    status = context.daemon
    if status is None:
        return skipped("the agent does not run")
    if not status.outbox_reports:
        return ok("no report waits")
    text = f"{status.outbox_reports} reports, {status.outbox_bytes // 1024} KiB wait"
    oldest = status.outbox_oldest_at
    if oldest and (age_s(oldest) or 0) > SILENT_S:
        return warn(
            f"{text}, the oldest from {ago(oldest)}",
            "nothing to do once the service is reachable",
            explained_by=("connection", "proxy", "certificate", "service", "credential", "binding"),
        )
    return ok(text)


def commands(context: Context) -> Finding:
    """Does the daemon ask for commands, and when did it last hear from the service?"""
    status = context.daemon
    if status is None:
        return skipped("the agent does not run")
    if status.delivery is None:
        return warn(
            "the agent does not ask for commands yet",
            "wait a minute; if it persists, see `venue-agent status` and the log",
        )
    if context.contact_age_s is None or context.contact_age_s > SILENT_S:
        return warn(
            f"by {status.delivery}, but the last answer came {ago(status.last_contact_at)}",
            "restart the agent if the service answers doctor",
        )
    received = status.counters.get("commands_received", 0)
    heard = ago(status.last_contact_at)
    return ok(f"by {status.delivery}, last answer {heard}, {received} since the start")


def _is_foreign(unit: UnitFacts | None, holder: int) -> bool:
    return unit is not None and unit.is_running and unit.pid is not None and unit.pid != holder
