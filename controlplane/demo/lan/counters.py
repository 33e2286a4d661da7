"""What the played LAN counted: frames, connections at once, and payload bytes by TCP port."""

from collections import Counter
from dataclasses import dataclass, field

PRINT_PORTS = frozenset({515, 631, *range(9100, 9117)})
TERMINAL_PORTS = frozenset({8443, 10009, 12000, 33333})
HARM_PORTS = frozenset({22, 445, 515, 6101, *range(9100, 9117)}) | TERMINAL_PORTS
"""What must never get a byte: they print it, or belong to payment terminals or files."""


NEVER_S = 1e9  # JSON has no infinity


@dataclass(slots=True)
class LanCounters:
    """``payload_bytes`` is by port; the ``most_…`` are maxima over time of one host,
    ``shortest_print_pause_s`` the least between two connections to one print port."""

    frames: int = 0
    arp_requests: int = 0
    syns: int = 0
    udp_datagrams: int = 0
    wrong_destination: int = 0
    most_connections: int = 0
    most_print_connections: int = 0
    shortest_print_pause_s: float = NEVER_S
    payload_bytes: Counter[int] = field(default_factory=Counter)
    syns_by_port: Counter[int] = field(default_factory=Counter)

    def harm(self) -> dict[int, int]:
        """Return the ports that must never get a byte and did, with the number of bytes."""
        return {port: n for port, n in self.payload_bytes.items() if port in HARM_PORTS and n}
