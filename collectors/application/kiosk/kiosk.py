"""Reads the browser fields from the visible page.

Reading the fields causes no permission prompts or clicks, and does not read the page's content.
"""

import json
from collections.abc import Callable, Mapping
from typing import Final

from collectors.application.deadline import Deadline
from collectors.application.kiosk.browser_fields import parse_values
from collectors.application.kiosk.expression import BROWSER, VISIBILITY, build_expression
from collectors.application.kiosk.session import PageSession
from collectors.application.kiosk.targets import read_page_ids
from collectors.application.source import Reading, Unreadable
from collectors.shared.devtools import DebugAddress, parse_debug_url

VISIBILITY_TIMEOUT_S: Final = 0.4
"""Time limit for the visibility check of one page. A frozen tab never replies to it."""


def read_kiosk(url: str, deadline: Deadline) -> Reading:
    """Return the 34 browser fields of the contract. Raises Unreadable with the reason."""

    def query(page: PageSession) -> Reading:
        return Reading(parse_values(evaluate(page, main_frame(page), build_expression(BROWSER))))

    return read_visible_page(url, deadline, query)


def read_visible_page(
    url: str, deadline: Deadline, query: Callable[[PageSession], Reading]
) -> Reading:
    """Return the facts that ``query`` reads from the visible page.

    Raises:
        Unreadable: The browser did not reply, or its reply could not be used.
    """
    try:
        address = parse_debug_url(url)
        with PageSession(address, _page_on_screen(address, deadline), deadline) as page:
            return query(page)
    except ConnectionRefusedError:
        raise Unreadable("collection-failed", "no browser listens at kiosk_debug_url") from None
    except TimeoutError:
        raise Unreadable("collection-failed", "the kiosk browser did not answer in time") from None
    except ValueError as error:
        raise Unreadable("collection-failed", str(error)) from None


def _page_on_screen(address: DebugAddress, deadline: Deadline) -> str:
    page_ids = read_page_ids(address, deadline)
    if not page_ids:
        raise ValueError("the kiosk browser has no page open")
    return page_ids[0] if len(page_ids) == 1 else _find_visible(address, page_ids, deadline)


def _find_visible(address: DebugAddress, page_ids: tuple[str, ...], deadline: Deadline) -> str:
    """Return the id of the page that is most likely on the screen.

    Prefer a page that is visible and focused, then a visible page, then the first page of the
    list. The browser sorts the list by last use, the most recent first.
    """
    best, best_rank = page_ids[0], (False, False)
    for page_id in page_ids:
        rank = _rank(address, page_id, deadline.sooner(VISIBILITY_TIMEOUT_S))
        if all(rank):
            return page_id  # checking the other pages takes time if their tabs are frozen
        if rank > best_rank:
            best, best_rank = page_id, rank
    return best


def _rank(address: DebugAddress, page_id: str, deadline: Deadline) -> tuple[bool, bool]:
    try:
        with PageSession(address, page_id, deadline) as page:
            visible, focused = json.loads(evaluate(page, main_frame(page), VISIBILITY))
    except (OSError, ValueError, TypeError):
        return (False, False)
    return (visible is True, focused is True)


def evaluate(page: PageSession, frame: Mapping[str, object], expression: str) -> str:
    """Evaluate an expression in an isolated world of ``frame``. Returns its value, a JSON text."""
    world = page.command("Page.createIsolatedWorld", frameId=frame["id"], worldName="venue-agent")
    answer = page.command(
        "Runtime.evaluate",
        expression=expression,
        contextId=world.get("executionContextId"),
        returnByValue=True,
        awaitPromise=True,
        silent=True,
        userGesture=False,
        timeout=1000,  # in milliseconds
    )
    result = answer.get("result")
    value = result.get("value") if isinstance(result, dict) else None
    if not isinstance(value, str):
        raise ValueError("the page did not return the requested values")
    return value


def main_frame(page: PageSession) -> dict[str, object]:
    """Return the page's main frame (Page.Frame of the protocol), which has an id."""
    node = page.command("Page.getFrameTree").get("frameTree")
    frame = node.get("frame") if isinstance(node, dict) else None
    if not isinstance(frame, dict) or not isinstance(frame.get("id"), str):
        raise ValueError("the browser did not name the page's frame")
    return frame
