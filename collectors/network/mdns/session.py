"""The rounds of mDNS questions and the answers between them, over all interfaces at once.

Questions go out at once, about one second later and, while news still comes, every two seconds
after that (RFC 6762, section 5.2). What came in other answers is not asked again; what is
missing (SRV, TXT, addresses) is asked for in packets of many questions, three times at most.
"""

import random
import selectors
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal

from collectors.contract import Run
from collectors.network.host.rtnetlink import LinkNeighbour
from collectors.network.mdns.announcers import LinkRecords
from collectors.network.mdns.records import ENUMERATION
from collectors.network.mdns.sockets import LinkSockets
from collectors.network.mdns.wire import (
    Question,
    known_answer_packets,
    parse_response,
    question_packets,
)

RESOLVE_PER_TURN = 400
KNOWN_ANSWERS_MAX = 500
TYPES_PER_PACKET = 8
_TURN_S = 0.05
_TAKEN_PER_TURN = 2048
_READING_S = 0.005  # then the kernel's small buffer is emptied again
_SEEN_MAX = 16_384
_PROGRESS_INTERVAL_S = 0.25

End = Literal["quiet", "crowded", "deadline", "cancelled"]
ReadNeighbours = Callable[[], Iterable[LinkNeighbour]]


@dataclass(frozen=True, slots=True)
class QuerySchedule:
    """When questions go out, in seconds.

    ``quiet_s`` is the silence after which the neighbours are taken to have answered: a responder
    waits 0.12 s at most, 0.5 s after a truncated question (RFC 6762, sections 6 and 7.2).
    ``resolve_after_s`` counts from the moment a record was first missed. After ``crowded_s`` of
    more than can be taken in, listening on is of no use: the hosts must be asked one by one.
    """

    first_delay_s: tuple[float, float] = (0.02, 0.12)
    second_round_s: float = 1.0
    round_interval_s: float = 2.0
    quiet_s: float = 0.5
    crowded_s: float = 4.0
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

    ``seen`` are the hashes of the packets taken in, ``lost`` how many the kernel had thrown away
    when the last round of questions began, ``losses`` the rounds whose answers were lost in part.
    ``has_heard`` tells of any packet from another address than our ``own``.
    """

    link: LinkSockets
    records: LinkRecords
    asked_types: set[str] = field(default_factory=set)
    tries: dict[Question, _Tries] = field(default_factory=dict)
    seen: set[int] = field(default_factory=set)
    lost: int = 0
    losses: int = 0
    own: frozenset[str] = frozenset()
    has_heard: bool = False

    @property
    def is_crowded(self) -> bool:
        """True when somebody told more than was taken, or much was lost."""
        return self.records.is_tight or self.losses > 0 or self.link.lost() > self.lost


class Session:
    """Asks for ``types`` (``_ipp._tcp``) and what the enumeration adds to them."""

    def __init__(
        self,
        watches: Sequence[Watch],
        types: Sequence[str],
        schedule: QuerySchedule,
        read_neighbours: ReadNeighbours = lambda: (),
    ) -> None:
        self._types = tuple(types)
        self._read_neighbours = read_neighbours
        self._schedule = schedule
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
        crowded_s = time.monotonic() + self._schedule.crowded_s
        next_round_s = time.monotonic() + random.uniform(*self._schedule.first_delay_s)  # noqa: S311 - spreads load
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
                next_resolve_s = now + self._schedule.resolve_interval_s
            if self._is_quiet(now):
                return "quiet"
            if now >= crowded_s and any(watch.is_crowded for watch in self._watches):
                return "crowded"
            until = min(deadline_s, next_round_s, next_resolve_s, now + _TURN_S)
            has_unread = any(watch.records.has_unread for watch in self._watches)
            for key, _ in selector.select(0.0 if has_unread else max(0.0, until - now)):
                _take_in(key.data, key)
            for watch in self._watches:
                self._read(watch)
            self._tell(run)
        return "cancelled"

    def _interval_s(self) -> float:
        schedule = self._schedule
        return schedule.second_round_s if self._rounds == 1 else schedule.round_interval_s

    def _is_quiet(self, now: float) -> bool:
        """Tell whether all was said. What the kernel had no room for must be asked for again."""
        if self._rounds < 2 or now - self._last_news_s < self._schedule.quiet_s:
            return False
        return all(watch.link.lost() == watch.lost for watch in self._watches)

    def _read(self, watch: Watch) -> None:
        """Understand some of the packets taken in, then let more be taken in."""
        ends_s = time.monotonic() + _READING_S
        while (packet := watch.records.next_packet()) is not None:
            if watch.records.add(packet[0], parse_response(packet[1])):
                self._last_news_s = time.monotonic()
                self._ask_new_types(watch)
            if time.monotonic() >= ends_s:
                return

    def _ask_round(self) -> None:
        self._rounds += 1
        self._tell_apart()
        for watch in self._watches:
            lost = watch.link.lost()
            watch.losses += lost > watch.lost
            watch.lost, records = lost, watch.records
            records.next_round()
            types = (*self._types, *(each for each in records.types if each not in self._types))
            watch.asked_types.update(types)
            # Where somebody tells too much, who told an answer may not be the one to tell it: what
            # is known is not said, so that those are heard whose answers others gave before.
            known = {} if records.is_tight else records.instances()
            for packet in self._round_packets(known, types):
                watch.link.send(packet)

    def _tell_apart(self) -> None:
        """Learn who is who. It is worth its cost only where somebody tells too much."""
        if any(watch.records.is_tight for watch in self._watches):
            with suppress(OSError):
                table = tuple(self._read_neighbours())
                for watch in self._watches:
                    watch.records.tell_apart(table)

    def _round_packets(
        self, instances: Mapping[str, list[tuple[str, ...]]], types: Sequence[str]
    ) -> Iterator[bytes]:
        """Yield one packet of all types first; later few at a time, with the answers known."""
        enumeration = Question(tuple(ENUMERATION.split(".")), "PTR")
        if self._rounds == 1:
            yield from question_packets((enumeration, *map(_type_question, types)))
            return
        silent: list[Question] = [enumeration]
        for each in types:
            if known := instances.get(each):
                yield from known_answer_packets(_type_question(each), known[:KNOWN_ANSWERS_MAX])
            else:
                silent.append(_type_question(each))
        # Some small responders look only at the first questions of a packet.
        for start in range(0, len(silent), TYPES_PER_PACKET):
            yield from question_packets(silent[start : start + TYPES_PER_PACKET])

    def _ask_new_types(self, watch: Watch) -> None:
        new = [each for each in watch.records.types if each not in watch.asked_types]
        new = [each for each in new if each not in self._types]
        watch.asked_types.update(new)
        for packet in question_packets(map(_type_question, new)):
            watch.link.send(packet)

    def _ask_missing(self, now: float) -> None:
        """Ask for what is missing and due; the silence begins only when nothing is left to ask."""
        for watch in self._watches:
            due, is_pending = _due_questions(watch, now, self._schedule.resolve_after_s)
            for packet in question_packets(due):
                watch.link.send(packet)
            if due or is_pending:
                self._last_news_s = now

    def _tell(self, run: Run) -> None:
        now = time.monotonic()
        if now >= self._next_progress_s:
            self._next_progress_s = now + _PROGRESS_INTERVAL_S
            run.progress("mdns", sum(len(watch.records) for watch in self._watches))


def _take_in(watch: Watch, key: selectors.SelectorKey) -> None:
    """Empty a socket's small kernel buffer: understanding its packets takes ten times longer.

    What an address has sent before, as the answer to another round, is left out.
    """
    for _ in range(_TAKEN_PER_TURN):
        received = watch.link.receive(key.fileobj)  # type: ignore[arg-type]  # always a socket
        if received is None:
            return
        source, packet = received
        mark = hash(received)
        watch.has_heard = watch.has_heard or bool(source and source not in watch.own)
        if source and mark not in watch.seen:
            if len(watch.seen) < _SEEN_MAX:
                watch.seen.add(mark)
            watch.records.put(source, packet)


def _due_questions(
    watch: Watch, now: float, after_s: Sequence[float]
) -> tuple[list[Question], bool]:
    """Return what to ask now, and whether anything will have to be asked again later."""
    due: list[Question] = []
    is_pending = False
    for question in watch.records.missing():
        tries = watch.tries.setdefault(question, _Tries(now))
        next_s = tries.next_s(after_s)
        if next_s is None:
            continue
        if next_s <= now and len(due) < RESOLVE_PER_TURN:
            if not watch.records.may_ask(question):
                tries.count = len(after_s)
                continue
            tries.count += 1
            due.append(question)
        is_pending = is_pending or tries.next_s(after_s) is not None
    return due, is_pending


def _type_question(service_type: str) -> Question:
    return Question((*service_type.split("."), "local"), "PTR")
