"""Queries hosts for their services by unicast.

All hosts of a link are queried if multicast packets were lost or too much was announced. A few
hosts are queried if no multicast packet arrives although a printer of this machine needs mDNS. A
host is also queried if different host names were announced from its address: one of them may be
forged.

The source address of a multicast packet is easily forged. Each host is queried from a separate port
with a random id. So the answer certainly comes from the queried host, unless another machine takes
over the host's address by ARP (RFC 6762, sections 5.5 and 6.7).
"""

import secrets
import selectors
import socket
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress

from collectors.contract import Run
from collectors.network.mdns.announcers import LinkRecords
from collectors.network.mdns.services import open_questions_of_host
from collectors.network.mdns.sockets import PORT
from collectors.network.mdns.wire import (
    MESSAGE_MAX_BYTES,
    Question,
    Record,
    parse_response,
    question_packets,
    type_question,
)

HOSTS_MAX = 512
HOSTS_AT_ONCE = 128
ANSWERS_MAX = 64
"""The most packets that are read from one host. Hundreds of services fit into them."""
FIRST_ANSWER_S = 1.2
"""How long to wait for a host's first answer. A flood of packets may slow down the host."""
ANNOUNCER_ANSWERS_S = 5.0
"""How long to wait for the first answer of a host that has announced something."""
SETTLE_S = 0.35
"""If no host sends anything for this long, no more answers are expected (RFC 6762, section 6)."""
_QUESTIONS_PER_PACKET = 8  # some small responders read only the first questions of a packet
_TURN_S = 0.05  # the longest wait for packets in one turn of the loop
_RETRY_AFTER_S = 0.5  # a host that has not answered by then is queried once more

Store = Callable[[str, Iterable[Record]], None]
"""Stores the records that a host sent in an answer."""


def query_directly(
    records: LinkRecords,
    hosts: Sequence[str],
    types: Sequence[str],
    *,
    deadline_s: float,
    run: Run,
    port: int = PORT,
    confirms: bool = False,
) -> int:
    """Query ``hosts`` (IPv4) for services of ``types``.

    A host's answers replace its records (`LinkRecords.add_verified`). If ``confirms``, they only
    confirm records (`LinkRecords.confirm`). Returns how many hosts answered. Errors of the network
    or machine are not raised.
    """
    store = records.confirm if confirms else records.add_verified
    questions = list(map(type_question, types))
    answered = 0
    for start in range(0, len(hosts), HOSTS_AT_ONCE):
        if run.cancelled or time.monotonic() >= deadline_s:
            break
        with ExitStack() as sockets, selectors.DefaultSelector() as selector:
            queries: list[_Query] = []
            for address in hosts[start : start + HOSTS_AT_ONCE]:
                with suppress(OSError):  # if too many files are open, or there is no route
                    queries.append(_Query(address, port, sockets, selector))
            started_s, silent = time.monotonic(), queries
            for until_s in (_RETRY_AFTER_S, FIRST_ANSWER_S, ANNOUNCER_ANSWERS_S):
                if until_s > FIRST_ANSWER_S:
                    silent = [query for query in silent if records.book_of(query.address)]
                if not silent:
                    break
                for query in silent:
                    query.send(questions)
                _listen(selector, store, silent, min(deadline_s, started_s + until_s), run)
                silent = [query for query in silent if not query.answers]
            for query in queries:
                query.send(open_questions_of_host(records, query.address) if query.answers else ())
            _listen(selector, store, (), deadline_s, run)
            answered += sum(query.answers > 0 for query in queries)
    return answered


class _Query:
    """One host, and a UDP socket that is connected to it. ``answers`` counts its answers.

    The constructor may raise OSError.
    """

    def __init__(
        self, address: str, port: int, sockets: ExitStack, selector: selectors.BaseSelector
    ) -> None:
        self.address = address
        self.answers = 0
        self._ids: set[bytes] = set()
        self._socket = sockets.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        self._socket.setblocking(False)
        self._socket.connect((address, port))
        selector.register(self._socket, selectors.EVENT_READ, self)

    def send(self, questions: Iterable[Question]) -> None:
        all_questions = list(questions)
        for start in range(0, len(all_questions), _QUESTIONS_PER_PACKET):
            for packet in question_packets(all_questions[start : start + _QUESTIONS_PER_PACKET]):
                query_id = secrets.token_bytes(2)
                self._ids.add(query_id)
                with suppress(OSError):
                    self._socket.send(query_id + packet[2:])

    def receive(self, store: Store) -> bool:
        """Store the records of one answer. Returns whether there was any."""
        try:
            packet = self._socket.recv(MESSAGE_MAX_BYTES + 1)
        except OSError:
            return False  # no packet is waiting, or the host's port is closed
        if packet[:2] not in self._ids or self.answers >= ANSWERS_MAX:
            return False
        if received := parse_response(packet):
            self.answers += 1
            store(self.address, received)
        return bool(received)


def _listen(
    selector: selectors.BaseSelector,
    store: Store,
    queries: Sequence[_Query],
    deadline_s: float,
    run: Run,
) -> None:
    """Receive until all of ``queries`` have answered and no more packets arrive."""
    last_s = now = time.monotonic()
    while not run.cancelled and now < deadline_s:
        for key, _ in selector.select(min(_TURN_S, deadline_s - now)):
            if key.data.receive(store):
                last_s = time.monotonic()
        now = time.monotonic()
        if now >= last_s + SETTLE_S and all(query.answers for query in queries):
            return
