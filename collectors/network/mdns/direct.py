"""Hosts asked one by one what they announce, where somebody announces too much.

A multicast packet proves nothing: its sender's address is easily made up. An answer to a question
that was sent to one host alone, from a port of its own and with a number of its own, comes from
that host, unless somebody takes over its address by ARP (RFC 6762, sections 5.5 and 6.7).
"""

import secrets
import selectors
import socket
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress

from collectors.contract import Run
from collectors.network.mdns.announcers import LinkRecords
from collectors.network.mdns.sockets import PORT
from collectors.network.mdns.wire import (
    MESSAGE_MAX_BYTES,
    Question,
    parse_response,
    question_packets,
)

HOSTS_MAX = 512
HOSTS_AT_ONCE = 128
ANSWERS_MAX = 64
"""Packets read of one host: hundreds of services fit into them."""
FIRST_ANSWER_S = 1.2
"""How long a host is waited for that has not answered yet: the flood keeps it busy, too."""
SILENCE_S = 0.35
"""After which a host that has answered is taken to have told all (section 6)."""
_QUESTIONS_PER_PACKET = 8  # some small responders look only at the first ones
_TURN_S = 0.05
_AGAIN_S = 0.5


def ask_directly(
    records: LinkRecords,
    hosts: Sequence[str],
    types: Sequence[str],
    *,
    deadline_s: float,
    run: Run,
    port: int = PORT,
) -> int:
    """Ask ``hosts`` (IPv4) for services of ``types``; what a host says replaces what was heard.

    Returns how many answered. Never raises for what network or machine do.
    """
    questions = [Question((*each.split("."), "local"), "PTR") for each in types]
    answered = 0
    for start in range(0, len(hosts), HOSTS_AT_ONCE):
        if run.cancelled or time.monotonic() >= deadline_s:
            break
        with ExitStack() as sockets, selectors.DefaultSelector() as selector:
            asked = [_Asked(each, port, sockets) for each in hosts[start : start + HOSTS_AT_ONCE]]
            for each in asked:
                each.ask(questions)
                each.register(selector)
            silent = [each for each in asked if each.is_open]
            _listen(selector, records, silent, min(deadline_s, time.monotonic() + _AGAIN_S), run)
            for each in silent:
                each.ask(() if each.answers else questions)
            until_s = time.monotonic() + FIRST_ANSWER_S - _AGAIN_S
            _listen(selector, records, silent, min(deadline_s, until_s), run)
            for each in asked:
                each.ask(records.lacking(each.address) if each.answers else ())
            _listen(selector, records, (), deadline_s, run)
            answered += sum(each.answers > 0 for each in asked)
    return answered


class _Asked:
    """One host and the socket over which it alone is talked to."""

    def __init__(self, address: str, port: int, sockets: ExitStack) -> None:
        self.address = address
        self.answers = 0
        self._numbers: set[bytes] = set()
        self._socket: socket.socket | None = None
        with suppress(OSError):  # too many files are open, or there is no route
            opened = sockets.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            opened.setblocking(False)
            opened.connect((address, port))
            self._socket = opened

    @property
    def is_open(self) -> bool:
        return self._socket is not None

    def register(self, selector: selectors.BaseSelector) -> None:
        if self._socket is not None:
            selector.register(self._socket, selectors.EVENT_READ, self)

    def ask(self, questions: Iterable[Question]) -> None:
        if self._socket is None:
            return
        waiting = list(questions)
        for start in range(0, len(waiting), _QUESTIONS_PER_PACKET):
            for packet in question_packets(waiting[start : start + _QUESTIONS_PER_PACKET]):
                number = secrets.token_bytes(2)
                self._numbers.add(number)
                with suppress(OSError):
                    self._socket.send(number + packet[2:])

    def read(self, records: LinkRecords) -> bool:
        """Take in an answer; False when there is none."""
        try:
            packet = self._socket.recv(MESSAGE_MAX_BYTES + 1) if self._socket else b""
        except OSError:
            return False  # nothing more, or nobody listens at that port
        if packet[:2] not in self._numbers or self.answers >= ANSWERS_MAX:
            return False
        if told := parse_response(packet):
            self.answers += 1
            records.add_proved(self.address, told)
        return bool(told)


def _listen(
    selector: selectors.BaseSelector,
    records: LinkRecords,
    awaited: Sequence[_Asked],
    deadline_s: float,
    run: Run,
) -> None:
    """Read answers until all of ``awaited`` have answered and everybody is silent."""
    last_s = now = time.monotonic()
    while not run.cancelled and now < deadline_s:
        for key, _ in selector.select(min(_TURN_S, deadline_s - now)):
            if key.data.read(records):
                last_s = time.monotonic()
        now = time.monotonic()
        if now >= last_s + SILENCE_S and all(each.answers for each in awaited):
            return
