"""Sends rounds of mDNS questions and receives the answers, on all interfaces at the same time.

A round of questions is sent at the start, about one second later and then, while new records still
arrive, every two seconds (RFC 6762, section 5.2). Missing records of a service (SRV, TXT,
addresses) are queried at most three times, with many questions in a packet. Records that arrived
together with other answers are not queried.
"""

import random
import selectors
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal

from collectors.contract import Run
from collectors.network.mdns.announcers import LinkRecords
from collectors.network.mdns.records import ENUMERATION
from collectors.network.mdns.services import known_instances, open_questions
from collectors.network.mdns.sockets import LinkSockets
from collectors.network.mdns.wire import (
    Question,
    is_question,
    known_answer_packets,
    parse_response,
    question_packets,
    type_question,
)
from collectors.shared.linux.rtnetlink import LinkNeighbour

RESOLVE_PER_TURN = 400
"""The maximum number of questions for missing records that are sent at once on one interface."""
KNOWN_ANSWERS_MAX = 500
TYPES_PER_PACKET = 8
_TURN_S = 0.05  # the longest wait for packets in one turn of the loop
_RECEIVED_PER_TURN = 2048
_PARSING_S = 0.005  # short, so that the kernel's small receive buffer is emptied in time
_SEEN_MAX = 16_384
"""The maximum number of packets of one interface that are recognised if they arrive again."""
_PROGRESS_INTERVAL_S = 0.25

End = Literal["settled", "crowded", "deadline", "cancelled"]
"""Why a session ended. ``settled``: no more answers are expected. ``crowded``: see `QuerySchedule`.
"""
ReadNeighbours = Callable[[], Iterable[LinkNeighbour]]


@dataclass(frozen=True, slots=True)
class QuerySchedule:
    """When questions are sent, in seconds.

    The first round is sent after a random time between the two values of ``first_delay_s``. If no
    new records arrive for ``settle_s``, all hosts are assumed to have answered. A responder waits
    at most 0.12 s, or 0.5 s after a truncated question (RFC 6762, sections 6 and 7.2).
    ``resolve_after_s`` are the times of the questions for a missing record, counted from the first
    question. Every ``resolve_interval_s``, the questions that are due are sent. If packets or
    records are lost, the session ends as "crowded", but not before ``crowded_s`` have passed. Then
    the hosts are queried one by one (direct.py).
    """

    first_delay_s: tuple[float, float] = (0.02, 0.12)
    second_round_s: float = 1.0
    round_interval_s: float = 2.0
    settle_s: float = 0.5
    crowded_s: float = 4.0
    resolve_interval_s: float = 0.2
    resolve_after_s: tuple[float, ...] = (0.0, 0.4, 1.2)


@dataclass(slots=True)
class Watch:
    """One interface: its sockets, its records, and the questions that were sent.

    ``tries`` maps the question for a missing record to the time of the first query and the number
    of queries. ``seen`` are hashes of the packets so far. ``lost`` is the kernel's count of dropped
    packets at the last round, and ``losses`` is the number of rounds in which this count grew.
    ``own`` are the addresses of this machine. ``has_received``: a packet arrived from another
    machine. ``questions_of_machine`` counts the questions that arrived from this machine. It
    includes the questions that this session sent, because the kernel delivers them as well.
    """

    link: LinkSockets
    records: LinkRecords
    queried_types: set[str] = field(default_factory=set)
    tries: dict[Question, tuple[float, int]] = field(default_factory=dict)
    seen: set[int] = field(default_factory=set)
    lost: int = 0
    losses: int = 0
    own: frozenset[str] = frozenset()
    has_received: bool = False
    questions_of_machine: int = 0

    @property
    def is_crowded(self) -> bool:
        """Whether records were left out or packets were lost."""
        return self.records.is_overloaded or self.losses > 0 or self.link.lost() > self.lost

    def known_answers(self) -> Mapping[str, list[tuple[str, ...]]]:
        """Return the instances to list in the questions. Hosts do not answer with them again.

        Returns {} if a host floods the link: a question that lists forged instances would keep real
        hosts from answering. Returns {} also if another program of this machine sends mDNS
        questions. After a question that lists a known answer, Avahi does not send this answer to
        the machine for 0.7 s. So the other program would not receive it.
        """
        is_alone = self.questions_of_machine <= self.link.sent
        return known_instances(self.records) if is_alone and not self.records.is_overloaded else {}


class Session:
    """Queries ``types`` (such as ``_ipp._tcp``), and every further type that a host reports when it
    is queried for its service types."""

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
        # The last time at which a new record arrived, a round was sent, or a missing record was
        # still being queried.
        self._last_news_s = 0.0
        self._next_progress_s = 0.0

    def listen(self, deadline_s: float, run: Run) -> End:
        """Send questions and receive answers. Returns why the session ended (`End`)."""
        if not self._watches:
            return "settled"
        with selectors.DefaultSelector() as selector:
            for watch in self._watches:
                for socket in watch.link.sockets:
                    selector.register(socket, selectors.EVENT_READ, watch)
            return self._listen(selector, deadline_s, run)

    def _listen(self, selector: selectors.BaseSelector, deadline_s: float, run: Run) -> End:
        schedule = self._schedule
        crowded_s = time.monotonic() + schedule.crowded_s
        next_round_s = time.monotonic() + random.uniform(*schedule.first_delay_s)  # noqa: S311 - spreads load
        next_resolve_s = next_round_s
        while not run.cancelled:
            now = time.monotonic()
            if now >= deadline_s:
                return "deadline"
            if now >= next_round_s:
                self._query_round()
                is_first = self._rounds == 1
                pause_s = schedule.second_round_s if is_first else schedule.round_interval_s
                next_round_s = now + pause_s
                self._last_news_s = max(self._last_news_s, now)
            if now >= next_resolve_s:
                self._query_missing(now)
                next_resolve_s = now + schedule.resolve_interval_s
            until = min(deadline_s, next_round_s, next_resolve_s, now + _TURN_S)
            if self._is_settled(now) or self._has_queued_packets:
                until = now
            for key, _ in selector.select(max(0.0, until - now)):
                _receive(key.data, key)
            for watch in self._watches:
                self._parse(watch)
            self._report(run)
            # This is checked after receiving, because on a busy machine packets may have been
            # waiting in the kernel.
            if self._is_settled(now) and not self._has_queued_packets:
                return "settled"
            if now >= crowded_s and any(watch.is_crowded for watch in self._watches):
                return "crowded"
        return "cancelled"

    @property
    def _has_queued_packets(self) -> bool:
        return any(watch.records.has_queued_packets for watch in self._watches)

    def _is_settled(self, now: float) -> bool:
        """Return whether all hosts have answered.

        If packets were lost, returns False, so that another round queries the lost records again.
        """
        if self._rounds < 2 or now - self._last_news_s < self._schedule.settle_s:
            return False
        return all(watch.link.lost() == watch.lost for watch in self._watches)

    def _parse(self, watch: Watch) -> None:
        """Parse queued packets for at most `_PARSING_S`. The rest is parsed in the next turn."""
        ends_s = time.monotonic() + _PARSING_S
        while (packet := watch.records.next_packet()) is not None:
            if watch.records.add(packet[0], parse_response(packet[1])):
                self._last_news_s = time.monotonic()
                queried = {*watch.queried_types, *self._types}
                new = [type_ for type_ in watch.records.types if type_ not in queried]
                watch.queried_types.update(new)
                watch.link.send(question_packets(map(type_question, new)))
            if time.monotonic() >= ends_s:
                return

    def _query_round(self) -> None:
        self._rounds += 1
        if any(watch.records.is_overloaded for watch in self._watches):
            with suppress(OSError):
                table = tuple(self._read_neighbours())
                for watch in self._watches:
                    watch.records.identify(table)
        for watch in self._watches:
            lost = watch.link.lost()
            if lost > watch.lost:
                watch.losses += 1
                watch.tries.clear()  # the answers may have been lost as well
            watch.lost, records = lost, watch.records
            records.next_round()
            types = tuple(dict.fromkeys((*self._types, *records.types)))
            watch.queried_types.update(types)
            watch.link.send(self._round_packets(watch.known_answers(), types))

    def _round_packets(
        self, instances: Mapping[str, list[tuple[str, ...]]], types: Sequence[str]
    ) -> Iterator[bytes]:
        """Yield the packets of a round.

        In the first round, one packet has the questions for all types. In later rounds, a packet
        has only few questions. Instances that are known already are listed as known answers.
        """
        enumeration = Question(tuple(ENUMERATION.split(".")), "PTR")
        if self._rounds == 1:
            yield from question_packets((enumeration, *map(type_question, types)))
            return
        unanswered: list[Question] = [enumeration]
        for type_ in types:
            if known := instances.get(type_):
                yield from known_answer_packets(type_question(type_), known[:KNOWN_ANSWERS_MAX])
            else:
                unanswered.append(type_question(type_))
        # Some small responders read only the first questions of a packet.
        for start in range(0, len(unanswered), TYPES_PER_PACKET):
            yield from question_packets(unanswered[start : start + TYPES_PER_PACKET])

    def _query_missing(self, now: float) -> None:
        """Send the due questions for missing records.

        While any such question is left, the session is not settled.
        """
        for watch in self._watches:
            due, is_pending = due_questions(watch, now, self._schedule.resolve_after_s)
            watch.link.send(question_packets(due))
            if due or is_pending:
                self._last_news_s = now

    def _report(self, run: Run) -> None:
        now = time.monotonic()
        if now >= self._next_progress_s:
            self._next_progress_s = now + _PROGRESS_INTERVAL_S
            run.progress("mdns", sum(len(watch.records) for watch in self._watches))


def _receive(watch: Watch, key: selectors.SelectorKey) -> None:
    """Queue all packets from a socket's kernel buffer, which is small.

    They are parsed later, because parsing takes ten times longer than receiving. A packet is
    ignored if the same address has sent the same packet before, for example in answer to an earlier
    round.
    """
    for _ in range(_RECEIVED_PER_TURN):
        received = watch.link.receive(key.fileobj)  # type: ignore[arg-type]  # always a socket
        if received is None:
            return
        source, packet = received
        packet_hash = hash(received)
        if source in watch.own:
            watch.questions_of_machine += is_question(packet)
        elif source:
            watch.has_received = True
        if source and packet_hash not in watch.seen:
            if len(watch.seen) < _SEEN_MAX:
                watch.seen.add(packet_hash)
            watch.records.put(source, packet)


def due_questions(
    watch: Watch, now: float, after_s: Sequence[float]
) -> tuple[list[Question], bool]:
    """Return the questions to send now, and whether further questions will be due later."""
    due: list[Question] = []
    is_pending = False
    for question, announcer in open_questions(watch.records).items():
        first_s, count = watch.tries.get(question, (now, 0))
        if count >= len(after_s):
            continue
        if first_s + after_s[count] <= now and len(due) < RESOLVE_PER_TURN:
            is_allowed = watch.records.take_question(announcer)
            count = count + 1 if is_allowed else len(after_s)
            watch.tries[question] = first_s, count
            due += [question] if is_allowed else []
        is_pending = is_pending or count < len(after_s)
    return due, is_pending
