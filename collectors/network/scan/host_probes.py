"""The connections to one host: which port next, when to try again, when to give up.

At most eight at once, and one at a time on print ports, since a receipt printer has a single
slot. A silent port is tried once more by a second socket, because the kernel would send the lost
SYN again only after a second. If the host answers on others, it is tried for the last time after a
second. Pure: ``now`` is given, in seconds of a monotonic clock.
"""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from collectors.shared.addresses import IPP_PORT, PRINT_PORTS

IN_FLIGHT_MAX = 8
WAIT_S = 0.35
WAIT_MIN_S = 0.15
_MUTE_WAIT_S = 0.25
_ANSWER_FACTOR, _ANSWER_SLACK_S = 2.0, 0.1
TRIES = 2
_SILENT_PORTS = 3
_UNREACHABLE_PORTS = 3
_RETRIED_PORTS_MAX = 4
PRINT_GAP_S = 1.0
"""Between two connections to one print port. A printer that serves one till at a time may refuse a
second connection just after the first."""
LAST_RETRY_AFTER_S = 1.0
"""A later retry is worth more: what lost one packet is likely to lose the next one, too."""

ConnectOutcome = Literal["open", "refused", "unreachable"]


@dataclass(slots=True)
class _Probe:
    port: int
    tries: int
    sockets: int
    started: float
    tried: float
    due: float


@dataclass(frozen=True, slots=True)
class Step:
    """What to do now. "again" keeps the sockets of the port, "replace" and "drop" close them."""

    port: int
    action: Literal["connect", "again", "replace", "drop"]


class HostProbes:
    """The state of all ports of one host.

    ``abandon_when_silent`` leaves a host after ``_SILENT_PORTS`` unanswered ports: for addresses
    that may have no host (proxy ARP, routed). With ``tries`` of 1 no port is tried again.
    With ``ipp_last`` IPP is tried after the other print ports, since its question is sent over the
    scan's connection.
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
        self._ordinary = deque(port for port in ports if port not in PRINT_PORTS)
        # IPP first: its question needs another connection, which must wait a second.
        self._printing = deque(port for port in PRINT_PORTS if port in ports)
        self._flying: dict[int, _Probe] = {}
        self._unreachable = 0
        self._slowest_answer_s: float | None = None
        self._rounds = 1 if tries > 1 else 3

    @property
    def has_answered(self) -> bool:
        return bool(self.open or self.refused)

    @property
    def is_done(self) -> bool:
        return not (self._ordinary or self._printing or self._flying)

    @property
    def is_done_with_print_ports(self) -> bool:
        """Whether no print port is tried or to be tried."""
        return not (self._printing or self._prints())

    @property
    def sockets(self) -> int:
        return sum(probe.sockets for probe in self._flying.values())

    @property
    def next_due(self) -> float | None:
        timestamps = [probe.due for probe in self._flying.values()]
        if not self._prints():
            printing = self._next_printing()
            timestamps += (self._next_print_s[p] for p in printing if p in self._next_print_s)
        return min(timestamps, default=None)

    def connects(self, now: float, room: int) -> list[Step]:
        """Return up to ``room`` connections to start now; they count as started."""
        steps: list[Step] = []
        ready = next(
            (p for p in self._next_printing() if self._next_print_s.get(p, now) <= now), None
        )
        if ready and not self._prints() and room and self.sockets < IN_FLIGHT_MAX:
            self._printing.remove(ready)
            steps.append(self._start(ready, now))
        held = self._held_for_printing()
        while self._ordinary and len(steps) < room and self.sockets + held < IN_FLIGHT_MAX:
            steps.append(self._start(self._ordinary.popleft(), now))
        return steps

    def timeouts(self, now: float) -> list[Step]:
        """Return what to do about the ports whose wait is over."""
        due = [probe for probe in self._flying.values() if probe.due <= now]
        return [self._time_out(probe, now) for probe in due]

    def answered(self, port: int, outcome: ConnectOutcome, now: float) -> bool:
        """Record the outcome of a port. Returns False if the port is not being tried (any more).

        The caller closes the port's sockets.
        """
        probe = self._flying.pop(port, None)
        if probe is None:
            return False
        if outcome == "unreachable":
            self.silent.append(port)
            self._unreachable += 1
            self._abandon_if_nobody()
            return True
        (self.open if outcome == "open" else self.refused).append(port)
        took_s = now - probe.started
        self._slowest_answer_s = max(took_s, self._slowest_answer_s or 0.0)
        for other in self._flying.values():  # now that it is known how fast this host answers
            other.due = min(other.due, other.tried + self._wait_s())
        return True

    def retry_soon(self, settles_in_s: float | None) -> bool:
        """Try a few silent ports of an answering host again, if that ends before the last retry.

        Returns whether there are any. ``settles_in_s`` is None if the end of the scan is not in
        sight. Print ports wait a second between two tries, so they get the last retry only.
        """
        again = [port for port in self.silent if port not in PRINT_PORTS]
        worth = self.has_answered and again and len(self.silent) <= _RETRIED_PORTS_MAX
        has_time = settles_in_s is None or settles_in_s >= 2 * self._retry_s()
        return self._rounds == 1 and bool(worth) and has_time and self._retry(again)

    def last_retry_in_s(self, settles_in_s: float | None) -> float | None:
        """Return after how many seconds the silent ports of an answering host get their last try;
        None if there are none, or they had it."""
        if self._rounds > 2 or not self._worth_a_last_retry():
            return None
        latest_s = LAST_RETRY_AFTER_S if settles_in_s is None else settles_in_s - self._retry_s()
        return max(0.0, min(LAST_RETRY_AFTER_S, latest_s))

    def start_last_retry(self) -> None:
        self._retry(self._worth_a_last_retry())
        self._rounds = 3

    def _retry(self, ports: Sequence[int]) -> bool:
        self._rounds += 1
        self._tries_max += 1
        for port in tuple(ports):
            self.silent.remove(port)
            (self._printing if port in PRINT_PORTS else self._ordinary).append(port)
        return True

    def _worth_a_last_retry(self) -> tuple[int, ...]:
        """Return the silent ports to try for the last time. Print ports of a host with IPP are left
        out: a question may be using the one connection that a printer gets."""
        left_out = PRINT_PORTS if IPP_PORT in self.open else ()
        return tuple(p for p in self.silent if p not in left_out) if self.has_answered else ()

    def _retry_s(self) -> float:
        """How long it takes to try all silent ports: print ports one after the other."""
        return self._wait_s() * max(1, sum(port in PRINT_PORTS for port in self.silent))

    @property
    def _is_mute(self) -> bool:
        """Whether the host drops everything, so that a long wait for its other ports is useless."""
        return not self.has_answered and len(self.silent) >= _SILENT_PORTS

    def _wait_s(self) -> float:
        if self._is_mute:
            return _MUTE_WAIT_S
        if self._slowest_answer_s is None:
            return WAIT_S
        wait_s = self._slowest_answer_s * _ANSWER_FACTOR + _ANSWER_SLACK_S
        return min(WAIT_S, max(WAIT_MIN_S, wait_s))

    def _next_printing(self) -> Sequence[int]:
        """Return the print ports that may be tried next."""
        others = [port for port in self._printing if port != IPP_PORT]
        waits = self._ipp_last and IPP_PORT not in self._tries
        return others if waits and others else self._printing

    def _prints(self) -> bool:
        return any(port in PRINT_PORTS for port in self._flying)

    def _held_for_printing(self) -> int:
        """Return 1 if a slot must stay free for the next print port."""
        return 1 if self._printing and not self._prints() else 0

    def _start(self, port: int, now: float) -> Step:
        tries = self._tries.get(port, 0) + 1
        self._tries[port] = tries
        self._next_print_s[port] = now + PRINT_GAP_S
        self._flying[port] = _Probe(port, tries, 1, now, now, now + self._wait_s())
        return Step(port, "connect")

    def _time_out(self, probe: _Probe, now: float) -> Step:
        tries_max = 1 if self._is_mute or self.abandon_when_silent else self._tries_max
        if probe.tries >= tries_max:
            return self._give_up(probe)
        if probe.port in PRINT_PORTS:
            # Its turn comes again after the other print ports, so that none waits for a dead one.
            del self._flying[probe.port]
            self._printing.append(probe.port)
            return Step(probe.port, "drop")
        probe.tries += 1
        self._tries[probe.port] = probe.tries
        probe.tried, probe.due = now, now + self._wait_s()
        if self.sockets + self._held_for_printing() < IN_FLIGHT_MAX:
            probe.sockets += 1
            return Step(probe.port, "again")
        probe.sockets = 1
        return Step(probe.port, "replace")

    def _give_up(self, probe: _Probe) -> Step:
        del self._flying[probe.port]
        self.silent.append(probe.port)
        if self._is_mute:
            self._leave_second_tries()
        self._abandon_if_nobody()
        return Step(probe.port, "drop")

    def leave_second_tries_at_print_ports(self, latest_s: float) -> bool:
        """Give up second tries if nothing else is left to do. Returns whether there were any.

        A second try waits a second, for which the scan should not last longer. But if the host
        answers, a packet was probably lost: tries that may begin until ``latest_s`` stay."""
        if self._flying or self._ordinary or not all(map(self._tries.get, self._next_printing())):
            return False
        latest_s = latest_s if self.has_answered else -math.inf
        return self._leave_second_tries(latest_s)

    def _leave_second_tries(self, latest_s: float = -math.inf) -> bool:
        """Give up the print ports that were tried and may be again only after ``latest_s``."""
        tried = [
            port
            for port in self._printing
            if self._tries.get(port) and self._next_print_s[port] > latest_s
        ]
        for port in tried:
            self._printing.remove(port)
        self.silent += tried
        return bool(tried)

    def _abandon_if_nobody(self) -> None:
        is_nobody = self._is_mute or self._unreachable >= _UNREACHABLE_PORTS
        if self.abandon_when_silent and not self.has_answered and is_nobody:
            self._ordinary.clear()
            self._printing.clear()
