"""The rounds of mDNS questions and the answers between them, over all interfaces at once.

Questions go out at once, about one second later and, while news still comes, every two seconds
after that (RFC 6762, section 5.2). What came in other answers is not asked again; what is
missing (SRV, TXT, addresses) is asked for in packets of many questions, three times at most.
"""

import random
import selectors
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from collectors.contract import Run
from collectors.network.mdns_records import ENUMERATION, RecordBook
from collectors.network.mdns_sockets import Link
from collectors.network.mdns_wire import (
    Question,
    known_answer_packets,
    parse_response,
    question_packets,
)

RESOLVE_PER_TURN = 400
RESOLVE_QUESTIONS_MAX = 8000
KNOWN_ANSWERS_MAX = 500
TYPES_PER_PACKET = 8
_TURN_S = 0.05
_UNREAD_MAX = 2048
_READ_PER_TURN = 64
_SEEN_MAX = 50_000
_PROGRESS_INTERVAL_S = 0.25

End = Literal["quiet", "deadline", "cancelled"]


@dataclass(frozen=True, slots=True)
class Pace:
    """When questions go out, in seconds.

    ``quiet_s`` is the silence after which the neighbours are taken to have answered: a responder
    waits 0.12 s at most, 0.5 s after a truncated question (RFC 6762, sections 6 and 7.2).
    ``resolve_after_s`` counts from the moment a record was first missed.
    """

    first_delay_s: tuple[float, float] = (0.02, 0.12)
    second_round_s: float = 1.0
    round_interval_s: float = 2.0
    quiet_s: float = 0.5
    resolve_interval_s: float = 0.2
    resolve_after_s: tuple[float, ...] = (0.0, 0.4, 1.2)


@dataclass(slots=True)
class _Tries:
    first_s: float
    count: int = 0

    def next_s(self, after_s: Sequence[float]) -> float | None:
        """When to ask again; None after the last time."""
        return self.first_s + after_s[self.count] if self.count < len(after_s) else None


@dataclass(slots=True)
class Watch:
    """One interface: its sockets, what it heard, and how often each missing record was asked.

    ``unread`` are packets not yet understood, ``seen`` the hashes of those taken in.
    """

    link: Link
    book: RecordBook
    asked_types: set[str] = field(default_factory=set)
    tries: dict[Question, _Tries] = field(default_factory=dict)
    questions: int = 0
    unread: deque[bytes] = field(default_factory=deque)
    seen: set[int] = field(default_factory=set)


class Session:
    """Asks for ``types`` (``_ipp._tcp``) and what the enumeration adds to them."""

    def __init__(self, watches: Sequence[Watch], types: Sequence[str], pace: Pace) -> None:
        self._types = tuple(types)
        self._pace = pace
        self._watches = watches
        self._rounds = 0
        self._last_news_s = 0.0
        self._next_progress_s = 0.0

    def listen(self, deadline_s: float, run: Run) -> End:
        """Ask and listen until one of the three ends."""
        if not self._watches:
            return "quiet"
        with selectors.DefaultSelector() as selector:
            for watch in self._watches:
                for each in watch.link.sockets:
                    selector.register(each, selectors.EVENT_READ, watch)
            return self._listen(selector, deadline_s, run)

    def _listen(self, selector: selectors.BaseSelector, deadline_s: float, run: Run) -> End:
        next_round_s = time.monotonic() + random.uniform(*self._pace.first_delay_s)  # noqa: S311 - spreads load
        next_resolve_s = next_round_s
        while not run.cancelled:
            now = time.monotonic()
            if now >= deadline_s:
                return "deadline"
            if now >= next_round_s:
                self._ask_round()
                next_round_s = now + self._interval_s()
                self._last_news_s = max(self._last_news_s, now)
            if now >= next_resolve_s:
                self._ask_missing(now)
                next_resolve_s = now + self._pace.resolve_interval_s
            if self._rounds > 1 and now - self._last_news_s >= self._pace.quiet_s:
                return "quiet"
            until = min(deadline_s, next_round_s, next_resolve_s, now + _TURN_S)
            has_unread = any(watch.unread for watch in self._watches)
            for key, _ in selector.select(0.0 if has_unread else max(0.0, until - now)):
                _take_in(key.data, key)
            for watch in self._watches:
                self._read(watch)
            self._tell(run)
        return "cancelled"

    def _interval_s(self) -> float:
        pace = self._pace
        return pace.second_round_s if self._rounds == 1 else pace.round_interval_s

    def _read(self, watch: Watch) -> None:
        """Understand some of the packets taken in, then let more be taken in."""
        for _ in range(min(len(watch.unread), _READ_PER_TURN)):
            if watch.book.add(parse_response(watch.unread.popleft())):
                self._last_news_s = time.monotonic()
                self._ask_new_types(watch)

    def _ask_round(self) -> None:
        self._rounds += 1
        for watch in self._watches:
            types = (*self._types, *(each for each in watch.book.types if each not in self._types))
            watch.asked_types.update(types)
            for packet in self._round_packets(watch.book, types):
                watch.link.send(packet)

    def _round_packets(self, book: RecordBook, types: Sequence[str]) -> Iterator[bytes]:
        """Yield one packet of all types first; later few at a time, with the answers known."""
        enumeration = Question(tuple(ENUMERATION.split(".")), "PTR")
        if self._rounds == 1:
            yield from question_packets((enumeration, *map(_type_question, types)))
            return
        silent: list[Question] = [enumeration]
        for each in types:
            known = list(book.instances(each))
            if known:
                yield from known_answer_packets(_type_question(each), known[:KNOWN_ANSWERS_MAX])
            else:
                silent.append(_type_question(each))
        # Some small responders look only at the first questions of a packet.
        for start in range(0, len(silent), TYPES_PER_PACKET):
            yield from question_packets(silent[start : start + TYPES_PER_PACKET])

    def _ask_new_types(self, watch: Watch) -> None:
        new = [each for each in watch.book.types if each not in watch.asked_types]
        new = [each for each in new if each not in self._types]
        watch.asked_types.update(new)
        for packet in question_packets(map(_type_question, new)):
            watch.link.send(packet)

    def _ask_missing(self, now: float) -> None:
        """Ask for what is missing and due; the silence begins only when nothing is left to ask."""
        for watch in self._watches:
            due, is_pending = _due_questions(watch, now, self._pace.resolve_after_s)
            for packet in question_packets(due):
                watch.link.send(packet)
            if due or is_pending:
                self._last_news_s = now

    def _tell(self, run: Run) -> None:
        now = time.monotonic()
        if now >= self._next_progress_s:
            self._next_progress_s = now + _PROGRESS_INTERVAL_S
            run.progress("mdns", sum(len(watch.book) for watch in self._watches))


def _take_in(watch: Watch, key: selectors.SelectorKey) -> None:
    """Empty a socket's small kernel buffer: understanding its packets takes ten times longer.

    What came before, over the other family or as the answer to another round, is left out.
    """
    while len(watch.unread) < _UNREAD_MAX:
        packet = watch.link.receive(key.fileobj)  # type: ignore[arg-type]  # always a socket
        if packet is None:
            return
        mark = hash(packet)
        if packet and mark not in watch.seen:
            if len(watch.seen) < _SEEN_MAX:
                watch.seen.add(mark)
            watch.unread.append(packet)


def _due_questions(
    watch: Watch, now: float, after_s: Sequence[float]
) -> tuple[list[Question], bool]:
    """Return what to ask now, and whether anything will have to be asked again later."""
    due: list[Question] = []
    is_pending = False
    for question in watch.book.missing():
        tries = watch.tries.setdefault(question, _Tries(now))
        next_s = tries.next_s(after_s)
        if next_s is None or watch.questions >= RESOLVE_QUESTIONS_MAX:
            continue
        if next_s <= now and len(due) < RESOLVE_PER_TURN:
            tries.count += 1
            watch.questions += 1
            due.append(question)
        is_pending = is_pending or tries.next_s(after_s) is not None
    return due, is_pending


def _type_question(service_type: str) -> Question:
    return Question((*service_type.split("."), "local"), "PTR")
