"""The rules on the kiosk's browser and the page that it shows."""

from collections.abc import Iterator
from typing import Final

from agent.presentation.findings.rule import HERE, Rule, Sighting
from agent.presentation.findings.snapshot_facts import SnapshotFacts
from agent.presentation.humanize import bytes_in_words, percent

HEAP_USED: Final = 0.75
STORAGE_USED: Final = 0.9


def _silent(facts: SnapshotFacts) -> Iterator[Sighting]:
    why = facts.machine.why_failed("kiosk.crashed")
    if why is not None:
        yield {"why": why}


def _crashed(facts: SnapshotFacts) -> tuple[Sighting, ...]:
    return HERE if facts.machine.flag("kiosk.crashed") else ()


def _frozen(facts: SnapshotFacts) -> tuple[Sighting, ...]:
    is_alive = facts.machine.flag("kiosk.crashed") is False
    return HERE if is_alive and facts.machine.flag("kiosk.responding") is False else ()


def _in_error(facts: SnapshotFacts) -> tuple[Sighting, ...]:
    return HERE if facts.machine.flag("kiosk.errorPage") else ()


def _blank(facts: SnapshotFacts) -> tuple[Sighting, ...]:
    is_error = facts.machine.flag("kiosk.errorPage")
    return HERE if facts.machine.flag("kiosk.painted") is False and not is_error else ()


def _still(facts: SnapshotFacts) -> tuple[Sighting, ...]:
    return HERE if facts.machine.flag("kiosk.drawing") is False else ()


def _offline(facts: SnapshotFacts) -> tuple[Sighting, ...]:
    return HERE if facts.machine.flag("browser.online") is False else ()


def _denied(facts: SnapshotFacts) -> tuple[Sighting, ...]:
    is_denied = facts.machine.text("kiosk.localNetworkPermission") == "denied"
    return HERE if is_denied else ()


def _undecided(facts: SnapshotFacts) -> tuple[Sighting, ...]:
    is_open = facts.machine.text("kiosk.localNetworkPermission") == "prompt"
    return HERE if is_open and not facts.machine.texts("kiosk.localNetworkPolicies") else ()


def _hidden(facts: SnapshotFacts) -> tuple[Sighting, ...]:
    return HERE if facts.machine.text("browser.visibility") == "hidden" else ()


def _share(facts: SnapshotFacts, used_key: str, limit_key: str, share: float) -> Iterator[Sighting]:
    used, limit = facts.machine.number(used_key), facts.machine.number(limit_key)
    if used is not None and limit and used / limit >= share:
        yield {"used": bytes_in_words(used), "limit": bytes_in_words(limit)}


def _leaking(facts: SnapshotFacts) -> Iterator[Sighting]:
    return _share(facts, "browser.heapUsedBytes", "browser.heapLimitBytes", HEAP_USED)


def _storage_full(facts: SnapshotFacts) -> Iterator[Sighting]:
    return _share(facts, "browser.originUsageBytes", "browser.originQuotaBytes", STORAGE_USED)


def _no_screen(facts: SnapshotFacts) -> tuple[Sighting, ...]:
    has_page = facts.machine.is_known("kiosk.crashed")
    return HERE if has_page and facts.machine.number("display.count") == 0 else ()


KIOSK_RULES: Final[tuple[Rule[SnapshotFacts], ...]] = (
    Rule(
        "kiosk-silent",
        "problem",
        "kiosk.crashed",
        "could not be read, though `kiosk_debug_url` is set",
        "The kiosk's browser cannot be asked: {why}.",
        "see that the browser runs, and with the debugging port that `kiosk_debug_url` names",
        _silent,
    ),
    Rule(
        "kiosk-crashed",
        "problem",
        "kiosk.crashed",
        "true",
        "The kiosk's page has crashed.",
        "reload it or restart the browser; if it happens again, watch its memory",
        _crashed,
    ),
    Rule(
        "kiosk-frozen",
        "problem",
        "kiosk.responding",
        "false, though it has not crashed",
        "The kiosk's page does not respond: it is frozen, or shows a dialog.",
        "answer the dialog, or restart the browser",
        _frozen,
    ),
    Rule(
        "kiosk-error-page",
        "problem",
        "kiosk.errorPage",
        "true",
        "The kiosk shows the browser's error page.",
        "check the network and the page's address, then reload it",
        _in_error,
    ),
    Rule(
        "kiosk-blank",
        "problem",
        "kiosk.painted",
        "false, and it is no error page",
        "The kiosk's page is blank: it has drawn nothing since it was loaded.",
        "reload it; if it stays blank, tell whoever makes the page",
        _blank,
    ),
    Rule(
        "kiosk-not-drawing",
        "problem",
        "kiosk.drawing",
        "false",
        "The kiosk's page draws no more: what is on the screen is old.",
        "restart the browser; if it happens again, look at the graphics driver",
        _still,
    ),
    Rule(
        "kiosk-offline",
        "problem",
        "browser.online",
        "false",
        "The kiosk's browser is offline.",
        "check the network of this machine",
        _offline,
        explained_by=("no-network",),
    ),
    Rule(
        "kiosk-local-network-denied",
        "problem",
        "kiosk.localNetworkPermission",
        "denied",
        "The kiosk's page may not reach devices of the local network, such as printers.",
        "set the policy LocalNetworkAccessAllowedForUrls for its address; the page must be https",
        _denied,
    ),
    Rule(
        "kiosk-no-screen",
        "problem",
        "display.count, kiosk.crashed",
        "no screen, with a kiosk whose browser answers",
        "The kiosk has no screen connected.",
        "check that the screen is switched on, and its cable",
        _no_screen,
    ),
    Rule(
        "kiosk-hidden",
        "warning",
        "browser.visibility",
        "hidden",
        "The kiosk's page is hidden: another window or tab covers it, or the screen is off.",
        "close what covers it, or switch the screen on",
        _hidden,
    ),
    Rule(
        "kiosk-leaking",
        "warning",
        "browser.heapUsedBytes, browser.heapLimitBytes",
        f"at least {percent(HEAP_USED)} of the limit",
        "The kiosk's page uses {used} of the {limit} of memory that it may use.",
        "reload it when the venue is closed; if it grows again, tell whoever makes the page",
        _leaking,
    ),
    Rule(
        "kiosk-storage-full",
        "warning",
        "browser.originUsageBytes, browser.originQuotaBytes",
        f"at least {percent(STORAGE_USED)} of the quota",
        "The kiosk's page has stored {used} of the {limit} that it may store.",
        "free space on the disk, or clear the site's data",
        _storage_full,
    ),
    Rule(
        "kiosk-local-network-undecided",
        "note",
        "kiosk.localNetworkPermission, kiosk.localNetworkPolicies",
        "prompt, and no policy is set",
        "Nobody has decided whether the kiosk's page may reach devices of the local network.",
        "if it prints to the network, set the policy LocalNetworkAccessAllowedForUrls for its"
        " address",
        _undecided,
    ),
)
