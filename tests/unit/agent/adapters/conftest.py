"""Fixtures of the agent's storage, in a temporary directory."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.adapters.storage.database import Database
from agent.adapters.storage.journal import Journal
from agent.adapters.storage.ledger import Ledger
from agent.adapters.storage.outbox import Outbox
from agent.adapters.storage.state import StateDirectory


@pytest.fixture
def state(tmp_path: Path) -> StateDirectory:
    state = StateDirectory(tmp_path)
    state.prepare()
    return state


@pytest.fixture
def database(state: StateDirectory) -> Iterator[Database]:
    database = Database(state)
    yield database
    database.close()


@pytest.fixture
def ledger(database: Database) -> Ledger:
    return Ledger(database)


@pytest.fixture
def journal(ledger: Ledger) -> Journal:
    return ledger.journal


@pytest.fixture
def outbox(ledger: Ledger) -> Outbox:
    return ledger.outbox
