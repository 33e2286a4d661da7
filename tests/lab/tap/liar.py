"""Simulates a neighbour that announces false services at a high rate on a TAP device.

    python -m tests.lab.tap.liar PLAN.json TAP_FD PACKETS

The script prepares ``PACKETS`` frames, prints "ready", waits for a line on stdin, and then sends
the frames. Each kind of false mDNS packet in ``KINDS`` is sent in turn, and no two packets are the
same. The liar is the last host of the plan. Some of its false services imitate the other hosts or
use their addresses.
"""

import ipaddress
import itertools
import os
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterator
from itertools import count, cycle, islice
from pathlib import Path

from controlplane.demo.lan import frames
from tests.lab.tap.plan import LabPlan, LanHost, load_plan

PTR, TXT, SRV, A, AAAA, ANY = 12, 16, 33, 1, 28, 255
GROUP, GROUP_MAC, PORT = bytes((224, 0, 0, 251)), bytes.fromhex("01005e0000fb"), 5353
GROUP_V6, GROUP_MAC_V6 = ipaddress.ip_address("ff02::fb").packed, bytes.fromhex("3333000000fb")
AGENT_MAC = bytes.fromhex("0200000000fe")
SERVICES, ADDRESSES = 2048, 8
_FLUSH = 0x8001
"""The class IN with the cache-flush bit (RFC 6762, section 10.2)."""
_BURST = 100
_IPP = ("_ipp", "_tcp", "local")


class Liar:
    """Creates endless streams of frames, one for each kind of lie."""

    def __init__(self, plan: LabPlan) -> None:
        self._host = plan.hosts[-1]
        self._honest = [host for host in plan.hosts[:-1] if host.services]
        self._network = ipaddress.ip_network(plan.subnet)
        self._agent = socket.inet_aton(plan.agent_address)
        self._numbers = count(1)
        self._mac = _mac(self._host)
        self._address = socket.inet_aton(self._host.address)

    def frames(self) -> Iterator[bytes]:
        """Yield frames of all kinds in turn."""
        for stream in cycle([getattr(self, name)() for name in KINDS]):
            yield next(stream)

    def many_services(self) -> Iterator[bytes]:
        """Announce 2,048 services with eight addresses each. Most of the addresses have no host."""
        for n in cycle(range(SERVICES)):
            host = _name(f"liar-{n}", "local")
            addresses = [self._address] + [
                self._some_address(n * ADDRESSES + k) for k in range(1, ADDRESSES)
            ]
            records = [*_service(f"Liar {n}", 1024 + n, host), *(_a(host, a) for a in addresses)]
            yield self._multicast(self._response(records))

    def printers_at_the_liars_address(self) -> Iterator[bytes]:
        """Announce the printers' names and identities, but with the liar's address."""
        for victim in self._victims():
            host = _name(victim.hostname, "local")
            service = victim.services[0]
            txt = _strings(service.txt)
            records = [*_service(service.instance, 631, host, txt), _a(host, self._address)]
            yield self._multicast(self._response(records))

    def printers_at_each_others_addresses(self) -> Iterator[bytes]:
        """Announce a printer's name and UUID, but with another printer's address."""
        pairs = zip(self._victims(), islice(cycle(self._honest), 3, None), strict=False)
        for victim, other in pairs:
            service = victim.services[0]
            host = _name(f"false-{victim.hostname}", "local")
            records = _service(service.instance, 631, host, _strings(service.txt))
            yield self._multicast(self._response([*records, _a(host, _packed(other))]))

    def false_ports(self) -> Iterator[bytes]:
        """Announce services that the printers do not have, with the printers' addresses."""
        for victim in self._victims():
            n = next(self._numbers)
            host = _name(victim.hostname, "local")
            records = _service(f"False {n}", 2000 + n % 60000, host)
            yield self._multicast(self._response([*records, _a(host, _packed(victim))]))

    def goodbyes(self) -> Iterator[bytes]:
        """Announce that the printers' services have ended: a TTL of 0 (RFC 6762, section 10.1)."""
        for victim in self._victims():
            host = _name(victim.hostname, "local")
            records = _service(victim.services[0].instance, 631, host, ttl=0)
            goodbye = _record(host, A, _packed(victim), _FLUSH, ttl=0)
            yield self._multicast(self._response([*records, goodbye]))

    def far_addresses(self) -> Iterator[bytes]:
        """Announce services with addresses outside of the LAN."""
        for n in self._numbers:
            host = _name(f"far-{n}", "local")
            addresses = [socket.inet_aton(f"203.0.{n % 256}.{k + 1}") for k in range(ADDRESSES)]
            records = [
                *_service(f"Far {n}", 80, host),
                *(_a(host, address) for address in addresses),
            ]
            yield self._multicast(self._response(records))

    def huge_texts(self) -> Iterator[bytes]:
        """Announce services with TXT records of 8 KB."""
        for n in self._numbers:
            txt = b"".join(b"\xfa" + f"k{n}-{k}=".encode().ljust(250, b"x") for k in range(33))
            records = _service(f"Huge {n % 4000}", 80, _name("liar", "local"), txt)
            yield self._multicast(self._response(records))

    def pointers_to_one(self) -> Iterator[bytes]:
        """Point from thousands of service types to one instance."""
        target = _name("One", *_IPP)
        for _ in self._numbers:
            names = (_name(f"_t{next(self._numbers) % 9000}", "_tcp", "local") for _ in range(24))
            kinds = _name("_services", "_dns-sd", "_udp", "local")
            records = [r for n in names for r in (_record(n, PTR, target), _record(kinds, PTR, n))]
            yield self._multicast(self._response(records))

    def compression_bombs(self) -> Iterator[bytes]:
        """Send names whose compression pointers lead to themselves or to each other."""
        for n in self._numbers:
            loop = b"\xc0\x0c" + struct.pack("!HHIH", PTR, 1, 120, 2) + b"\xc0\x0c"
            name = b"\x01a" * 100 + b"\xc0\x0c"
            chain = name + struct.pack("!HHIH", PTR, 1, 120, 2) + b"\xc0\x0e"
            yield self._multicast(self._response([chain, loop * 60, struct.pack("!H", n % 65536)]))

    def made_up_addresses(self) -> Iterator[bytes]:
        """Announce one service from each address of the network, all with one MAC."""
        for n in self._numbers:
            source = self._some_address(n)
            yield self._multicast(self._response(self._one_service(n, source)), source)

    def printers_as_sources(self) -> Iterator[bytes]:
        """Send packets that seem to come from the printers."""
        for victim in self._victims():
            n = next(self._numbers)
            records = self._one_service(n, _packed(victim))
            yield self._multicast(self._response(records), _packed(victim))

    def made_up_macs(self) -> Iterator[bytes]:
        """Simulate thousands of devices that each announce one service, over IPv6."""
        for n in self._numbers:
            mac = b"\x02\xee" + struct.pack("!I", n)
            source = ipaddress.ip_address("fe80::ee:0").packed[:12] + struct.pack("!I", n)
            host = _name(f"six-{n}", "local")
            records = [*_service(f"Six {n}", 631, host), _record(host, AAAA, source, _FLUSH)]
            packet = _udp_v6(source, GROUP_V6, self._response(records))
            yield frames.ethernet_frame(GROUP_MAC_V6, mac, 0x86DD, packet)

    def unicast(self) -> Iterator[bytes]:
        """Announce services in packets that only the agent's machine receives."""
        for n in self._numbers:
            payload = self._response(self._one_service(n, self._address))
            body = frames.udp_packet(self._address, self._agent, PORT, PORT, payload)
            yield frames.ethernet_frame(AGENT_MAC, self._mac, frames.ETHERTYPE_IPV4, body)

    def questions(self) -> Iterator[bytes]:
        """Query names that no host has, with a printer's service as the known answer."""
        for n in self._numbers:
            question = _name(f"q{n}", "local") + struct.pack("!HH", ANY, 1)
            known_answer = _record(
                _name(*_IPP), PTR, _name(self._honest[0].services[0].instance, *_IPP)
            )
            header = struct.pack("!6H", 0, 0, 1, 1, 0, 0)
            yield self._multicast(header + question + known_answer)

    def reverse_names(self) -> Iterator[bytes]:
        """Announce false host names for the printers' addresses."""
        for victim in self._victims():
            reverse = ipaddress.ip_address(victim.address).reverse_pointer.split(".")
            target = _name(f"not-{next(self._numbers)}", "local")
            yield self._multicast(self._response([_record(_name(*reverse), PTR, target)]))

    # ------------------------------------------------------------------ parts

    def _victims(self) -> Iterator[LanHost]:
        return cycle(self._honest)

    def _some_address(self, n: int) -> bytes:
        hosts = self._network.num_addresses - 2
        return self._network[1 + n * 7 % hosts].packed

    def _one_service(self, n: int, address: bytes) -> list[bytes]:
        host = _name(f"one-{n}", "local")
        return [*_service(f"Only {n}", 631, host), _a(host, address)]

    def _response(self, records: list[bytes]) -> bytes:
        # A different id makes each packet different. Receivers ignore the id of a response.
        number = next(self._numbers) % 65536
        return struct.pack("!6H", number, 0x8400, 0, len(records), 0, 0) + b"".join(records)

    def _multicast(self, payload: bytes, source: bytes | None = None) -> bytes:
        body = frames.udp_packet(source or self._address, GROUP, PORT, PORT, payload)
        return frames.ethernet_frame(GROUP_MAC, self._mac, frames.ETHERTYPE_IPV4, body)


KINDS: tuple[str, ...] = tuple(
    name
    for name, value in vars(Liar).items()
    if isinstance(value, Callable) and not name.startswith("_") and name != "frames"
)


def _service(
    instance: str, port: int, host: bytes, txt: bytes = b"\0", *, ttl: int = 120
) -> list[bytes]:
    instance_name = _name(instance, *_IPP)
    srv_data = struct.pack("!HHH", 0, 0, port) + host
    return [
        _record(_name(*_IPP), PTR, instance_name, ttl=ttl),
        _record(instance_name, SRV, srv_data, _FLUSH, ttl=ttl),
        _record(instance_name, TXT, txt, _FLUSH, ttl=ttl),
    ]


def _a(host: bytes, address: bytes) -> bytes:
    return _record(host, A, address, _FLUSH)


def _record(name: bytes, kind: int, data: bytes, record_class: int = 1, *, ttl: int = 120) -> bytes:
    return name + struct.pack("!HHIH", kind, record_class, ttl, len(data)) + data


def _name(*labels: str) -> bytes:
    encoded = [label.encode()[:63] for label in labels]
    return b"".join(bytes([len(label)]) + label for label in encoded) + b"\0"


def _strings(texts: tuple[str, ...]) -> bytes:
    return b"".join(bytes([len(t)]) + t for t in (text.encode()[:255] for text in texts))


def _packed(host: LanHost) -> bytes:
    return socket.inet_aton(host.address)


def _mac(host: LanHost) -> bytes:
    return bytes.fromhex(host.mac.replace(":", ""))


def _udp_v6(source: bytes, destination: bytes, payload: bytes) -> bytes:
    """Return an IPv6 packet with a UDP checksum, which IPv6 requires (RFC 8200, section 8.1)."""
    length = 8 + len(payload)
    datagram = struct.pack("!HHHH", PORT, PORT, length, 0) + payload
    pseudo = source + destination + struct.pack("!II", length, frames.UDP)
    total = frames.checksum(pseudo + datagram) or 0xFFFF
    header = struct.pack("!IHBB", 6 << 28, length, frames.UDP, 255) + source + destination
    return header + datagram[:6] + total.to_bytes(2, "big") + datagram[8:]


def main() -> int:
    plan, tap_fd, packets = load_plan(Path(sys.argv[1])), int(sys.argv[2]), int(sys.argv[3])
    all_frames = list(itertools.islice(Liar(plan).frames(), packets))
    print("ready", flush=True)
    sys.stdin.readline()
    start_s = time.monotonic()
    for number, frame in enumerate(all_frames):
        if plan.lies_per_s and number % _BURST == 0:
            pause_s = start_s + number / plan.lies_per_s - time.monotonic()
            time.sleep(max(0.0, pause_s))
        try:
            os.write(tap_fd, frame)
        except OSError:  # if the device's queue is full, the frame is dropped, as in a switch
            continue
    print(
        f"{len(all_frames)} packets in {time.monotonic() - start_s:.2f} s",
        file=sys.stderr,
        flush=True,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
