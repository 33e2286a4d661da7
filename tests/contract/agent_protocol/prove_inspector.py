"""The MCP Inspector's command line: it finds out by itself how to get a token, and its person
signs in and consents in a real browser; then it lists the tools, calls each, refreshes, and is
refused once the person has stopped it.

    make test-mcp-inspector
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
from tests.contract.agent_protocol.served import Served
from tests.contract.agent_protocol.test_official_client import CALLS
from tests.contract.agent_protocol.test_official_oauth_client import EMAIL, add_person
from tests.fakes.console.page import Page
from tests.paths import ROOT
from tests.prerequisites import browser as chromium
from tests.prerequisites import mcp_conformance
from tests.scenario.pictures.browser import browser
from tests.unit.controlplane.accounts.people import PASSWORD

PROGRAM: Final = ROOT / "build/mcp-inspector/node_modules/.bin/mcp-inspector"
WITHIN_S: Final = 60
ASKS: Final = re.compile(r"Please navigate to: (\S+)")


class Inspector:
    """Each call is a process of its own; what it is to remember is in its home.

    ``address`` is where it sends its person, once it does.
    """

    def __init__(self, home: Path, url: str) -> None:
        self._url = url
        self._node, _ = mcp_conformance()
        self._environment = {
            "HOME": str(home),
            "PATH": f"{self._node.parent}{os.pathsep}{os.defpath}",
            "MCP_AUTO_OPEN_ENABLED": "true",  # it asks although there is no terminal
            "BROWSER": "true",  # true(1): the test goes there by itself
            "MCP_INSPECTOR_SECRET_STORE": "file",
        }
        self.address: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def run(self, *words: str) -> tuple[int, str]:
        """Return the exit code, and what it said: the result, or what went wrong."""
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
        said = ""
        async for line in stream:
            said += line.decode()
            if (asks := ASKS.search(line.decode())) and not self.address.done():
                self.address.set_result(asks[1])
        return said

    async def tools(self, *words: str) -> list[str]:
        code, said = await self.run("--method", "tools/list", *words)
        assert code == 0, said
        return [each["name"] for each in _result(said)["tools"]]

    async def call(self, tool: str, arguments: dict[str, Any]) -> tuple[int, str]:
        return await self.run(
            "--stored-auth-only", "--method", "tools/call", "--tool-name", tool,
            "--tool-args-json", json.dumps(arguments),
        )  # fmt: skip


def _result(said: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(said)
    found: dict[str, Any] = told.get("result", told)
    return found


@pytest.fixture
async def bare(tmp_path: Path) -> AsyncIterator[Served]:
    async with serving(tmp_path, lends_key=False) as server:
        add_person(server)
        yield server


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    with browser(chromium(), tmp_path / "profile") as tab:
        yield Page(tab, "wide", "", None)


async def test_it_is_let_read_by_a_person_and_stopped(
    bare: Served, page: Page, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    inspector = Inspector(home, bare.url)
    asked = asyncio.create_task(inspector.tools())
    await _allow(page, await inspector.address)
    assert await asked == [*CALLS, "set_catalog_availability"]

    for tool, arguments in CALLS.items():
        code, said = await inspector.call(tool, arguments)
        assert code == 0, said
        assert _result(said)["structuredContent"]
    code, said = await inspector.call("read_catalog", {"limit": 1})
    good = _result(said)["structuredContent"]["rows"][0]["goodId"]
    change = {"goodId": good, "status": "inactive"}
    code, said = await inspector.call("set_catalog_availability", change)
    assert code != 0
    assert "reads only" in said

    # An hour and more later its token is over: it gets another one without its person.
    bare.clock.now += timedelta(hours=2)
    assert await inspector.tools("--stored-auth-only")

    await _stop(page, bare.url.removesuffix("/api/mcp/v1"))
    code, said = await inspector.call("business_context", {})
    assert code != 0
    assert "auth" in said.lower()


async def test_a_key_reads_and_writes(bare: Served, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    inspector = Inspector(home, bare.url)
    bearer = ("--header", f"Authorization: Bearer {bare.api_key}")
    assert len(await inspector.tools(*bearer)) == 7
    words = ("--method", "tools/call", "--tool-name")
    code, said = await inspector.run(*words, "read_catalog", "--tool-arg", "limit=1", *bearer)
    assert code == 0, said
    good = _result(said)["structuredContent"]["rows"][0]["goodId"]
    change = json.dumps({"goodId": good, "status": "inactive"})
    words = (*words, "set_catalog_availability", "--tool-args-json", change)
    code, said = await inspector.run(*words, *bearer)
    assert code == 0, said
    assert _result(said)["structuredContent"]["changed"] is True


async def _allow(page: Page, address: str) -> None:
    await page.prepare()
    await page.open(address)
    await page.until("document.querySelector('#email')")
    await page.tab_to("#email")
    await page.type(EMAIL)
    await page.tab_to("#password")
    await page.type(PASSWORD)
    await page.press("Enter")
    await page.arrive("document.querySelector('h1 .told')")
    await page.click("button.primary")


async def _stop(page: Page, url: str) -> None:
    await page.open(f"{url}/#/profile")
    await page.until("document.querySelector('#grants li')")
    await page.click("#grants button")
    await page.until("document.querySelector('#confirm[open]')")
    await page.click("#confirm-act")
    await page.until("!document.querySelector('#grants li')")
