"""The MCP Inspector against a running service: `make test-mcp-inspector`.

The Inspector discovers the authorization server and registers itself. The user signs in and
consents in Chromium. The Inspector then lists the tools, calls each of them and refreshes its
token. After the user has revoked the access, the service refuses the Inspector.
"""

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from tests.contract.agent_protocol.conftest import serving
from tests.contract.agent_protocol.served import ServedApp
from tests.contract.agent_protocol.test_official_client import CALLS
from tests.contract.agent_protocol.test_official_oauth_client import EMAIL, make_user
from tests.fakes.console.page import Page
from tests.paths import ROOT
from tests.prerequisites import browser as chromium
from tests.prerequisites import mcp_conformance
from tests.scenario.pictures.browser import browser
from tests.unit.controlplane.accounts.people import PASSWORD

PROGRAM: Final = ROOT / "build/mcp-inspector/node_modules/.bin/mcp-inspector"
WITHIN_S: Final = 180
_SIGN_IN: Final = re.compile(r"Please navigate to: (\S+)")


class Inspector:
    """Runs the Inspector's command line: one process for each call, with its tokens in ``home``.

    ``address`` receives the URL of the page that the user must open.
    """

    def __init__(self, home: Path, url: str) -> None:
        self._url = url
        self._node, _ = mcp_conformance()
        self._environment = {
            "HOME": str(home),
            "PATH": f"{self._node.parent}{os.pathsep}{os.defpath}",
            "MCP_AUTO_OPEN_ENABLED": "true",  # otherwise it needs a terminal
            "BROWSER": "true",  # the command true(1), because the test opens the page itself
            "MCP_INSPECTOR_SECRET_STORE": "file",
        }
        self.address: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def run(self, *words: str) -> tuple[int, str]:
        """Return the exit code, and the result or the error."""
        process = await asyncio.create_subprocess_exec(
            self._node, PROGRAM, "--cli", self._url, "--transport", "http", "--format", "json",
            *words,
            env=self._environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            async with asyncio.timeout(WITHIN_S):
                out, error = await asyncio.gather(
                    process.stdout.read(), self._follow(process.stderr)
                )
                code = await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
            raise
        return code, error if code else out.decode()

    async def _follow(self, stream: asyncio.StreamReader) -> str:
        output = ""
        async for line in stream:
            output += line.decode()
            if (match := _SIGN_IN.search(line.decode())) and not self.address.done():
                self.address.set_result(match[1])
        return output

    async def tools(self, *words: str) -> list[str]:
        code, output = await self.run("--method", "tools/list", *words)
        assert code == 0, output
        return [tool["name"] for tool in _result(output)["tools"]]

    async def call(self, tool: str, arguments: dict[str, Any]) -> tuple[int, str]:
        return await self.run(
            "--stored-auth-only", "--method", "tools/call", "--tool-name", tool,
            "--tool-args-json", json.dumps(arguments),
        )  # fmt: skip


def _result(output: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(output)
    result: dict[str, Any] = document.get("result", document)
    return result


@pytest.fixture
async def served_without_added_key(tmp_path: Path) -> AsyncIterator[ServedApp]:
    async with serving(tmp_path, adds_api_key=False) as server:
        make_user(server)
        yield server


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    with browser(chromium(), tmp_path / "profile") as tab:
        yield Page(tab, "wide", axe="", pictures=None)


async def test_user_grants_read_access_and_revokes_it(
    served_without_added_key: ServedApp, page: Page, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    inspector = Inspector(home, served_without_added_key.url)
    listing = asyncio.create_task(inspector.tools())
    await asyncio.wait({listing, inspector.address}, return_when=asyncio.FIRST_COMPLETED)
    assert not listing.done(), listing.result()
    await _allow(page, inspector.address.result())
    assert await listing == [*CALLS, "set_catalog_availability"]

    for tool, arguments in CALLS.items():
        code, output = await inspector.call(tool, arguments)
        assert code == 0, output
        assert _result(output)["structuredContent"]
    code, output = await inspector.call("read_catalog", {"limit": 1})
    good = _result(output)["structuredContent"]["rows"][0]["goodId"]
    change = {"goodId": good, "status": "inactive"}
    code, output = await inspector.call("set_catalog_availability", change)
    assert code != 0
    assert "read-only" in output

    # The access token has expired. The Inspector refreshes it without the user.
    served_without_added_key.clock.now += timedelta(hours=2)
    assert await inspector.tools("--stored-auth-only")

    await _revoke(page, served_without_added_key.url.removesuffix("/api/mcp/v1"))
    code, output = await inspector.call("business_context", {})
    assert code != 0
    assert "auth" in output.lower()


async def test_api_key_reads_and_writes(
    served_without_added_key: ServedApp, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    inspector = Inspector(home, served_without_added_key.url)
    bearer = ("--header", f"Authorization: Bearer {served_without_added_key.api_key}")
    assert len(await inspector.tools(*bearer)) == 7
    words = ("--method", "tools/call", "--tool-name")
    code, output = await inspector.run(*words, "read_catalog", "--tool-arg", "limit=1", *bearer)
    assert code == 0, output
    good = _result(output)["structuredContent"]["rows"][0]["goodId"]
    change = json.dumps({"goodId": good, "status": "inactive"})
    words = (*words, "set_catalog_availability", "--tool-args-json", change)
    code, output = await inspector.run(*words, *bearer)
    assert code == 0, output
    assert _result(output)["structuredContent"]["changed"] is True


async def _allow(page: Page, address: str) -> None:
    await page.prepare()
    await page.open(address)
    await page.until("document.querySelector('#email')")
    await page.tab_to("#email")
    await page.type(EMAIL)
    await page.tab_to("#password")
    await page.type(PASSWORD)
    await page.press("Enter")
    await page.arrive("document.querySelector('h1 .supplied')")
    await page.click("button.primary")


async def _revoke(page: Page, url: str) -> None:
    await page.open(f"{url}/#/profile")
    await page.until("document.querySelector('#grants li')")
    await page.click("#grants button")
    await page.until("document.querySelector('#confirm[open]')")
    await page.click("#confirm-act")
    await page.until("!document.querySelector('#grants li')")
