"""Creates mDNS responses for tests byte by byte (RFC 1035, section 4)."""

import socket
import struct
import threading
from collections.abc import Sequence

PTR, TXT, SRV, A, AAAA = 12, 16, 33, 1, 28


def name(*labels: str | bytes) -> bytes:
    """Return an encoded domain name."""
    encoded = [label.encode() if isinstance(label, str) else label for label in labels]
    return b"".join(bytes([len(label)]) + label for label in encoded) + b"\0"


def srv_question(label: str) -> bytes:
    """Return the question for the SRV record of an IPP service, without the class."""
    return name(label, "_ipp", "_tcp", "local") + struct.pack("!H", SRV)


def record(owner: bytes, record_type: int, data: bytes, ttl: int = 120) -> bytes:
    """Return an encoded resource record of the class IN."""
    return owner + struct.pack("!HHIH", record_type, 1, ttl, len(data)) + data


def response(*records: bytes) -> bytes:
    """Return a response with these answers."""
    return struct.pack("!6H", 0, 0x8400, 0, len(records), 0, 0) + b"".join(records)


def service(
    label: str | bytes, service_type: str, port: int, host: str, address: str, *, txt: bytes = b"\0"
) -> bytes:
    """Return a response with all records of one service."""
    return response(*service_records(label, service_type, port, host, address, txt=txt))


def service_records(
    label: str | bytes, service_type: str, port: int, host: str, address: str, *, txt: bytes = b"\0"
) -> tuple[bytes, ...]:
    type_labels = (*service_type.split("."), "local")
    own = name(label, *type_labels)
    srv_data = struct.pack("!HHH", 0, 0, port) + name(host, "local")
    return (
        record(name(*type_labels), PTR, own),
        record(own, SRV, srv_data),
        record(own, TXT, txt),
        record(name(host, "local"), A, socket.inet_aton(address)),
    )


class Responder:
    """Answers mDNS queries on loopback, from its own thread."""

    def __init__(self, answers: dict[bytes, Sequence[bytes]]) -> None:
        """Create a responder.

        Args:
            answers: Maps a part of a query to the packets that the responder sends for each query
                with this part.
        """
        self.questions: list[bytes] = []
        self.query_received = threading.Semaphore(0)
        self.answered = threading.Semaphore(0)
        self._answers = answers
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self.address: tuple[str, int] = self._socket.getsockname()
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self) -> "Responder":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stopper:
            stopper.sendto(b"", self.address)
        self._thread.join()
        self._socket.close()

    def _serve(self) -> None:
        while True:
            packet, source = self._socket.recvfrom(9000)
            if not packet:
                return
            self.questions.append(packet)
            self.query_received.release()
            for piece, answers in self._answers.items():
                if piece in packet:
                    for answer in answers:
                        self._socket.sendto(answer, source)
            self.answered.release()


class AnsweredSocket(socket.socket):
    """A UDP socket whose `sendto` returns after the responder has sent its answers.

    So an answer cannot arrive too late, however busy the machine is.
    """

    def __init__(self, responder: Responder) -> None:
        super().__init__(socket.AF_INET, socket.SOCK_DGRAM)
        self._responder = responder

    def sendto(self, packet: bytes, to: tuple[str, int]) -> int:  # type: ignore[override]
        size = super().sendto(packet, to)
        assert self._responder.answered.acquire(timeout=60)
        return size
