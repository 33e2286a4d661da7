"""Writes docs/harm-record.md from the records of the simulated LANs: `make harm-record`."""

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from tests.lab.tap.counters import HARM_PORTS
from tests.lab.tap.traffic import CONTENT, EXCLUDED, PERMITTED, TERMINAL
from tests.paths import ROOT

DOCUMENT: Final = ROOT / "docs" / "harm-record.md"
INTRODUCTION: Final = ROOT / "tests" / "lab" / "tap" / "harm-record.md"
RAW_PRINTING: Final = frozenset({f"TCP {p}" for p in (515, 6101, *range(9100, 9117))})
PERMITTED_TO_A_TERMINAL: Final = frozenset({"ARP", "UDP 9"})
ORDER: Final = ("printer", TERMINAL, "other device", "gateway", "no device", "all devices")
TITLES: Final = {
    "printer": "Printers",
    TERMINAL: "Payment terminals",
    "other device": "Other devices",
    "gateway": "Gateways",
    "no device": "Addresses without a device",
    "all devices": "All devices of the link (multicast)",
}
MEANINGS: Final = {
    "ARP": "which MAC has the address",
    "UDP 9": "empty datagrams, which make the kernel send ARP",
    "UDP 53": "name server queries",
    "UDP 161": "SNMP get of the state, if it is configured",
    "UDP 5353": "mDNS queries",
    "TCP 80": "web: the page `/`",
    "TCP 8008": "web: the page `/`",
    "TCP 8080": "web: the page `/`",
    "TCP 443": "web over TLS: the page `/`",
    "TCP 8043": "web over TLS: the page `/`",
    "TCP 631": "IPP: Get-Printer-Attributes",
    "IPv6": "router solicitations and mDNS queries",
    "IGMP": "the kernel joins the group of mDNS",
    "ICMP": "echo requests, and replies of the kernel",
}

Sums = Counter[tuple[str, str]]


class Totals:
    """The sums over the records of all LANs.

    ``packets`` and ``payload`` (in bytes) are counted for each pair of a kind of device and a
    protocol, and ``requests`` for each pair of a kind of device and a request.
    ``recorded_forbidden`` is what the LANs themselves counted as forbidden.
    """

    def __init__(self, records: Iterable[dict[str, Any]]) -> None:
        self.lans = 0
        self.packets: Sums = Counter()
        self.payload: Sums = Counter()
        self.requests: Sums = Counter()
        self.recorded_forbidden: Counter[str] = Counter()
        for record in records:
            self.lans += 1
            self.recorded_forbidden.update(record["forbidden"])
            for kind, protocol, packets, size_bytes in record["traffic"]:
                self.packets[kind, protocol] += packets
                self.payload[kind, protocol] += size_bytes
            for kind, request, count in record["requests"]:
                self.requests[kind, request] += count

    def forbidden(self) -> dict[str, int]:
        """Return how many bytes, packets or requests of each forbidden kind were sent."""
        ports = {f"TCP {port}" for port in HARM_PORTS} - RAW_PRINTING
        return {
            "bytes to raw print ports (515, 6101, 9100 to 9116)": self._bytes(RAW_PRINTING),
            "bytes to SSH, file servers and ports of payment terminals": self._bytes(ports),
            "bytes by protocols that must not carry content": sum(
                size for (_, protocol), size in self.payload.items() if protocol not in CONTENT
            ),
            "packets to payment terminals, except ARP and empty datagrams": sum(
                count for (kind, protocol), count in self.packets.items()
                if kind == TERMINAL and protocol not in PERMITTED_TO_A_TERMINAL
            ),
            "bytes to payment terminals": sum(
                size for (kind, _), size in self.payload.items() if kind == TERMINAL
            ),
            "packets to excluded devices": sum(
                count for (kind, _), count in self.packets.items() if kind == EXCLUDED
            ),
            "HTTP requests other than GET, except POST for IPP": self._requests("HTTP"),
            "IPP operations other than Get-Printer-Attributes": self._requests("IPP"),
            "SNMP requests other than get": self._requests("SNMP"),
            "requests of unknown protocols": self._requests("unknown"),
        }  # fmt: skip

    def _bytes(self, protocols: Iterable[str]) -> int:
        names = frozenset(protocols)
        return sum(size for (_, protocol), size in self.payload.items() if protocol in names)

    def _requests(self, start: str) -> int:
        return sum(
            count for (_, request), count in self.requests.items()
            if request.startswith(start) and request not in PERMITTED
        )  # fmt: skip


def document(totals: Totals) -> str:
    """Return the text of docs/harm-record.md."""
    forbidden = _table(("forbidden", "sent"), ((k, str(v)) for k, v in totals.forbidden().items()))
    introduction = INTRODUCTION.read_text(encoding="utf-8")
    parts = [introduction.format(lans=totals.lans, forbidden=forbidden)]
    parts += [f"## {TITLES[kind]}\n\n{_table(HEADER, _rows(totals, kind))}\n" for kind in ORDER]
    return "\n".join(parts)


HEADER: Final = ("protocol", "packets", "bytes of content", "purpose")


def _rows(totals: Totals, kind: str) -> Iterator[tuple[str, ...]]:
    """Yield a row for each protocol. Among the TCP ports without content, all raw print ports share
    one row, and all other ports share another.
    """
    protocols = sorted((p for k, p in totals.packets if k == kind), key=_by_number)
    groups: dict[str, list[str]] = {}
    for protocol in protocols:
        size = totals.payload[kind, protocol]
        if size or not protocol.startswith("TCP"):
            group = protocol
        else:
            group = "raw" if protocol in RAW_PRINTING else "connections"
        groups.setdefault(group, []).append(protocol)
    for group, members in groups.items():
        name = members[0] if len(members) == 1 else _join_ports(members)
        packets = sum(totals.packets[kind, p] for p in members)
        size = sum(totals.payload[kind, p] for p in members)
        meaning = _meaning(group, members[0], size)
        yield name, rounded(packets), rounded(size), meaning


def _meaning(group: str, protocol: str, size: int) -> str:
    if group == "raw":
        return "raw printing: connects and closes"
    return "connects and closes" if group == "connections" else MEANINGS.get(protocol, "")


def _join_ports(protocols: list[str]) -> str:
    return f"TCP {', '.join(p.removeprefix('TCP ') for p in protocols)}"


def _by_number(protocol: str) -> tuple[str, int]:
    name, _, number = protocol.partition(" ")
    return name, int(number) if number.isdigit() else 0


def rounded(number: int) -> str:
    """Return a number with two significant digits."""
    scale = 10 ** max(0, len(str(number)) - 2)
    return f"{(number + scale // 2) // scale * scale:,}"


def _table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = (header, ("---",) * len(header), *rows)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    totals = Totals(json.loads(path.read_text()) for path in Path(sys.argv[1]).glob("*.json"))
    if not totals.lans:
        raise SystemExit("no LAN has written a record: run the tests as root, with TAP devices")
    if totals.recorded_forbidden or any(totals.forbidden().values()):
        raise SystemExit(
            f"forbidden traffic: {dict(totals.recorded_forbidden)} {totals.forbidden()}"
        )
    DOCUMENT.write_text(document(totals), encoding="utf-8")


if __name__ == "__main__":
    main()
