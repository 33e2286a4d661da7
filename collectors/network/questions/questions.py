"""The questions that may be asked of open ports: an allow-list, and nothing beside it.

IPP printers are asked for their attributes on port 631, web servers for the page "/" on a few
ports, hosts for their names by multicast DNS. Any other port gets no byte: a status request on
9100 prints paper, and 8443 is where payment terminals listen.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Literal

from collectors.contract import Failure, Interface, Run
from collectors.network.mdns.names import ADDRESSES_MAX as NAMES_MAX
from collectors.network.mdns.names import ask_names
from collectors.network.observations import Enrichment, Evidence, HostName, OpenPort
from collectors.network.questions.ipp import ask_ipp
from collectors.network.questions.web import ask_web

Question = Literal["ipp", "web", "web-tls"]
Ask = Callable[[OpenPort, Question], Awaitable[tuple[Evidence, ...]]]

ALLOWED: Final[dict[int, Question]] = {
    631: "ipp",
    80: "web",
    8080: "web",
    8008: "web",
    443: "web-tls",
    8043: "web-tls",
}
"""In the order in which the ports of one host are asked."""

HOSTS_AT_ONCE = 48
PORTS_AT_ONCE = 2
QUESTION_TIME_S: Final[dict[Question, float]] = {"ipp": 1.5, "web": 1.2, "web-tls": 1.2}
"""The scan has just woken the host, so that silence is not sleep."""

PORTS_MAX = 1024
FAILURES_MAX = 8
_POLL_S = 0.05


def enrich(
    open_ports: Sequence[OpenPort],
    deadline_s: float,
    run: Run,
    device_only: bool = False,
    *,
    interfaces: Sequence[Interface] = (),
    nameless: Sequence[str] = (),
    ask: Ask | None = None,
) -> Enrichment:
    """Ask what is allowed and return what was told, until ``deadline_s`` (``time.monotonic()``).

    ``nameless`` are addresses whose names are wanted, asked for on ``interfaces`` by multicast
    DNS; not with ``device_only``, since that would leave the machine. Never raises for what
    network or hosts do.
    """
    allowed = [each for each in open_ports if each.port in ALLOWED]
    allowed.sort(key=lambda each: tuple(ALLOWED).index(each.port))
    asker = _Asker(deadline_s, run, ask or _ask, total=min(len(allowed), PORTS_MAX))
    wanted = () if device_only else tuple(nameless)
    evidence, hostnames = asyncio.run(asker.ask_all(allowed[:PORTS_MAX], interfaces, wanted))
    limitations = _limitations(len(allowed), asker.unasked, len(wanted))
    return Enrichment(evidence, hostnames, tuple(asker.failures), limitations)


def question_for(port: int) -> Question | None:
    """Return what may be asked on a port; None where no byte may be sent."""
    return ALLOWED.get(port)


class _Asker:
    """Asks many hosts at once, each host gently; counts what the deadline left unasked."""

    def __init__(self, deadline_s: float, run: Run, ask: Ask, *, total: int) -> None:
        self.unasked = 0
        self.failures: list[Failure] = []
        self._deadline_s = deadline_s
        self._run = run
        self._ask = ask
        self._done, self._total = 0, total
        self._evidence: list[Evidence] = []

    async def ask_all(
        self, ports: Sequence[OpenPort], interfaces: Sequence[Interface], nameless: Sequence[str]
    ) -> tuple[tuple[Evidence, ...], tuple[HostName, ...]]:
        by_host: dict[str, list[OpenPort]] = defaultdict(list)
        for each in ports:
            by_host[each.address].append(each)
        hosts_at_once = asyncio.Semaphore(HOSTS_AT_ONCE)
        tasks = [
            asyncio.create_task(self._ask_host(own, hosts_at_once)) for own in by_host.values()
        ]
        names = asyncio.create_task(self._ask_names(interfaces, nameless))
        await self._wait(tasks)
        return tuple(self._evidence), await names

    async def _ask_names(
        self, interfaces: Sequence[Interface], nameless: Sequence[str]
    ) -> tuple[HostName, ...]:
        if not nameless:
            return ()
        return await asyncio.to_thread(ask_names, interfaces, nameless, self._deadline_s, self._run)

    async def _wait(self, tasks: Sequence[asyncio.Task[None]]) -> None:
        """Wait for the tasks, or end them when the run is cancelled or its time is up."""
        pending = set(tasks)
        while pending and not self._run.cancelled and time.monotonic() < self._deadline_s:
            _, pending = await asyncio.wait(pending, timeout=_POLL_S)
        for task in pending:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.unasked = self._total - self._done

    async def _ask_host(self, ports: Sequence[OpenPort], hosts_at_once: asyncio.Semaphore) -> None:
        ports_at_once = asyncio.Semaphore(PORTS_AT_ONCE)
        is_silent = asyncio.Event()
        async with hosts_at_once, asyncio.TaskGroup() as group:
            for each in ports:
                group.create_task(self._ask_port(each, ports_at_once, is_silent))

    async def _ask_port(
        self, open_port: OpenPort, ports_at_once: asyncio.Semaphore, is_silent: asyncio.Event
    ) -> None:
        """Ask one port. A host that let one question run into its time is left alone."""
        async with ports_at_once:
            question = question_for(open_port.port)
            if question is not None and not is_silent.is_set():
                try:
                    async with asyncio.timeout(QUESTION_TIME_S[question]):
                        self._evidence.extend(await self._ask(open_port, question))
                except TimeoutError:
                    is_silent.set()
                except Exception as error:  # noqa: BLE001 - the boundary of one question
                    self._fail(open_port, error)
            self._done += 1
            self._run.progress("enrichment", self._done, self._total)

    def _fail(self, open_port: OpenPort, error: Exception) -> None:
        if len(self.failures) < FAILURES_MAX:
            where = f"{open_port.address} port {open_port.port}"
            self.failures.append(Failure("enrichment", f"{where}: {type(error).__name__}: {error}"))


async def _ask(open_port: OpenPort, question: Question) -> tuple[Evidence, ...]:
    if question == "ipp":
        return await ask_ipp(open_port)
    return await ask_web(open_port, is_tls=question == "web-tls")


def _limitations(allowed: int, unasked: int, nameless: int) -> tuple[str, ...]:
    said = []
    if allowed > PORTS_MAX:
        said.append(f"{allowed - PORTS_MAX} ports were not asked what they are: too many")
    if unasked:
        said.append(f"{unasked} ports were not asked what they are: the time was up")
    if nameless > NAMES_MAX:
        said.append(f"{nameless - NAMES_MAX} hosts were not asked for their names: too many")
    return tuple(said)
