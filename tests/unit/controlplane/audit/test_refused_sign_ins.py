"""Tests of the limit on audit entries of refused sign-ins."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from sqlalchemy import event

from controlplane.accounts.refused_sign_ins import ENTRIES_AT_ONCE, ENTRY_EVERY_S
from controlplane.accounts.throttle import FAILURES_MAX, WINDOW
from controlplane.storage.database import Database
from tests.unit.controlplane.accounts.people import Browser, make_user, proxied_service
from tests.unit.controlplane.audit.test_audit import audit_entries
from tests.unit.controlplane.running_service import RunningService

ADA, UNKNOWN = "ada@example.com", "nobody@example.com"


@pytest.fixture
async def proxied(database: Database) -> AsyncIterator[RunningService]:
    async with proxied_service(database) as service:
        yield service


class Strangers:
    """Callers with wrong passwords. Each attempt comes from another network."""

    def __init__(self, service: RunningService) -> None:
        self._service = service
        self._networks = 0

    async def attempt(self, email: str) -> None:
        self._networks += 1
        network = f"10.0.{self._networks // 250}.{self._networks % 250}"
        browser = Browser(self._service)
        reply = await browser.sign_in(email, "not this one, no", x_forwarded_for=network)
        assert reply.status_code == 401, reply.text

    async def attempt_repeatedly(self, email: str, count: int) -> None:
        """Make ``count`` attempts.

        Let time pass after every `FAILURES_MAX` attempts, because the next attempt would get 429.
        """
        for at in range(1, count + 1):
            await self.attempt(email)
            if at % FAILURES_MAX == 0:
                self._service.clock.advance(WINDOW.total_seconds())


async def test_the_number_of_entries_of_refused_sign_ins_is_limited(
    proxied: RunningService,
) -> None:
    strangers = Strangers(proxied)
    for at in range(ENTRIES_AT_ONCE + 30):
        await strangers.attempt(f"{at}@example.com")
    assert len(audit_entries(proxied)) == ENTRIES_AT_ONCE
    proxied.clock.advance(ENTRY_EVERY_S)
    await strangers.attempt(UNKNOWN)
    await strangers.attempt(UNKNOWN)
    last = audit_entries(proxied)[-1]
    assert len(audit_entries(proxied)) == ENTRIES_AT_ONCE + 1
    assert last.detail.endswith("earlier attempts without an entry: 30")
    assert (last.operation, last.outcome, last.actor_name) == ("session.sign_in", "refused", "")


async def test_each_account_has_a_separate_limit_of_entries(proxied: RunningService) -> None:
    """During an attack on one account, attempts at other accounts still get entries."""
    make_user(proxied)
    make_user(proxied, "eve@example.com", organization_id="org-2")
    strangers = Strangers(proxied)
    await strangers.attempt_repeatedly(ADA, ENTRIES_AT_ONCE + 5 * FAILURES_MAX)
    ada_count = len(audit_entries(proxied))
    assert ENTRIES_AT_ONCE <= ada_count < ENTRIES_AT_ONCE + 5
    await strangers.attempt(UNKNOWN)
    await strangers.attempt("eve@example.com")
    assert (await Browser(proxied).sign_in()).status_code == 200
    assert [(entry.actor_name, entry.outcome) for entry in audit_entries(proxied)[ada_count:]] == [
        ("", "refused"), ("eve@example.com", "refused"), (ADA, "done"),
    ]  # fmt: skip


async def test_an_attempt_without_an_entry_does_not_reveal_whether_the_account_exists(
    proxied: RunningService,
) -> None:
    """Each attempt causes the same SQL statements. It makes no difference whether the account
    exists, or whether the attempt gets an entry. For an attempt above the limit, an entry is added
    and deleted again.
    """
    make_user(proxied)
    strangers = Strangers(proxied)
    statements: list[str] = []

    def record_statement(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        statements.append(statement)

    async def statements_of(email: str) -> list[str]:
        statements.clear()
        await strangers.attempt(email)
        return list(statements)

    event.listen(proxied.database._engine, "before_cursor_execute", record_statement)
    try:
        known, unknown = await statements_of(ADA), await statements_of(UNKNOWN)
        for at in range(ENTRIES_AT_ONCE):
            await strangers.attempt(f"{at}@example.com")
        count = len(audit_entries(proxied))
        without_entry = await statements_of(UNKNOWN)
        assert len(audit_entries(proxied)) == count
    finally:
        event.remove(proxied.database._engine, "before_cursor_execute", record_statement)
    assert known == unknown == without_entry
    assert any(statement.startswith("INSERT INTO audit_entries") for statement in known)
