"""Tests that, after a rolled-back upgrade, an older version works with the state of a newer one."""

import json
import uuid

from agent.adapters.storage.database import Database
from agent.adapters.storage.device_record import DeviceRecord, DeviceRecordFile
from agent.adapters.storage.state import StateDirectory
from agent.adapters.storage.status_file import StatusFile
from agent.wire.codec import to_plain
from tests.unit.agent.adapters.storage.test_status_file import STATUS

COLUMNS = {
    "requests": [
        "request_id", "binding_id", "kind", "expires_at", "state", "attempt",
        "running_acknowledged", "received_at", "updated_at", "report_id", "outcome", "detail",
    ],
    "outbox": [
        "report_id", "request_id", "binding_id", "kind", "outcome", "tier", "created_at", "body",
    ],
    "counters": ["name", "value"],
}  # fmt: skip
"""The columns of the tables of version 0.1.0. Version 0.1.0 inserts rows without naming columns, so
an additional column would break it after a rollback. A change of these columns must increase
SCHEMA_VERSION. A new table does not need a new SCHEMA_VERSION (ADR 46)."""


def test_version_0_1_0_can_use_the_database_of_this_version(database: Database) -> None:
    assert database.query("PRAGMA user_version")[0][0] == 1
    for table, columns in COLUMNS.items():
        names = [row["name"] for row in database.query(f"PRAGMA table_info({table})")]
        assert names == columns, table


def test_a_database_with_more_tables_is_opened(state: StateDirectory) -> None:
    newer = Database(state)
    newer._connection.execute("CREATE TABLE later (name TEXT) STRICT")
    newer.close()

    older = Database(state)
    older.close()
    assert not older.was_quarantined


def test_unknown_keys_in_state_files_are_ignored(state: StateDirectory) -> None:
    record = DeviceRecord(legacy_install_id="till", fingerprint="f" * 64)
    for name, model in (("device.json", record), ("status.json", STATUS)):
        document = {**to_plain(model), "later": {"id": str(uuid.uuid4())}}
        (state.path / name).write_text(json.dumps(document))
        (state.path / name).chmod(0o600)

    assert DeviceRecordFile(state).load() == record
    assert StatusFile(state).read() == STATUS
