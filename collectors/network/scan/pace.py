"""How fast the sweep sends, since bursts trigger security alarms. Pure: ``now`` is in seconds."""

from dataclasses import dataclass

DATAGRAMS_PER_S = 2000.0
CONNECTIONS_PER_S = 3000.0
_BURST = 32.0
_ROUNDING = 1e-6  # so that a rounding error does not cost a token


@dataclass(slots=True)
class Pace:
    """A token bucket: ``rate_per_s`` with small bursts."""

    rate_per_s: float
    tokens: float = _BURST
    then: float | None = None

    def room(self, now: float) -> int:
        if self.then is not None:
            self.tokens = min(_BURST, self.tokens + (now - self.then) * self.rate_per_s)
        self.then = now
        return int(self.tokens + _ROUNDING)

    def spend(self, count: int) -> None:
        self.tokens -= count

    def next_s(self) -> float:
        return max(0.0, 1.0 - self.tokens) / self.rate_per_s
