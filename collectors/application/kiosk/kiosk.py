"""Reads the browser fields from the page the kiosk shows: no prompt, no click, no content."""

import json
from typing import Final

from collectors.application.deadline import Deadline
from collectors.application.kiosk.address import DebugAddress, parse_debug_url
from collectors.application.kiosk.browser_fields import BROWSER_KEYS, parse_values
from collectors.application.kiosk.expression import SHOWN, VALUES
from collectors.application.kiosk.session import PageSession
from collectors.application.kiosk.targets import read_page_ids
from collectors.application.source import Reading, Unreadable, all_absent

SOURCE: Final = "kiosk browser"
LOOK_S: Final = 0.4
"""How long one of several pages is asked whether it is shown; a frozen tab is not."""


def read_kiosk(url: str, deadline: Deadline) -> Reading:
    """The 34 fields. Raises Unreadable with what stood in the way."""
    if not url:
        reason = "no kiosk browser is configured"
        return Reading(all_absent(BROWSER_KEYS, SOURCE, "not-applicable", reason))
    try:
        return _read(parse_debug_url(url), deadline)
    except ConnectionRefusedError:
        raise Unreadable("collection-failed", "no kiosk browser listens there") from None
    except TimeoutError:
        raise Unreadable("collection-failed", "the kiosk browser did not answer in time") from None
    except ValueError as error:
        raise Unreadable("collection-failed", str(error)) from None


def _read(address: DebugAddress, deadline: Deadline) -> Reading:
    page_ids = read_page_ids(address, deadline)
    if not page_ids:
        raise ValueError("the kiosk browser has no page open")
    page_id = page_ids[0] if len(page_ids) == 1 else _shown(address, page_ids, deadline)
    with PageSession(address, page_id, deadline) as page:
        return Reading(parse_values(_evaluate(page, VALUES)))


def _shown(address: DebugAddress, page_ids: tuple[str, ...], deadline: Deadline) -> str:
    """The page on the screen: visible and focused, else visible, else the last one used."""
    best, best_rank = page_ids[0], (False, False)
    for page_id in page_ids:
        rank = _rank(address, page_id, deadline.sooner(LOOK_S))
        if rank > best_rank:
            best, best_rank = page_id, rank
    return best


def _rank(address: DebugAddress, page_id: str, deadline: Deadline) -> tuple[bool, bool]:
    try:
        with PageSession(address, page_id, deadline) as page:
            visible, focused = json.loads(_evaluate(page, SHOWN))
    except (OSError, ValueError, TypeError):
        return (False, False)
    return (visible is True, focused is True)


def _evaluate(page: PageSession, expression: str) -> str:
    """Evaluate in a world of our own in the page's main frame; the answer is a JSON text."""
    frame_id = _main_frame(page.command("Page.getFrameTree"))
    world = page.command("Page.createIsolatedWorld", frameId=frame_id, worldName="venue-agent")
    answer = page.command(
        "Runtime.evaluate",
        expression=expression,
        contextId=world.get("executionContextId"),
        returnByValue=True,
        awaitPromise=True,
        silent=True,
        userGesture=False,
        timeout=1000,
    )
    result = answer.get("result")
    value = result.get("value") if isinstance(result, dict) else None
    if not isinstance(value, str):
        raise ValueError("the page did not answer the question")
    return value


def _main_frame(tree: dict[str, object]) -> str:
    node = tree.get("frameTree")
    frame = node.get("frame") if isinstance(node, dict) else None
    frame_id = frame.get("id") if isinstance(frame, dict) else None
    if not isinstance(frame_id, str):
        raise ValueError("the browser did not name the page's frame")
    return frame_id
