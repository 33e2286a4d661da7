"""Tests the console in a real Chromium, from signing in with a key to reading a report.

The tests use the mouse and the keyboard, in a wide and in a narrow window. axe-core checks every
state of the page. Each test reads the results of an act, which is a scripted session in the
browser. ``wrong`` in these results lists the errors of scripts and the violations of the content
security policy.
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
from tests.fakes.console.page import AXE_OPTIONS, SCHEMES, VIEWPORTS
from tests.fakes.console.play import HOSTILE
from tests.lab import namespaces
from tests.paths import ROOT
from tests.prerequisites import axe, browser

pytestmark = pytest.mark.needs("browser", "axe")
ACTS: Final = {
    "play", "keyboard", "figures", "people", "consent", "settings", "alerts", "routes", "company",
}  # fmt: skip
"""The acts that have a fixture. The fixture has the name of the act, and returns its results."""
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
FAILING_IMPACTS: Final = {"serious", "critical"}
WITHIN_S: Final = 600


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrize each test that uses an act: it runs once for each width of the window."""
    for act in ACTS & set(metafunc.fixturenames):
        medium_widths = [width for name, width in IN_MEDIUM if name == act]
        metafunc.parametrize("width", sizes.large_except(medium_widths, VIEWPORTS))


class Player:
    """Plays each act once at each width, all in one browser. After an act that fails, a new browser
    starts.
    """

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
        readable_streams, *_ = select.select((self._program.stdout,), (), (), WITHIN_S)
        line = self._program.stdout.readline() if readable_streams else b""
        if not line:
            self.end()
            raise AssertionError(f"the act {name} did not end")
        results: dict[str, Any] = json.loads(line)
        return results

    def end(self) -> None:
        """End the program. Raises AssertionError if it fails, or if it or one of its processes does
        not end in time.
        """
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
        new_player = Player(errors)
        try:
            yield new_player
        finally:
            new_player.end()


@pytest.fixture
def play(player: Player, width: str) -> dict[str, Any]:
    return player.play("play", width)


@pytest.fixture
def keyboard(player: Player, width: str) -> dict[str, Any]:
    return player.play("keyboard", width)


# ---------------------------------------------------------------------------- with the mouse


def test_wrong_key_is_refused_with_a_message(play: dict[str, Any]) -> None:
    assert play["refused"] == "The service does not know this key, or it was revoked."


def test_overview_starts_with_problems(play: dict[str, Any]) -> None:
    tiles = dict(reversed(tile.split("\n")) for tile in play["tiles"].split("|"))
    assert tiles["Broken"] == "1"
    assert tiles == {
        "Healthy": "2", "Warning": "0", "Broken": "1", "Offline": "0", "Never connected": "0",
    }  # fmt: skip
    assert "till-bar" in play["home"]
    assert "Kitchen printer has moved" in play["home"]
    assert play["title"] == "Overview · Venue control"


def test_devices_are_sorted_by_severity_and_filtered_by_name(play: dict[str, Any]) -> None:
    assert play["names"] == ["till-bar", "till-kitchen", HOSTILE]
    assert play["found"] == ["till-kitchen"]
    assert play["by finding"] == ["till-bar"]
    assert play["address"] == "#/devices?search=till-kitch"


def test_request_is_displayed_from_creation_to_report(play: dict[str, Any]) -> None:
    assert play["device title"] == "till-kitchen · Venue control"
    assert play["request button"] == "Network report queued …"
    assert play["running"] == "running"
    assert play["headline"].startswith("Kitchen printer has moved")
    assert play["requester"].startswith("requested by rollout")
    assert play["report"] == "Report of till-kitchen"
    assert play["report title"] == "till-kitchen, network report · Venue control"
    assert play["map"] is True


def test_changes_since_the_previous_report_are_listed(play: dict[str, Any]) -> None:
    assert "Kitchen printer has moved to 192.168.1.61:9100; it was reachable." in play["changes"]
    assert "The printer Office laser is not reachable; it was reachable." in play["changes"]
    assert play["since"] == "Since the report of 2026-11-20 19:04:12 UTC "


def test_a_report_is_saved_as_a_table(play: dict[str, Any]) -> None:
    assert play["saved"]["name"].startswith("till-kitchen-network-printers-")
    assert play["saved"]["name"].endswith(".csv")
    content = bytes(play["saved"]["bytes"])
    assert content.startswith(b"\xef\xbb\xbf")
    rows = list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline="")))
    assert [row["name"] for row in rows] == ["Bar receipts", "Kitchen printer", "Office laser"]


def test_reports_are_requested_from_many_devices_at_once(play: dict[str, Any]) -> None:
    assert play["many"] == "Reports requested from 3 devices."
    assert [row.split()[-1] for row in play["live rows"]] == ["queued"] * 3
    assert "Kitchen printer has moved" in play["arrived"][0]
    assert [row.split()[-1] for row in play["arrived"][1:]] == ["queued"] * 2
    assert play["all button"] == "Request reports from all 3"


def test_findings_are_counted_and_listed_by_location(play: dict[str, Any]) -> None:
    assert any("has moved" in row for row in play["findings"])
    assert "harbour-street" in play["finding"][0]
    assert play["no findings"] == "No findings in the reports of the matching devices."


def test_printers_of_all_devices_are_listed_broken_first(play: dict[str, Any]) -> None:
    names = [row.split("\n")[0] for row in play["printers"]]
    assert names[:4] == ["Kitchen printer", "Office laser", "Kitchen printer", "Office laser"]
    assert "Moved to 192.168.1.61" in play["printers"][0]
    assert "harbour-street 4 of 6 broken" in play["grouped"]
    assert play["no printers"] == "No printers match."


def test_a_request_waits_until_its_device_is_online(play: dict[str, Any]) -> None:
    assert play["pending"].startswith("waiting")
    assert "The network report is requested if the device is online before" in play["pending"]
    assert "Requested by rollout" in play["pending"]
    assert play["waiting"].startswith("waiting")
    assert play["cancelled"] == "cancelled"


def test_a_report_that_the_device_does_not_support_has_no_pending_request(
    play: dict[str, Any],
) -> None:
    assert play["refused request"] == (
        "The request is refused: the device is revoked or does not support network reports."
    )
    assert play["refused row"] == "The device does not support network reports."
    assert play["none waits"] == (
        "Reports requested from 0 devices,"
        " 1 refused because they are revoked or do not support this report."
    )


def test_timeline_has_a_description(play: dict[str, Any]) -> None:
    assert play["days"].startswith("Thirty days: online ")
    assert ", offline " in play["days"]
    assert ", closed 14 h 24 min" in play["days"]


def test_revocation_dialog_names_the_device(play: dict[str, Any]) -> None:
    assert play["revoke"] == "Revoke till-bar?"
    assert play["revoked"] == "till-bar"


def test_errors_are_displayed_until_they_are_over(play: dict[str, Any]) -> None:
    assert play["unknown"] == "There is no such device."
    assert play["no page"].startswith("Not found")
    assert "Back to the overview" in play["no page"]
    assert play["away"] == "The service does not answer."
    assert play["back"] is True


def test_during_an_outage_states_are_marked_as_old_and_buttons_are_off(
    play: dict[str, Any],
) -> None:
    assert play["outage"].startswith("The service does not answer. You see the state of ")
    assert set(play["during outage"]["buttons"]) == {"true"}
    assert play["during outage"]["state"] == "rgb(95, 102, 109)"  # grey, whatever the severity is
    assert play["loading"] == "Loading …"
    assert set(play["after outage"]["buttons"]) == {None}
    assert play["after outage"]["state"] != play["during outage"]["state"]


def test_read_only_key_has_no_actions(play: dict[str, Any]) -> None:
    assert (play["buttons"], play["boxes"]) == ([], 0)


def test_interruptions_of_a_location_are_one_sentence(play: dict[str, Any]) -> None:
    assert re.search(
        r"5 of 6 devices at loc-harbour lost the gateway at .*: the router, not the tills\.",
        play["interruptions"],
    )
    assert re.search(r"3 of 6 devices at loc-harbour lost their link at", play["interruptions"])
    assert HOSTILE in play["interruptions"]
    assert "till-kitchen by 2 h (fast clock)" in play["shared"]


def test_csv_text_is_not_a_formula(play: dict[str, Any]) -> None:
    _, row = play["csv"].split("\r\n", 1)
    assert row == (
        "\"'=1+\"\"1\"\"\",\"'@home\",\"linux\",\"\",\"online\",\"healthy\","
        "\"2026-11-20T12:00:00Z\",\"\",\"\",\"\",\"\",\"'-1\"\r\n"
    )  # fmt: skip


def test_no_script_fails_or_violates_the_content_security_policy(play: dict[str, Any]) -> None:
    assert play["wrong"] == []


# ---------------------------------------------------------------------------- with the keyboard


def test_the_navigation_can_be_skipped(keyboard: dict[str, Any]) -> None:
    assert keyboard["skip link"] is True
    assert (keyboard["skipped to"], keyboard["hash"]) == ("view", "")


def test_a_new_view_gets_the_focus_and_a_filter_does_not_move_the_focus(
    keyboard: dict[str, Any],
) -> None:
    assert keyboard["entered"] == "view"
    assert keyboard["still in"] == "by-search"
    assert keyboard["filtered"] == "state=online"


def test_the_focused_element_stays_in_the_window_when_the_content_before_it_grows(
    keyboard: dict[str, Any],
) -> None:
    assert keyboard["after growing"] == ["below", True]


def test_a_closed_dialog_returns_the_focus(keyboard: dict[str, Any]) -> None:
    assert keyboard["after escape"] == keyboard["after dialog"] == "request-selected"
    assert keyboard["kind"] == "application"
    assert keyboard["result"] == "Reports requested from 1 device."
    assert keyboard["first in dialog"] == "cancel"
    assert keyboard["after keeping"] == "revoke"
    assert keyboard["revoked"] == "till-bar"
    assert keyboard["after revoking"] == "view"


def test_a_late_close_event_does_not_take_the_focus(keyboard: dict[str, Any]) -> None:
    assert keyboard["after late close"] == "next"


def test_progress_of_a_request_is_announced_without_taking_focus(keyboard: dict[str, Any]) -> None:
    taken, running, report = keyboard["announcements"]
    assert taken == "The request for the network report was received by the device."
    assert running == "The request for the network report is running."
    assert report.startswith("A new network report: Kitchen printer has moved")
    assert keyboard["role"] == "status"
    assert keyboard["after request"] == keyboard["after report"] == "request-network"


def test_escape_closes_a_menu(keyboard: dict[str, Any]) -> None:
    assert keyboard["after menu"] == "Save as"
    assert keyboard["signed out"] is True


# ---------------------------------------------------------------------------- the venue's figures


@pytest.fixture
def figures(player: Player, width: str) -> dict[str, Any]:
    return player.play("figures", width)


def format_amount(cents: int, currency: str) -> str:
    sign = "-" if cents < 0 else ""
    name = {"EUR": "€"}.get(currency, f"{currency}\xa0")
    return f"{sign}{name}{abs(cents) / 100:,.2f}"


def test_without_a_merchant_there_is_no_link_to_figures(figures: dict[str, Any]) -> None:
    assert figures["is figures link hidden"] is True
    assert figures["text without access"] == "You have no access to the figures of any location."


def test_each_location_is_listed_with_today_beside_yesterday(figures: dict[str, Any]) -> None:
    assert [name for name, _ in figures["cards"]] == sorted(name for name, _ in figures["cards"])
    assert all("yesterday until " in nets for _, nets in figures["cards"])
    assert figures["opened location"] == figures["cards"][0][0]


def test_the_total_of_all_locations_is_listed_and_opens_their_figures(
    figures: dict[str, Any],
) -> None:
    name, subtitle, *nets = figures["total"]
    assert (name, subtitle) == ("All locations", "The sum of 6 locations")
    assert nets[0].endswith("yesterday until the same time")
    net = figures["today at all locations"]["net-AED"]
    assert net.endswith("yesterday until the same time")
    assert set(figures["locations of the total"]) <= {name for name, _ in figures["cards"]}
    assert len(figures["locations of the total"]) >= 2


def test_sales_are_saved_with_decimals_and_names(figures: dict[str, Any]) -> None:
    content = bytes(figures["saved"]["bytes"])
    assert content.startswith(b"\xef\xbb\xbf")
    rows = list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline="")))
    assert re.fullmatch(r"sales-all-[\d-]+\.csv", figures["saved"]["name"])
    assert rows
    assert {row["location"] for row in rows} <= {name for name, _ in figures["cards"]}
    assert all(re.fullmatch(r"\d+\.\d\d", row["total"]) for row in rows)
    assert all(row["pointOfSale"].startswith("Till ") for row in rows)


def test_a_day_of_a_location_is_printed_on_one_page_per_currency(figures: dict[str, Any]) -> None:
    pages, currencies = figures["printed"]
    # The generated day has sales in two currencies. Each currency is printed on its own page.
    assert pages == currencies > 0


def test_figures_of_a_location_equal_those_of_the_facade(figures: dict[str, Any]) -> None:
    current = figures["reply of the service"]["current"]["currencies"][0]
    previous = figures["reply of the service"]["previous"]["currencies"][0]
    currency, current_figures = current["currency"], current["figures"]
    for name, key in (("net", "netCents"), ("gross", "grossCents"), ("refund", "refundCents")):
        text = figures["totals"][f"{name}-{currency}"]
        assert text.split("\n")[1] == format_amount(current_figures[key], currency)
        assert format_amount(previous["figures"][key], currency) in text
    assert figures["totals"][f"sales-{currency}"].split("\n")[1] == str(
        current_figures["saleCount"]
    )
    vat = current_figures["vatCents"]
    vat_text = "unknown" if vat is None else format_amount(vat, currency)
    assert figures["totals"][f"vat-{currency}"].split("\n")[1] == vat_text
    hours = {row[0][:2]: row[1] for row in figures["hours"]}
    assert current["buckets"]
    for bucket in current["buckets"]:
        assert hours[f"{bucket['localHour']:02}"] == format_amount(bucket["netCents"], currency)


def test_choosing_a_period_by_keyboard_keeps_open_sections_open(figures: dict[str, Any]) -> None:
    assert figures["focus"] == "Yesterday"
    assert figures["kept open"] is True


def test_charts_have_titles_and_legible_text(figures: dict[str, Any]) -> None:
    assert len(figures["charts"]) >= 4
    assert all(role == "img" and name for role, name in figures["charts"])
    assert figures["misplaced chart texts"] == []
    assert figures["smallest chart text px"] >= 11.5
    # If the content is higher than the window, only the view scrolls, and not the navigation bar.
    assert figures["document scrolls"] is False


def test_errors_of_figures_are_displayed_until_they_are_over(figures: dict[str, Any]) -> None:
    assert figures["connection state"] == "The service does not answer."
    assert figures["is saving off"] is True
    assert figures["has totals"] is True
    assert figures["back"] == "Live"
    assert figures["unknown location"] == "There is no such location."
    assert figures["wrong"] == []


# ---------------------------------------------------------------------------- signed in


@pytest.fixture
def people(player: Player, width: str) -> dict[str, Any]:
    return player.play("people", width)


def test_user_signs_in_and_no_script_can_read_the_session(people: dict[str, Any]) -> None:
    assert people["refused"] == "The e-mail address or the password is wrong."
    assert people["name"] == "Ada Berzina"
    assert people["cookies and storage"] == ["", 0, 0]
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
    assert (people["status with the key"], people["closed secret"]) == (200, "gone")
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
    last_owner = "You are the last owner with access to every location"
    assert f"{last_owner}, so your role cannot be changed." in ada
    assert "Manager at every location" in bob
    assert people["buttons"] == 2
    assert "Viewer at harbour-street" in people["changed"]
    assert people["removing"] == "Remove Bob?"


def test_audit_log_has_every_action(people: dict[str, Any]) -> None:
    log = [line.replace("\n\n", ": ") for line in people["log"]]
    attempt = "ada@example.com tried"
    for line in (
        "ada@example.com removed the member bob@example.com",
        "bob@example.com joined: manager at every location",
        f"{attempt} to change the password of ada@example.com refused: the old password is wrong",
        "ada@example.com requested a report of till-bar: network",
        f"{attempt} to sign in refused: the e-mail address or the password is wrong",
    ):
        assert line in log
    assert any(
        line.startswith("ada@example.com created the API key till of the bar") for line in log
    )
    assert people["credentials"]
    assert all("from 127.0.0.1" in credential for credential in people["credentials"])
    assert people["bob"]
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
    # The wait starts at ten minutes. On a slow machine, fewer minutes are left when it is printed.
    assert re.fullmatch(
        r"Too many attempts\. Try again in ([1-9]|10) minutes?\.", people["too often"]
    )
    assert people["wrong"] == []


# ---------------------------------------------------------------------------- OAuth consent


@pytest.fixture
def consent(player: Player, width: str) -> dict[str, Any]:
    return player.play("consent", width)


def test_user_signs_in_and_consents_to_read_access(consent: dict[str, Any]) -> None:
    """The user only uses the keyboard. The page has no script, so the browser sends the form."""
    assert consent["refused"] == "The e-mail address or the password is wrong."
    assert consent["e-mail after refusal"] == "ada@example.com"
    assert consent["client name"] == "Sales assistant"
    answer = consent["answer"]
    assert answer["at"] == "http://127.0.0.1:9/callback"
    assert answer.keys() == {"at", "code", "state", "iss"}
    assert consent["token"] == ["access_token", "expires_in", "refresh_token", "token_type"]


def test_user_lists_consents_and_revokes_one(consent: dict[str, Any]) -> None:
    assert "Sales assistant" in consent["listed"]
    assert "sends it to a program on your own computer" in consent["listed"]
    assert consent["dialog"] == "Stop Sales assistant?"
    assert consent["none"].startswith("No program has access.")
    assert (consent["status before revocation"], consent["status after revocation"]) == (200, 401)


def test_user_refuses_consent(consent: dict[str, Any]) -> None:
    assert consent["host"] == "agent.example"
    assert consent["denied"]["at"] == "https://agent.example/callback"
    assert consent["denied"]["error"] == "access_denied"
    assert "code" not in consent["denied"]


def test_consent_page_cannot_be_framed_and_does_not_echo_an_invalid_redirect_uri(
    consent: dict[str, Any],
) -> None:
    assert consent["framed"] is False
    assert "evil" not in consent["wrong address"]


# ---------------------------------------------------------------------------- sign-in of companies


@pytest.fixture
def company(player: Player, width: str) -> dict[str, Any]:
    return player.play("company", width)


def test_users_sign_in_without_javascript(company: dict[str, Any]) -> None:
    assert "sign in without JavaScript" in company["without scripts"]
    assert "eve@example.com" in company["set up"]
    assert company["wrong code"].startswith("The code is wrong")
    assert company["with code"] == "You are signed in"
    assert "ada@contoso.example" in company["by provider"]
    assert "None of your groups at Contoso" in company["no group"]


def test_a_second_factor_is_removed_and_set_up_in_the_profile(company: dict[str, Any]) -> None:
    assert company["button"] == "Sign in with Contoso"
    assert "8 recovery codes left" in company["factor"]
    assert len(company["codes"].split()) == 10
    assert company["wrong"] == []


# ---------------------------------------------------------------------------- first run, settings


@pytest.fixture
def settings(player: Player, width: str) -> dict[str, Any]:
    return player.play("settings", width)


def test_the_empty_console_guides_to_the_first_device(settings: dict[str, Any]) -> None:
    assert settings["guide"] == "#/add-device"
    command = settings["command"]
    assert command.startswith(
        "sudo apt-get install --yes ./venue-agent_*.deb && sudo venue-agent service install "
    )
    assert command.endswith("--location 'loc-0001' --api-key-file -")
    # A key in the command would be stored in the history of the shell.
    assert settings["new secret"].startswith("vck_")
    assert settings["new secret"] not in command
    assert settings["waiting"].startswith("Waiting for the device.")
    assert "till-bar" in settings["arrived"]
    assert settings["device"] == "till-bar"
    assert settings["link"] == "Add a device"
    assert settings["link on home"] is True


def test_settings_of_a_location_are_changed_and_wrong_values_explained(
    settings: dict[str, Any],
) -> None:
    assert settings["location"].startswith("Old harbour\n\nloc-0001 · 1 device")
    assert settings["wrong hours"] == (
        "The opening hours cannot be used: '9 to 5' does not have the form \"Mon-Fri 08:00-22:00\"."
    )
    assert settings["suggested"] == ["till-bar"]
    assert settings["no device"] == (
        "There is no device named till at this location. Choose one from the list."
    )
    assert settings["wrong end"] == "The end must be in the future, and after the start."
    assert "Open Mon-Fri 08:00-22:00" in settings["changed"]
    assert "until Dec 1, 2099, 6:00:00 AM GMT+2: new cables" in settings["changed"]


def test_an_owner_sets_the_webhook_for_alerts(settings: dict[str, Any]) -> None:
    assert "No alerts are sent." in settings["no alerts"]
    assert settings["wrong address"] == "The address must be an address of the public internet."
    assert settings["webhook secret"].startswith("whsec_")
    assert "Alerts are sent to hooks.example.com." in settings["alerts"]


def test_locations_are_chosen_by_name_and_a_short_password_is_explained(
    settings: dict[str, Any],
) -> None:
    assert settings["choices"] == ["Quay"]
    assert "Viewer at Quay" in settings["invited"]
    assert settings["short password"] == "A password must have 12 to 256 characters."
    assert settings["wrong"] == []


def test_the_documents_are_readable_within_the_content_security_policy(
    settings: dict[str, Any],
) -> None:
    assert settings["facade title"].startswith("Venue control\n v1")
    assert settings["facade operations"] >= 26
    assert settings["retail title"].startswith("Venue control: retail API")
    assert settings["facade wrong"] == settings["retail wrong"] == []


# ---------------------------------------------------------------------------- alerts


@pytest.fixture
def alerts(player: Player, width: str) -> dict[str, Any]:
    return player.play("alerts", width)


def test_firing_alerts_are_listed_before_resolved_ones(alerts: dict[str, Any]) -> None:
    assert "No alerts are firing." in alerts["none"]
    firing, resolved = alerts["firing"].split("Resolved", 1)
    assert "Device offline: till-bar" in firing
    assert "Site outage: harbour-street" in firing
    assert "Kitchen printer has no paper." in resolved


def test_an_alert_is_acknowledged_by_keyboard_and_silenced(alerts: dict[str, Any]) -> None:
    assert "Acknowledged by ada@example.com" in alerts["acknowledged"]
    assert "harbour-street" in alerts["silence form"]
    assert alerts["wrong end"] == "The end must be in the future, and after the start."
    assert alerts["silence"].startswith("harbour-street, Site outage")
    assert "new cables" in alerts["silence"]


def test_an_owner_sets_a_rule_and_a_route_and_tests_the_route(alerts: dict[str, Any]) -> None:
    assert alerts["wrong version"] == "The argument must be a version such as 1.2.0."
    assert alerts["rule"].startswith("Version older than: 0.9.0 info")
    assert alerts["removing"].startswith("Remove the rule?")
    assert alerts["wrong address"] == "The target must be an address of the public internet."
    assert alerts["secret"].startswith("whsec_")
    assert "hooks.example.com" in alerts["route"]
    assert "services" not in alerts["route"], "the path of the target can be a secret"
    assert alerts["log"].startswith("This is a test of the route On call.")


def test_the_link_of_a_notification_opens_its_alert(alerts: dict[str, Any]) -> None:
    assert "Device offline: till-bar" in alerts["one"]
    assert "Site outage" not in alerts["one"]
    assert alerts["unknown"] == "There is no such alert."
    assert alerts["wrong"] == []


# ---------------------------------------------------------------------- the routes, by keyboard

WRONG_ADDRESS: Final = "The target must be an address like https://hooks.example.com/alerts."
WRONG_ROUTING_KEY: Final = (
    "The target must be a routing key, which has 32 letters and digits; begin it with eu: for the "
    "region EU."
)
ROUTES: Final = {
    "Webhook": (WRONG_ADDRESS, "hooks.example.com"),
    "E-mail": (
        "The target cannot be used: 'nobody' is not an e-mail address.",
        "till@venue.example, bar@venue.example",
    ),
    "Slack": ("The target must be an address of the public internet.", "slack.example.com"),
    "Microsoft Teams": (WRONG_ADDRESS, "teams.example.com"),
    "PagerDuty": (WRONG_ROUTING_KEY, "…cdef"),
}  # fmt: skip
"""Maps each kind of route to the message about a wrong target, and to its displayed receiver."""


@pytest.fixture
def routes(player: Player, width: str) -> dict[str, Any]:
    return player.play("routes", width)


def test_an_owner_adds_a_route_of_each_kind_by_keyboard(routes: dict[str, Any]) -> None:
    for kind, (problem, receiver) in ROUTES.items():
        results = routes[kind]
        assert results["kind"] == kind
        assert results["problem"] == problem
        assert f"{kind} · {receiver}" in results["added"]
        grouping = "each alert" if kind == "PagerDuty" else "grouped for 15 min"
        assert f"every severity · every location · {grouping}" in results["added"]
        assert results["focus after adding"] == "Add a route"
    assert routes["Webhook"]["secret"].startswith("whsec_")
    for secret in ("/in", "services", "/hook", "0123"):
        assert all(secret not in routes[kind]["added"] for kind in ROUTES)


def test_each_route_can_be_tested_changed_and_removed_by_keyboard(routes: dict[str, Any]) -> None:
    for kind in ROUTES:
        results = routes[kind]
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
    assert routes["no routes"].startswith("There are no routes.")
    assert routes["wrong"] == []


# ----------------------------------------------------------------------- every state of the page


@pytest.mark.parametrize(
    ("name", "width"),
    sizes.large_except(IN_MEDIUM, itertools.product([*STATES, "pages"], VIEWPORTS)),
)
def test_every_state_of_the_page_fits_the_window_and_is_accessible(
    name: str, width: str, player: Player
) -> None:
    results = player.play(name, width)
    views = results["seen"]
    states = {state.rpartition(" ")[0] for state in views}
    if name == "pages":  # the act that opens the HTML pages of reports, and returns their number
        assert len(states) == results["pages"]
    else:
        assert states == STATES[name]
    assert set(views) == {f"{state} {scheme}" for state in states for scheme in SCHEMES}
    assert {
        state: view["layout"] for state, view in views.items() if view["layout"] != "fits"
    } == {}
    # At least five rules of axe-core apply to every page and pass. Fewer passes mean that axe-core
    # did not run.
    for state in states:
        assert views[f"{state} light"]["axe"]["passes"] >= 5
        dark_rules = set(views[f"{state} dark"]["axe"]["rules"])
        assert dark_rules == set(AXE_OPTIONS[width, "dark"]["runOnly"])
    violations = {
        (state, rule["rule"], *rule["at"])
        for state, view in views.items()
        for rule in view["axe"]["violations"]
        if rule["impact"] in FAILING_IMPACTS
    }
    assert violations == set()
