"""Measures the load of open consoles on an idle service: `python -m tests.bench.console.consoles`.

Each open console receives a stream of changes for 200 of 10,000 devices. The measurement
calls the application directly, without HTTP, with a database on SQLite. It counts the database
statements and the processor time of the process.
"""

import asyncio
import json
import os
import sys
import tempfile
import time
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from sqlalchemy import event, insert, select
from sqlalchemy.engine import Engine
from starlette.types import Message

from controlplane.accounts.keys.key_store import DEFAULT_ORGANIZATION, create_key
from controlplane.devices.priority import Priority
from controlplane.settings import Settings
from controlplane.storage.database import Database
from controlplane.storage.tables import Device
from controlplane.web.console_api import ChangesEndpoint
from controlplane.web.core import Core

DEVICES: Final = 10_000
DEVICES_EACH: Final = 200
CONSOLES: Final = 50
MEASURED_S: Final = 20.0
SETTLED_S: Final = 15.0
"""Seconds before the measurement, in which each console receives its devices."""
NOW: Final = datetime.now(UTC)


def device(position: int) -> dict[str, Any]:
    return {
        "position": position, "instance_id": uuid.UUID(int=position), "binding_id": uuid.uuid4(),
        "key_id": uuid.UUID(int=1), "organization_id": DEFAULT_ORGANIZATION,
        "location_id": f"loc-{position % 500:04}", "legacy_install_id": f"till-{position}",
        "app_version": "0.1.0", "capabilities": ["network"], "platform": "linux", "public_key": "",
        "user_id": "u", "foreground": False, "created_at": NOW, "enrolled_at": NOW,
        # A time in the future, so that the device stays online during both measurements.
        "last_seen_at": NOW + timedelta(seconds=60), "priority": Priority.OK, "severity": "good",
    }  # fmt: skip


async def console(core: Core, key: str, visible: list[uuid.UUID], event_count: list[int]) -> None:
    """Open a console for the devices ``visible``, until it is cancelled. Add the number of events
    that it receives to ``event_count[0]``, which all consoles share.
    """
    body = json.dumps({"instanceIds": [str(each) for each in visible]}).encode()
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    scope = {
        "type": "http", "method": "POST", "path": "/console/api/changes", "query_string": b"",
        "headers": [(k.encode(), v.encode()) for k, v in headers.items()],
    }  # fmt: skip
    pieces = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        return pieces.pop() if pieces else await asyncio.Future()

    async def send(message: Message) -> None:
        event_count[0] += message.get("body", b"").count(b"event: device")

    await ChangesEndpoint(core)(scope, receive, send)


async def measure(core: Core, key: str, name: str, device_sets: list[list[uuid.UUID]]) -> None:
    statement_count = 0

    def count(*_: object) -> None:
        nonlocal statement_count
        statement_count += 1

    event_count = [0]
    tasks = [
        asyncio.create_task(console(core, key, instances, event_count)) for instances in device_sets
    ]
    await asyncio.sleep(SETTLED_S)
    if event_count[0] < len(device_sets) * DEVICES_EACH:
        raise SystemExit(f"only {event_count[0]} devices were sent")
    event.listen(Engine, "before_cursor_execute", count)
    began_s, cpu_s = time.monotonic(), time.process_time()
    await asyncio.sleep(MEASURED_S)
    took_s, cpu_s = time.monotonic() - began_s, time.process_time() - cpu_s
    event.remove(Engine, "before_cursor_execute", count)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    rate, percent = statement_count / took_s, 100 * cpu_s / took_s
    print(f"{name}: {rate:.1f} statements a second, {percent:.1f} % CPU")


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        database = Database(str(Path(folder) / "service.db"))
        database.write(lambda s: s.execute(insert(Device), [device(n + 1) for n in range(DEVICES)]))
        key = database.write(
            lambda session: create_key(
                session, name="console", can_write=False, locations=(),
                organization_id=DEFAULT_ORGANIZATION, now=NOW,
            )
        )[1]  # fmt: skip
        instances = list(
            database.read(lambda s: s.scalars(select(Device.instance_id).order_by(Device.position)))
        )
        core = Core(database, Settings(rate_per_s=0), lambda: datetime.now(UTC))
        print(f"{CONSOLES} consoles, {DEVICES_EACH} devices each, {os.cpu_count()} processors")
        same_devices = [instances[:DEVICES_EACH]] * CONSOLES
        different_devices = [
            instances[DEVICES_EACH * n : DEVICES_EACH * (n + 1)] for n in range(CONSOLES)
        ]
        await measure(core, key, "all show the same devices", same_devices)
        await measure(core, key, "each shows different devices", different_devices)
        core.close()
        await core.console_feeds.wait_for_poll()
        database.close()


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
