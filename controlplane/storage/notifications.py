"""Tells the other processes on one PostgreSQL which API keys have something new.

LISTEN and NOTIFY (PostgreSQL, part VI, NOTIFY): told in the transaction, heard after its commit.
What is sent while a connection is down is lost; the poll for changes (`web.background`) finds it
some seconds later.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Iterable
from typing import Final
from uuid import UUID

from sqlalchemy import URL, text
from sqlalchemy.orm import Session

log = logging.getLogger("controlplane.storage.notifications")
CHANNEL: Final = "venue_commands"
KEYS_A_NOTICE: Final = 200
"""A notice holds fewer than 8,000 bytes."""
RECONNECT_S: Final = 1.0
"""At most; processes that lost the server together do not come back in step."""


def publish(session: Session, key_ids: Iterable[UUID], sender: str) -> None:
    """Tell of ``key_ids`` once the transaction is committed; nothing on another database.

    ``sender`` is a word without blanks that names the process: it has no need to hear its own.
    """
    if session.get_bind().dialect.name != "postgresql":
        return
    keys = sorted(key_id.hex for key_id in key_ids)
    for at in range(0, len(keys), KEYS_A_NOTICE):
        words = (sender, *keys[at : at + KEYS_A_NOTICE])
        notice = {"channel": CHANNEL, "payload": " ".join(words)}
        session.execute(text("SELECT pg_notify(:channel, :payload)"), notice)


async def listen(url: URL, sender: str, heard: Callable[[tuple[UUID, ...]], None]) -> None:
    """Hear what others than ``sender`` tell, for ever."""
    # Only who has PostgreSQL has its driver.
    import psycopg

    words = url.set(drivername="postgresql").render_as_string(hide_password=False)
    while True:
        try:
            async with await psycopg.AsyncConnection.connect(words, autocommit=True) as connection:
                await connection.execute(f"LISTEN {CHANNEL}")
                async for notice in connection.notifies():
                    heard(read_notice(notice.payload, sender))
        except (psycopg.Error, OSError) as error:
            log.warning("cannot hear the other processes: %s", str(error).splitlines()[0])
        await asyncio.sleep(random.uniform(0, RECONNECT_S))  # noqa: S311 - spreads, hides nothing


def read_notice(payload: str, own: str) -> tuple[UUID, ...]:
    """Return the keys that another process than ``own`` tells of."""
    sender, *keys = payload.split(" ")
    if sender == own:
        return ()
    try:
        return tuple(UUID(key) for key in keys)
    except ValueError:
        log.warning("a notice on %s is not ours: %.80r", CHANNEL, payload)
        return ()
