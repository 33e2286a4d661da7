"""Tests that calls in any order give the states and refusals of docs/support.md."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy.orm import Session

from controlplane.operation.caller import Caller
from controlplane.operation.context import RequestContext
from controlplane.operation.errors import Refusal
from controlplane.settings import Settings
from controlplane.storage.database import Database
from controlplane.support import operations
from controlplane.support.links import make_link
from controlplane.support.messages import ConfirmRequest, Link, TokenRequest
from tests import sizes

LIFETIME_HOURS: Final = 24
# The first letter of a caller is its organization.
CALLERS: Final = {
    "a writes": Caller(UUID(int=1), "a", can_write=True),
    "a reads": Caller(UUID(int=2), "a", can_write=False),
    "a at one location": Caller(UUID(int=3), "a", True, frozenset({"loc-1"})),
    "b writes": Caller(UUID(int=4), "b", can_write=True),
}
MANAGERS: Final = {"a writes": "a", "b writes": "b"}
"""The callers that may confirm and end links, each with its organization."""
CALLS: Final = st.tuples(
    st.sampled_from(("inspect", "confirm", "disconnect", "wait")),
    st.sampled_from(sorted(CALLERS)),
    st.sampled_from(("a", "b")),
    st.sampled_from((1, 11, 30)),
)
"""A call, its caller, the organization for which it confirms, and the hours for which it waits.

Only `confirm` uses the organization, and only `wait` uses the hours.
"""


@dataclass(slots=True)
class Model:
    """The expected state of a token.

    ``hours`` is the time since its creation. ``replies`` has the first reply of `confirm` and of
    `disconnect`. Repeated calls get the same reply.
    """

    hours: int = 0
    organization: str | None = None
    is_ended: bool = False
    replies: dict[str, Any] = field(default_factory=dict)

    def state(self) -> str:
        if self.is_ended:
            return "disconnected"
        if self.organization:
            return "confirmed"
        return "waiting" if self.hours < LIFETIME_HOURS else "expired"

    def can_see(self, caller: str) -> bool:
        return self.organization in {None, caller[0]}

    def expected(self, call: str, caller: str, organization: str) -> str:
        """Apply a call to the model. Return the state in the reply, or the code of the refusal."""
        if call == "confirm":
            return self._confirm(caller, organization)
        if not self.can_see(caller):
            return "token_not_found"
        return self.state() if call == "inspect" else self._end(caller)

    def _confirm(self, caller: str, organization: str) -> str:
        if MANAGERS.get(caller) != organization:
            return "manager_required"
        if self.state() == "waiting":
            self.organization = organization
        if self.state() == "confirmed" and self.organization == organization:
            return "confirmed"
        return "token_expired" if self.state() == "expired" else "token_used"

    def _end(self, caller: str) -> str:
        if caller not in MANAGERS:
            return "manager_required"
        if self.state() == "expired":
            return "token_expired"
        self.is_ended = True
        return "disconnected"


@pytest.fixture(scope="module")
def sqlite_database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    with closing(Database(str(tmp_path_factory.mktemp("model") / "service.db"))) as opened:
        yield opened


@settings(
    max_examples=sizes.examples(150), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
@given(calls=st.lists(CALLS, max_size=12))
def test_any_sequence_of_calls_with_a_token_behaves_as_the_model(
    sqlite_database: Database, calls: list[tuple[str, str, str, int]]
) -> None:
    now = datetime(2026, 11, 20, 12, tzinfo=UTC)

    def check_calls(session: Session) -> None:
        token = make_link(session, channel="chat", requested_by="Ada", now=now).token
        model = Model()
        for call, caller, organization, hours in calls:
            if call == "wait":
                model.hours += hours
                continue
            at = now + timedelta(hours=model.hours)
            context = RequestContext(session, CALLERS[caller], at, Settings())
            expected = model.expected(call, caller, organization)
            reply = _reply_to(context, call, token, organization)
            if isinstance(reply, str):
                assert reply == expected
                continue
            assert reply.state == expected == model.state()
            assert reply.organization_id == model.organization
            if call != "inspect":
                assert model.replies.setdefault(call, reply) == reply

    sqlite_database.write(check_calls)


def _reply_to(context: RequestContext, call: str, token: str, organization: str) -> Link | str:
    """Call an operation. Return its reply, or the code of its refusal."""
    try:
        if call == "confirm":
            body = ConfirmRequest(token=token, organization_id=organization)
            return operations.confirm(context, body)
        run = operations.inspect if call == "inspect" else operations.disconnect
        return run(context, TokenRequest(token=token))
    except Refusal as refusal:
        return refusal.code
