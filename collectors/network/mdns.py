"""Browse DNS-SD services on every interface until the neighbours have nothing new to say.

Questions go out at once, about one second later and, while news still comes, every two seconds
after that (RFC 6762, section 5.2). What came in other answers is not asked again; what is
missing (SRV, TXT, addresses) is asked for in packets of many questions, three times at most.
"""

import random
import selectors
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from collectors.contract import Interface, Run, SourceState
from collectors.network.evidence import MdnsFindings, MdnsService
from collectors.network.mdns_records import ENUMERATION, Allowance, RecordBook, service_type_of
from collectors.network.mdns_sockets import Link, open_link
from collectors.network.mdns_wire import (
    Question,
    known_answer_packets,
    parse_response,
    question_packets,
)

SERVICE_TYPES = (
    "_ipp._tcp",
    "_ipps._tcp",
    "_printer._tcp",
    "_pdl-datastream._tcp",
    "_http._tcp",
    "_https._tcp",
    "_scanner._tcp",
    "_uscan._tcp",
    "_uscans._tcp",
    "_workstation._tcp",
    "_smb._tcp",
    "_afpovertcp._tcp",
    "_ssh._tcp",
    "_sftp-ssh._tcp",
    "_rfb._tcp",
    "_rtsp._tcp",
    "_axis-video._tcp",
    "_airplay._tcp",
    "_raop._tcp",
    "_googlecast._tcp",
    "_spotify-connect._tcp",
    "_sonos._tcp",
    "_device-info._tcp",
    "_mqtt._tcp",
    "_hap._tcp",
    "_hue._tcp",
    "_companion-link._tcp",
    "_privet._tcp",
    "_ptp._tcp",
)

INTERFACES_MAX = 16
SECOND_ROUND_S = 1.0
ROUND_INTERVAL_S = 2.0
QUIET_S = 0.5
"""Silence after which the neighbours are taken to have answered: the longest random delay of a
responder is 0.12 s (0.5 s after a truncated question; RFC 6762, sections 6 and 7.2)."""
RESOLVE_INTERVAL_S = 0.2
RESOLVE_TRIES = 3
RESOLVE_PER_TURN = 400
KNOWN_ANSWERS_MAX = 500
TYPES_PER_PACKET = 8
FIRST_DELAY_S = (0.02, 0.12)
_TURN_S = 0.05
_DRAIN_MAX = 256
_PROGRESS_INTERVAL_S = 0.25


@dataclass(slots=True)
class _Watch:
    """One interface: its sockets, what it heard, and how often each missing record was asked."""

    link: Link
    book: RecordBook
    asked_types: set[str] = field(default_factory=set)
    tries: dict[Question, int] = field(default_factory=dict)


def browse(
    interfaces: Sequence[Interface],
    *,
    extra_types: Sequence[str],
    max_services: int,
    deadline_s: float,
    run: Run,
) -> MdnsFindings:
    """Return the services announced on ``interfaces``; blocks until quiet or ``deadline_s``.

    ``extra_types`` are like ``_ipp._tcp``, ``deadline_s`` is a moment of ``time.monotonic()``.
    Never raises for what network or machine do: the state says it.
    """
    allowance = Allowance(max_services)
    links = [link for link in (open_link(each) for each in interfaces) if link is not None]
    watches = [_Watch(link, RecordBook(link.name, allowance)) for link in links[:INTERFACES_MAX]]
    try:
        session = _Session([watch for watch in watches if watch.link.sockets], extra_types)
        end = session.listen(deadline_s, run)
    finally:
        for link in links:
            link.close()
    return _findings(watches, allowance, end, left_out=len(links) - len(watches))


End = Literal["quiet", "deadline", "cancelled"]


class _Session:
    """The rounds of questions and the answers between them, over all interfaces at once."""

    def __init__(self, watches: list[_Watch], extra_types: Sequence[str]) -> None:
        own = (_plain_type(each) for each in extra_types)
        self._types = tuple(dict.fromkeys((*SERVICE_TYPES, *(each for each in own if each))))
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
        next_round_s = time.monotonic() + random.uniform(*FIRST_DELAY_S)  # noqa: S311 - spreads load
        next_resolve_s = next_round_s
        while not run.cancelled:
            now = time.monotonic()
            if now >= deadline_s:
                return "deadline"
            if now >= next_round_s:
                self._ask_round()
                next_round_s = now + (SECOND_ROUND_S if self._rounds == 1 else ROUND_INTERVAL_S)
                self._last_news_s = max(self._last_news_s, now)
            if now >= next_resolve_s:
                self._ask_missing(now)
                next_resolve_s = now + RESOLVE_INTERVAL_S
            if self._rounds > 1 and now - self._last_news_s >= QUIET_S:
                return "quiet"
            until = min(deadline_s, next_round_s, next_resolve_s, now + _TURN_S)
            for key, _ in selector.select(max(0.0, until - now)):
                self._drain(key.data, key)
            self._tell(run)
        return "cancelled"

    def _drain(self, watch: _Watch, key: selectors.SelectorKey) -> None:
        for _ in range(_DRAIN_MAX):
            packet = watch.link.receive(key.fileobj)  # type: ignore[arg-type]  # always a socket
            if packet is None:
                return
            if packet and watch.book.add(parse_response(packet)):
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

    def _ask_new_types(self, watch: _Watch) -> None:
        new = [each for each in watch.book.types if each not in watch.asked_types]
        new = [each for each in new if each not in self._types]
        watch.asked_types.update(new)
        for packet in question_packets(map(_type_question, new)):
            watch.link.send(packet)

    def _ask_missing(self, now: float) -> None:
        for watch in self._watches:
            due: list[Question] = []
            for question in watch.book.missing():
                tries = watch.tries.get(question, 0)
                if tries < RESOLVE_TRIES and len(due) < RESOLVE_PER_TURN:
                    watch.tries[question] = tries + 1
                    due.append(question)
            for packet in question_packets(due):
                watch.link.send(packet)
            if due:
                self._last_news_s = now  # their answers are worth the same wait

    def _tell(self, run: Run) -> None:
        now = time.monotonic()
        if now >= self._next_progress_s:
            self._next_progress_s = now + _PROGRESS_INTERVAL_S
            run.progress("mdns", sum(len(watch.book) for watch in self._watches))


def _plain_type(given: str) -> str | None:
    """Return ``_ipp._tcp`` for any usual way to write it; None for what is no service type."""
    name = given.strip().lower().rstrip(".").removesuffix(".local")
    return service_type_of(name + ".local")


def _type_question(service_type: str) -> Question:
    return Question((*service_type.split("."), "local"), "PTR")


def _findings(
    watches: Sequence[_Watch], allowance: Allowance, end: End, *, left_out: int
) -> MdnsFindings:
    services: list[MdnsService] = [each for watch in watches for each in watch.book.services()]
    limitations = list(dict.fromkeys(p for watch in watches for p in watch.link.problems))
    if allowance.dropped:
        limitations.append(f"mDNS: {len(allowance.dropped)} services over the limit were left out")
    if end == "deadline":
        limitations.append("mDNS: the time was up before the neighbours had fallen silent")
    if left_out:
        limitations.append(f"mDNS: {left_out} interfaces beyond {INTERFACES_MAX} were not browsed")
    return MdnsFindings(
        services=tuple(services),
        state=_state(watches),
        truncated=bool(allowance.dropped) or end != "quiet",
        limitations=tuple(limitations),
    )


def _state(watches: Sequence[_Watch]) -> SourceState:
    if not watches:
        return SourceState("unsupported", "no interface with an address to browse on")
    if any(watch.link.has_sent for watch in watches):
        return SourceState("succeeded")
    problems = "; ".join(p for watch in watches for p in watch.link.problems)
    return SourceState("failed", problems or "stopped before the first question")
