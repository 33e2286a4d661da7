"""Counters of a simulated LAN: frames, simultaneous connections, payload bytes by TCP port."""

from collections import Counter
from dataclasses import dataclass, field, fields

PRINT_PORTS = frozenset({515, 631, *range(9100, 9117)})
TERMINAL_PORTS = frozenset({8443, 10009, 12000, 33333})
HARM_PORTS = frozenset({22, 445, 515, 6101, *range(9100, 9117)}) | TERMINAL_PORTS
"""Ports that must never receive a byte: ports of printers (which would print it), payment
terminals, file servers and SSH."""

NEVER_S = 1e9
"""The shortest pause if no port had two connections. It is finite, because JSON has no infinity."""


@dataclass(slots=True)
class LanCounters:
    """The counts since the start of the LAN or the last reset.

    Args:
        udp_datagrams: The UDP datagrams to single hosts. Multicast is not counted.
        wrong_mac_frames: The IPv4 frames to the address of a host, but not to its MAC.
        terminal_datagrams: The empty datagrams that payment terminals got. A reset does not change
            this count.
        most_connections: The most connections that one host had at the same time.
        most_print_connections: The most connections to print ports that one host had at the same
            time.
        shortest_print_pause_s: The shortest pause between two connections to one print port.
        payload_bytes: The number of TCP payload bytes by port.
    """

    frames: int = 0
    arp_requests: int = 0
    syns: int = 0
    udp_datagrams: int = 0
    wrong_mac_frames: int = 0
    terminal_datagrams: int = 0
    most_connections: int = 0
    most_print_connections: int = 0
    shortest_print_pause_s: float = NEVER_S
    payload_bytes: Counter[int] = field(default_factory=Counter)
    syns_by_port: Counter[int] = field(default_factory=Counter)

    def harm(self) -> dict[int, int]:
        """Return the number of bytes for each port that must not receive any."""
        return {port: n for port, n in self.payload_bytes.items() if port in HARM_PORTS and n}


def counters_to_json(counters: LanCounters) -> dict[str, object]:
    # asdict() is not used, because it fails on a Counter before Python 3.12.
    return {
        entry.name: dict(value) if isinstance(value, Counter) else value
        for entry in fields(counters)
        for value in (getattr(counters, entry.name),)
    }


def counters_from_json(raw: dict[str, object]) -> LanCounters:
    fields = dict(raw)
    for name in ("payload_bytes", "syns_by_port"):
        table = fields[name]
        assert isinstance(table, dict)
        fields[name] = Counter({int(port): int(count) for port, count in table.items()})
    return LanCounters(**fields)  # type: ignore[arg-type]
