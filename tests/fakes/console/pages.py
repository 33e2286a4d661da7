"""The HTML pages of reports, opened as files."""

from pathlib import Path
from typing import Any

from agent.presentation.changes.changes import changes_between
from agent.presentation.page.html import report_page
from tests.fakes.console.page import Page
from tests.fixtures.healthy import healthy
from tests.fixtures.payloads import (
    application_snapshot,
    bare_report,
    empty_report,
    hostile_network,
    large_venue,
    small_venue,
)


async def pages(page: Page, folder: Path) -> dict[str, Any]:
    small, snapshot = small_venue(), application_snapshot()
    contents = {
        "network": report_page(small),
        "network-changed": report_page(small, changes_between(large_venue(), small)),
        "network-large": report_page(large_venue()),
        "network-empty": report_page(empty_report()),
        "network-bare": report_page(bare_report()),
        "network-hostile": report_page(hostile_network()),
        "application": report_page(snapshot),
        "application-changed": report_page(
            snapshot, changes_between(healthy("linux-till"), snapshot)
        ),
        "application-windows": report_page(healthy("windows-back-office")),
    }
    for name, content in contents.items():
        file = folder / f"{name}.html"
        file.write_text(content, encoding="utf-8")
        await page.open(file.as_uri())
        await page.check_view(f"page-{name}")
    return {"pages": len(contents)}
