"""A fake DevTools port of a browser. A test makes it correct, faulty or unresponsive.

It listens on a free loopback port. A connection is either `GET /json/list` or a WebSocket. A test
sets the function that answers the commands of each page. It can also set a function that handles
connections.
"""

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final

from websockets.frames import Frame, Opcode
from websockets.http11 import Request
from websockets.server import ServerProtocol

PAGE_ADDRESS: Final = "https://till.example/orders?token=page-secret"
PAGE_TITLE: Final = "title-secret"

Answer = Callable[[str, dict[str, Any]], dict[str, Any] | None]
"""Takes the method and the params of a command. Returns the result, or None for no answer."""

ConnectionHandler = Callable[[socket.socket, bytes], bool]
"""Takes a connection and its first bytes. Returns False if the port must handle the connection as
usual."""


def answer_with(value: object, **frame: str) -> Answer:
    """Return a function with the usual answers, in which every expression evaluates to ``value``.

    ``frame`` has further fields of the page's frame.
    """

    def answer(method: str, _: dict[str, Any]) -> dict[str, Any] | None:
        if method == "Page.getFrameTree":
            return {"frameTree": {"frame": {"id": "F1", "url": PAGE_ADDRESS, **frame}}}
        if method == "Page.createIsolatedWorld":
            return {"executionContextId": 7}
        return {"result": {"type": "string", "value": value}}

    return answer


def page_target(page_id: str) -> dict[str, str]:
    """Return a target as Chromium lists it.

    Its WebSocket URL names a different host, which clients must ignore.
    """
    return {
        "id": page_id,
        "type": "page",
        "title": PAGE_TITLE,
        "url": PAGE_ADDRESS,
        "webSocketDebuggerUrl": f"ws://192.0.2.1:9222/devtools/page/{page_id}",
    }


class DevToolsPort:
    """``pages`` has the function that answers the commands of each open page, by page id.

    Before each answer, an event with the method ``event`` is sent. ``commands`` records the page
    id, the method and the params of each command.
    """

    def __init__(
        self,
        pages: dict[str, Answer],
        handler: ConnectionHandler | None = None,
        event: str = "Page.noise",
    ) -> None:
        self.commands: list[tuple[str, str, dict[str, Any]]] = []
        self._pages = pages
        self._handler = handler
        self._event = event
        self._server = socket.create_server(("127.0.0.1", 0))
        self._closing = threading.Event()
        self._threads: list[threading.Thread] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.getsockname()[1]}"

    def serve(self) -> None:
        self._server.settimeout(0.05)
        while not self._closing.is_set():
            with contextlib.suppress(TimeoutError):
                connection, _ = self._server.accept()
                thread = threading.Thread(target=self._serve_connection, args=(connection,))
                self._threads.append(thread)
                thread.start()

    def stop(self) -> None:
        """Accept no more connections, and end the open connections."""
        self._closing.set()

    def close(self) -> None:
        for thread in self._threads:
            thread.join(5)
        self._server.close()

    def _serve_connection(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            connection.settimeout(0.2)
            first = self._receive(connection)
            if self._handler is not None and self._handler(connection, first):
                return
            if first.startswith(b"GET /json/list "):
                self._send_list(connection)
            else:
                self._serve_websocket(connection, first)

    def _send_list(self, connection: socket.socket) -> None:
        worker = {"id": "W1", "type": "service_worker", "title": "", "url": "https://x/"}
        body = json.dumps([worker, *map(page_target, self._pages)]).encode()
        head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n"
        connection.sendall(head.encode() + body)

    def _serve_websocket(self, connection: socket.socket, data: bytes) -> None:
        protocol = ServerProtocol()
        page_id = ""
        while data and not self._closing.is_set():
            protocol.receive_data(data)
            for event in protocol.events_received():
                if isinstance(event, Request):
                    page_id = event.path.rpartition("/")[2]
                    protocol.send_response(protocol.accept(event))
                elif isinstance(event, Frame) and event.opcode is Opcode.TEXT:
                    self._answer_command(protocol, page_id, bytes(event.data))
            for out in protocol.data_to_send():
                connection.sendall(out)
            data = self._receive(connection)

    def _answer_command(self, protocol: ServerProtocol, page_id: str, data: bytes) -> None:
        message = json.loads(data)
        self.commands.append((page_id, message["method"], message["params"]))
        protocol.send_text(json.dumps({"method": self._event, "params": {}}).encode())
        result = self._pages[page_id](message["method"], message["params"])
        if result is not None:
            protocol.send_text(json.dumps({"id": message["id"], "result": result}).encode())

    def _receive(self, connection: socket.socket) -> bytes:
        while not self._closing.is_set():
            with contextlib.suppress(TimeoutError):
                return connection.recv(65536)
        return b""


@contextlib.contextmanager
def devtools_port(
    pages: dict[str, Answer], handler: ConnectionHandler | None = None, event: str = "Page.noise"
) -> Iterator[DevToolsPort]:
    port = DevToolsPort(pages, handler, event)
    thread = threading.Thread(target=port.serve)
    thread.start()
    try:
        yield port
    finally:
        port.stop()
        thread.join(5)
        port.close()
