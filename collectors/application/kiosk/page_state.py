"""Reads whether the kiosk's page has crashed, responds, draws, and may access the local network."""

from functools import partial
from typing import Final

from collectors.application.deadline import Deadline
from collectors.application.kiosk.expression import STATE, build_expression
from collectors.application.kiosk.kiosk import evaluate, main_frame, read_visible_page
from collectors.application.kiosk.page_fields import (
    crashed_page_reading,
    page_reading,
    silent_page_reading,
)
from collectors.application.kiosk.session import PageSession
from collectors.application.source import Reading

ANSWER_S: Final = 1.2
"""Time after which a page without an answer counts as not responding."""


def read_page_state(url: str, deadline: Deadline) -> Reading:
    """Return the state of the page on the screen. Raises Unreadable if no browser answers."""
    return read_visible_page(url, deadline, partial(_read, deadline))


def _read(deadline: Deadline, page: PageSession) -> Reading:
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
        # If the page had less time than ANSWER_S, it may only be slow.
        if has_full_time:
            return silent_page_reading()
        raise
