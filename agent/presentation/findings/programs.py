"""The rules on what runs on the machine: watched programs, services, print queues, the agent."""

from collections.abc import Container, Iterator
from typing import Final

from agent.presentation.findings.rule import Rule, Sighting
from agent.presentation.findings.snapshot_facts import SnapshotFacts
from agent.presentation.humanize import bytes_in_words, percent, seconds_in_words

RESTARTS, RESTARTS_A_DAY = 5, 2
MEMORY_SHARE: Final = 0.5
REPORTS_WAITING: Final = 5

_DAY_S: Final = 86400
_SERVICES: Final = {
    "printSpooler": "print spooler",
    "timeSync": "time synchronisation",
    "bluetooth": "Bluetooth service",
}
_STOPPED: Final = frozenset({"inactive", "failed", "stopped"})
_SWITCHED_OFF: Final = frozenset({"disabled", "masked"})
_CONNECTING: Final = "connecting-to-device"
"""Is so for a moment at each job, too."""
_ATTENTION: Final = {
    # IPP: RFC 8011, section 5.4.12, and PWG 5100.9
    "media-empty": "out of paper", "media-needed": "waits for paper", "media-jam": "paper jam",
    "cover-open": "cover open", "door-open": "door open", "interlock-open": "cover or door open",
    "input-tray-missing": "paper tray missing", "output-tray-missing": "output tray missing",
    "output-area-full": "output tray full", "toner-empty": "out of toner",
    "marker-supply-empty": "out of ink or toner", "marker-waste-full": "waste container full",
    "developer-empty": "out of developer", "opc-life-over": "drum used up",
    "fuser-over-temp": "too hot", "spool-area-full": "memory full", "timed-out": "timed out",
    "offline": "offline", _CONNECTING: "cannot be connected to",
    # Windows: Win32_Printer.DetectedErrorState, in the collector's words
    "no-paper": "out of paper", "no-toner": "out of toner", "jammed": "paper jam",
    "service-requested": "asks for service", "output-bin-full": "output tray full",
}  # fmt: skip
"""What keeps a printer from printing until somebody goes there."""


def _missing(facts: SnapshotFacts) -> Iterator[Sighting]:
    for name in facts.machine.names("process", "running"):
        if facts.machine.flag(f"process.{name}.running") is False:
            yield {"program": name}


def _programs_restarting(facts: SnapshotFacts) -> Iterator[Sighting]:
    for name in facts.machine.names("process", "restartsSinceBoot"):
        restarts = facts.machine.number(f"process.{name}.restartsSinceBoot")
        if restarts is not None and _is_often(facts, restarts):
            yield {"program": name, "times": f"{restarts:.0f}"}


def _services_restarting(facts: SnapshotFacts) -> Iterator[Sighting]:
    for role in facts.machine.names("service", "restarts"):
        restarts = facts.machine.number(f"service.{role}.restarts")
        if restarts is not None and _is_often(facts, restarts):
            yield {"service": _service(facts, role), "times": f"{restarts:.0f}"}


def _is_often(facts: SnapshotFacts, restarts: float) -> bool:
    uptime = facts.machine.number("os.uptimeSeconds") or 0
    return restarts >= RESTARTS and restarts >= RESTARTS_A_DAY * uptime / _DAY_S


def _grown(facts: SnapshotFacts) -> Iterator[Sighting]:
    total = facts.machine.number("memory.totalBytes")
    for name in facts.machine.names("process", "memoryBytes"):
        used = facts.machine.number(f"process.{name}.memoryBytes")
        if total and used is not None and used >= MEMORY_SHARE * total:
            words = f"{bytes_in_words(used)} of {bytes_in_words(total)}"
            yield {"program": name, "memory": words}


def _spooler_stopped(facts: SnapshotFacts) -> Iterator[Sighting]:
    # One that is started on demand rests until it is asked, and then it answers.
    if not facts.machine.is_known("printqueue.queues") and _is_down(facts, "printSpooler"):
        yield {"service": _service(facts, "printSpooler")}


def _services_failed(facts: SnapshotFacts) -> Iterator[Sighting]:
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
    words = _SERVICES.get(role, role)
    return f"{words} ({name})" if name else words


def _stuck(facts: SnapshotFacts) -> Iterator[Sighting]:
    waiting = facts.machine.number("printqueue.waitingJobs") or 0
    oldest = facts.machine.number("printqueue.oldestJobSeconds")
    for queue in facts.machine.names("printqueue", "stuckJobs"):
        stuck = _stuck_jobs(facts, queue)
        if stuck <= 0:
            continue
        # The age is known of the oldest job of all queues only.
        is_oldest = oldest is not None and waiting == stuck
        age = f", the oldest for {seconds_in_words(oldest or 0, units=1)}" if is_oldest else ""
        complaints = _complaints(facts, queue, ())
        says = f"; the printer: {complaints}" if complaints else ""
        jobs = "1 job waits" if stuck == 1 else f"{stuck:.0f} jobs wait"
        yield {"queue": queue, "jobs": jobs + age + says}


def _queues_stopped(facts: SnapshotFacts) -> Iterator[Sighting]:
    for queue in facts.machine.names("printqueue", "state"):
        state = facts.machine.text(f"printqueue.{queue}.state")
        if state in {"stopped", "offline"} and not _stuck_jobs(facts, queue):
            yield {"queue": queue, "state": state}


def _queues_refusing(facts: SnapshotFacts) -> Iterator[Sighting]:
    for queue in facts.machine.names("printqueue", "accepting"):
        if facts.machine.flag(f"printqueue.{queue}.accepting") is False:
            yield {"queue": queue}


def _complaining(facts: SnapshotFacts) -> Iterator[Sighting]:
    for queue in facts.machine.names("printqueue", "reasons"):
        complaints = _complaints(facts, queue, {_CONNECTING})
        if complaints and not _stuck_jobs(facts, queue):
            yield {"queue": queue, "complaints": complaints}


def _stuck_jobs(facts: SnapshotFacts, queue: str) -> float:
    """Return how many jobs are stuck; of a queue that has some, all is said in one sentence."""
    return max(0, facts.machine.number(f"printqueue.{queue}.stuckJobs") or 0)


def _complaints(facts: SnapshotFacts, queue: str, unless: Container[str]) -> str:
    told = facts.machine.texts(f"printqueue.{queue}.reasons")
    bare = (reason.removesuffix("-error").removesuffix("-warning") for reason in told)
    known = (reason for reason in bare if reason in _ATTENTION and reason not in unless)
    return ", ".join(dict.fromkeys(map(_ATTENTION.__getitem__, known)))


def _reports_waiting(facts: SnapshotFacts) -> Iterator[Sighting]:
    waiting = facts.machine.number("agent.outboxReports")
    if waiting is not None and waiting >= REPORTS_WAITING:
        yield {"count": f"{waiting:.0f}"}


def _agent_died(facts: SnapshotFacts) -> Iterator[Sighting]:
    how = facts.machine.text("agent.lastExit")
    if how and how != "stopped cleanly":
        yield {"how": how}


PROGRAM_RULES: Final[tuple[Rule[SnapshotFacts], ...]] = (
    Rule(
        "program-missing",
        "problem",
        "process.<name>.running",
        "false, of a program in `watch_processes`",
        "The program {program} is not running.",
        "start it; if it ends again, look into its own log",
        _missing,
    ),
    Rule(
        "spooler-stopped",
        "problem",
        "service.printSpooler.state, service.printSpooler.startType, printqueue.queues",
        "stopped or failed, not switched off on purpose, and it answers nothing",
        "The {service} is not running: nothing can be printed.",
        "start it (`systemctl start cups`, or services.msc: Print Spooler)",
        _spooler_stopped,
    ),
    Rule(
        "print-queue-stuck",
        "problem",
        "printqueue.<queue>.stuckJobs",
        "at least one job that stopped, waits at a stopped queue, or for more than ten minutes",
        "The print queue {queue} is stuck: {jobs}.",
        "see that its printer is on, has paper and is reached; then resume the queue or delete"
        " the job",
        _stuck,
    ),
    Rule(
        "printer-needs-attention",
        "problem",
        "printqueue.<queue>.reasons",
        "out of paper or toner, jammed, open, offline, and the like; no job stuck yet",
        "The printer of the queue {queue} needs attention: {complaints}.",
        "go to the printer: its panel says what it needs",
        _complaining,
    ),
    Rule(
        "program-restarting",
        "warning",
        "process.<name>.restartsSinceBoot, os.uptimeSeconds",
        f"at least {RESTARTS} restarts, and {RESTARTS_A_DAY} a day",
        "The program {program} keeps restarting: {times} times since the machine started.",
        "look into its own log for why it ends",
        _programs_restarting,
    ),
    Rule(
        "service-restarting",
        "warning",
        "service.<role>.restarts, os.uptimeSeconds",
        f"at least {RESTARTS} restarts, and {RESTARTS_A_DAY} a day",
        "The {service} keeps restarting: {times} times since the machine started.",
        "look into its log (`journalctl -u NAME`) for why it ends",
        _services_restarting,
    ),
    Rule(
        "service-failed",
        "warning",
        "service.<role>.state",
        "failed, of another service than the print spooler",
        "The {service} has failed.",
        "look into its log (`journalctl -u NAME`), then start it again",
        _services_failed,
    ),
    Rule(
        "program-grown",
        "warning",
        "process.<name>.memoryBytes, memory.totalBytes",
        f"at least {percent(MEMORY_SHARE)} of the memory",
        "The program {program} uses {memory} of memory.",
        "restart it when the venue is closed; if it grows again, tell its maker",
        _grown,
    ),
    Rule(
        "print-queue-stopped",
        "warning",
        "printqueue.<queue>.state",
        "stopped or offline, with no job stuck yet",
        "The print queue {queue} is {state}.",
        "see that its printer is on and is reached, then resume the queue",
        _queues_stopped,
    ),
    Rule(
        "print-queue-refusing",
        "warning",
        "printqueue.<queue>.accepting",
        "false",
        "The print queue {queue} takes no new jobs.",
        "let it accept jobs again (`cupsaccept QUEUE`)",
        _queues_refusing,
    ),
    Rule(
        "reports-waiting",
        "warning",
        "agent.outboxReports",
        f"at least {REPORTS_WAITING}",
        "{count} reports of the agent wait to be sent.",
        "run `venue-agent status`: it says what keeps them",
        _reports_waiting,
    ),
    Rule(
        "agent-died",
        "note",
        "agent.lastExit",
        "anything but a clean stop",
        "The last run of the agent did not end well: {how}.",
        "run `venue-agent doctor`; if it happens again, send its bundle to support",
        _agent_died,
    ),
)
