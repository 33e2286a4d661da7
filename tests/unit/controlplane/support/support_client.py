"""A client of the support operations, which can also create support links and channels."""

import json
from typing import Any, Final

import httpx2
from sqlalchemy import select

from controlplane.accounts.keys.key_store import DEFAULT_ORGANIZATION
from controlplane.storage.support_tables import SupportChannel, SupportLink
from controlplane.support import routes
from controlplane.support.channels import set_channel
from controlplane.support.links import make_link
from tests.unit.controlplane.accounts.people import Browser
from tests.unit.controlplane.running_service import RunningService

ORGANIZATION: Final = DEFAULT_ORGANIZATION
OTHER_ORGANIZATION: Final = "org-0002"
"""The default API key belongs to ``ORGANIZATION``, not to this organization."""
UNKNOWN_TOKEN: Final = "A" * 43
"""A text with the form of a token."""
DAY_S: Final = 86_400


class SupportClient:
    """Calls the support operations, and creates support links and channels in the database."""

    def __init__(self, service: RunningService) -> None:
        self._service = service

    def create_token(self, channel: str = "telegram @venue") -> str:
        """Create a support link. Return its token."""
        now = self._service.clock()
        return self._service.database.write(
            lambda session: make_link(session, channel=channel, requested_by="Ada", now=now)
        ).token

    def store_channel(self, kind: str, address: str, hours: str | None = None) -> None:
        assert self._service.database.write(
            lambda session: set_channel(session, kind=kind, address=address, hours=hours)
        )

    async def call(
        self, path: str, caller: str | Browser | None = None, **body: Any
    ) -> httpx2.Response:
        """Call an operation as a signed-in user or with an API key.

        The default is a key with the write grant.
        """
        if isinstance(caller, Browser):
            return await caller.post(path, body)
        return await self._service.post(path, json.dumps(body), api_key=caller)

    async def confirm(
        self, token: str, organization: str = ORGANIZATION, caller: str | Browser | None = None
    ) -> httpx2.Response:
        return await self.call(routes.CONFIRM, caller, token=token, organizationId=organization)

    async def linked_channels(self, caller: str | None = None) -> list[str]:
        """Return the channels of the caller's links."""
        key = caller or self._service.write_key
        reply = await self._service.http.post(
            routes.CONTACT, headers={"authorization": f"Bearer {key}"}
        )
        assert reply.status_code == 200
        return [link["channel"] for link in reply.json()["links"]]

    def stored_rows(self) -> list[tuple[Any, ...]]:
        """Return all stored links and channels."""
        with self._service.database.read(lambda session: session) as session:
            return [
                tuple(row)
                for table in (SupportLink, SupportChannel)
                for row in session.execute(select(table.__table__))
            ]


def refusal_of(reply: httpx2.Response) -> tuple[int, str]:
    """Return the status and the code of a refusal."""
    return reply.status_code, reply.json()["code"]


def without_trace_id(reply: httpx2.Response) -> dict[str, Any]:
    """Return a refusal without its trace id, which differs each time."""
    body: dict[str, Any] = reply.json()
    return {name: value for name, value in body.items() if name != "trace_id"}
