"""Runs test flows, called acts, in the console. This program must run in its own network namespace
(tests.lab.namespaces):

    echo ACT WIDTH | python -m tests.fakes.console CHROMIUM [--axe SCRIPT] [--pictures FOLDER]

``ACT`` is play, keyboard, figures, people, consent, settings, alerts, routes, company or pages.
``WIDTH`` is narrow or wide. Each line of the input is one act. For each act the program prints a
line with a JSON object: the browser's content at each step, and under ``seen`` the results of
`Page.check_view`. All acts use one Chromium. Each act has its own browser context. Each act except
pages has its own service with a new database. The program ends at the end of its input, or when an
act fails.
"""

import argparse
import asyncio
import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2

from controlplane.accounts.keys.key_store import DEFAULT_ORGANIZATION, create_key
from controlplane.clock import system_clock
from controlplane.storage.database import Database
from tests.fakes.console.alerts import alerts
from tests.fakes.console.company import company, make_member, make_providers
from tests.fakes.console.consent import consent, make_user
from tests.fakes.console.figures import PLAN, create_merchant, figures
from tests.fakes.console.keyboard import keyboard
from tests.fakes.console.page import WITHIN_S, Page
from tests.fakes.console.pages import pages
from tests.fakes.console.people import people
from tests.fakes.console.play import play
from tests.fakes.console.routes import SMTP, routes
from tests.fakes.console.settings import settings
from tests.fakes.identity_provider.process import provider_process
from tests.scenario.forked_process import start_forked, stop_server
from tests.scenario.pictures.browser import running, separate_tab


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("chromium")
    parser.add_argument("--axe", type=Path)
    parser.add_argument("--pictures", type=Path)
    options = parser.parse_args()
    axe = options.axe.read_text(encoding="utf-8") if options.axe else ""
    with (
        contextlib.ExitStack() as stack,
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile,
        running(options.chromium, Path(profile)) as port,
    ):
        stack.callback(stop_server)
        for line in sys.stdin:
            act, width = line.split()
            with tempfile.TemporaryDirectory() as folder, separate_tab(port) as tab:
                page = Page(tab, width, axe, options.pictures)
                output = asyncio.run(_act(act, page, Path(folder)))
            sys.stdout.write(json.dumps({**output, "seen": page.seen}) + "\n")
            sys.stdout.flush()
    return 0


async def _act(act: str, page: Page, folder: Path) -> dict[str, Any]:
    await page.prepare()
    if act == "pages":
        return await pages(page, folder)
    database = str(folder / "service.db")
    if act == "company":
        make_member(database)
        with provider_process() as provider:
            file = make_providers(folder, provider)
            with _service(database, "--identity-providers", str(file)) as url:
                return await company(page, url, database, provider)
    if act == "routes":
        with _service(database, *SMTP) as url:
            return await routes(page, url, database)
    key, reader = _create_keys(database)
    if act == "figures":
        create_merchant(database, **PLAN)
        outsider, _ = _create_keys(database, "org-without-a-merchant")
    if act == "consent":
        make_user(database)
    with _service(database) as url:
        # Between two requests of an act, the service can close the idle connection. The next
        # request would then fail on it, so each request has its own connection.
        limits = httpx2.Limits(max_keepalive_connections=0)
        async with httpx2.AsyncClient(base_url=url, timeout=WITHIN_S, limits=limits) as http:
            if act == "figures":
                return await figures(page, http, url, reader, outsider)
            acts = {
                "keyboard": lambda: keyboard(page, http, url, key),
                "people": lambda: people(page, http, url, key, database),
                "alerts": lambda: alerts(page, http, url, key, database),
                "settings": lambda: settings(page, http, url, database),
                "consent": lambda: consent(page, http, url),
                "play": lambda: play(page, http, url, key, reader, database=database),
            }
            return await acts[act]()


@contextlib.contextmanager
def _service(database: str, *options: str) -> Iterator[str]:
    """Run the service on ``database`` without rate limits, and yield its address."""
    arguments = (
        "serve", "--database", database, "--port", "0", "--rate", "0", "--log-level", "error",
        *options,
    )  # fmt: skip
    pipe = Path(f"{database}.output")
    os.mkfifo(pipe)
    process = start_forked(
        "controlplane", *arguments,
        environment=dict(os.environ), output=pipe, errors=Path("/dev/stderr"),
    )  # fmt: skip
    with pipe.open() as output:
        try:
            yield output.readline().split()[-1]
        finally:
            process.terminate()
            process.join(WITHIN_S)


def _create_keys(file: str, organization_id: str = DEFAULT_ORGANIZATION) -> tuple[str, str]:
    """Create two API keys of an organization. Return the key with a write grant, then the other."""
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
