"""Listens on the ports that must never receive a byte, and counts connections and bytes.

The tests run this script in a network namespace. Usage: listener.py FILE. It writes
{"port": [connections, bytes]} to FILE after each change.
"""

import json
import selectors
import socket
import sys
from pathlib import Path

from tests.lab.harm import HARM_PORTS


def main() -> None:
    file = Path(sys.argv[1])
    counts = {port: [0, 0] for port in HARM_PORTS}
    selector = selectors.DefaultSelector()
    for port in HARM_PORTS:
        server = socket.create_server(("", port))
        selector.register(server, selectors.EVENT_READ, port)
    _write(file, counts)
    print("ready", flush=True)
    while True:
        for key, _ in selector.select():
            if not isinstance(key.fileobj, socket.socket):
                continue
            if key.fileobj.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                connection, _ = key.fileobj.accept()
                counts[key.data][0] += 1
                selector.register(connection, selectors.EVENT_READ, key.data)
            else:
                size = _read_size(key.fileobj)
                counts[key.data][1] += size
                if not size:
                    selector.unregister(key.fileobj)
                    key.fileobj.close()
            _write(file, counts)


def _read_size(from_socket: socket.socket) -> int:
    """Read from a connection. Return the number of bytes; 0 if the connection has ended."""
    try:
        return len(from_socket.recv(65536))
    except ConnectionResetError:
        return 0


def _write(file: Path, counts: dict[int, list[int]]) -> None:
    temporary_file = file.with_suffix(".new")
    temporary_file.write_text(json.dumps(counts))
    temporary_file.replace(file)


if __name__ == "__main__":
    main()
