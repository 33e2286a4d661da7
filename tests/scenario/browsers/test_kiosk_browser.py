"""A real Chromium displays a page. The collector must report the values that the page observes."""

import json
import subprocess
import sys
from typing import Any

import pytest
from pydantic import TypeAdapter

from agent.wire.codec import validate
from agent.wire.payloads.application import BrowserField
from collectors.application.source import Reading
from collectors.contract import Field
from tests.lab import namespaces
from tests.paths import ROOT
from tests.prerequisites import browser
from tests.unit.agent.presentation.findings.sentences_by_rule import sentences_by_rule

CHANGING_KEYS = {"browser.heapUsedBytes", "browser.pageUptimeSeconds", "browser.originUsageBytes"}

pytestmark = pytest.mark.needs("browser")


@pytest.fixture(scope="module")
def observations() -> dict[str, Any]:
    """The collector's facts, and the values of the page before and after the collection."""
    command = (sys.executable, "-m", "tests.fakes.devtools_browser", browser())
    result = subprocess.run(
        (*namespaces.entering(), *command),
        cwd=ROOT,
        capture_output=True,
        timeout=600,
        check=False,
    )
    assert result.returncode == 0, result.stderr.decode()[-3000:]
    output: dict[str, Any] = json.loads(result.stdout)
    return output


def test_browser_fields_match_the_values_of_the_page(observations: dict[str, Any]) -> None:
    fields = {field["key"]: field for field in observations["facts"]["browser_fields"]}
    available = {key: f["value"] for key, f in fields.items() if f["status"] == "available"}
    assert len(fields) == 34
    assert len(available) >= 28
    expected = {key: observations["before"][key] for key in available if key not in CHANGING_KEYS}
    assert {key: available[key] for key in expected} == expected


def test_changing_values_are_close_to_those_of_the_page(observations: dict[str, Any]) -> None:
    fields = {field["key"]: field["value"] for field in observations["facts"]["browser_fields"]}
    uptime = "browser.pageUptimeSeconds"
    assert observations["before"][uptime] <= fields[uptime] <= observations["after"][uptime]
    used = fields["browser.heapUsedBytes"]
    assert 0 < used <= fields["browser.heapLimitBytes"]
    assert used / 4 < observations["before"]["browser.heapUsedBytes"] < used * 4
    assert fields["browser.originUsageBytes"] >= 0


def test_fields_without_a_value_are_unsupported_and_the_page_observes_no_value(
    observations: dict[str, Any],
) -> None:
    for field in observations["facts"]["browser_fields"]:
        validate({k: v for k, v in field.items() if v is not None}, BrowserField)
        if field["status"] != "available":
            assert observations["before"][field["key"]] is None
            assert field["status"] == "unsupported"


def test_the_collector_does_not_change_the_page(observations: dict[str, Any]) -> None:
    """The collector causes no click, no change of the document, and no new property of `window`."""
    assert observations["after"]["touched"] == observations["before"]["touched"]
    assert observations["after"]["touched"][0] == 0


def test_facts_contain_no_content_or_address_of_the_page(observations: dict[str, Any]) -> None:
    output = json.dumps(observations["facts"])
    secrets = ("title-secret", "content-secret", "page-secret", "/orders", "127.0.0.1")
    # The page's own JSON.stringify returns "page-lie". The collector must not use it.
    for text in (*secrets, "page-lie"):
        assert text not in output


WORKING_PAGE: dict[str, object] = {
    "kiosk.crashed": False,
    "kiosk.responding": True,
    "kiosk.errorPage": False,
    "kiosk.drawing": True,
    "kiosk.painted": True,
}
PERMISSIONS = ("kiosk.localNetworkPermission", "kiosk.loopbackPermission")


def state_in(fields: dict[str, Any]) -> dict[str, object]:
    """Return the reported state of the page, without the permissions, which older browsers lack."""
    return {
        k: f["value"] for k, f in fields.items() if k in WORKING_PAGE and f["status"] == "available"
    }


def test_working_page_is_reported_as_working(observations: dict[str, Any]) -> None:
    fields = {field["key"]: field for field in observations["facts"]["fields"]}
    assert state_in(fields) == WORKING_PAGE
    for key in PERMISSIONS:
        assert fields[key]["status"] == "unsupported" or fields[key]["value"] == "prompt"


@pytest.mark.parametrize(
    ("scene", "expected"),
    [
        ("white", {**WORKING_PAGE, "kiosk.painted": False}),
        ("error page", {**WORKING_PAGE, "kiosk.errorPage": True}),
        ("after the error page", WORKING_PAGE),
        ("busy", {"kiosk.crashed": False, "kiosk.responding": False}),
        ("after it was busy", WORKING_PAGE),
        ("crashed", {"kiosk.crashed": True, "kiosk.responding": False}),
        ("after the crash", WORKING_PAGE),
    ],
)
def test_failure_of_the_page_is_reported_until_it_is_over(
    observations: dict[str, Any], scene: str, expected: dict[str, object]
) -> None:
    assert state_in(observations["scenes"][scene]) == expected


@pytest.mark.parametrize(
    ("scene", "finding"),
    [
        ("white", "kiosk-blank"),
        ("error page", "kiosk-error-page"),
        ("busy", "kiosk-frozen"),
        ("crashed", "kiosk-crashed"),
        ("after the crash", None),
    ],
)
def test_failure_of_the_page_is_a_finding_until_it_is_over(
    observations: dict[str, Any], scene: str, finding: str | None
) -> None:
    fields = TypeAdapter(tuple[Field, ...]).validate_python(
        list(observations["scenes"][scene].values())
    )
    # The state of the local network permission depends on the browser's version.
    codes = sentences_by_rule(Reading(fields)).keys() - {"kiosk-local-network-undecided"}
    assert codes == ({finding} if finding else set())


def test_error_page_reports_no_permission_and_no_address(observations: dict[str, Any]) -> None:
    fields = observations["scenes"]["error page"]
    assert {fields[key]["status"] for key in PERMISSIONS} == {"not-applicable"}
    assert "127.0.0.1" not in json.dumps(observations["scenes"])


def test_the_recorder_reads_whether_a_page_is_open(observations: dict[str, Any]) -> None:
    open_page, closed_browser = observations["page_faults"]
    assert open_page is None
    assert closed_browser == "no browser listens at kiosk_debug_url"


def test_no_source_fails_with_a_real_kiosk_browser(observations: dict[str, Any]) -> None:
    assert observations["facts"]["failures"] == []
