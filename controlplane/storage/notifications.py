"""Messages between processes that use the same PostgreSQL database. They do not concern alerts.

A message contains the ids of API keys whose devices may have new commands. Messages use LISTEN
and NOTIFY (PostgreSQL, part VI, NOTIFY). PostgreSQL delivers a message after the commit of its
transaction. Messages are lost while the connection is down. The poll for changes
(`web.background`) then finds the commands some seconds later.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Iterable
from typing import Any, Final
from uuid import UUID

from sqlalchemy import URL, text
from sqlalchemy.orm import Session

from controlplane.storage.database import connection_options
from controlplane.storage.statements import in_steps

log = logging.getLogger("controlplane.storage.notifications")
CHANNEL: Final = "venue_commands"
KEYS_PER_MESSAGE: Final = 200
"""Maximum number of keys in one message, which PostgreSQL limits to less than 8,000 bytes."""
RECONNECT_S: Final = 1.0
"""Maximum wait before a new connection. The wait is random, so that processes do not reconnect at
the same time.
"""


def publish(session: Session, key_ids: Iterable[UUID], sender: str) -> None:
    """Send ``key_ids`` when the transaction is committed. Without PostgreSQL, do nothing.

    Args:
        sender: A word that names the process, so that the process can ignore its own messages.
    """
    if session.get_bind().dialect.name != "postgresql":
        return
    keys = sorted(key_id.hex for key_id in key_ids)
    for step in in_steps(keys, KEYS_PER_MESSAGE):
        parameters = {"channel": CHANNEL, "payload": " ".join((sender, *step))}
        session.execute(text("SELECT pg_notify(:channel, :payload)"), parameters)


async def listen(url: URL, own_name: str, on_receive: Callable[[tuple[UUID, ...]], None]) -> None:
    """Receive the messages of other processes until the task is cancelled.

    Args:
        own_name: The name of this process, whose own messages are ignored.
        on_receive: Called with the key ids of each message.
    """
    # Imported here: the driver is installed only for use with PostgreSQL.
    import psycopg

    options: dict[str, Any] = dict(connection_options(url))
    address = url.set(drivername="postgresql").render_as_string(hide_password=False)
    while True:
        try:
            async with await psycopg.AsyncConnection.connect(
                address, autocommit=True, **options
            ) as connection:
                await connection.execute(f"LISTEN {CHANNEL}")
                async for notification in connection.notifies():
                    on_receive(parse_notification(notification.payload, own_name))
        except (psycopg.Error, OSError) as error:
            lines = str(error).splitlines() or [type(error).__name__]
            log.warning("cannot receive messages of the other processes: %s", lines[0])
        await asyncio.sleep(random.uniform(0, RECONNECT_S))  # noqa: S311 - it is not a secret


def parse_notification(payload: str, own_name: str) -> tuple[UUID, ...]:
    """Return the key ids in a message, or an empty tuple if this process sent it."""
    sender, *keys = payload.split(" ")
    if sender == own_name:
        return ()
    try:
        return tuple(UUID(key) for key in keys)
    except ValueError:
        log.warning("unexpected message on %s: %.80r", CHANNEL, payload)
        return ()
