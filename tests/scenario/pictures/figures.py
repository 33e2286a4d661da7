"""Opens the console with the sales figures of a location, to take a picture of it."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from controlplane.accounts.keys.key_store import DEFAULT_ORGANIZATION, create_key
from controlplane.clock import system_clock
from controlplane.storage.database import Database
from tests.bench.fleet.service import service
from tests.fakes.console.figures import create_merchant
from tests.scenario.pictures.browser import Browser

DAYS: Final = 45
SALES_PER_DAY: Final = 120
FRAGMENT: Final = "#/figures/loc-0001?period=last7"


@contextlib.contextmanager
def figures_console(file: Path, tab: Browser) -> Iterator[None]:
    """Show the sales figures in ``tab`` while the body runs."""
    create_merchant(str(file), days=DAYS, sales_per_day=SALES_PER_DAY)
    key = _key(file)
    with service(str(file)) as server:
        tab.open(f"http://127.0.0.1:{server.port}/", "document.activeElement.id === 'email'")
        tab.value(f"document.getElementById('key').value = {json.dumps(key)}")
        tab.value(f"location.hash = {json.dumps(FRAGMENT)}")
        tab.value("document.getElementById('key-form').requestSubmit()")
        tab.wait("document.querySelector('svg.heat')")
        yield


def _key(file: Path) -> str:
    database = Database(str(file))
    with contextlib.closing(database):
        return database.write(
            lambda session: create_key(
                session, name="manager", can_write=False, locations=(),
                organization_id=DEFAULT_ORGANIZATION, now=system_clock(),
            )
        )[1]  # fmt: skip
