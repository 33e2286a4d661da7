"""Tests that each call with each credential has the result that `permission_tables.py` defines."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
from sqlalchemy.orm import Session
from starlette.routing import Route
from starlette.types import ASGIApp

from controlplane.settings import Settings
from controlplane.web.app import build_app
from controlplane.web.background import poll_changes
from tests import sizes
from tests.paths import ROOT
from tests.unit.controlplane.accounts.people import MEMORY_KIB, PASSES
from tests.unit.controlplane.permissions.asgi_client import HttpRequest, call_app, digest
from tests.unit.controlplane.permissions.call_tables import PROFILE_LAST, CallContext
from tests.unit.controlplane.permissions.calls import Call, all_calls, content_of, is_public
from tests.unit.controlplane.permissions.credentials import (
    Credential,
    CredentialMaker,
    UserObjects,
    invalid_credentials,
    objects_of_other_users,
    valid_credentials,
)
from tests.unit.controlplane.permissions.organizations import Enroller, make_organizations
from tests.unit.controlplane.permissions.permission_tables import (
    COLUMNS,
    LOCATIONS,
    OPERATIONS,
    TARGETS,
    Target,
    expected_at,
    permission_of,
)
from tests.unit.controlplane.running_service import RunningService

CELLS_MIN = sizes.amount(medium=600, large=6000)
"""A run that tests fewer cells fails."""
SHARES = sizes.amount(medium=10, large=1)
"""The calls are divided into this many shares. Each credential makes the calls of one share.

``SHARES`` consecutive credentials together make all calls.
"""


@pytest.fixture
def settings() -> Settings:
    """Settings with limits that no call exceeds."""
    return Settings(
        argon2_memory_kib=MEMORY_KIB,
        argon2_passes=PASSES,
        worker_threads=1,
        key_cached_s=3600,
        rate_per_s=0,
        processing_share=0,
        organization_rate_per_s=0,
        refusal_delay_s=0,
        open_requests_max=100_000,
        pending_requests_max=100_000,
        page_size=1000,
    )


@dataclass(frozen=True, slots=True)
class Cell:
    """The call of one credential for one target, and the result that the tables define."""

    call: Call
    target: Target
    expected: str

    @property
    def is_permitted(self) -> bool:
        return self.expected in {"yes", "listed", "hidden"}


def test_the_document_about_accounts_contains_the_permission_tables() -> None:
    document = (ROOT / "docs" / "accounts.md").read_text(encoding="utf-8")
    assert OPERATIONS in document
    assert LOCATIONS in document


async def test_every_path_is_covered_or_public(service: RunningService) -> None:
    served = {route.path for route in build_app(service.core).routes if isinstance(route, Route)}
    called = {call.path for call in all_calls()}
    assert called <= served
    assert {path for path in served - called if not is_public(path)} == set()


def _share_of_credential(number: int) -> list[Call]:
    """Return the calls for the credential with this number.

    Calls that depend on each other are in the same share: the calls of `PROFILE_LAST`, and calls
    whose paths differ only in the last part, such as ``rules/set`` and ``rules/remove``.
    """
    calls = list(all_calls())
    last = [call for call in calls if call.path in PROFILE_LAST]
    others = [call for call in calls if call.path not in PROFILE_LAST]
    parents = list(dict.fromkeys(call.path.rpartition("/")[0] for call in others))
    share = parents[number % SHARES :: SHARES]
    chosen = [call for call in others if call.path.rpartition("/")[0] in share]
    return chosen + (last if number % SHARES == 0 else [])


@pytest.mark.medium
async def test_every_operation_and_credential_matches_the_permission_tables(
    service: RunningService,
) -> None:
    database, settings, now = service.database, service.core.settings, service.clock()
    app = build_app(service.core)
    objects_by_target = database.write(lambda session: make_organizations(session, settings, now))

    def maker(session: Session) -> CredentialMaker:
        return CredentialMaker(session, objects_by_target, Enroller(session, settings, now), now)

    credentials = database.write(
        lambda session: [*valid_credentials(maker(session)), *invalid_credentials(maker(session))]
    )
    others = database.write(lambda session: objects_of_other_users(maker(session)))
    assert {credential.column for credential in credentials} == set(COLUMNS)
    assert len({credential.name for credential in credentials}) == len(credentials)
    await poll_changes(service.core)  # the service uses cached keys only after a poll
    messages, cells = list[str](), 0
    for number, credential in enumerate(credentials):
        credential_cells = list(_cells(credential, _share_of_credential(number)))
        cells += len(credential_cells)
        prepared = database.write(
            partial(_with_bodies, maker, credential, others, credential_cells)
        )
        checker = CallChecker(app, credential)
        before = database.read(digest)
        for cell, values, mark in prepared:
            if not (cell.call.writes and cell.is_permitted):
                messages += await checker.check(cell, values, mark)
        if database.read(digest) != before:
            messages.append(f"{credential.name}: a refused call or a read changed the database")
        for cell, values, mark in prepared:
            if cell.call.writes and cell.is_permitted:
                messages += await checker.check(cell, values, mark)
    assert not messages, f"{len(messages)} of {cells}\n" + "\n".join(messages[:60])
    assert cells >= CELLS_MIN
    assert now == service.clock()


def _cells(credential: Credential, calls: Sequence[Call]) -> Iterator[Cell]:
    """Return the cells of one credential.

    An operation that does not accept the credential is called with one target only, because the
    service refuses the call before it reads the arguments.
    """
    requests: set[tuple[str, str, str]] = set()
    for call in calls:
        permission = permission_of(call.operations, credential.column)
        if permission == "401":
            if (request := (call.method, call.path, call.tool)) not in requests:
                requests.add(request)
                yield Cell(call, "own", permission)
            continue
        for target in TARGETS:
            is_restricted = credential.is_restricted or permission == "as restricted"
            result_at_target = expected_at(call.rule, target, is_restricted=is_restricted)
            if result_at_target != "–":
                depends_on_target = permission in {"yes", "as restricted"}
                yield Cell(call, target, result_at_target if depends_on_target else permission)


def _with_bodies(
    maker: Callable[[Session], CredentialMaker],
    credential: Credential,
    others: Mapping[Target, UserObjects],
    cells: Sequence[Cell],
    session: Session,
) -> list[tuple[Cell, Any, str]]:
    """Return each cell with the arguments and the mark of its call.

    The mark is text that the reply contains if it lists the object of the target. It is "" for
    calls that return no list.
    """
    context = CallContext(maker(session), credential, others)
    return [
        (
            cell,
            cell.call.body(context, cell.target),
            str(cell.call.mark(context, cell.target)) if cell.call.mark else "",
        )
        for cell in cells
    ]


@dataclass(slots=True)
class CallChecker:
    """Makes the calls of one credential, and compares the results with the tables.

    If several read calls are equal, only the first of them is made.
    """

    app: ASGIApp
    credential: Credential
    replies: dict[tuple[str, bytes], tuple[int, str]] = field(default_factory=dict)

    async def check(self, cell: Cell, values: Any, mark: str) -> list[str]:
        """Make a call. Return a message if the result is wrong; an empty list if it is right."""
        call = cell.call
        status, text = await self._reply(call, values)
        result = _outcome(call, status, text)
        expected = "refused" if call.tool and cell.expected in {"403", "404"} else cell.expected
        if result == "yes" and expected in {"listed", "hidden"}:
            assert mark, call
            result = "listed" if f'"{mark}"' in text else "hidden"
        if result == expected:
            return []
        name = f"{self.credential.name}: {call.name} ({call.rule}, {cell.target})"
        return [f"{name}: {result} instead of {expected}: {text[:160]}"]

    async def _reply(self, call: Call, values: Any) -> tuple[int, str]:
        path, query, content = content_of(call, values)
        key = (f"{call.method} {path}?{query}", content)
        if call.writes or key not in self.replies:
            headers = dict(self.credential.headers)
            if call.tool:
                headers.pop("origin", None)  # only web pages send it, and web pages call no tools
            until = b"event: device" if call.is_stream else b""
            request = HttpRequest(call.method, path, query, headers, content, until)
            self.replies[key] = await call_app(self.app, request)
        return self.replies[key]


def _outcome(call: Call, status: int, text: str) -> str:
    if not 200 <= status < 300:
        return str(status)
    if call.tool:
        reply: Mapping[str, Any] = json.loads(text)
        is_refused = "error" in reply or reply["result"].get("isError", False)
        return "refused" if is_refused else "yes"
    return "yes"
