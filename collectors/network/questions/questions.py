"""Sends questions to open ports. Only the questions of an allow-list are ever sent.

IPP printers are queried for their attributes on port 631, web servers for the page "/" on a few
ports, and hosts for their names by multicast DNS. This module sends no byte to any other port: a
status request to port 9100 would print paper, and payment terminals listen on port 8443.
"""

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Final, Literal

from collectors.contract import Failure, Interface, Run
from collectors.network.discoveries import Discoveries, OpenPort
from collectors.network.mdns.names import ADDRESSES_MAX as NAMES_MAX
from collectors.network.mdns.names import query_names
from collectors.network.observations import Enrichment, Evidence
from collectors.network.questions.ipp import query_ipp
from collectors.network.questions.web import query_web
from collectors.shared.addresses import PRINT_PORTS

Question = Literal["ipp", "web", "web-tls"]
Query = Callable[[OpenPort, Question], Awaitable[tuple[Evidence, ...]]]

ALLOWED: Final[dict[int, Question]] = {
    631: "ipp",
    80: "web",
    8080: "web",
    8008: "web",
    443: "web-tls",
    8043: "web-tls",
}
"""The question for each port. If several ports of a host are found at the same time, they are
queried in this order."""

QUESTIONS_AT_ONCE = 64
PORTS_AT_ONCE = 2
"""The most ports of one host that are queried at the same time."""
PRINTER_PAUSE_S = 1.0
"""The pause between two connections to one print port. A printer may refuse a second connection
just after the first. No pause is needed if the scan hands over its open connection."""
QUESTION_TIME_S: Final[dict[Question, float]] = {"ipp": 1.5, "web": 1.2, "web-tls": 1.2}
"""The time for one question. A short time is enough: the scan has just woken a sleeping host."""

PORTS_MAX = 1024
"""The most ports that are queried with each question."""
FAILURES_MAX = 8
_POLL_S = 0.02


def enrich(
    discoveries: Discoveries,
    interfaces: Sequence[Interface],
    deadline_s: float,
    run: Run,
    query: Query | None = None,
) -> Enrichment:
    """Query each host and port as soon as the scan finds it. Return the answers.

    Ends when ``discoveries`` are complete and every port was queried, or at ``deadline_s``
    (``time.monotonic()``). Hosts are queried for their names by multicast DNS on ``interfaces``.
    If ``interfaces`` is empty, no names are queried. Errors of the network or of hosts are not
    raised.
    """
    querier = _Querier(deadline_s, run, query or _query)
    hostnames = asyncio.run(querier.query_all(discoveries, interfaces))
    host_count = len(discoveries.hosts()) if interfaces else 0
    limitations = tuple(querier.limitations(host_count))
    return Enrichment(tuple(querier.evidence), hostnames, tuple(querier.failures), limitations)


class _Querier:
    """Queries many hosts at once, but only a few ports of each host at once.

    ``_unqueried_count`` is the number of ports that were not queried before the deadline, and
    ``_excess_count`` the number of ports beyond the limit. ``_silent`` are the hosts at which a
    question timed out.
    """

    def __init__(self, deadline_s: float, run: Run, query: Query) -> None:
        self._excess_count = 0
        self._unqueried_count = 0
        self.evidence: list[Evidence] = []
        self.failures: list[Failure] = []
        self._deadline_s = deadline_s
        self._run = run
        self._query = query
        self._done = 0
        self._accepted: Counter[Question] = Counter()
        self._ports_at_once: defaultdict[str, asyncio.Semaphore] = defaultdict(
            lambda: asyncio.Semaphore(PORTS_AT_ONCE)
        )
        self._silent: set[str] = set()
        self._at_once = asyncio.Semaphore(QUESTIONS_AT_ONCE)
        self._pending: set[asyncio.Task[None]] = set()

    async def query_all(
        self, discoveries: Discoveries, interfaces: Sequence[Interface]
    ) -> dict[str, str]:
        """Query all hosts and ports until the discoveries are complete. Returns the host names."""
        names = asyncio.create_task(
            asyncio.to_thread(query_names, interfaces, discoveries, self._deadline_s, self._run)
        )
        discoveries.begin_queries()
        try:
            await self._query_discovered(discoveries)
        finally:
            discoveries.end_queries()
        # These ports are not queried any more. They are only counted.
        self._accept((*discoveries.take_ports(), *discoveries.take_waiting()))
        self._unqueried_count = self._accepted.total() - self._done
        for task in self._pending:
            task.cancel()
        await asyncio.gather(*self._pending, return_exceptions=True)
        return await names

    def limitations(self, host_count: int) -> Iterator[str]:
        """Yield what was not queried. ``host_count`` hosts were to be queried for their names."""
        if self._excess_count:
            yield f"open ports not queried, because there are too many: {self._excess_count}"
        if self._unqueried_count:
            yield f"open ports not queried, because the time was up: {self._unqueried_count}"
        if host_count > NAMES_MAX:
            excess = host_count - NAMES_MAX
            yield f"hosts not queried for their names, because there are too many: {excess}"

    async def _query_discovered(self, discoveries: Discoveries) -> None:
        while not self._run.cancelled and time.monotonic() < self._deadline_s:
            # `is_complete` is read first. If it were read after the ports are taken, the loop could
            # end before it takes a port that was added in between.
            is_complete = discoveries.is_complete
            self._begin(discoveries.take_ports())
            if is_complete and not self._pending:
                break
            await asyncio.sleep(_POLL_S)

    def _begin(self, ports: Iterable[OpenPort]) -> None:
        for target in self._accept(ports):
            task = asyncio.create_task(self._query_port(target))
            self._pending.add(task)
            task.add_done_callback(partial(self._end, target))

    def _end(self, open_port: OpenPort, task: asyncio.Task[None]) -> None:
        self._pending.discard(task)
        open_port.close()  # in case it was not queried

    def _accept(self, ports: Iterable[OpenPort]) -> list[OpenPort]:
        """Return the ports to query: at most ``PORTS_MAX`` for each question.

        Counts the accepted ports, and in ``_excess_count`` the ports beyond the limit.
        """
        accepted: list[OpenPort] = []
        allowed = [port for port in ports if port.port in ALLOWED]
        for entry in sorted(allowed, key=lambda target: tuple(ALLOWED).index(target.port)):
            question = ALLOWED[entry.port]
            if self._accepted[question] >= PORTS_MAX:
                self._excess_count += 1
                entry.close()
                continue
            self._accepted[question] += 1
            accepted.append(entry)
        return accepted

    async def _query_port(self, open_port: OpenPort) -> None:
        """Query one port. After a timeout, no further web pages of the host are requested."""
        question, host = ALLOWED[open_port.port], open_port.address
        is_connected = open_port.connection is not None
        pause_s = open_port.contacted_s + PRINTER_PAUSE_S - time.monotonic()
        if open_port.port in PRINT_PORTS and not is_connected and pause_s > 0:
            await asyncio.sleep(pause_s)
        # A query over an open connection does not wait for the queries of the host's web pages. The
        # connection may be the only one that the printer accepts, so it is used at once.
        async with nullcontext() if is_connected else self._ports_at_once[host], self._at_once:
            if question == "ipp" or host not in self._silent:
                try:
                    async with asyncio.timeout(QUESTION_TIME_S[question]):
                        self.evidence.extend(await self._query(open_port, question))
                except TimeoutError:
                    self._silent.add(host)
                except Exception as error:  # noqa: BLE001 - the boundary of one question
                    self._record_failure(open_port, error)
            self._done += 1
            self._run.progress("enrichment", self._done, self._accepted.total())

    def _record_failure(self, open_port: OpenPort, error: Exception) -> None:
        if len(self.failures) < FAILURES_MAX:
            endpoint = f"{open_port.address} port {open_port.port}"
            self.failures.append(
                Failure("enrichment", f"{endpoint}: {type(error).__name__}: {error}")
            )


async def _query(open_port: OpenPort, question: Question) -> tuple[Evidence, ...]:
    if question == "ipp":
        return await query_ipp(open_port)
    return await query_web(open_port, is_tls=question == "web-tls")
