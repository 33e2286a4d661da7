"""The connections to one host: which port next, when to try again, when to give up.

At most eight at once, and one at a time on print ports, since a receipt printer has a single
slot. A silent port is tried once more by a second socket, because the kernel would send the lost
SYN again only after a second. Pure: ``now`` is given, in seconds of a monotonic clock.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from collectors.shared.addresses import PRINT_PORTS

IN_FLIGHT_MAX = 8
WAIT_S = 0.35
WAIT_MIN_S = 0.15
_MUTE_WAIT_S = 0.25
_ANSWER_FACTOR, _ANSWER_SLACK_S = 2.0, 0.1
TRIES = 2
_SILENT_PORTS = 3
_UNREACHABLE_PORTS = 3
_SECOND_LOOK_PORTS = 4
PRINT_GAP_S = 1.0
"""Between two connections to one print port: where one till is served at a time, a second one just
after the first is what it refuses or lets wait."""

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
    that may be nobody's (proxy ARP, routed).
    """

    def __init__(
        self, ports: Sequence[int], *, abandon_when_silent: bool = False, tries: int = TRIES
    ) -> None:
        self.abandon_when_silent = abandon_when_silent
        self.open: list[int] = []
        self.refused: list[int] = []
        self.silent: list[int] = []
        self._tries: dict[int, int] = {}
        self._next_print_s: dict[int, float] = {}
        self._tries_max = tries
        self._ordinary = deque(port for port in ports if port not in PRINT_PORTS)
        self._printing = deque(port for port in ports if port in PRINT_PORTS)
        self._flying: dict[int, _Probe] = {}
        self._unreachable = 0
        self._slowest_answer_s: float | None = None
        self._looked_twice = False

    @property
    def has_answered(self) -> bool:
        return bool(self.open or self.refused)

    @property
    def is_done(self) -> bool:
        return not (self._ordinary or self._printing or self._flying)

    @property
    def sockets(self) -> int:
        return sum(probe.sockets for probe in self._flying.values())

    @property
    def next_due(self) -> float | None:
        moments = [probe.due for probe in self._flying.values()]
        if not self._prints():
            moments += (self._next_print_s[p] for p in self._printing if p in self._next_print_s)
        return min(moments, default=None)

    def connects(self, now: float, room: int) -> list[Step]:
        """Return up to ``room`` connections to start now; they count as started."""
        steps: list[Step] = []
        ready = next((p for p in self._printing if self._next_print_s.get(p, now) <= now), None)
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
        """Take the outcome of a port; False when the port is not waited for (any more).

        The port's sockets are to be closed.
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

    def look_again(self) -> bool:
        """Give silent ports of a host that answers one more try, once; True if there are any.

        Print ports are left alone: another second of waiting would hold up the whole scan."""
        again = [port for port in self.silent if port not in PRINT_PORTS]
        worth = self.has_answered and 0 < len(self.silent) <= _SECOND_LOOK_PORTS
        if self._looked_twice or not (worth and again) or not self.is_done:
            return False
        self._looked_twice = True
        self._tries_max += 1
        self._ordinary.extend(again)
        self.silent = [port for port in self.silent if port in PRINT_PORTS]
        return True

    @property
    def _is_mute(self) -> bool:
        """A host that drops everything: waiting long for its other ports brings nothing."""
        return not self.has_answered and len(self.silent) >= _SILENT_PORTS

    def _wait_s(self) -> float:
        if self._is_mute:
            return _MUTE_WAIT_S
        if self._slowest_answer_s is None:
            return WAIT_S
        wait_s = self._slowest_answer_s * _ANSWER_FACTOR + _ANSWER_SLACK_S
        return min(WAIT_S, max(WAIT_MIN_S, wait_s))

    def _prints(self) -> bool:
        return any(port in PRINT_PORTS for port in self._flying)

    def _held_for_printing(self) -> int:
        """The slot that stays free for the next print port."""
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

    def _leave_second_tries(self) -> None:
        tried = [port for port in self._printing if self._tries.get(port)]
        for port in tried:
            self._printing.remove(port)
        self.silent += tried

    def _abandon_if_nobody(self) -> None:
        is_nobody = self._is_mute or self._unreachable >= _UNREACHABLE_PORTS
        if self.abandon_when_silent and not self.has_answered and is_nobody:
            self._ordinary.clear()
            self._printing.clear()
