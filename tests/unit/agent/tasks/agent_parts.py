"""Creates the agent's tasks with real state on disk, a fake service and a virtual clock."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from random import Random
from uuid import UUID

from agent.adapters.identity import IdentityFile
from agent.adapters.storage.database import Database
from agent.adapters.storage.device_record import Binding, DeviceRecord, DeviceRecordFile
from agent.adapters.storage.journal import Entry
from agent.adapters.storage.ledger import Ledger
from agent.adapters.storage.state import StateDirectory
from agent.config.credential import ApiKeySource
from agent.config.model import Limits
from agent.rules.lifecycle import Event
from agent.tasks.acknowledge import Acknowledger
from agent.tasks.health_board import HealthBoard
from agent.tasks.heartbeat import Heartbeat
from agent.tasks.receive import Receiver
from agent.tasks.session.binding_state import BindingState
from agent.tasks.session.circuit_breaker import CircuitBreaker
from agent.tasks.session.device_session import DeviceSession
from agent.tasks.session.enrollment import Enrollment
from agent.tasks.submit import Submitter
from agent.wire.device_operations import EnrollmentRecord
from tests.fakes.fake_clock import FakeClock
from tests.fakes.fake_service_client import FakeServiceClient
from tests.unit.agent.samples import BASE_URL, command, config, record


class AgentParts:
    """All objects that the tasks need. With ``has_binding``, the device has a confirmed binding.

    ``changes`` counts the changes of the health board, and ``executor_wakes`` how often the
    acknowledger has woken the executor.
    """

    def __init__(
        self,
        path: Path,
        *,
        has_binding: bool = True,
        on_revoked: str = "stop",
        limits: Limits | None = None,
        delivery: str = "auto",
    ) -> None:
        settings = config(enrollment={"on_revoked": on_revoked}, commands={"delivery": delivery})
        self.clock = FakeClock()
        self.state = StateDirectory(path)
        self.state.prepare()
        self.key_file = path / "api-key"
        self.key_file.write_text("key-1")
        self.client = FakeServiceClient(self.clock.now)
        self.changes = 0
        self.health = HealthBoard(self.clock, self._changed)
        self.breaker = CircuitBreaker(
            self.clock, Random(7), self.health, ApiKeySource(self.key_file, None)
        )
        self.identity = IdentityFile(self.state)
        self.record_file = DeviceRecordFile(self.state)
        device = DeviceRecord(legacy_install_id="install-1")
        if has_binding:
            instance = self.identity.load_or_create().instance_id
            self.client.record = record(instance_id=instance)
            device = device.model_copy(update={"binding": self.binding(self.client.record)})
        self.binding_state = BindingState(self.record_file, device, base_url=BASE_URL)
        if has_binding:
            self.binding_state.confirm()
        self.session = DeviceSession(self.client, self.breaker, self.binding_state, self.clock)
        self.enrollment = Enrollment(
            self.session,
            config=settings,
            identity=self.identity,
            health=self.health,
            clock=self.clock,
            rng=Random(8),
        )
        self.database = Database(self.state)
        self.ledger = Ledger(self.database)
        self.journal, self.outbox = self.ledger.journal, self.ledger.outbox
        self.executor_wakes = 0
        self.acknowledger = Acknowledger(
            self.session, self.journal, self.clock, wake_executor=self._wake_executor
        )
        self.receiver = Receiver(
            settings.commands,
            self.session,
            acknowledger=self.acknowledger,
            journal=self.journal,
            health=self.health,
            clock=self.clock,
            rng=Random(9),
        )
        self.submitter = Submitter(
            limits=limits or Limits(),
            session=self.session,
            ledger=self.ledger,
            state=self.state,
            health=self.health,
            clock=self.clock,
            rng=Random(10),
            wake_executor=lambda: None,
        )
        self.heartbeat = Heartbeat(self.session, self.health)

    @staticmethod
    def binding(enrollment: EnrollmentRecord) -> Binding:
        return Binding(base_url=BASE_URL, location_id="loc-0001", record=enrollment)

    def entry(self, number: int = 1) -> Entry:
        result = self.journal.get(UUID(int=number))
        assert result is not None
        return result

    def add_request(self, *events: Event, number: int = 1) -> Entry:
        """Store a request, and apply ``events`` to its state. Return its journal entry."""
        self.journal.add(command(number), self.clock.now())
        entry = self.entry(number)
        for event in events:
            entry = self.journal.move(entry, event, self.clock.now())
        return entry

    def condition_codes(self) -> set[str]:
        """Return the codes of the visible conditions."""
        return {problem.code for problem in self.health.problems()}

    def quarantined_files(self) -> list[str]:
        """Return the names of the files in the quarantine, without the timestamps."""
        if not self.state.quarantine_path.exists():
            return []
        return sorted(path.name.split("-", 1)[1] for path in self.state.quarantine_path.iterdir())

    def _changed(self) -> None:
        self.changes += 1

    def _wake_executor(self) -> None:
        self.executor_wakes += 1


@contextlib.contextmanager
def agent_parts(path: Path, **options: object) -> Iterator[AgentParts]:
    parts = AgentParts(path, **options)  # type: ignore[arg-type]
    try:
        yield parts
    finally:
        parts.database.close()


@contextlib.asynccontextmanager
async def running(*loops: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    """Run loops while the body of the `with` statement runs. A loop that raises an error fails the
    test.
    """
    tasks = [asyncio.ensure_future(loop()) for loop in loops]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, Exception):
            raise outcome


async def until(is_reached: Callable[[], bool], turns: int = 100_000) -> None:
    """Let the tasks run until ``is_reached`` returns True. The virtual clock advances by itself."""
    for _ in range(turns):
        if is_reached():
            return
        await asyncio.sleep(0)
    raise AssertionError("the condition never became true")


async def settle(turns: int = 50) -> None:
    """Run the other tasks for ``turns`` turns of the event loop. After that, usually all of them
    wait.
    """
    for _ in range(turns):
        await asyncio.sleep(0)
