"""Runs one test flow, an act, in the console. It must run in its own network namespace
(tests.lab.namespaces):

    python -m tests.fakes.console CHROMIUM ACT WIDTH [--axe SCRIPT] [--pictures FOLDER]

``ACT`` is play, keyboard, figures, people, consent, settings or pages. ``WIDTH`` is narrow or wide.
The program prints one JSON object: the browser's content at each step, and under ``seen`` the
results of `Page.check_view`.
"""

import argparse
import asyncio
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import httpx2

from controlplane.accounts.key_store import DEFAULT_ORGANIZATION, create_key
from controlplane.clock import system_clock
from controlplane.storage.database import Database
from tests.bench.fleet.service import service
from tests.fakes.console.consent import consent, make_user
from tests.fakes.console.figures import figures, merchant
from tests.fakes.console.keyboard import keyboard
from tests.fakes.console.page import VIEWPORTS, WITHIN_S, Page
from tests.fakes.console.pages import pages
from tests.fakes.console.people import people
from tests.fakes.console.play import play
from tests.fakes.console.settings import settings
from tests.scenario.pictures.browser import browser


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("chromium")
    acts = ("play", "keyboard", "figures", "people", "consent", "settings", "pages")
    parser.add_argument("act", choices=acts)
    parser.add_argument("width", choices=tuple(VIEWPORTS))
    parser.add_argument("--axe", type=Path)
    parser.add_argument("--pictures", type=Path)
    chosen = parser.parse_args()
    axe = chosen.axe.read_text(encoding="utf-8") if chosen.axe else ""
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home,
        browser(chosen.chromium, Path(home) / "profile") as tab,
    ):
        page = Page(tab, chosen.width, axe, chosen.pictures)
        output = asyncio.run(_act(chosen.act, page, Path(home)))
    sys.stdout.write(json.dumps({**output, "seen": page.seen}))
    return 0


async def _act(act: str, page: Page, home: Path) -> dict[str, Any]:
    await page.prepare()
    if act == "pages":
        return await pages(page, home)
    database = str(home / "service.db")
    key, reader = _keys(database)
    if act == "figures":
        merchant(database, is_awkward=True)
        outsider, _ = _keys(database, "org-without-a-merchant")
    if act == "consent":
        make_user(database)
    with service(database) as served:
        url = f"http://127.0.0.1:{served.port}"
        async with httpx2.AsyncClient(base_url=url, timeout=WITHIN_S) as http:
            if act == "figures":
                return await figures(page, http, url, reader, outsider)
            acts = {
                "keyboard": lambda: keyboard(page, http, url, key),
                "people": lambda: people(page, http, url, key, database),
                "settings": lambda: settings(page, http, url, database),
                "consent": lambda: consent(page, http, url),
                "play": lambda: play(page, http, url, key, reader, database=database),
            }
            return await acts[act]()


def _keys(file: str, organization_id: str = DEFAULT_ORGANIZATION) -> tuple[str, str]:
    """Return an API key with a write grant and one without."""
    database = Database(file)
    keys = [
        database.write(
            lambda session, can_write=can_write: create_key(
                session, name="rollout" if can_write else "reader", can_write=can_write,
                locations=(), organization_id=organization_id, now=system_clock(),
            )
        )[1]
        for can_write in (True, False)
    ]  # fmt: skip
    database.close()
    return keys[0], keys[1]


if __name__ == "__main__":
    raise SystemExit(main())
