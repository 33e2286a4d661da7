"""Rules for watched programs, services, print queues and the agent."""

from collections.abc import Container, Iterator
from typing import Final

from agent.presentation.findings.conditions import at_least
from agent.presentation.findings.rule import NoteRule, ProblemRule, Rule, Values, WarningRule
from agent.presentation.findings.snapshot_facts import SnapshotFacts
from agent.presentation.humanize import format_bytes, format_seconds, percent

RESTARTS, RESTARTS_A_DAY = 5, 2
"""Minimum numbers of restarts for a finding: since the machine started, and per day on average.
Both numbers must be reached."""
MEMORY_SHARE: Final = 0.5
"""Minimum share of the memory that one program uses, for a finding."""
REPORTS_WAITING: Final = 5
"""Minimum number of unsent reports for a finding."""

_DAY_S: Final = 86400
_SERVICES: Final = {
    "printSpooler": "print spooler",
    "timeSync": "time synchronisation",
    "bluetooth": "Bluetooth service",
}
_STOPPED: Final = frozenset({"inactive", "failed", "stopped"})
_SWITCHED_OFF: Final = frozenset({"disabled", "masked"})
_CONNECTING: Final = "connecting-to-device"
"""A queue that works reports this reason too, for a short time with each job. So the reason counts
only for a stuck queue."""
_ATTENTION: Final = {
    # IPP: RFC 8011, section 5.4.12, and PWG 5100.9
    "media-empty": "out of paper", "media-needed": "needs paper", "media-jam": "paper jam",
    "cover-open": "cover open", "door-open": "door open", "interlock-open": "cover or door open",
    "input-tray-missing": "paper tray missing", "output-tray-missing": "output tray missing",
    "output-area-full": "output tray full", "toner-empty": "out of toner",
    "marker-supply-empty": "out of ink or toner", "marker-waste-full": "waste container full",
    "developer-empty": "out of developer", "opc-life-over": "drum used up",
    "fuser-over-temp": "too hot", "spool-area-full": "memory full", "timed-out": "timed out",
    "offline": "offline", "other-error": "another problem, see its display",
    # CUPS itself (cups/backend.h, scheduler/printers.c)
    "offline-report": "offline", "cups-missing-filter": "a part of its driver is missing",
    "cups-insecure-filter": "a part of its driver has unsafe permissions",
    _CONNECTING: "no connection",
    # Windows: Win32_Printer.DetectedErrorState, as named by the collector
    "no-paper": "out of paper", "no-toner": "out of toner", "jammed": "paper jam",
    "service-requested": "needs service", "output-bin-full": "output tray full",
}  # fmt: skip
"""Reasons for which a user has to act, with their texts for users."""


def _missing(facts: SnapshotFacts) -> Iterator[Values]:
    for name in facts.machine.names("process", "running"):
        if facts.machine.flag(f"process.{name}.running") is False:
            yield {"program": name}


def _programs_restarting(facts: SnapshotFacts) -> Iterator[Values]:
    for name, times in _frequent_restarts(facts, "process", "restartsSinceBoot"):
        yield {"program": name, "times": times}


def _services_restarting(facts: SnapshotFacts) -> Iterator[Values]:
    for role, times in _frequent_restarts(facts, "service", "restarts"):
        yield {"service": _service(facts, role), "times": times}


def _frequent_restarts(facts: SnapshotFacts, group: str, aspect: str) -> Iterator[tuple[str, str]]:
    """Yield the programs or services that restart too often, with the number of their restarts."""
    uptime = facts.machine.number("os.uptimeSeconds") or 0
    for name in facts.machine.names(group, aspect):
        restarts = facts.machine.number(f"{group}.{name}.{aspect}") or 0
        if restarts >= RESTARTS and restarts >= RESTARTS_A_DAY * uptime / _DAY_S:
            yield name, f"{restarts:.0f}"


def _grown(facts: SnapshotFacts) -> Iterator[Values]:
    total = facts.machine.number("memory.totalBytes")
    for name in facts.machine.names("process", "memoryBytes"):
        memory_bytes = facts.machine.number(f"process.{name}.memoryBytes")
        if total and memory_bytes is not None and memory_bytes >= MEMORY_SHARE * total:
            memory = f"{format_bytes(memory_bytes)} of {format_bytes(total)}"
            yield {"program": name, "memory": memory}


def _spooler_stopped(facts: SnapshotFacts) -> Iterator[Values]:
    # A spooler that is started on demand is inactive until it is used. If the queues could be read,
    # it works.
    if not facts.machine.is_known("printqueue.queues") and _is_down(facts, "printSpooler"):
        yield {"service": _service(facts, "printSpooler")}


def _services_failed(facts: SnapshotFacts) -> Iterator[Values]:
    for role in facts.machine.names("service", "state"):
        if role != "printSpooler" and _state(facts, role) == "failed":
            yield {"service": _service(facts, role)}


def _is_down(facts: SnapshotFacts, role: str) -> bool:
    is_off = facts.machine.text(f"service.{role}.startType") in _SWITCHED_OFF
    state = _state(facts, role)
    return state == "failed" or (state in _STOPPED and not is_off)


def _state(facts: SnapshotFacts, role: str) -> str:
    return facts.machine.text(f"service.{role}.state").partition(" ")[0]


def _service(facts: SnapshotFacts, role: str) -> str:
    name = facts.machine.text(f"service.{role}.name")
    label = _SERVICES.get(role, role)
    return f"{label} ({name})" if name else label


def _stuck(facts: SnapshotFacts) -> Iterator[Values]:
    waiting = facts.machine.number("printqueue.waitingJobs") or 0
    oldest = facts.machine.number("printqueue.oldestJobSeconds")
    for queue in facts.machine.names("printqueue", "stuckJobs"):
        stuck = _stuck_jobs(facts, queue)
        if stuck <= 0:
            continue
        # Only the age of the oldest job of all queues is known. This job is in this queue if no
        # other queue has waiting jobs.
        is_oldest = oldest is not None and waiting == stuck
        age = f", the oldest for {format_seconds(oldest or 0, units=1)}" if is_oldest else ""
        complaints = _complaints(facts, queue, ())
        complaint_text = f"; the printer reports: {complaints}" if complaints else ""
        jobs = "1 job waits" if stuck == 1 else f"{stuck:.0f} jobs wait"
        yield {"queue": queue, "jobs": jobs + age + complaint_text}


def _queues_stopped(facts: SnapshotFacts) -> Iterator[Values]:
    for queue in facts.machine.names("printqueue", "state"):
        state = facts.machine.text(f"printqueue.{queue}.state")
        if state in {"stopped", "offline"} and not _stuck_jobs(facts, queue):
            yield {"queue": queue, "state": state}


def _queues_refusing(facts: SnapshotFacts) -> Iterator[Values]:
    for queue in facts.machine.names("printqueue", "accepting"):
        if facts.machine.flag(f"printqueue.{queue}.accepting") is False:
            yield {"queue": queue}


def _complaining(facts: SnapshotFacts) -> Iterator[Values]:
    for queue in facts.machine.names("printqueue", "reasons"):
        complaints = _complaints(facts, queue, {_CONNECTING})
        if complaints and not _stuck_jobs(facts, queue):
            yield {"queue": queue, "complaints": complaints}


def _stuck_jobs(facts: SnapshotFacts, queue: str) -> float:
    """Return the number of stuck jobs.

    The rules `print-queue-stopped` and `print-queue-needs-attention` skip a queue with stuck jobs,
    because `print-queue-stuck` reports it.
    """
    return max(0, facts.machine.number(f"printqueue.{queue}.stuckJobs") or 0)


def _complaints(facts: SnapshotFacts, queue: str, ignored_reasons: Container[str]) -> str:
    reasons = facts.machine.texts(f"printqueue.{queue}.reasons")
    # A reason can end with its severity (RFC 8011, section 5.4.12).
    bare_reasons = (
        reason if reason in _ATTENTION else reason.removesuffix("-error").removesuffix("-warning")
        for reason in reasons
    )
    known_reasons = (
        reason for reason in bare_reasons if reason in _ATTENTION and reason not in ignored_reasons
    )
    return ", ".join(dict.fromkeys(map(_ATTENTION.__getitem__, known_reasons)))


def _agent_died(facts: SnapshotFacts) -> Iterator[Values]:
    how = facts.machine.text("agent.lastExit")
    if how and how != "stopped cleanly":
        yield {"how": how}


PROGRAM_RULES: Final[tuple[Rule[SnapshotFacts], ...]] = (
    ProblemRule(
        "program-missing",
        "process.<name>.running",
        "false, for a program in `watch_processes`",
        "The program {program} is not running.",
        "start it; if it stops again, check its log",
        _missing,
    ),
    ProblemRule(
        "spooler-stopped",
        "service.printSpooler.state, service.printSpooler.startType, printqueue.queues",
        "failed, or stopped and not disabled; and the queues cannot be read",
        "The {service} is not running: nothing can be printed.",
        "start it (Linux: `systemctl start cups`; macOS: `launchctl kickstart"
        " system/org.cups.cupsd`; Windows: services.msc, Print Spooler)",
        _spooler_stopped,
    ),
    ProblemRule(
        "print-queue-stuck",
        "printqueue.<queue>.stuckJobs",
        "at least one job that is stopped, is in a stopped queue, or has waited for more than ten"
        " minutes",
        "The print queue {queue} is stuck: {jobs}.",
        "check that its printer is on, reachable and has paper; then resume the queue or delete"
        " the job",
        _stuck,
    ),
    ProblemRule(
        "print-queue-needs-attention",
        "printqueue.<queue>.reasons",
        "out of paper or toner, jammed, open, offline, and the like; no job stuck yet",
        "The printer of the queue {queue} needs attention: {complaints}.",
        "go to the printer and check its display",
        _complaining,
    ),
    WarningRule(
        "program-restarting",
        "process.<name>.restartsSinceBoot, os.uptimeSeconds",
        f"at least {RESTARTS} restarts, and {RESTARTS_A_DAY} a day",
        "The program {program} keeps restarting: {times} times since the machine started.",
        "check its log for the reason",
        _programs_restarting,
    ),
    WarningRule(
        "service-restarting",
        "service.<role>.restarts, os.uptimeSeconds",
        f"at least {RESTARTS} restarts, and {RESTARTS_A_DAY} a day",
        "The {service} keeps restarting: {times} times since the machine started.",
        "check its log for the reason (`journalctl -u NAME`)",
        _services_restarting,
    ),
    WarningRule(
        "service-failed",
        "service.<role>.state",
        "failed, for any service except the print spooler",
        "The {service} has failed.",
        "check its log (`journalctl -u NAME`), then start it again",
        _services_failed,
    ),
    WarningRule(
        "program-grown",
        "process.<name>.memoryBytes, memory.totalBytes",
        f"at least {percent(MEMORY_SHARE)} of the memory",
        "The program {program} uses {memory} of memory.",
        "restart it when the venue is closed; if it grows again, contact its developer",
        _grown,
    ),
    WarningRule(
        "print-queue-stopped",
        "printqueue.<queue>.state",
        "stopped or offline, with no job stuck yet",
        "The print queue {queue} is {state}.",
        "check that its printer is on and reachable, then resume the queue",
        _queues_stopped,
    ),
    WarningRule(
        "print-queue-refusing",
        "printqueue.<queue>.accepting",
        "false",
        "The print queue {queue} does not accept jobs.",
        "enable it again (`cupsaccept QUEUE`)",
        _queues_refusing,
    ),
    WarningRule(
        "reports-waiting",
        "agent.outboxReports",
        f"at least {REPORTS_WAITING}",
        "{count} reports of the agent have not been sent.",
        "run `venue-agent status` for the reason",
        at_least("agent.outboxReports", REPORTS_WAITING, "count", lambda n: f"{n:.0f}"),
    ),
    NoteRule(
        "agent-died",
        "agent.lastExit",
        "not a clean stop",
        "The last run of the agent ended unexpectedly: {how}.",
        "run `venue-agent doctor`; if it happens again, send its bundle to support",
        _agent_died,
    ),
)
