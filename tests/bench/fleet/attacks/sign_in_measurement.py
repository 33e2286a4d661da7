"""Measures the heartbeats of a device while strangers sign in with wrong passwords. At the same
time, a user signs in with the correct password, from a network where the user has signed in before.
"""

import asyncio
import contextlib
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from sqlalchemy.orm import Session

from controlplane.accounts.keys.key_store import DEFAULT_ORGANIZATION
from controlplane.accounts.passwords import hash_password
from controlplane.accounts.users import add_user, set_membership
from controlplane.settings import Settings
from controlplane.storage.database import Database
from tests.bench.fleet.attacks.attacker import sign_in
from tests.bench.fleet.attacks.heartbeats_under_attack import measure
from tests.bench.fleet.databases import temporary_database, write_fleet
from tests.bench.fleet.load import post
from tests.bench.fleet.service import Service, attacking, service

EMAIL: Final = "owner@example.com"
PASSWORD: Final = "correct horse battery staple"
ADDRESS: Final = "192.0.2.1"
EVERY_S: Final = 2.0
"""Interval of the user's sign-ins. It is long enough that the limit for one network permits all of
them."""


def measure_during_sign_ins(databases: list[str]) -> Iterator[str]:
    """Yield a line for each database."""
    for database in databases:
        with temporary_database(database) as url:
            member = write_fleet(url, 1)[0]
            _add_user(url)
            with service(url, "--trusted-proxy", "127.0.0.1") as started:
                user = _User(started)
                user.sign_in()
                line = asyncio.run(measure(started.port, member, user.attacked))
        yield f"{database:<28} {line}  correct password: {user.describe()}"


class _User:
    """A user who signs in during the attack."""

    def __init__(self, started: Service) -> None:
        self._port = started.port
        self._latencies_s: list[float] = []
        self._failures: list[str] = []

    def sign_in(self) -> None:
        began_s = time.perf_counter()
        try:
            asyncio.run(post(self._port, sign_in(EMAIL, PASSWORD, ADDRESS)))
        except (OSError, RuntimeError, asyncio.IncompleteReadError) as error:
            self._failures.append(str(error))
        self._latencies_s.append(time.perf_counter() - began_s)

    @contextlib.contextmanager
    def attacked(self) -> Iterator[None]:
        """A context in which strangers attack, and the user signs in again and again."""
        ended = threading.Event()

        def repeat() -> None:
            while not ended.wait(EVERY_S):
                self.sign_in()

        with attacking("attacks.attacker", self._port, "sign-ins"):
            thread = threading.Thread(target=repeat)
            thread.start()
            try:
                yield
            finally:
                ended.set()
                thread.join()

    def describe(self) -> str:
        failures = f" ({self._failures[0]})" if self._failures else ""
        return (
            f"{len(self._latencies_s)} sign-ins, {len(self._failures)} failed{failures},"
            f" slowest {max(self._latencies_s):.1f} s"
        )


def _add_user(url: str) -> None:
    settings = Settings()
    password_hash = hash_password(PASSWORD, settings.argon2_memory_kib, settings.argon2_passes)
    now = datetime.now(UTC)

    def work(session: Session) -> None:
        user = add_user(session, email=EMAIL, name="Owner", password_hash=password_hash, now=now)
        set_membership(session, user.id, DEFAULT_ORGANIZATION, role="owner", locations=(), now=now)

    with contextlib.closing(Database(url)) as database:
        database.write(work)
