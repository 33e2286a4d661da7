"""Tests the console in a real Chromium, from signing in with a key to reading a report.

The tests use the mouse and the keyboard, in a wide and in a narrow window. axe-core checks every
state of the page.
"""

import csv
import io
import itertools
import json
import re
import select
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from typing import IO, Any, Final

import pytest

from tests import sizes
from tests.fakes.console.page import SCHEMES, VIEWPORTS
from tests.fakes.console.play import HOSTILE
from tests.lab import namespaces
from tests.paths import ROOT
from tests.prerequisites import axe, browser

pytestmark = pytest.mark.needs("browser", "axe")
ACTS: Final = {
    "visited": "play", "typed": "keyboard", "counted": "figures", "people": "people",
    "consented": "consent", "installed": "settings", "alerted": "alerts",
    "routed": "routes", "signed_in": "company",
}  # fmt: skip
"""Maps each fixture to its act, which is a scripted session in the browser."""
IN_MEDIUM: Final = {("play", "narrow")}
"""The acts and widths of `make test`. `make test-all` plays all acts at both widths."""
PLAY_STATES: Final = {
    "sign-in-key", "sign-in-refused", "home-empty", "devices-empty", "home", "devices",
    "devices-found", "device-running", "report-network", "report-saving", "device",
    "report-application", "request-dialog", "request-result", "revoke", "device-revoked",
    "request-arrived", "printers", "printers-grouped", "printers-none", "printers-empty",
    "device-unknown", "page-unknown", "device-outage", "device-away", "devices-waiting",
    "service-away", "devices-read-only", "device-read-only", "home-interrupted",
    "device-interrupted", "findings", "findings-rule", "findings-none",
}  # fmt: skip
FIGURES_STATES: Final = {"figures", "figures-all", "figures-week"}
PEOPLE_STATES: Final = {
    "sign-in", "account-menu", "new-key", "new-key-shown", "profile", "change-password",
    "inviting", "members", "join", "members-two", "audit", "support", "linking", "session-ended",
}  # fmt: skip
CONSENT_STATES: Final = {"sign-in", "consent", "grants", "consent-long", "refused"}
SETTINGS_STATES: Final = {
    "add-device-empty", "add-device-waiting", "add-device-arrived", "opening-hours", "maintenance",
    "locations", "webhook", "webhook-secret", "alerts", "join-refused", "docs-facade",
    "docs-facade-operation", "docs-retail", "docs-retail-operation",
}  # fmt: skip
COMPANY_STATES: Final = {
    "form", "form-set-up", "form-recovery-codes", "form-signed-in", "form-code", "form-problem",
    "sign-in-providers", "profile-factor", "factor-removing", "factor-set-up", "factor-codes",
}  # fmt: skip
ALERTS_STATES: Final = {
    "alerts-none", "alerts-firing", "alert-silence", "alert-rule", "alert-route", "alerts-set",
    "alert-one",
}  # fmt: skip
ROUTES_STATES: Final = {"routes-set", "route-change"}
STATES: Final = {
    "play": PLAY_STATES, "figures": FIGURES_STATES, "people": PEOPLE_STATES,
    "consent": CONSENT_STATES, "settings": SETTINGS_STATES, "alerts": ALERTS_STATES,
    "routes": ROUTES_STATES, "company": COMPANY_STATES,
}  # fmt: skip
"""The page states that each act must visit."""
GRAVE: Final = {"serious", "critical"}
WITHIN_S: Final = 600


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run the act of a test's fixture at each width."""
    for fixture in ACTS.keys() & set(metafunc.fixturenames):
        chosen = [width for act, width in IN_MEDIUM if act == ACTS[fixture]]
        metafunc.parametrize("width", sizes.large_except(chosen.__contains__, VIEWPORTS))


class Player:
    """Plays each act once, all in one browser. After an act that fails, a new browser starts."""

    def __init__(self, errors: IO[bytes]) -> None:
        self._program: subprocess.Popen[bytes] | None = None
        self._errors = errors
        self.play = cache(self._play)

    def _play(self, name: str, width: str) -> dict[str, Any]:
        if self._program is None:
            command = (sys.executable, "-m", "tests.fakes.console", browser(), "--axe", axe())
            self._program = subprocess.Popen(
                (*namespaces.entering(), *command), cwd=ROOT,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors,
            )  # fmt: skip
        assert self._program.stdin is not None
        assert self._program.stdout is not None
        self._program.stdin.write(f"{name} {width}\n".encode())
        self._program.stdin.flush()
        is_readable, *_ = select.select((self._program.stdout,), (), (), WITHIN_S)
        line = self._program.stdout.readline() if is_readable else b""
        if not line:
            self.end()
            raise AssertionError(f"the act {name} did not end")
        visited: dict[str, Any] = json.loads(line)
        return visited

    def end(self) -> None:
        """End the program. Raises AssertionError if it or one of its processes does not end."""
        program, self._program = self._program, None
        if program is None:
            return
        with program:
            try:
                program.communicate(timeout=WITHIN_S)
            except subprocess.TimeoutExpired:
                program.kill()
        self._errors.seek(0)
        assert program.returncode == 0, self._errors.read().decode()[-3000:]


@pytest.fixture(scope="module")
def player() -> Iterator[Player]:
    with tempfile.TemporaryFile() as errors:
        made = Player(errors)
        try:
            yield made
        finally:
            made.end()


@pytest.fixture
def visited(player: Player, width: str) -> dict[str, Any]:
    return player.play("play", width)


@pytest.fixture
def typed(player: Player, width: str) -> dict[str, Any]:
    return player.play("keyboard", width)


# ---------------------------------------------------------------------------- with the mouse


def test_wrong_key_is_refused_with_a_message(visited: dict[str, Any]) -> None:
    assert visited["refused"] == "The service does not know this key, or it was revoked."


def test_overview_starts_with_problems(visited: dict[str, Any]) -> None:
    tiles = dict(reversed(tile.split("\n")) for tile in visited["tiles"].split("|"))
    assert tiles["Broken"] == "1"
    assert tiles == {
        "Healthy": "2", "Warning": "0", "Broken": "1", "Offline": "0", "Never connected": "0",
    }  # fmt: skip
    assert "till-bar" in visited["home"]
    assert "Kitchen printer has moved" in visited["home"]
    assert visited["title"] == "Overview · Venue control"


def test_devices_are_sorted_by_severity_and_filtered_by_name(visited: dict[str, Any]) -> None:
    assert visited["names"] == ["till-bar", "till-kitchen", HOSTILE]
    assert visited["found"] == ["till-kitchen"]
    assert visited["by finding"] == ["till-bar"]
    assert visited["address"] == "#/devices?search=till-kitch"


def test_request_is_displayed_from_creation_to_report(visited: dict[str, Any]) -> None:
    assert visited["device title"] == "till-kitchen · Venue control"
    assert visited["request button"] == "Network report queued …"
    assert visited["running"] == "running"
    assert visited["line"].startswith("Kitchen printer has moved")
    assert visited["who"].startswith("requested by rollout")
    assert visited["report"] == "Report of till-kitchen"
    assert visited["report title"] == "till-kitchen, network report · Venue control"
    assert visited["map"] is True


def test_changes_since_the_previous_report_are_listed(visited: dict[str, Any]) -> None:
    assert "Kitchen printer has moved to 192.168.1.61:9100; it was reachable." in visited["changes"]
    assert "The printer Office laser is not reachable; it was reachable." in visited["changes"]
    assert visited["since"] == "Since the report of 2026-11-20 19:04:12 UTC "


def test_a_report_is_saved_as_a_table(visited: dict[str, Any]) -> None:
    assert visited["saved"]["name"].startswith("till-kitchen-network-printers-")
    assert visited["saved"]["name"].endswith(".csv")
    content = bytes(visited["saved"]["bytes"])
    assert content.startswith(b"\xef\xbb\xbf")
    rows = list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline="")))
    assert [row["name"] for row in rows] == ["Bar receipts", "Kitchen printer", "Office laser"]


def test_reports_are_requested_from_many_devices_at_once(visited: dict[str, Any]) -> None:
    assert visited["many"] == "Reports requested from 3 devices."
    assert [row.split()[-1] for row in visited["live rows"]] == ["queued"] * 3
    assert "Kitchen printer has moved" in visited["arrived"][0]
    assert [row.split()[-1] for row in visited["arrived"][1:]] == ["queued"] * 2
    assert visited["all button"] == "Request reports from all 3"


def test_findings_are_counted_and_listed_by_location(visited: dict[str, Any]) -> None:
    assert any("has moved" in row for row in visited["findings"])
    assert "harbour-street" in visited["finding"][0]
    assert visited["no findings"] == "No findings in the reports of the matching devices."


def test_printers_of_all_devices_are_listed_broken_first(visited: dict[str, Any]) -> None:
    names = [row.split("\n")[0] for row in visited["printers"]]
    assert names[:4] == ["Kitchen printer", "Office laser", "Kitchen printer", "Office laser"]
    assert "Moved to 192.168.1.61" in visited["printers"][0]
    assert "harbour-street 4 of 6 broken" in visited["grouped"]
    assert visited["no printers"] == "No printers match."


def test_a_request_waits_until_its_device_is_online(visited: dict[str, Any]) -> None:
    assert visited["pending"].startswith("waiting")
    assert "The network report is requested when the device is online, until" in visited["pending"]
    assert "Requested by rollout" in visited["pending"]
    assert visited["waiting"].startswith("waiting")
    assert visited["cancelled"] == "cancelled"


def test_timeline_has_a_description(visited: dict[str, Any]) -> None:
    assert visited["days"].startswith("Thirty days: online ")
    assert ", offline " in visited["days"]
    assert ", closed 14 h 24 min" in visited["days"]


def test_revocation_dialog_names_the_device(visited: dict[str, Any]) -> None:
    assert visited["revoke"] == "Revoke till-bar?"
    assert visited["revoked"] == "till-bar"


def test_errors_are_displayed_until_they_are_over(visited: dict[str, Any]) -> None:
    assert visited["unknown"] == "There is no such device."
    assert visited["no page"].startswith("Not found")
    assert "Back to the overview" in visited["no page"]
    assert visited["away"] == "The service does not answer."
    assert visited["back"] is True


def test_during_an_outage_states_are_marked_as_old_and_buttons_are_off(
    visited: dict[str, Any],
) -> None:
    assert visited["outage"].startswith("The service does not answer. You see the state of ")
    assert set(visited["off"]["buttons"]) == {"true"}
    assert visited["off"]["state"] == "rgb(95, 102, 109)"  # the colour of no severity
    assert visited["loading"] == "Loading …"
    assert set(visited["on"]["buttons"]) == {None}
    assert visited["on"]["state"] != visited["off"]["state"]


def test_read_only_key_has_no_actions(visited: dict[str, Any]) -> None:
    assert (visited["buttons"], visited["boxes"]) == ([], 0)


def test_interruptions_of_a_location_are_one_sentence(visited: dict[str, Any]) -> None:
    assert re.search(
        r"5 of 6 devices at loc-harbour lost the gateway at .*: the router, not the tills\.",
        visited["interruptions"],
    )
    assert re.search(r"3 of 6 devices at loc-harbour lost their link at", visited["interruptions"])
    assert HOSTILE in visited["interruptions"]
    assert "till-kitchen by 2 h (fast)" in visited["shared"]


def test_csv_text_is_not_a_formula(visited: dict[str, Any]) -> None:
    _, row = visited["csv"].split("\r\n", 1)
    assert row == (
        "\"'=1+\"\"1\"\"\",\"'@home\",\"linux\",\"\",\"online\",\"healthy\","
        "\"2026-11-20T12:00:00Z\",\"\",\"\",\"\",\"\",\"'-1\"\r\n"
    )  # fmt: skip


def test_no_script_fails_or_violates_the_content_security_policy(visited: dict[str, Any]) -> None:
    assert visited["wrong"] == []


# ---------------------------------------------------------------------------- with the keyboard


def test_the_navigation_can_be_skipped(typed: dict[str, Any]) -> None:
    assert typed["skip link"] is True
    assert (typed["skipped to"], typed["hash"]) == ("view", "")


def test_a_new_view_gets_the_focus_and_a_filter_does_not_move_the_focus(
    typed: dict[str, Any],
) -> None:
    assert typed["entered"] == "view"
    assert typed["still in"] == "by-search"
    assert typed["filtered"] == "state=online"


def test_a_closed_dialog_returns_the_focus(typed: dict[str, Any]) -> None:
    assert typed["after escape"] == typed["after dialog"] == "request-selected"
    assert typed["kind"] == "application"
    assert typed["result"] == "Reports requested from 1 device."
    assert typed["first in dialog"] == "cancel"
    assert typed["after keeping"] == "revoke"
    assert typed["revoked"] == "till-bar"
    assert typed["after revoking"] == "view"


def test_progress_of_a_request_is_announced_without_taking_focus(typed: dict[str, Any]) -> None:
    taken, running, report = typed["announcements"]
    assert taken == "The request for the network report was received by the device."
    assert running == "The request for the network report is running."
    assert report.startswith("A new network report: Kitchen printer has moved")
    assert typed["role"] == "status"
    assert typed["after request"] == typed["kept"] == "request-network"


def test_escape_closes_a_menu(typed: dict[str, Any]) -> None:
    assert typed["after menu"] == "Save as"
    assert typed["signed out"] is True


# ---------------------------------------------------------------------------- the venue's figures


@pytest.fixture
def counted(player: Player, width: str) -> dict[str, Any]:
    return player.play("figures", width)


def format_amount(cents: int, currency: str) -> str:
    sign = "-" if cents < 0 else ""
    name = {"EUR": "€"}.get(currency, f"{currency}\xa0")
    return f"{sign}{name}{abs(cents) / 100:,.2f}"


def test_without_a_merchant_there_is_no_link_to_figures(counted: dict[str, Any]) -> None:
    assert counted["is figures link hidden"] is True
    assert counted["none"] == "You have no access to the figures of a location."


def test_each_location_is_listed_with_today_beside_yesterday(counted: dict[str, Any]) -> None:
    assert [name for name, _ in counted["cards"]] == sorted(name for name, _ in counted["cards"])
    assert all("yesterday until " in nets for _, nets in counted["cards"])
    assert counted["place"] == counted["cards"][0][0]


def test_the_total_of_all_locations_is_listed_and_opens_their_figures(
    counted: dict[str, Any],
) -> None:
    name, sub, *nets = counted["total"]
    assert (name, sub) == ("All locations", "The sum of 3 locations")
    assert nets[0].endswith("yesterday until the same time")
    net = counted["today of all"]["net-AED"]
    assert net.endswith("yesterday until the same time")
    assert set(counted["shares"]) <= {name for name, _ in counted["cards"]}
    assert len(counted["shares"]) >= 2


def test_sales_are_saved_with_decimals_and_names(counted: dict[str, Any]) -> None:
    content = bytes(counted["saved"]["bytes"])
    assert content.startswith(b"\xef\xbb\xbf")
    rows = list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline="")))
    assert re.fullmatch(r"sales-all-[\d-]+\.csv", counted["saved"]["name"])
    assert {row["location"] for row in rows} <= {name for name, _ in counted["cards"]}
    assert all(re.fullmatch(r"\d+\.\d\d", row["total"]) for row in rows)
    assert all(row["pointOfSale"].startswith("Till ") for row in rows)


def test_a_day_of_a_location_is_printed_on_one_page_per_currency(counted: dict[str, Any]) -> None:
    pages, currencies = counted["printed"]
    # The generated day has sales in two currencies. Each currency is printed on its own page.
    assert pages == currencies


def test_figures_of_a_location_equal_those_of_the_facade(counted: dict[str, Any]) -> None:
    current = counted["facade"]["current"]["currencies"][0]
    previous = counted["facade"]["previous"]["currencies"][0]
    currency, figures = current["currency"], current["figures"]
    for name, key in (("net", "netCents"), ("gross", "grossCents"), ("refund", "refundCents")):
        text = counted["totals"][f"{name}-{currency}"]
        assert text.split("\n")[1] == format_amount(figures[key], currency)
        assert format_amount(previous["figures"][key], currency) in text
    assert counted["totals"][f"sales-{currency}"].split("\n")[1] == str(figures["saleCount"])
    vat = figures["vatCents"]
    known = "unknown" if vat is None else format_amount(vat, currency)
    assert counted["totals"][f"vat-{currency}"].split("\n")[1] == known
    hours = {row[0][:2]: row[1] for row in counted["hours"]}
    assert current["buckets"]
    for bucket in current["buckets"]:
        assert hours[f"{bucket['localHour']:02}"] == format_amount(bucket["netCents"], currency)


def test_choosing_a_period_by_keyboard_keeps_open_sections_open(counted: dict[str, Any]) -> None:
    assert counted["focus"] == "Yesterday"
    assert counted["kept open"] is True


def test_charts_have_titles_and_legible_text(counted: dict[str, Any]) -> None:
    assert len(counted["charts"]) >= 4
    assert all(role == "img" and name for role, name in counted["charts"])
    assert counted["touching"] == []
    assert counted["letters"] >= 11.5
    # If the content is higher than the window, only the view scrolls, and not the navigation bar.
    assert counted["scrolls"] is False


def test_errors_of_figures_are_displayed_until_they_are_over(counted: dict[str, Any]) -> None:
    assert counted["away"] == "The service does not answer."
    assert counted["is saving off"] is True
    assert counted["still there"] is True
    assert counted["back"] == "Live"
    assert counted["nowhere"] == "There is no such location."
    assert counted["wrong"] == []


# ---------------------------------------------------------------------------- signed in


@pytest.fixture
def people(player: Player, width: str) -> dict[str, Any]:
    return player.play("people", width)


def test_user_signs_in_and_no_script_can_read_the_session(people: dict[str, Any]) -> None:
    assert people["refused"] == "The e-mail address or the password is wrong."
    assert people["name"] == "Ada Berzina"
    assert people["kept"] == ["", 0, 0]
    assert people["menu"] == [
        "Your profile", "Members", "Locations", "Alerts", "Audit log", "Support", "Sign out",
    ]  # fmt: skip


def test_account_menu_closes_by_escape_and_by_a_click_elsewhere(people: dict[str, Any]) -> None:
    assert people["menu box"] == [True, True, True]
    assert people["menu after Escape"] == [False, "summary"]
    assert people["menu again"][0] is True
    assert people["menu after click"][0] is False


def test_profile_lists_the_user_the_locations_and_the_signed_in_browsers(
    people: dict[str, Any],
) -> None:
    assert people["who"] == "ada@example.com · owner of Harbour Hospitality, at every location"
    assert "this browser" in people["sessions"]


def test_new_key_is_displayed_once_is_accepted_and_can_be_revoked(people: dict[str, Any]) -> None:
    assert (people["works"], people["gone"]) == (200, "gone")
    assert people["key hint"] is True
    assert "Reads and writes, at harbour-street" in people["key"]
    assert people["dialog"] == "Revoke till of the bar?"


def test_changing_the_password_requires_the_old_password(people: dict[str, Any]) -> None:
    assert people["old"] == "The old password is wrong."


def test_invitation_link_works_once(people: dict[str, Any]) -> None:
    assert people["invited"].startswith("bob@example.com")
    assert people["join"] == "You are invited to join Harbour Hospitality as manager."
    assert people["used"].startswith("The link was used")


def test_only_owners_can_open_members(people: dict[str, Any]) -> None:
    assert people["managers menu"] is True
    assert people["members as manager"] == "No access"


def test_a_member_can_be_changed_and_removed_but_the_last_owner_cannot(
    people: dict[str, Any],
) -> None:
    ada, bob = people["members"]
    assert "You are the last owner, so your role cannot be changed." in ada
    assert "Manager at every location" in bob
    assert people["buttons"] == 2
    assert "Viewer at harbour-street" in people["changed"]
    assert people["removing"] == "Remove Bob?"


def test_audit_log_has_every_action(people: dict[str, Any]) -> None:
    log = [line.replace("\n\n", ": ") for line in people["log"]]
    tried = "ada@example.com tried"
    for line in (
        "ada@example.com removed the member bob@example.com",
        "bob@example.com joined: manager at every location",
        f"{tried} to change the password of ada@example.com refused: the old password is wrong",
        "ada@example.com requested a report of till-bar: network",
        f"{tried} to sign in refused: the e-mail address or the password is wrong",
    ):
        assert line in log
    assert any(
        line.startswith("ada@example.com created the API key till of the bar") for line in log
    )
    assert all("from 127.0.0.1" in credential for credential in people["credentials"])
    assert all(line.startswith("bob@example.com") for line in people["bob"])


def test_a_support_token_creates_one_link_and_the_link_can_be_removed(
    people: dict[str, Any],
) -> None:
    assert "help@example.com" in people["reached"]
    assert people["link"] == "Link telegram @venue?"
    assert "Requested by Eve · Harbour Hospitality" in people["linked"]
    assert people["used token"].startswith("This token was already used. Its link is in the list.")
    assert people["unlinked"].startswith("There are no links.")


def test_ended_session_and_too_many_sign_in_attempts_are_explained(people: dict[str, Any]) -> None:
    assert people["ended"] == "Your session has ended. Sign in again."
    # The wait starts at ten minutes. On a slow machine, the message can show fewer.
    assert re.fullmatch(
        r"Too many attempts\. Try again in ([1-9]|10) minutes?\.", people["too often"]
    )
    assert people["wrong"] == []


# ---------------------------------------------------------------------------- OAuth consent


@pytest.fixture
def consented(player: Player, width: str) -> dict[str, Any]:
    return player.play("consent", width)


def test_user_signs_in_and_consents_to_read_access(consented: dict[str, Any]) -> None:
    """The user only uses the keyboard. The page has no script, so the browser sends the form."""
    assert consented["refused"] == "The e-mail address or the password is wrong."
    assert consented["kept"] == "ada@example.com"
    assert consented["client name"] == "Sales assistant"
    answer = consented["answer"]
    assert answer["at"] == "http://127.0.0.1:9/callback"
    assert answer.keys() == {"at", "code", "state", "iss"}
    assert consented["token"] == ["access_token", "expires_in", "refresh_token", "token_type"]


def test_user_lists_consents_and_revokes_one(consented: dict[str, Any]) -> None:
    assert "Sales assistant" in consented["listed"]
    assert "sends it to a program on your own computer" in consented["listed"]
    assert consented["dialog"] == "Stop Sales assistant?"
    assert consented["none"].startswith("No program has access.")
    assert (consented["before"], consented["after"]) == (200, 401)


def test_user_refuses_consent(consented: dict[str, Any]) -> None:
    assert consented["host"] == "agent.example"
    assert consented["denied"]["at"] == "https://agent.example/callback"
    assert consented["denied"]["error"] == "access_denied"
    assert "code" not in consented["denied"]


def test_consent_page_cannot_be_framed_and_does_not_echo_an_invalid_redirect_uri(
    consented: dict[str, Any],
) -> None:
    assert consented["framed"] is False
    assert "evil" not in consented["wrong address"]


# ---------------------------------------------------------------------------- sign-in of companies


@pytest.fixture
def signed_in(player: Player, width: str) -> dict[str, Any]:
    return player.play("company", width)


def test_users_sign_in_without_javascript(signed_in: dict[str, Any]) -> None:
    assert "sign in without JavaScript" in signed_in["without scripts"]
    assert "eve@example.com" in signed_in["set up"]
    assert signed_in["wrong code"].startswith("The code is wrong")
    assert signed_in["with code"] == "You are signed in"
    assert "ada@contoso.example" in signed_in["by provider"]
    assert "None of your groups at Contoso" in signed_in["no group"]


def test_a_second_factor_is_removed_and_set_up_in_the_profile(signed_in: dict[str, Any]) -> None:
    assert signed_in["button"] == "Sign in with Contoso"
    assert "8 recovery codes left" in signed_in["factor"]
    assert len(signed_in["codes"].split()) == 10
    assert signed_in["wrong"] == []


# ---------------------------------------------------------------------------- first run, settings


@pytest.fixture
def installed(player: Player, width: str) -> dict[str, Any]:
    return player.play("settings", width)


def test_the_empty_console_guides_to_the_first_device(installed: dict[str, Any]) -> None:
    assert installed["guide"] == "#/add-device"
    command = installed["command"]
    assert command.startswith(
        "sudo apt-get install --yes ./venue-agent_*.deb && sudo venue-agent service install "
    )
    assert command.endswith("--location 'loc-0001' --api-key-file -")
    # A key in the command would be stored in the history of the shell.
    assert installed["new secret"].startswith("vck_")
    assert installed["new secret"] not in command
    assert installed["waiting"].startswith("Waiting for the device.")
    assert "till-bar" in installed["arrived"]
    assert installed["device"] == "till-bar"
    assert installed["link"] == "Add a device"
    assert installed["link on home"] is True


def test_settings_of_a_location_are_changed_and_wrong_values_explained(
    installed: dict[str, Any],
) -> None:
    assert installed["location"].startswith("Old harbour\n\nloc-0001 · 1 device")
    assert installed["wrong hours"] == (
        "The opening hours cannot be used: '9 to 5' does not have the form \"Mon-Fri 08:00-22:00\"."
    )
    assert installed["suggested"] == ["till-bar"]
    assert installed["no device"] == (
        "There is no device till at this location. Choose one of the list."
    )
    assert installed["wrong end"] == "The end must be in the future, and after the start."
    assert "Open Mon-Fri 08:00-22:00" in installed["changed"]
    assert "until Dec 1, 2099, 6:00:00 AM GMT+2: new cables" in installed["changed"]


def test_an_owner_sets_the_webhook_for_alerts(installed: dict[str, Any]) -> None:
    assert "No alerts are sent." in installed["no alerts"]
    assert installed["wrong address"] == "The address must be an address of the public internet."
    assert installed["webhook secret"].startswith("whsec_")
    assert "Alerts are sent to hooks.example.com." in installed["alerts"]


def test_locations_are_chosen_by_name_and_a_short_password_is_explained(
    installed: dict[str, Any],
) -> None:
    assert installed["choices"] == ["Quay"]
    assert "Viewer at Quay" in installed["invited"]
    assert installed["short password"] == "A password must have 12 to 256 characters."
    assert installed["wrong"] == []


def test_the_documents_are_readable_within_the_content_security_policy(
    installed: dict[str, Any],
) -> None:
    assert installed["facade title"].startswith("Venue control\n v1")
    assert installed["facade operations"] >= 26
    assert installed["retail title"].startswith("Venue control: retail API")
    assert installed["facade wrong"] == installed["retail wrong"] == []


# ---------------------------------------------------------------------------- alerts


@pytest.fixture
def alerted(player: Player, width: str) -> dict[str, Any]:
    return player.play("alerts", width)


def test_firing_alerts_are_listed_before_resolved_ones(alerted: dict[str, Any]) -> None:
    assert "No alerts are firing." in alerted["none"]
    firing, resolved = alerted["firing"].split("Resolved", 1)
    assert "Device offline: till-bar" in firing
    assert "Site outage: harbour-street" in firing
    assert "Kitchen printer has no paper." in resolved


def test_an_alert_is_acknowledged_by_keyboard_and_silenced(alerted: dict[str, Any]) -> None:
    assert "Acknowledged by ada@example.com" in alerted["acknowledged"]
    assert "harbour-street" in alerted["silence form"]
    assert alerted["wrong end"] == "The end must be in the future, and after the start."
    assert alerted["silence"].startswith("harbour-street, Site outage")
    assert "new cables" in alerted["silence"]


def test_an_owner_sets_a_rule_and_a_route_and_tests_the_route(alerted: dict[str, Any]) -> None:
    assert alerted["wrong version"] == "The argument must be a version such as 1.2.0."
    assert alerted["rule"].startswith("Version older than: 0.9.0 info")
    assert alerted["removing"].startswith("Remove the rule?")
    assert alerted["wrong address"] == "The target must be an address of the public internet."
    assert alerted["secret"].startswith("whsec_")
    assert "hooks.example.com" in alerted["route"]
    assert "services" not in alerted["route"], "a part of the target that can be a secret"
    assert alerted["log"].startswith("This is a test of the route On call.")


def test_the_link_of_a_notification_opens_its_alert(alerted: dict[str, Any]) -> None:
    assert "Device offline: till-bar" in alerted["one"]
    assert "Site outage" not in alerted["one"]
    assert alerted["unknown"] == "There is no such alert."
    assert alerted["wrong"] == []


# ---------------------------------------------------------------------- the routes, by keyboard

WRONG_ADDRESS: Final = "The target must be an address like https://hooks.example.com/alerts."
ROUTES: Final = {
    "Webhook": (WRONG_ADDRESS, "hooks.example.com"),
    "E-mail": (
        "The target cannot be used: 'nobody' is not an e-mail address.",
        "till@venue.example, bar@venue.example",
    ),
    "Slack": ("The target must be an address of the public internet.", "slack.example.com"),
    "Microsoft Teams": (WRONG_ADDRESS, "teams.example.com"),
    "PagerDuty": ("The target must be a routing key, which has 32 letters and digits.", "…cdef"),
}  # fmt: skip
"""Maps each kind of route to the message about a wrong target, and to its displayed receiver."""


@pytest.fixture
def routed(player: Player, width: str) -> dict[str, Any]:
    return player.play("routes", width)


def test_an_owner_adds_a_route_of_each_kind_by_keyboard(routed: dict[str, Any]) -> None:
    for kind, (problem, receiver) in ROUTES.items():
        results = routed[kind]
        assert results["kind"] == kind
        assert results["problem"] == problem
        assert f"{kind} · {receiver}" in results["added"]
        grouping = "each alert" if kind == "PagerDuty" else "grouped for 15 min"
        assert f"every severity · every location · {grouping}" in results["added"]
        assert results["focus after adding"] == "Add a route"
    assert routed["Webhook"]["secret"].startswith("whsec_")
    for secret in ("/in", "services", "/hook", "0123"):
        assert all(secret not in routed[kind]["added"] for kind in ROUTES)


def test_an_owner_tests_changes_and_removes_each_route_by_keyboard(routed: dict[str, Any]) -> None:
    for kind in ROUTES:
        results = routed[kind]
        assert results["log"].startswith(f"This is a test of the route By {kind}.")
        fields = dict(results["fields"])
        assert fields["name"] == f"By {kind}"
        assert fields["target"] == "", "the form must not contain the target, which can be a secret"
        assert results["changed"].startswith(f"By {kind} 2 disabled")
        assert "critical · every location" in results["changed"]
        assert "Test" not in results["changed"].split("\n")
        assert results["focus after changing"] == f"Change By {kind} 2"
        assert f"Alerts are no longer sent to By {kind} 2." in results["removing"]
        assert results["focus after keeping"] == f"Remove By {kind} 2"
    assert routed["left"].startswith("There are no routes.")
    assert routed["wrong"] == []


# ----------------------------------------------------------------------- every state of the page


@pytest.mark.parametrize(
    ("name", "width"),
    sizes.large_except(IN_MEDIUM.__contains__, itertools.product([*STATES, "pages"], VIEWPORTS)),
)
def test_every_state_of_the_page_fits_the_window_and_is_accessible(
    name: str, width: str, player: Player
) -> None:
    visited = player.play(name, width)
    seen = visited["seen"]
    states = {state.rpartition(" ")[0] for state in seen}
    if name == "pages":
        assert len(states) == visited["pages"]
    else:
        assert states == STATES[name]
    assert set(seen) == {f"{state} {scheme}" for state in states for scheme in SCHEMES}
    assert {state: view["layout"] for state, view in seen.items() if view["layout"] != "fits"} == {}
    # At least five rules of axe-core apply to every page and pass. Fewer passes mean that axe-core
    # did not run.
    assert all(view["axe"]["passes"] >= 5 for view in seen.values())
    violations = {
        (state, rule["rule"], *rule["at"])
        for state, view in seen.items()
        for rule in view["axe"]["violations"]
        if rule["impact"] in GRAVE
    }
    assert violations == set()
