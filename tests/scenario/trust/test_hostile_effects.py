"""A hostile service causes no other effect on the machine than a correct one.

The real daemon runs twice, with the same sequence of calls: once with correct replies, once with
`HostileReplies`. Python's audit events record what each run does.
"""

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.fakes.http_server import Connections
from tests.scenario.agent_process import AgentProcess, environment, write_config
from tests.scenario.forked_process import start_forked
from tests.scenario.trust.audited_agent import JOB
from tests.scenario.trust.hostile_replies import MARK_END, UNKNOWN_KEYS, HostileReplies, mark
from tests.unit.trust.replies import LOG, REPLIES

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}")
SOURCES = re.compile(r"\.(py|pyc|so|pth)\b|/(lib|site-packages|python\d[.\d]*)/")
"""Matches paths of program files. The comparison leaves out the events about these files."""


@dataclass
class Run:
    """What the daemon did and sent, and the content of its files.

    ``port`` is the port of the service, and ``values`` are the texts that the service chose.
    ``connections`` is the number of connections to the trap: an address in the hostile replies,
    which the agent must not connect to.
    """

    home: Path
    port: int
    events: list[tuple[str, list[str]]]
    sent: dict[str, list[str]]
    values: dict[str, str]
    files: dict[str, bytes]
    connections: int

    def effects(self) -> set[tuple[str, ...]]:
        """Return the recorded events without the parts that differ in each run."""
        return {
            (event, *(self._plain(event, value) for value in values))
            for event, values in self.events
            if not any(SOURCES.search(value) for value in values)
        }

    def _plain(self, event: str, value: str) -> str:
        text = UUID.sub("<id>", value).replace(str(self.home), "<home>")
        text = text.replace(str(self.port), "<service>")
        text = re.sub(r"(/\.[\w.]+\.)\w{8}'", r"\1<random>'", text)
        return text if event.startswith("socket.") else re.sub(r"\d+", "<n>", text)


@contextlib.asynccontextmanager
async def audited_agent(home: Path, config: Path) -> AsyncIterator[AgentProcess]:
    process = start_forked(
        "tests.scenario.trust.audited_agent", str(home / "trace"), str(config),
        environment=environment(), output=home / "agent.log",
    )  # fmt: skip
    try:
        yield AgentProcess(process, home, home / "agent.log")
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def run(home: Path, *, is_hostile: bool) -> Run:
    """Run the daemon until it has answered two requests and its binding is gone."""
    home.mkdir()
    hits = 0

    async def count(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal hits
        hits += 1

    trap = Connections(count)
    address = f"http://127.0.0.1:{await trap.listen()}"
    async with HostileReplies(is_hostile=is_hostile, trap=address) as service:
        config = write_config(home, service.base_url)
        for kind in ("network", "application"):
            await service.request_report(kind)
        async with audited_agent(home, config) as agent:
            await service.until(lambda: len(service.reports) == 2 and service.heartbeats > 1)
            service.refuses = True
            await agent.until_logged("the service has no binding of this device", 120)
            assert await agent.stop() == 0
        assert service.violations == []
        port = int(service.base_url.rpartition(":")[2])
    await trap.close()
    state = home / "state"
    files = {str(p.relative_to(state)): p.read_bytes() for p in state.rglob("*") if p.is_file()}
    files["log"] = (home / "agent.log").read_bytes()
    events = [tuple(json.loads(line)) for line in (home / "trace").read_text().splitlines()]
    return Run(home, port, events, service.sent, service.values, files, hits)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Run]:
    """Return a run with correct replies, and one with hostile replies."""
    folder = tmp_path_factory.mktemp("runs")

    async def both() -> tuple[Run, Run]:
        correct, hostile = await asyncio.gather(
            run(folder / "correct", is_hostile=False), run(folder / "hostile", is_hostile=True)
        )
        return correct, hostile

    return asyncio.run(both())


def test_a_hostile_service_causes_no_other_effect_than_a_correct_one(
    runs: tuple[Run, Run],
) -> None:
    correct, hostile = runs
    assert hostile.effects() - correct.effects() == set()
    # The comparison means nothing unless effects of these kinds were recorded.
    recorded = {event for event, *_ in hostile.effects()}
    assert recorded >= {"open", "os.rename", "subprocess.Popen", "socket.connect", JOB}
    assert [event for event, _ in hostile.events].count("subprocess.Popen") == 2


def test_no_text_of_the_service_reaches_a_program_a_path_or_a_job(runs: tuple[Run, Run]) -> None:
    _, hostile = runs
    arguments = [value for _, values in hostile.events for value in values]
    texts = {value for name, value in hostile.values.items() if name not in CONSTANTS}
    matches = {text for text in (MARK_END, *texts) for value in arguments if text in value}
    assert matches == set()


CONSTANTS = {
    "acknowledge.accepted", "acknowledge.status", "challenge.later", "enroll.instanceId",
    "enroll.somethingOfALaterVersion", "onCommands.bindingId", "onCommands.kind",
    "onCommands.status", "onCommands.version", "submitResult.outcome", "submitResult.reportId",
    "submitResult.requestId", "submitResult.trackerStatus",
}  # fmt: skip
"""Fields with a constant value, or with an id that `REPLIES` describes for another operation."""


def test_the_daemon_connects_only_to_the_configured_service(runs: tuple[Run, Run]) -> None:
    _, hostile = runs
    targets = {
        value
        for event, values in hostile.events
        for value in values
        if event in {"socket.connect", "socket.sendto", "socket.sendmsg"}
        and value.startswith("(")  # the address of a local socket is no tuple
    }
    assert targets == {f"('127.0.0.1', {hostile.port})"}
    assert hostile.connections == 0


def test_the_daemon_listens_on_no_port(runs: tuple[Run, Run]) -> None:
    for daemon_run in runs:
        addresses = {values[0] for event, values in daemon_run.events if event == "socket.bind"}
        # The address of a netlink socket is two numbers (netlink(7)).
        assert {re.sub(r"\d+", "n", address) for address in addresses} <= {"(n, n)"}


def test_values_reach_only_the_documented_files_and_calls(runs: tuple[Run, Run]) -> None:
    _, hostile = runs
    documented = {
        f"{operation.split(', ')[0]}.{field}": (set(effect.files), set(effect.calls))
        for operation, effects in ((row.operation, row.effects) for row in REPLIES)
        for field, effect in effects.items()
    }
    assert documented.keys() - CONSTANTS <= hostile.values.keys()
    reached = {
        name: (
            {path for path, content in hostile.files.items() if _text(value).encode() in content},
            {call for call, sent in hostile.sent.items() if any(_text(value) in s for s in sent)},
        )
        for name, value in hostile.values.items()
        if name not in CONSTANTS
    }
    assert reached == {name: documented[name] for name in reached}


def _text(value: str) -> str:
    """Return the part of a value that is stored unchanged: a time without "Z" or "+00:00"."""
    return value.removesuffix("Z").removesuffix("+00:00")


def test_only_the_documented_texts_of_errors_headers_and_events_are_logged(
    runs: tuple[Run, Run],
) -> None:
    _, hostile = runs
    everything = b"".join(
        (*hostile.files.values(), *(s.encode() for v in hostile.sent.values() for s in v))
    )
    logged_marks = {
        "problem-detail",
        "problem-errors",
        "problem-errors-key",
        "location",
        "event-error",
    }
    for name in (*logged_marks, *(f"problem-{f}" for f in ("type", "instance", "reason", "code"))):
        assert (f"mark-{name};".encode() in hostile.files[LOG]) is (name in logged_marks), name
    dropped_marks = ("cookie", "comment", "event-id", "entry", "type-shell", "nonce")
    assert [n for n in dropped_marks if f"mark-{n}".encode() in everything] == []
    assert [k for k in UNKNOWN_KEYS if mark(f"key-{k}").encode() in everything] == []
    assert b"mark-header" not in everything
    assert b"mark-command" not in everything
