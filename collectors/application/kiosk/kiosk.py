"""Reads the browser fields from the visible page, and whether this page works.

Reading them causes no permission prompts or clicks, and does not read the page's content. The
browser lists its open pages (`GET /json/list` of the DevTools port). Only their ids are used,
because their titles and addresses are private.
"""

import json
import re
import socket
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from collectors.application.deadline import Deadline
from collectors.application.kiosk.expression import BROWSER, STATE, VISIBILITY, build_expression
from collectors.application.kiosk.fields import (
    crashed_page_reading,
    page_reading,
    parse_values,
    silent_page_reading,
)
from collectors.application.kiosk.session import PageSession
from collectors.application.source import Reading, Unreadable
from collectors.shared.devtools import DebugAddress, open_pages, parse_debug_url
from collectors.shared.http import HttpError, HttpRequest, exchange_blocking

VISIBILITY_TIMEOUT_S: Final = 0.4
"""Time limit for the visibility check of one page. A frozen tab never replies to it."""
ANSWER_S: Final = 1.2
"""Time after which a page without an answer counts as not responding."""
TARGETS_MAX: Final = 16
BODY_MAX_BYTES: Final = 1024 * 1024
PEER: Final = "the DevTools port"

_TARGET_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


def read_kiosk(url: str, deadline: Deadline) -> Reading:
    """Return the 34 browser fields of the contract. Raises Unreadable with the reason."""

    def query(page: PageSession) -> Reading:
        return Reading(parse_values(evaluate(page, main_frame(page), build_expression(BROWSER))))

    return read_visible_page(url, deadline, query)


def read_page_state(url: str, deadline: Deadline) -> Reading:
    """Return the state of the page on the screen. Raises Unreadable if no browser answers."""
    return read_visible_page(url, deadline, partial(_page_state, deadline))


def _page_state(deadline: Deadline, page: PageSession) -> Reading:
    # The browser itself replies to this command, even if the page's process is busy or has ended.
    page.command("Inspector.enable")
    if page.has_crashed:
        return crashed_page_reading()
    has_full_time = deadline.remaining_s() >= ANSWER_S
    page.shorten_deadline(ANSWER_S)
    try:
        frame = main_frame(page)
        return page_reading(frame, evaluate(page, frame, build_expression(STATE)))
    except TimeoutError:
        # A page that had less time than ANSWER_S may be slow, but responding.
        if has_full_time:
            return silent_page_reading()
        raise


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


def read_page_ids(address: DebugAddress, deadline: Deadline) -> tuple[str, ...]:
    """Return the ids of the open pages. Raises OSError or ValueError."""
    return parse_page_ids(_request_pages(address, deadline))


def parse_page_ids(body: bytes) -> tuple[str, ...]:
    """Return the ids of the pages in a JSON list of DevTools targets.

    Raises ValueError if ``body`` is not a list.
    """
    ids = (page.get("id") for page in open_pages(body))
    valid = (text for text in ids if isinstance(text, str) and _TARGET_ID.fullmatch(text))
    return tuple(valid)[:TARGETS_MAX]


def _request_pages(address: DebugAddress, deadline: Deadline) -> bytes:
    """Request the list of DevTools targets. Return the body of a complete reply with status 200.

    Raises OSError or ValueError. The messages never quote data that the peer sent.
    """
    request = HttpRequest("GET", address.authority, "/json/list")
    with socket.create_connection(
        (address.host, address.port), timeout=deadline.require_s()
    ) as connection:
        try:
            reply = exchange_blocking(connection, request, BODY_MAX_BYTES, deadline.require_s)
        except HttpError:
            raise ValueError(f"{PEER} did not answer with HTTP") from None
    if reply.status != 200:
        raise ValueError(f"{PEER} answered with status {reply.status}")
    if len(reply.body) > BODY_MAX_BYTES:
        raise ValueError(f"{PEER} sent more than {BODY_MAX_BYTES // 1024} KiB")
    if not reply.is_whole:
        raise ValueError(f"{PEER} ended its answer early")
    return reply.body
