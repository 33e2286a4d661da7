"""Plans the connections to one host: which port is next, when to try again, when to give up.

At most eight connections are open at once, and only one of them to a print port, because many
receipt printers accept one connection at a time. A port that does not answer is tried once more
with a new socket, because the kernel would repeat a lost SYN only after one second. If other
ports of the host answer, a silent port gets a last try one second later. If only few ports are
silent, those that are not print ports get one more try before the last try.

No I/O: callers pass ``now``, in seconds of a monotonic clock.
"""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from collectors.shared.addresses import IPP_PORT, PRINT_PORTS

IN_FLIGHT_MAX = 8
WAIT_S = 0.35
"""How long to wait for the answer to a try, if it is not known how fast the host answers."""
WAIT_MIN_S = 0.15
_MUTE_WAIT_S = 0.25
"""How long to wait if `_SILENT_PORTS` ports were silent and none has answered."""
_ANSWER_FACTOR = 1.5
"""The wait is the time of the host's slowest answer, multiplied by this. It is at least
`WAIT_MIN_S` and at most `WAIT_S`."""
TRIES = 2
"""How often a port that does not answer is tried, not counting the tries of `retry_soon` and the
last try."""
_SILENT_PORTS = 3
_UNREACHABLE_PORTS = 3
_RETRIED_PORTS_MAX = 4
"""Silent ports are tried again before their last try only if at most this many ports of the host
are silent or still being tried."""
PRINT_GAP_S = 1.0
"""The pause between two connections to one print port. A printer that serves one till at a time may
refuse a second connection just after the first."""
LAST_RETRY_AFTER_S = 1.0
"""The pause before the last try. Packets are often lost in a row, so a later try is more likely to
succeed."""

ConnectOutcome = Literal["open", "refused", "unreachable"]


@dataclass(slots=True)
class _Probe:
    """A port that is being tried, with ``sockets`` connections at once.

    ``tried_at`` is when the latest try began. ``due`` is when this try counts as unanswered.
    """

    port: int
    sockets: int
    tried_at: float
    due: float


@dataclass(frozen=True, slots=True)
class Step:
    """What to do for a port now.

    "connect" opens its first socket and "again" an additional one. "replace" closes its sockets and
    opens one. "drop" closes its sockets.
    """

    port: int
    action: Literal["connect", "again", "replace", "drop"]


class HostProbes:
    """The state of all ports of one host.

    With ``abandon_when_silent`` the host is given up if no port has answered, and ``_SILENT_PORTS``
    ports were silent or ``_UNREACHABLE_PORTS`` were reported as unreachable. This is for addresses
    that may have no host (proxy ARP, routed). With ``tries`` of 1 no port is tried again. With
    ``ipp_last`` the IPP port is tried after the other print ports: the scan's connection to it
    stays open for an IPP query, and the printer may accept no other connection meanwhile.

    ``silent`` are the ports that did not answer, or were reported as unreachable. ``_tries`` has
    the number of tries of each port, and ``_tries_max`` is the limit. A print port is not tried
    again before the time in ``_next_print_s``. ``_can_retry_soon`` and ``_can_retry_last`` are True
    until the tries of `retry_soon` and `start_last_retry` have begun.
    """

    def __init__(
        self,
        ports: Sequence[int],
        *,
        abandon_when_silent: bool = False,
        tries: int = TRIES,
        ipp_last: bool = False,
    ) -> None:
        self.abandon_when_silent = abandon_when_silent
        self.open: list[int] = []
        self.refused: list[int] = []
        self.silent: list[int] = []
        self._tries: dict[int, int] = {}
        self._ipp_last = ipp_last
        self._next_print_s: dict[int, float] = {}
        self._tries_max = tries
        self._other_ports = deque(port for port in ports if port not in PRINT_PORTS)
        # Without ``ipp_last``, the IPP port comes first. An IPP query may open another connection
        # to it only after a pause, and the other print ports are tried during this pause.
        self._print_ports = deque(port for port in PRINT_PORTS if port in ports)
        self._in_flight: dict[int, _Probe] = {}
        self._unreachable = 0
        self._slowest_answer_s: float | None = None
        self._can_retry_soon = self._can_retry_last = tries > 1

    @property
    def has_answered(self) -> bool:
        return bool(self.open or self.refused)

    @property
    def is_done(self) -> bool:
        return not (self._other_ports or self._print_ports or self._in_flight)

    @property
    def has_only_pauses_left(self) -> bool:
        """Whether the host answers and only further tries at its print ports are left.

        Before each of these tries there is a pause, in which the host's other ports can be tried
        again. The result is False while the IPP port waits for the other print ports
        (``ipp_last``), and if the IPP port is open.
        """
        if self._other_ports or not self.has_answered:
            return False
        if self._is_ipp_held_back or IPP_PORT in self.open:
            return False
        tried = all(map(self._tries.get, self._print_ports))
        return tried and all(port in PRINT_PORTS for port in self._in_flight)

    @property
    def is_done_with_print_ports(self) -> bool:
        """Whether no print port is being tried or waits for a try."""
        return not (self._print_ports or self._is_print_port_in_flight())

    @property
    def sockets(self) -> int:
        return sum(probe.sockets for probe in self._in_flight.values())

    @property
    def next_due(self) -> float | None:
        """The next time at which a try times out or a print port may be tried again."""
        timestamps = [probe.due for probe in self._in_flight.values()]
        if not self._is_print_port_in_flight():
            printing = self._next_print_ports()
            timestamps += (self._next_print_s[p] for p in printing if p in self._next_print_s)
        return min(timestamps, default=None)

    def start_connections(self, now: float, room: int) -> list[Step]:
        """Record up to ``room`` connections as started, and return a step for each of them."""
        steps: list[Step] = []
        ready = next(
            (p for p in self._next_print_ports() if self._next_print_s.get(p, now) <= now), None
        )
        if ready and not self._is_print_port_in_flight() and room and self.sockets < IN_FLIGHT_MAX:
            self._print_ports.remove(ready)
            steps.append(self._start(ready, now))
        held = self._reserved_connections()
        while self._other_ports and len(steps) < room and self.sockets + held < IN_FLIGHT_MAX:
            steps.append(self._start(self._other_ports.popleft(), now))
        return steps

    def time_out_tries(self, now: float) -> list[Step]:
        """End the tries that were not answered in time. Returns a step for each of their ports."""
        due = [probe for probe in self._in_flight.values() if probe.due <= now]
        return [self._time_out(probe, now) for probe in due]

    def record_outcome(self, port: int, outcome: ConnectOutcome, now: float) -> bool:
        """Record the outcome of a port. Returns False if the port is not being tried now.

        The caller closes the port's sockets.
        """
        probe = self._in_flight.pop(port, None)
        if probe is None:
            return False
        if outcome == "unreachable":
            self.silent.append(port)
            self._unreachable += 1
            self._abandon_if_no_host()
            return True
        (self.open if outcome == "open" else self.refused).append(port)
        if probe.sockets == 1:  # with two sockets, it is not known which of them was answered
            self._slowest_answer_s = max(now - probe.tried_at, self._slowest_answer_s or 0.0)
        for other in self._in_flight.values():  # the wait depends on how fast this host answers
            other.due = min(other.due, other.tried_at + self._wait_s())
        return True

    def abandon(self) -> tuple[int, ...]:
        """Give up all ports and forget their results. Returns the ports whose sockets the caller
        must close."""
        ports = tuple(self._in_flight)
        for known in (self._other_ports, self._print_ports, self.open, self.refused, self.silent):
            known.clear()
        self._in_flight.clear()
        return ports

    def retry_soon(self, settles_in_s: float | None) -> bool:
        """Try the silent ports again if other ports of the host answer and only few are silent.

        Returns whether any port is tried again. ``settles_in_s`` are the seconds until the scan may
        end, or None if that is not known yet. There must be time for this try and the last one.
        Print ports only get the last try, because they need a second between two tries.
        """
        ports = [port for port in self.silent if port not in PRINT_PORTS]
        silent_count = len(self.silent) + len(self._print_ports) + len(self._in_flight)
        is_worthwhile = self.has_answered and ports and silent_count <= _RETRIED_PORTS_MAX
        has_time = settles_in_s is None or settles_in_s >= 2 * self._retry_s()
        if not (self._can_retry_soon and is_worthwhile and has_time):
            return False
        self._retry(ports)
        return True

    def last_retry_in_s(self, settles_in_s: float | None) -> float | None:
        """Return in how many seconds the silent ports of a host that answers get their last try.

        Returns None if the host has no such ports or if they already had their last try.
        ``settles_in_s`` is the same as for `retry_soon`.
        """
        if not self._can_retry_last or not self._ports_for_last_retry():
            return None
        latest_s = LAST_RETRY_AFTER_S if settles_in_s is None else settles_in_s - self._retry_s()
        return max(0.0, min(LAST_RETRY_AFTER_S, latest_s))

    def start_last_retry(self) -> None:
        self._retry(self._ports_for_last_retry())
        self._can_retry_last = False

    def _retry(self, ports: Sequence[int]) -> None:
        self._can_retry_soon = False
        self._tries_max += 1
        for port in tuple(ports):
            self.silent.remove(port)
            (self._print_ports if port in PRINT_PORTS else self._other_ports).append(port)

    def _ports_for_last_retry(self) -> tuple[int, ...]:
        """Return the silent ports that get a last try. There are none if no port has answered.

        Print ports are left out if the IPP port is open, because an IPP query may be using the only
        connection that the printer accepts.
        """
        left_out = PRINT_PORTS if IPP_PORT in self.open else ()
        return tuple(p for p in self.silent if p not in left_out) if self.has_answered else ()

    def _retry_s(self) -> float:
        """Return how long one try of all silent ports takes. Print ports are tried one by one."""
        return self._wait_s() * max(1, sum(port in PRINT_PORTS for port in self.silent))

    @property
    def _is_mute(self) -> bool:
        """Whether no port of the host has answered so far, and several were silent. Then a long
        wait for its other ports is useless."""
        return not self.has_answered and len(self.silent) >= _SILENT_PORTS

    def _wait_s(self) -> float:
        if self._is_mute:
            return _MUTE_WAIT_S
        if self._slowest_answer_s is None:
            return WAIT_S
        return min(WAIT_S, max(WAIT_MIN_S, self._slowest_answer_s * _ANSWER_FACTOR))

    def _next_print_ports(self) -> Sequence[int]:
        """Return the print ports that may be tried next."""
        others = [port for port in self._print_ports if port != IPP_PORT]
        return others if self._is_ipp_held_back and others else self._print_ports

    @property
    def _is_ipp_held_back(self) -> bool:
        return self._ipp_last and IPP_PORT not in self._tries

    def _is_print_port_in_flight(self) -> bool:
        return any(port in PRINT_PORTS for port in self._in_flight)

    def _reserved_connections(self) -> int:
        """Return 1 if one of the eight connections is reserved for the next print port, else 0."""
        return 1 if self._print_ports and not self._is_print_port_in_flight() else 0

    def _start(self, port: int, now: float) -> Step:
        self._tries[port] = self._tries.get(port, 0) + 1
        self._next_print_s[port] = now + PRINT_GAP_S
        self._in_flight[port] = _Probe(port, 1, now, now + self._wait_s())
        return Step(port, "connect")

    def _time_out(self, probe: _Probe, now: float) -> Step:
        tries_max = 1 if self._is_mute or self.abandon_when_silent else self._tries_max
        if self._tries[probe.port] >= tries_max:
            return self._give_up(probe)
        if probe.port in PRINT_PORTS:
            # The other print ports are tried before the second try of this port, so that they do
            # not wait for a port that does not answer.
            del self._in_flight[probe.port]
            self._print_ports.append(probe.port)
            return Step(probe.port, "drop")
        self._tries[probe.port] += 1
        probe.tried_at, probe.due = now, now + self._wait_s()
        if self.sockets + self._reserved_connections() < IN_FLIGHT_MAX:
            probe.sockets += 1
            return Step(probe.port, "again")
        probe.sockets = 1
        return Step(probe.port, "replace")

    def _give_up(self, probe: _Probe) -> Step:
        del self._in_flight[probe.port]
        self.silent.append(probe.port)
        if self._is_mute:
            self._give_up_second_tries()
        self._abandon_if_no_host()
        return Step(probe.port, "drop")

    def give_up_second_tries_at_print_ports(self, latest_s: float) -> bool:
        """Give up further tries at print ports that would make the scan last too long.

        If the host has not answered and nothing else is left to do, all further tries are given up.
        If the host answers, a print port is probably silent because a packet was lost. Then second
        tries that can start by ``latest_s`` are kept. Returns whether any try was given up.
        """
        if not all(map(self._tries.get, self._next_print_ports())):
            return False
        if self.has_answered:
            return self._give_up_second_tries(latest_s)
        if self._in_flight or self._other_ports:
            return False
        return self._give_up_second_tries()

    def _give_up_second_tries(self, latest_s: float = -math.inf) -> bool:
        """Give up the print ports that were tried twice, or whose second try would start after
        ``latest_s``. Returns whether there were any."""
        given_up = [
            port
            for port in self._print_ports
            if self._tries.get(port, 0) >= TRIES
            or (self._tries.get(port) and self._next_print_s[port] > latest_s)
        ]
        for port in given_up:
            self._print_ports.remove(port)
        self.silent += given_up
        return bool(given_up)

    def _abandon_if_no_host(self) -> None:
        is_no_host = self._is_mute or self._unreachable >= _UNREACHABLE_PORTS
        if self.abandon_when_silent and not self.has_answered and is_no_host:
            self._other_ports.clear()
            self._print_ports.clear()
