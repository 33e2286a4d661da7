"""Client connections that send bytes and do not read the replies."""

import select
import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager


@contextmanager
def unread_connections(
    port: int, count: int, data: bytes, address: str = "127.0.0.1"
) -> Iterator[list[int]]:
    """Open connections from ``address``. Send ``data`` on each, as far as possible without waiting.

    Yields the file descriptors of the connections.
    """
    with ExitStack() as stack:
        connections = []
        for _ in range(count):
            connection = socket.create_connection(("127.0.0.1", port), source_address=(address, 0))
            stack.enter_context(connection)
            connection.setblocking(False)
            connection.send(data)
            connections.append(connection.fileno())
        yield connections


def wait_until_closed(connections: Sequence[int], count: int) -> None:
    """Wait until the service has closed ``count`` of the connections."""
    poll = select.poll()
    for connection in connections:
        # RDHUP is reported without reading. HUP and ERR are always reported.
        poll.register(connection, select.POLLRDHUP)
    while count > 0:
        for descriptor, _ in poll.poll():
            poll.unregister(descriptor)
            count -= 1
