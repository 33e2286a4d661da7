"""The page of alerts: Ada acknowledges and silences alerts, and sets rules and routes."""

import uuid
from datetime import datetime, timedelta
from typing import Any, Final

import httpx2
from sqlalchemy.orm import Session

from controlplane.accounts.keys.key_store import DEFAULT_ORGANIZATION
from controlplane.clock import system_clock
from controlplane.storage.database import Database
from controlplane.storage.monitoring_tables import Alert, AlertState
from tests.fakes.console.page import Page
from tests.fakes.console.people import ADA, PASSWORD, TITLE, fill, make_ada, sign_in
from tests.fakes.console.play import enroll_device

VENUE: Final = "harbour-street"
HOOK: Final = "https://hooks.example.com/services/T0/path"
FORM_PROBLEM: Final = "document.querySelector('#form .problem')?.textContent"
LAST: Final = "document.querySelector('#{} li:last-child')?.innerText"


async def alerts(
    page: Page, http: httpx2.AsyncClient, url: str, key: str, database: str
) -> dict[str, Any]:
    make_ada(database)
    results: dict[str, Any] = {}
    till = await enroll_device(http, key, "till-bar", VENUE)
    await page.open(url)
    await sign_in(page, ADA, PASSWORD)
    results["none"] = await _open(page, "alert-rows")
    await page.check_view("alerts-none")
    outage, offline = _fire(database, till.instance_id)
    await page.go("#/profile")
    await page.until("document.getElementById('sessions')")
    results["firing"] = await _open(page, "alert-rows")
    await _acknowledge(page, results, offline)
    await _silence(page, results, outage)
    await _add_rule(page, results)
    await _add_route(page, results)
    await page.run("document.getElementById('alert-log').scrollIntoView()")
    await page.check_view("alerts-set")
    await _open_links(page, results, offline)
    await _remove(page, results)
    results["wrong"] = await page.run("window.wrong")
    return results


def _fire(file: str, instance_id: str) -> tuple[uuid.UUID, uuid.UUID]:
    """Store firing alerts of a site outage and an offline device, and a resolved alert of a fault.

    Returns:
        The ids of the two alerts that are firing.
    """
    database, now = Database(file), system_clock()
    rows = [
        _alert("broken", instance_id, "warning", now - timedelta(hours=5)),
        _alert("site_outage", "", "critical", now - timedelta(minutes=50)),
        _alert("offline", instance_id, "warning", now - timedelta(minutes=40)),
    ]
    rows[0].detail = "Kitchen printer has no paper."
    rows[0].ended_at = rows[0].resolved_at = now - timedelta(hours=4)
    rows[1].detail = "5 of 6 devices"

    def work(session: Session) -> None:
        session.add_all(rows)
        session.add_all(map(_state, rows[1:]))

    ids = rows[1].id, rows[2].id
    database.write(work)
    database.close()
    return ids


def _alert(condition: str, instance: str, severity: str, at: datetime) -> Alert:
    return Alert(
        id=uuid.uuid4(), organization_id=DEFAULT_ORGANIZATION, location_id=VENUE,
        instance=instance, condition=condition, is_flapping=False, started_at=at, fired_at=at,
        ended_at=None, resolved_at=None, detail="", severity=severity, is_muted=False,
    )  # fmt: skip


def _state(alert: Alert) -> AlertState:
    """Return the state of a firing alert whose condition is not really active.

    The next evaluation marks the condition as inactive, but the service resolves the alert only 5
    minutes later. So the alert is firing as long as the function `alerts` runs.
    """
    return AlertState(
        organization_id=alert.organization_id, location_id=VENUE, instance=alert.instance,
        condition=alert.condition, is_active=True, active_since=alert.started_at,
        inactive_since=None, is_firing=True, is_flapping=False, changes=[],
    )  # fmt: skip


async def _open(page: Page, section: str) -> str:
    await page.go("#/alerts")
    return str(await page.until(f"document.getElementById('{section}')?.innerText"))


async def _acknowledge(page: Page, results: dict[str, Any], alert_id: uuid.UUID) -> None:
    await page.check_view("alerts-firing")
    await page.tab_to(f"#acknowledge-{alert_id}")
    await page.press("Enter")
    await page.until(f"!document.getElementById('acknowledge-{alert_id}')")
    results["acknowledged"] = await page.run("document.getElementById('alert-rows').innerText")


async def _silence(page: Page, results: dict[str, Any], alert_id: uuid.UUID) -> None:
    await page.click(f"#silence-{alert_id}")
    results["silence form"] = await page.until(
        f"{TITLE} && document.querySelector('#form p').innerText"
    )
    await fill(page, form_until="2020-01-01T06:00", form_reason="new cables")
    await page.click("#form-submit")
    results["wrong end"] = await page.until(FORM_PROBLEM)
    await page.check_view("alert-silence")
    await fill(page, form_until="2099-12-01T06:00")
    await page.click("#form-submit")
    results["silence"] = await page.until(LAST.format("alert-silences"))


async def _add_rule(page: Page, results: dict[str, Any]) -> None:
    await page.click("#add-rule")
    await fill(page, form_condition="version_older_than", form_argument="latest")
    await page.click("#form-submit")
    results["wrong version"] = await page.until(FORM_PROBLEM)
    await page.check_view("alert-rule")
    await fill(page, form_argument="0.9.0", form_severity="info", form_minutes="30")
    await page.click("#form-submit")
    results["rule"] = await page.until(
        "document.getElementById('remove-rule-version_older_than-all')?.closest('li').innerText"
    )


async def _add_route(page: Page, results: dict[str, Any]) -> None:
    await page.click("#add-route")
    await fill(page, form_name="On call", form_target="https://127.0.0.1/in")
    await page.click("#form-submit")
    results["wrong address"] = await page.until(FORM_PROBLEM)
    await page.check_view("alert-route")
    await fill(page, form_target=HOOK, form_minutes="15")
    await page.click("#form-severities [value=critical]")
    await page.click("#form-submit")
    results["secret"] = await page.until("document.getElementById('secret')?.value")
    await page.click("#secret-done")
    results["route"] = await page.until(LAST.format("alert-routes"))
    await page.click("#alert-routes [id^=test-route]")
    results["log"] = await page.until(LAST.format("alert-log"))


async def _open_links(page: Page, results: dict[str, Any], alert_id: uuid.UUID) -> None:
    """Open the link that a notification contains, and then a link with an unknown alert id."""
    await page.go(f"#/alerts/{alert_id}")
    results["one"] = await page.until(
        "document.querySelector('#alert-rows a') && document.getElementById('alert-rows').innerText"
    )
    await page.check_view("alert-one")
    await page.go(f"#/alerts/{uuid.UUID(int=1)}")
    results["unknown"] = await page.until(
        "document.querySelector('#alert-rows .empty')?.textContent"
    )


async def _remove(page: Page, results: dict[str, Any]) -> None:
    await page.click("#alert-silences li button")
    await page.click("#remove-rule-version_older_than-all")
    results["removing"] = await page.run("document.getElementById('confirm').innerText")
    await page.click("#confirm-act")
    await page.until("!document.getElementById('remove-rule-version_older_than-all')")
    await page.click("#alert-routes [id^=remove-route]")
    await page.click("#confirm-act")
    await page.until("!document.querySelector('#alert-routes li, #alert-silences li')")
