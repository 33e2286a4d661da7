"""The state directory of an agent and the database of a service, as text files of a fixture.

Each folder in tests/fixtures/releases has the version of a release as its name. It contains files
that the programs of that release made (see `make_fixture`):

    state.json       the text files of the state directory, by name
    agent.db.sql     the agent's database
    service.db.sql   the service's database
    facts.json       ids, addresses, and outputs of commands, which the tests compare
"""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from tests.paths import FIXTURES

FOLDER: Final = FIXTURES / "releases"
STATE: Final = "state.json"
AGENT_DB: Final = "agent.db"
SERVICE_DB: Final = "service.db"
FACTS: Final = "facts.json"


def pack(state: Path, service_db: Path, facts: dict[str, Any], folder: Path) -> None:
    """Write a fixture to ``folder``. The agent and the service must have ended."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = {
        str(path.relative_to(state)): path.read_text("utf-8")
        for path in sorted(state.rglob("*"))
        if path.is_file() and not path.name.startswith(AGENT_DB)
    }
    for name, document in ((STATE, texts), (FACTS, facts)):
        text = json.dumps(document, indent=1, ensure_ascii=False, sort_keys=True)
        (folder / name).write_text(text + "\n", "utf-8")
    for file in (state / AGENT_DB, service_db):
        with closing(sqlite3.connect(file)) as connection:
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            lines = (*connection.iterdump(), f"PRAGMA user_version={version};")
        (folder / f"{file.name}.sql").write_text("\n".join(lines) + "\n", "utf-8")


def facts_of(folder: Path) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads((folder / FACTS).read_text("utf-8"))
    return facts


def unpack_state(folder: Path, state: Path, base_url: str) -> None:
    """Create the state directory. Replace the address of the service in it by ``base_url``."""
    state.mkdir(mode=0o700, parents=True)
    old_url = facts_of(folder)["baseUrl"]
    for name, text in json.loads((folder / STATE).read_text("utf-8")).items():
        path = state / name
        path.parent.mkdir(mode=0o700, exist_ok=True)
        path.write_text(text.replace(old_url, base_url), "utf-8")
        path.chmod(0o600)
    load(folder, state / AGENT_DB)


def load(folder: Path, file: Path) -> None:
    """Create the database ``file`` from the dump of the same name."""
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript((folder / f"{file.name}.sql").read_text("utf-8"))
    file.chmod(0o600)
