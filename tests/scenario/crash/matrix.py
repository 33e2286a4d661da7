"""Kills the agent at a failpoint, starts it again, and returns how the request ended."""

import asyncio
import contextlib
import json
import signal
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from agent.adapters.failpoints import Failpoint
from agent.adapters.storage.history import read_history
from agent.adapters.storage.state import StateDirectory
from agent.rules.lifecycle import FINAL
from tests.fakes.http_server import Reply
from tests.fakes.strict_service import Json, StrictService
from tests.scenario.agent_process import AgentProcess, environment, write_config
from tests.scenario.crash.crashing_agent import NEVER
from tests.scenario.forked_process import start_forked

MAX_COLLECTIONS = 2
WITHIN_S = 240.0


@dataclass(frozen=True, slots=True)
class Scene:
    """A behaviour of the service, and the failpoints at which the agent is killed during it.

    Args:
        occurrences: How often the agent passes each of these failpoints.
        outcomes: The permitted outcomes of the report. If empty, the service must store no report.
        state: The final state of the request in the journal.
    """

    name: str
    occurrences: Mapping[Failpoint, int]
    prepare: Callable[[StrictService], None] = lambda service: None
    outcomes: frozenset[str] = frozenset({"completed"})
    state: str = "submitted"
    kinds: tuple[str, ...] = ("network", "application")


@dataclass(frozen=True, slots=True)
class Case:
    """A scene, a kind of report, and the failpoint at which the agent dies.

    ``plan`` is ``failpoint:before|after:n`` (tests.scenario.crash.crashing_agent).
    """

    scene: Scene
    kind: str
    plan: str

    def __str__(self) -> str:
        return f"{self.scene.name}-{self.kind}-{self.plan}"


@dataclass(slots=True)
class Ending:
    """What the service received, and the state of the request once it had ended.

    Args:
        bodies: The bodies of all calls that submitted a report.
        acknowledged: The statuses of all acknowledgements.
        trace: How often the agents reached each side (``before`` or ``after``) of each failpoint.
        has_died: Whether the first agent was killed at its failpoint.
    """

    violations: list[str]
    reports: list[Json]
    bodies: list[bytes]
    acknowledged: list[str]
    trace: Counter[str] = field(default_factory=Counter)
    has_died: bool = False
    state: str = ""


def _too_large_once(service: StrictService) -> None:
    service.once("submitResult", Reply(413))


def _rejected_once(service: StrictService) -> None:
    service.once("submitResult", Reply(400, json.dumps({"detail": "no"}).encode()))


def _always_refused(service: StrictService) -> None:
    service.overrides["submitResult"] = lambda: Reply(409)


PLAIN = Scene(
    "plain",
    {
        Failpoint.IDENTITY_WRITTEN: 1,
        Failpoint.DEVICE_RECORD_WRITTEN: 2,
        Failpoint.JOURNAL_PRUNED: 1,
        Failpoint.CHALLENGE_CALLED: 1,
        Failpoint.ENROLL_CALLED: 1,
        Failpoint.HEARTBEAT_CALLED: 1,
        Failpoint.COMMANDS_OPENED: 1,
        Failpoint.REQUEST_ADDED: 1,
        Failpoint.ACKNOWLEDGE_CALLED: 2,
        Failpoint.REQUEST_MOVED: 2,
        Failpoint.RUNNING_NOTED: 1,
        Failpoint.CHILD_STARTED: 1,
        Failpoint.CHILD_PROGRESS: 2,
        Failpoint.CHILD_CHECKPOINT: 1,
        Failpoint.CHILD_RESULT: 1,
        Failpoint.CHILD_ENDED: 1,
        Failpoint.REPORT_HANDED_OVER: 1,
        Failpoint.SUBMIT_CALLED: 1,
        Failpoint.REPORT_SETTLED: 1,
        Failpoint.REPORT_KEPT: 1,
        Failpoint.RECORD_WRITTEN: 1,
    },
)
TOO_LARGE = Scene(
    "too-large",
    {Failpoint.REPORT_RESEALED: 1, Failpoint.REPORT_SETTLED: 1},
    _too_large_once,
    # The agent can make this small report smaller only by leaving out its payload ("failed").
    frozenset({"failed", "completed"}),
)
REJECTED = Scene(
    "rejected",
    {Failpoint.REPORT_RESEALED: 1, Failpoint.REPORT_SETTLED: 1},
    _rejected_once,
    frozenset({"failed", "completed"}),
)
REFUSED = Scene(
    "refused",
    {Failpoint.CURRENT_CALLED: 1, Failpoint.REPORT_GIVEN_UP: 1, Failpoint.COUNTED: 1},
    _always_refused,
    frozenset(),
    "rejected",
)
# The agent remembers (learns) the printers of its network report.
LEARNED = Scene("learned", {Failpoint.PRINTERS_WRITTEN: 1}, kinds=("network",))
SCENES = (PLAIN, TOO_LARGE, REJECTED, REFUSED, LEARNED)

NOT_IN_A_REQUEST = {
    Failpoint.ROW_SET_ASIDE: "needs a damaged row; its request is set aside and cannot end",
    Failpoint.CREATION_TIMES_SHIFTED: "needs a change of the clock, and does not affect a request",
    Failpoint.SENT_DROPPED: "needs reports that are weeks old, and does not affect a request",
    Failpoint.CHILD_CRASH: "is a crash of the child and not of the agent; unit tests cover it",
}
"""Failpoints that have no case, each with the reason."""


def cases() -> list[Case]:
    """Return the cases: one for each scene, kind of report, pass of a failpoint, and side."""
    return [
        Case(scene, kind, f"{failpoint}:{side}:{number}")
        for scene in SCENES
        for failpoint, times in scene.occurrences.items()
        for side in ("before", "after")
        for number in range(1, times + 1)
        for kind in scene.kinds
    ]


async def play(case: Case, home: Path) -> Ending:
    """Run an agent that dies as planned. Then run an agent that does not die.

    The second agent runs until the request has ended.
    """
    async with StrictService() as service:
        case.scene.prepare(service)
        config = write_config(home, service.base_url, heartbeat="")
        request_id = await service.request_report(case.kind)
        async with crashing_agent(case.plan, config, home / "first") as agent:
            code = await asyncio.wait_for(agent.process.wait(), WITHIN_S)
        has_died = code == -signal.SIGKILL
        async with crashing_agent(NEVER, config, home / "second") as agent:
            state = await until_ended(agent, home, request_id)
            await _until_passed(agent, home / "second", Failpoint.COMMANDS_OPENED)
            assert await agent.stop() == 0, agent.log
        return Ending(
            violations=service.violations,
            reports=service.reports,
            bodies=service.bodies,
            acknowledged=[status for _, status in service.acknowledged],
            trace=_trace(home / "first") + _trace(home / "second"),
            has_died=has_died,
            state=state,
        )


@contextlib.asynccontextmanager
async def crashing_agent(plan: str, config: Path, trace: Path) -> AsyncIterator[AgentProcess]:
    """Run an agent that dies as planned, and that adds a line to ``trace`` at each failpoint."""
    log = config.parent / "agent.log"
    process = start_forked(
        "tests.scenario.crash.crashing_agent", plan, str(trace), str(config),
        environment=environment(), output=log,
    )  # fmt: skip
    try:
        yield AgentProcess(process, config.parent, log)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def until_ended(agent: AgentProcess, home: Path, request_id: str) -> str:
    """Wait until the request has ended; return its state in the journal."""
    async with asyncio.timeout(WITHIN_S):
        while (state := _state_of(home, request_id)) not in FINAL:
            assert agent.process.returncode is None, agent.log
            await asyncio.sleep(0.02)
    return str(state)


async def _until_passed(agent: AgentProcess, trace: Path, failpoint: Failpoint) -> None:
    """Wait until the agent has passed ``failpoint``, as its ``trace`` shows."""
    async with asyncio.timeout(WITHIN_S):
        while not trace.exists() or f"{failpoint}:after" not in _trace(trace):
            assert agent.process.returncode is None, agent.log
            await asyncio.sleep(0.02)


def _state_of(home: Path, request_id: str) -> str | None:
    rows = read_history(StateDirectory(home / "state"))
    return next((row.state for row in rows if row.request_id == request_id), None)


def _trace(path: Path) -> Counter[str]:
    return Counter(path.read_text().split())
