"""Helpers that create users, change their memberships, and sign them in with a browser."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import httpx2
from sqlalchemy.orm import Session

from controlplane.accounts import users
from controlplane.accounts.keys.key_store import DEFAULT_ORGANIZATION
from controlplane.accounts.passwords import hasher
from controlplane.merchant.locations import name_location
from controlplane.settings import Settings
from controlplane.storage.account_tables import Role, User
from controlplane.storage.database import Database
from tests.unit.controlplane.running_service import RunningService, running_service

MEMORY_KIB, PASSES = 8, 1
"""Memory and passes of argon2: the minimum, because many tests compute hashes."""
PASSWORD = "correct horse battery"
ORIGIN = "http://service"
SIGN_IN = "/api/auth/sign-in/email"
SIGN_OUT = "/api/auth/sign-out"
COOKIE = "venue.session_token"
OVERVIEW = "/console/api/overview"


@dataclass(frozen=True, slots=True)
class UserAccount:
    id: UUID
    email: str


def make_user(
    service: RunningService,
    email: str = "ada@example.com",
    *,
    role: Role = "owner",
    locations: Sequence[str] = (),
    organization_id: str = DEFAULT_ORGANIZATION,
) -> UserAccount:
    """Create a user with a membership. A user who exists already only gets the membership."""
    password_hash = hasher(MEMORY_KIB, PASSES).hash(PASSWORD)

    def work(session: Any) -> User:
        user = users.find_user(session, email) or users.add_user(
            session, email=email, name="Ada", password_hash=password_hash, now=service.clock()
        )
        users.set_membership(
            session,
            user.id,
            organization_id,
            role=role,
            locations=locations,
            now=service.clock(),
        )
        return user

    return UserAccount(service.database.write(work).id, email)


def make_locations(
    service: RunningService, *ids: str, organization_id: str = DEFAULT_ORGANIZATION
) -> None:
    """Add locations to the organization, because only existing locations can be given to users."""

    def work(session: Session) -> None:
        for each in ids:
            name_location(session, (organization_id, each), f"Venue {each}", service.clock())

    service.database.write(work)


def change_membership(
    service: RunningService, account: UserAccount, role: Role, locations: Sequence[str]
) -> None:
    service.database.write(
        lambda session: users.set_membership(
            session,
            account.id,
            DEFAULT_ORGANIZATION,
            role=role,
            locations=locations,
            now=service.clock(),
        )
    )


def end_membership(service: RunningService, account: UserAccount, organization_id: str) -> None:
    """End a membership. If it is the only one of the user, this also deletes the account."""
    service.database.write(
        lambda session: users.remove_membership(
            session, account.id, organization_id, service.clock()
        )
    )


@asynccontextmanager
async def proxied_service(database: Database) -> AsyncIterator[RunningService]:
    """Run a service that trusts loopback as a proxy, so that a test can choose the network of each
    sign-in (X-Forwarded-For).
    """
    settings = Settings(
        argon2_memory_kib=MEMORY_KIB,
        argon2_passes=PASSES,
        refusal_delay_s=0,
        trusted_proxies=frozenset({"127.0.0.1"}),
    )
    async with running_service(database, settings) as service:
        yield service


class Browser:
    """Sends requests as a browser does from the service's own pages. Tests can change headers."""

    def __init__(self, service: RunningService) -> None:
        self._http = service.http
        self.token = ""

    async def sign_in(
        self, email: str = "ada@example.com", password: str = PASSWORD, **headers: str
    ) -> httpx2.Response:
        reply = await self.post(SIGN_IN, {"email": email, "password": password}, **headers)
        if "set-cookie" in reply.headers:
            self.token = reply.headers["set-cookie"].partition("=")[2].partition(";")[0]
        return reply

    async def post(
        self, path: str, body: object = None, *, origin: str | None = ORIGIN, **headers: str
    ) -> httpx2.Response:
        all_headers = {"content-type": "application/json"}
        if origin is not None:
            all_headers["origin"] = origin
        if self.token:
            all_headers["cookie"] = f"{COOKIE}={self.token}"
        all_headers |= {name.replace("_", "-"): value for name, value in headers.items()}
        # Otherwise httpx2 would also send the cookies of its own cookie jar.
        self._http.cookies.clear()
        reply = await self._http.post(path, content=json.dumps(body or {}), headers=all_headers)
        self._http.cookies.clear()
        return reply
