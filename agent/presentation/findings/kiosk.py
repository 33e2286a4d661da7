"""Rules for the kiosk's browser and its page."""

from collections.abc import Iterator
from typing import Final

from agent.presentation.findings.conditions import if_flag, if_text, once_if, used_at_least
from agent.presentation.findings.rule import NoteRule, ProblemRule, Rule, Values, WarningRule
from agent.presentation.findings.snapshot_facts import Fields, SnapshotFacts
from agent.presentation.humanize import percent

HEAP_USED_LIMIT: Final = 0.75
STORAGE_USED_LIMIT: Final = 0.9
"""Minimum shares, from 0 to 1, for the rules `kiosk-leaking` and `kiosk-storage-full`."""


def _unreadable(facts: SnapshotFacts) -> Iterator[Values]:
    why = facts.machine.why_failed("kiosk.crashed")
    if why is not None:
        yield {"why": why}


def _is_frozen(machine: Fields) -> bool:
    return machine.flag("kiosk.crashed") is False and machine.flag("kiosk.responding") is False


def _is_blank(machine: Fields) -> bool:
    return machine.flag("kiosk.painted") is False and not machine.flag("kiosk.errorPage")


def _is_permission_undecided(machine: Fields) -> bool:
    is_prompt = machine.text("kiosk.localNetworkPermission") == "prompt"
    return is_prompt and not machine.texts("kiosk.localNetworkPolicies")


def _has_no_screen(machine: Fields) -> bool:
    return machine.is_known("kiosk.crashed") and machine.number("display.count") == 0


KIOSK_RULES: Final[tuple[Rule[SnapshotFacts], ...]] = (
    ProblemRule(
        "kiosk-silent",
        "kiosk.crashed",
        "could not be read, though `kiosk_debug_url` is set",
        "The kiosk's browser does not answer: {why}.",
        "start the browser with the debugging port that `kiosk_debug_url` names",
        _unreadable,
    ),
    ProblemRule(
        "kiosk-crashed",
        "kiosk.crashed",
        "true",
        "The kiosk's page has crashed.",
        "reload it or restart the browser; if the page crashes again, monitor its memory",
        if_flag("kiosk.crashed", True),
    ),
    ProblemRule(
        "kiosk-frozen",
        "kiosk.responding",
        "false, though the page has not crashed",
        "The kiosk's page does not respond: it is frozen, or shows a dialog.",
        "close the dialog, or restart the browser",
        once_if(_is_frozen),
    ),
    ProblemRule(
        "kiosk-error-page",
        "kiosk.errorPage",
        "true",
        "The kiosk shows the browser's error page.",
        "check the network and the page's address, then reload it",
        if_flag("kiosk.errorPage", True),
    ),
    ProblemRule(
        "kiosk-blank",
        "kiosk.painted",
        "false, and the page is not the browser's error page",
        "The kiosk's page is blank: it has drawn nothing since it was loaded.",
        "reload it; if it stays blank, contact the developer of the page",
        once_if(_is_blank),
    ),
    ProblemRule(
        "kiosk-not-drawing",
        "kiosk.drawing",
        "false",
        "The kiosk's page is no longer drawn: the screen shows an old image.",
        "restart the browser; if it happens again, check the graphics driver",
        if_flag("kiosk.drawing", False),
    ),
    ProblemRule(
        "kiosk-offline",
        "browser.online",
        "false",
        "The kiosk's browser is offline.",
        "check the network of this machine",
        if_flag("browser.online", False),
        explained_by=("no-network",),
    ),
    ProblemRule(
        "kiosk-local-network-denied",
        "kiosk.localNetworkPermission",
        "denied",
        "The kiosk's page is denied access to devices of the local network, such as printers.",
        "set the policy LocalNetworkAccessAllowedForUrls for the page's address, which must begin"
        " with https",
        if_text("kiosk.localNetworkPermission", "denied"),
    ),
    ProblemRule(
        "kiosk-no-screen",
        "display.count, kiosk.crashed",
        "no screen, with a kiosk whose browser answers",
        "The kiosk has no screen connected.",
        "check the screen's cable, and that the screen is switched on",
        once_if(_has_no_screen),
    ),
    WarningRule(
        "kiosk-hidden",
        "browser.visibility",
        "hidden",
        "The kiosk's page is hidden: another window or tab covers it, or the screen is off.",
        "close the other window, or switch the screen on",
        if_text("browser.visibility", "hidden"),
    ),
    WarningRule(
        "kiosk-leaking",
        "browser.heapUsedBytes, browser.heapLimitBytes",
        f"at least {percent(HEAP_USED_LIMIT)} of the limit",
        "The kiosk's page uses {used} of memory; its limit is {limit}.",
        "reload it when the venue is closed; if it grows again, contact the developer of the page",
        used_at_least("browser.heapUsedBytes", "browser.heapLimitBytes", HEAP_USED_LIMIT),
    ),
    WarningRule(
        "kiosk-storage-full",
        "browser.originUsageBytes, browser.originQuotaBytes",
        f"at least {percent(STORAGE_USED_LIMIT)} of the quota",
        "The kiosk's page stores {used} of data; its limit is {limit}.",
        "free space on the disk, or clear the site's data",
        used_at_least("browser.originUsageBytes", "browser.originQuotaBytes", STORAGE_USED_LIMIT),
    ),
    NoteRule(
        "kiosk-local-network-undecided",
        "kiosk.localNetworkPermission, kiosk.localNetworkPolicies",
        "prompt, and no policy is set",
        "The kiosk's page has no permission yet for devices of the local network.",
        "if it prints to the network, set the policy LocalNetworkAccessAllowedForUrls for its"
        " address",
        once_if(_is_permission_undecided),
    ),
)
