"""Starts the OpenID provider of the tests, and changes its users and its signing key."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from tests.paths import ROOT
from tests.prerequisites import mcp_conformance

MODULE: Final = ROOT / "build/openid-provider/node_modules/oidc-provider/lib"
SCRIPT: Final = Path(__file__).with_name("provider.mjs")
CLIENT_ID: Final = "venue"
CLIENT_SECRET: Final = "a secret of the client"
START_WITHIN_S: Final = 180


class Provider:
    """A running provider."""

    def __init__(
        self, process: asyncio.subprocess.Process, accounts: Path, *, issues_refresh_tokens: bool
    ) -> None:
        self._process = process
        self._accounts = accounts
        self.issues_refresh_tokens = issues_refresh_tokens
        self.issuer = ""

    async def read_line(self) -> str:
        assert self._process.stdout is not None
        async with asyncio.timeout(START_WITHIN_S):
            line = await self._process.stdout.readline()
        assert line, "the provider has ended"
        return line.decode().strip()

    def set_groups(self, groups: Mapping[str, list[str]]) -> None:
        """Replace the users of the provider. ``groups`` maps each user to the user's groups."""
        claims = {
            name: {
                "email": f"{name}@contoso.example",
                "email_verified": True,
                "name": name.title(),
                "groups": user_groups,
            }
            for name, user_groups in groups.items()
        }
        self._accounts.write_text(json.dumps(claims))

    async def replace_key(self) -> str:
        """Replace the key that signs ID tokens. Return the id of the new key."""
        self._process.send_signal(signal.SIGHUP)
        return await self.read_line()


@asynccontextmanager
async def running_provider(
    folder: Path, redirect_uri: str, *, issues_refresh_tokens: bool
) -> AsyncIterator[Provider]:
    """Run the provider with one client."""
    grants = ["authorization_code", *(["refresh_token"] if issues_refresh_tokens else [])]
    client: dict[str, Any] = {
        "client_id": CLIENT_ID,
        "client_secret": CLIENT_SECRET,
        "redirect_uris": [redirect_uri],
        "grant_types": grants,
    }
    accounts = folder / "accounts.json"
    node, _ = mcp_conformance()  # the provider runs on the Node.js of the MCP conformance suite
    process = await asyncio.create_subprocess_exec(
        node, SCRIPT, MODULE, accounts, json.dumps(client),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    provider = Provider(process, accounts, issues_refresh_tokens=issues_refresh_tokens)
    try:
        provider.issuer = await provider.read_line()
        yield provider
    finally:
        process.kill()
        await process.wait()
