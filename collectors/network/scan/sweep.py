"""One sweep over the targets: it resolves addresses and connects to the hosts.

The kernel first resolves the addresses on this machine's own links, some hundreds at a time. The
sweep connects to each host as soon as its MAC is known. It connects to all other targets without
resolving them first. All connections share one rate limit. The sweep uses the network only through
`ScanNetwork`, so that it can also run against a simulated network.
"""

import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from collectors.contract import Run
from collectors.network.discoveries import Discoveries
from collectors.network.scan.arp_window import ArpWindow
from collectors.network.scan.host_probes import IN_FLIGHT_MAX, TRIES, HostProbes, Step
from collectors.network.scan.sockets import SOCKETS_MAX, ConnectResult, ScanNetwork
from collectors.network.scan.targets import Target
from collectors.shared.addresses import IPP_PORT, PRINT_PORTS
from collectors.shared.arp.pace import CONNECTIONS_PER_S, DATAGRAMS_PER_S, Pace
from collectors.shared.arp.proxy_arp import MacCensus, is_multicast_mac
from collectors.shared.arp.table_room import ROOM_UNKNOWN, TableRoom
from collectors.shared.linux.rtnetlink import LinkNeighbour
from collectors.shared.watched_devices import NO_TERMINALS, PaymentTerminals

PRINT_PORTS_WAIT_S = 0.3
"""How long after the end of address resolution a second try at a print port may still start.

Address resolution ends `SETTLE_S`, 2.25 s, after the kernel began with the last address. If an ARP
request was lost, a host is found one second late. Its print ports are then tried one by one, and
the second try at a port starts a second after the first. So the second tries start at least two
seconds after the kernel began with the address of the host, and the last of them start after the
end of address resolution.
"""
_TICK_S = 0.05


@dataclass(slots=True)
class SweptHost:
    """The state of one address.

    ``is_confirmed``: the host answered ARP or TCP during the sweep. ``open_print_ports``
    maps each open print port to the time of the connection.
    """

    target: Target
    probes: HostProbes
    mac_address: str | None = None
    is_confirmed: bool = False
    latency_ms: float | None = None
    open_print_ports: dict[int, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SweepResult:
    """The result of a sweep.

    ``untried_count`` addresses were not tried because the sweep ended early.
    ``unanswered`` are the addresses that have not answered ARP, or were not tried. ``proxies`` maps
    each MAC of proxy ARP to the number of addresses for which it answers.
    """

    hosts: tuple[SweptHost, ...]
    unanswered: tuple[Target, ...]
    proxies: dict[str, int]
    untried_count: int
    has_ended_early: bool


class Sweep:
    """One sweep, which runs once. ``ports`` are tried at each target that has no ports of its own.

    Hosts and open ports are added to ``discoveries`` as they are found. Print ports are added when
    all ports of their host are done. If an IPP port is queried as soon as it is added
    (`Discoveries.queries_ipp_at_once`), it is the last print port that is tried, and is added
    together with its connection. A host in ``terminals`` is only resolved.

    ``_direct`` are the targets to which the sweep connects without resolving them first.
    ``_active`` are the hosts with ports to try, and ``_sockets`` is the number of their
    connections. ``_settled_s`` is the time at which address resolution ended.
    """

    def __init__(
        self,
        network: ScanNetwork,
        targets: Sequence[Target],
        ports: Sequence[int],
        *,
        discoveries: Discoveries,
        sockets_max: int = SOCKETS_MAX,
        tries: int = TRIES,
        room: TableRoom = ROOM_UNKNOWN,
        terminals: PaymentTerminals = NO_TERMINALS,
    ) -> None:
        self._network = network
        self._discoveries = discoveries
        self._ports = tuple(ports)
        self._sockets_max = sockets_max
        self._tries = tries
        self._terminals = terminals
        self._window = ArpWindow([target for target in targets if target.way == "arp"], room)
        self._has_arp_targets = any(target.way == "arp" for target in targets)
        self._direct = deque(target for target in targets if target.way != "arp")
        self._direct_total = len(self._direct)
        self._total = len(targets)
        self._hosts: dict[str, SweptHost] = {}
        self._active: deque[SweptHost] = deque()
        self._awaiting_last_try: dict[str, float] = {}
        """Addresses of hosts whose silent ports get a last try, with the time of that try."""
        self._census = MacCensus()
        self._datagram_pace = Pace(DATAGRAMS_PER_S)
        self._connection_pace = Pace(CONNECTIONS_PER_S)
        self._sockets = 0
        self._settled_s = math.inf

    def run(self, deadline_s: float, run: Run) -> SweepResult:
        """Sweep until all targets are done, ``deadline_s`` has passed, or the run is cancelled.

        ``deadline_s`` is a time of the network's clock. Progress is reported at most every
        `_TICK_S`, and once at the end: the number of addresses that are done, and of all addresses.
        """
        self._add_neighbours(self._network.known_neighbours())
        has_ended_early = False
        reported_s = -_TICK_S
        while not self._is_done(now := self._network.now()):
            if run.cancelled or now >= deadline_s:
                has_ended_early = True
                break
            self._resolve(now)
            self._start_last_retries(now)
            self._time_out(now)
            self._connect(now)
            if now - reported_s >= _TICK_S:
                run.progress("scan", self._done_count(now), self._total)
                reported_s = now
            events = self._network.wait(self._pause_s(now))
            self._add_neighbours(events.neighbours)
            self._add_contacts(events.contacts)
        run.progress("scan", self._done_count(self._network.now()), self._total)
        return self._result(has_ended_early)

    # ------------------------------------------------------------------ what is left to do

    def _is_done(self, now: float) -> bool:
        is_idle = not (self._direct or self._active or self._awaiting_last_try)
        return is_idle and self._window.is_settled(now)

    def _done_count(self, now: float) -> int:
        return self._window.done_count(now) + self._direct_total - len(self._direct)

    def _pause_s(self, now: float) -> float:
        """Return how many seconds to wait for the network until the sweep must act again."""
        if self._is_done(now):
            return 0.0
        timestamps = [now + _TICK_S]
        settles_at = self._window.settles_at()
        if settles_at is None and self._window.next_to_resolve(1):
            timestamps.append(now + self._datagram_pace.next_s())
        elif settles_at is not None and settles_at > now:
            timestamps.append(settles_at)
        for host in self._active:
            # An overdue probe waits for a free socket or for the rate limit, so its time is not
            # used.
            if (due := host.probes.next_due) is not None and due > now:
                timestamps.append(due)
        if self._connection_pace.tokens < 1 and self._sockets < self._sockets_max:
            timestamps.append(now + self._connection_pace.next_s())
        return max(0.0, min(timestamps) - now)

    # ------------------------------------------------------------------ acting

    def _resolve(self, now: float) -> None:
        self._window.expire(now)
        for target in self._window.next_to_resolve(self._datagram_pace.available(now)):
            if not self._network.prime(target.address):
                return
            self._datagram_pace.spend(1)
            self._window.mark_sent(now)

    def _connect(self, now: float) -> None:
        while self._direct and len(self._active) < self._sockets_max // IN_FLIGHT_MAX:
            self._begin(self._direct.popleft())
        self._sockets = sum(host.probes.sockets for host in self._active)
        for _ in range(len(self._active)):
            room = min(self._connection_pace.available(now), self._sockets_max - self._sockets)
            if room < 1:
                return
            host = self._active[0]
            self._active.rotate(-1)  # so that all hosts get their turn when few sockets are free
            # The current time is read again for each host, because the pause between two
            # connections to a print port begins at this time.
            for step in host.probes.start_connections(self._network.now(), room):
                self._run_step(host, step)

    def _time_out(self, now: float) -> None:
        """End the tries that were not answered in time, and finish the hosts that are done."""
        latest_s = self._latest_retry_s(now)
        for host in tuple(self._active):
            probes = host.probes
            if (due := probes.next_due) is not None and due <= now:
                for step in probes.time_out_tries(now):
                    self._run_step(host, step)
            if latest_s is not None:
                probes.give_up_second_tries_at_print_ports(latest_s)
            if probes.is_done or probes.has_only_pauses_left:
                self._plan_retries(host, now)
            if probes.is_done:
                self._finish(host)

    def _latest_retry_s(self, now: float) -> float | None:
        """Return the time until which further tries at print ports may start.

        Returns None if there is no limit, or none yet, and -inf if that time has passed.
        """
        if not self._has_arp_targets or not self._window.is_settled(now):
            return None
        self._settled_s = min(now, self._settled_s)
        latest_s = self._settled_s + PRINT_PORTS_WAIT_S
        return latest_s if now <= latest_s else -math.inf

    def _run_step(self, host: SweptHost, step: Step) -> None:
        address = host.target.address
        if step.action in ("replace", "drop"):
            self._network.drop(address, step.port)
        if step.action != "drop":
            self._connection_pace.spend(1)
            self._sockets += 1
            # If no socket is available, this try counts as unanswered and the port is tried again.
            self._network.connect(address, step.port)

    def _plan_retries(self, host: SweptHost, now: float) -> None:
        if host.target.address in self._awaiting_last_try:
            return
        settles_at = self._window.settles_at()
        settles_in_s = None if settles_at is None else settles_at - now
        if host.probes.retry_soon(settles_in_s):
            return
        if (pause_s := host.probes.last_retry_in_s(settles_in_s)) is not None:
            self._awaiting_last_try[host.target.address] = now + pause_s

    def _finish(self, host: SweptHost) -> None:
        self._active.remove(host)
        for port, contacted_s in host.open_print_ports.items():
            self._discoveries.add_port(host.target.address, port, contacted_s)

    def _start_last_retries(self, now: float) -> None:
        for address in [a for a, due_s in self._awaiting_last_try.items() if due_s <= now]:
            del self._awaiting_last_try[address]
            host = self._hosts[address]
            host.probes.start_last_retry()
            if host not in self._active:
                self._active.append(host)

    # ------------------------------------------------------------------ receiving

    def _add_neighbours(self, entries: Iterable[LinkNeighbour]) -> None:
        for entry in entries:
            if entry.state == "failed":
                self._window.mark_failed(entry.address)
            elif entry.mac_address and not is_multicast_mac(entry.mac_address):
                self._set_mac(entry.address, entry.mac_address, entry.state == "reachable")

    def _set_mac(self, address: str, mac_address: str, is_answer: bool) -> None:
        target = self._window.mark_resolved(address)
        host = self._hosts.get(address)
        if target is not None:
            host = self._begin(target)
        if host is None:
            return
        host.mac_address = mac_address
        host.is_confirmed = host.is_confirmed or is_answer
        if (address, mac_address) in self._terminals:
            self._leave_alone(host)
            return
        if not self._census.add(mac_address, address):
            self._discoveries.add_host(address)
        else:  # the MAC answers for many addresses, so most of them may have no host
            for other in self._census.addresses(mac_address):
                if other in self._hosts:
                    self._hosts[other].probes.abandon_when_silent = True

    def _leave_alone(self, host: SweptHost) -> None:
        """Give up all ports of a payment terminal.

        Connections exist only if the terminal has just taken over the address of another host.
        """
        for port in host.probes.abandon():
            self._network.drop(host.target.address, port)
        host.open_print_ports.clear()

    def _begin(self, target: Target) -> SweptHost:
        ports = self._ports if target.ports is None else target.ports
        probes = HostProbes(
            ports,
            abandon_when_silent=target.way == "routed",
            tries=self._tries,
            ipp_last=self._discoveries.queries_ipp_at_once,
        )
        host = SweptHost(target, probes)
        self._hosts[target.address] = host
        self._active.append(host)
        return host

    def _add_contacts(self, contacts: Iterable[ConnectResult]) -> None:
        now = self._network.now()
        for contact in contacts:
            host = self._hosts.get(contact.address)
            if host is None or not host.probes.record_outcome(contact.port, contact.outcome, now):
                continue
            if contact.outcome == "open":
                self._add_open_port(host, contact.port, now)
            self._network.drop(contact.address, contact.port)
            if contact.outcome != "unreachable":
                host.is_confirmed = True
                self._discoveries.add_host(contact.address)
            if contact.latency_ms is not None:
                host.latency_ms = min(contact.latency_ms, host.latency_ms or contact.latency_ms)

    def _add_open_port(self, host: SweptHost, port: int, now: float) -> None:
        address = host.target.address
        if port not in PRINT_PORTS:
            self._discoveries.add_port(address, port, now)
        elif port == IPP_PORT and self._can_query_ipp(host):
            self._discoveries.add_port(address, port, now, self._network.take(address, port))
        else:
            host.open_print_ports[port] = now

    def _can_query_ipp(self, host: SweptHost) -> bool:
        """Return whether an IPP query can be sent now. First all other print ports of the host must
        be done, because the query uses the only connection that some printers accept."""
        return self._discoveries.queries_ipp_at_once and host.probes.is_done_with_print_ports

    def _result(self, has_ended_early: bool) -> SweepResult:
        return SweepResult(
            hosts=tuple(self._hosts.values()),
            unanswered=self._window.unanswered,
            proxies=self._census.proxies,
            untried_count=self._window.untried_count + len(self._direct),
            has_ended_early=has_ended_early,
        )
