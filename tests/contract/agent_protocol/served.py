"""An application that can add the API key of the tests to calls without a credential.

The official conformance suite needs this, because it cannot send an API key.
"""

from starlette.types import ASGIApp, Receive, Scope, Send

from controlplane.accounts.keys import key_store
from controlplane.storage.database import Database
from tests.unit.controlplane.running_service import FakeClock


class ServedApp:
    def __init__(
        self, app: ASGIApp, database: Database, clock: FakeClock, *, adds_api_key: bool
    ) -> None:
        self.url = ""
        self.database = database
        self.clock = clock
        self._adds_api_key = adds_api_key
        self.api_key = database.write(
            lambda session: key_store.create_key(
                session,
                name="test",
                can_write=True,
                locations=(),
                organization_id=key_store.DEFAULT_ORGANIZATION,
                now=clock(),
            )
        )[1]
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        lacks_credential = scope["type"] == "http" and all(
            name != b"authorization" for name, _ in scope["headers"]
        )
        if lacks_credential and self._adds_api_key:
            credential = (b"authorization", f"Bearer {self.api_key}".encode())
            scope = scope | {"headers": [*scope["headers"], credential]}
        await self._app(scope, receive, send)
