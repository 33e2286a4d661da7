"""The hosts and ports that the scan finds. Other threads query them while the scan runs."""

import socket
import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from collectors.shared.addresses import IPP_PORT


@dataclass(frozen=True, slots=True)
class Queues:
    """The resource paths of an IPP port, such as ``ipp/print``.

    ``announced`` are the paths that mDNS announces for it (``rp`` in TXT). ``own`` are the paths
    that this machine prints to.
    """

    announced: tuple[str, ...] = ()
    own: tuple[str, ...] = ()


NO_QUEUES = Queues()


@dataclass(frozen=True, slots=True)
class OpenPort:
    """An open port. Only ports in the allow-list (`collectors.network.questions`) are queried.

    ``contacted_s`` is the time of the scan's connection to it (monotonic). ``connection`` is that
    connection if it is still open: the first query is sent over it. The caller that takes the port
    must close the connection.
    """

    address: str
    port: int
    queues: Queues = NO_QUEUES
    contacted_s: float = 0.0
    connection: socket.socket | None = None

    def close(self) -> None:
        if self.connection is not None:
            self.connection.close()


@dataclass
class Discoveries:
    """Hosts and open ports, each once, in the order in which the scan found them. Thread-safe.

    `take_ports` returns an IPP port only after the queues of the IPP ports are known. This machine
    (``own`` addresses) is not queried for its name or for the queues of its spooler, because both
    are read directly. ``is_complete`` is set when the scan adds nothing more.
    """

    own: Collection[str] = ()
    is_complete: bool = False
    _hosts: dict[str, None] = field(default_factory=dict)
    _seen: set[tuple[str, int]] = field(default_factory=set)
    _ports: list[OpenPort] = field(default_factory=list)
    _waiting: list[OpenPort] = field(default_factory=list)
    _queues: Mapping[tuple[str, int], Queues] | None = None
    _is_querying: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add_host(self, address: str) -> None:
        with self._lock:
            if address not in self.own:
                self._hosts[address] = None

    def add_port(
        self, address: str, port: int, contacted_s: float, connection: socket.socket | None = None
    ) -> None:
        """Add an open port, to which a connection was made at ``contacted_s`` (monotonic).

        ``connection`` is that connection. It is closed here unless the port is queried at once.
        """
        open_port = OpenPort(address, port, contacted_s=contacted_s, connection=connection)
        with self._lock:
            if (address, port) in self._seen or (port == IPP_PORT and address in self.own):
                open_port.close()
                return
            self._seen.add((address, port))
            must_wait = port == IPP_PORT and self._queues is None
            if must_wait or not self._is_querying:
                open_port.close()
                open_port = replace(open_port, connection=None)
            (self._waiting if must_wait else self._ports).append(open_port)

    def set_queues(self, queues: Mapping[tuple[str, int], Queues]) -> None:
        """Set the queues of the IPP ports.

        After this, `take_ports` also returns the IPP ports that waited for their queues.
        """
        with self._lock:
            self._queues = queues
            self._ports += self._waiting
            self._waiting.clear()

    def begin_queries(self) -> None:
        """Declare that the caller takes the ports from now on, and closes their connections."""
        with self._lock:
            self._is_querying = True

    def end_queries(self) -> None:
        """Declare that no more ports are queried. Closes the connections of the remaining ports."""
        with self._lock:
            self._is_querying = False
            for port in self._ports:
                port.close()
            self._ports = [replace(port, connection=None) for port in self._ports]

    @property
    def queries_ipp_at_once(self) -> bool:
        """Whether an IPP port is queried as soon as it is added, over its connection."""
        with self._lock:
            return self._is_querying and self._queues is not None

    def hosts(self) -> tuple[str, ...]:
        with self._lock:
            return tuple(self._hosts)

    def take_ports(self) -> tuple[OpenPort, ...]:
        """Return the ports that were added since the last call."""
        with self._lock:
            new_ports, self._ports = self._ports, []
            known_queues = self._queues or {}
        return tuple(
            replace(port, queues=known_queues.get((port.address, port.port), NO_QUEUES))
            for port in new_ports
        )

    def take_waiting(self) -> tuple[OpenPort, ...]:
        """Return the ports whose queues are still unknown."""
        with self._lock:
            ports, self._waiting = self._waiting, []
        return tuple(ports)
