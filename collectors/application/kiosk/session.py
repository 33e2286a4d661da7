"""A session with one page: commands of the Chrome DevTools Protocol over a WebSocket.

This module reads and writes the socket, with one deadline for the whole session. The library
websockets only does the framing (RFC 6455), with its Sans-I/O protocol. The only event that is
recorded is a crash of the page. The size of each message and the sum of all sizes are limited.
"""

import json
import logging
import socket
from typing import Any, Final, Self

from websockets.client import ClientProtocol
from websockets.exceptions import WebSocketException
from websockets.frames import Frame, Opcode
from websockets.uri import parse_uri

from collectors.application.deadline import Deadline
from collectors.application.foreign_json import load_object
from collectors.shared.devtools import DebugAddress

MESSAGE_MAX_BYTES: Final = 1024 * 1024
RECEIVED_MAX_BYTES: Final = 8 * 1024 * 1024

_LOGGER = logging.getLogger("collectors.kiosk.websocket")
_LOGGER.addHandler(logging.NullHandler())
_LOGGER.propagate = False


class PageSession:
    """A connection to one page. Use it as a context manager.

    Every method can raise ValueError, OSError and, after the deadline, TimeoutError.
    """

    def __init__(self, address: DebugAddress, page_id: str, deadline: Deadline) -> None:
        uri = parse_uri(f"ws://{address.authority}/devtools/page/{page_id}")
        self._deadline = deadline
        self._protocol = ClientProtocol(uri, max_size=MESSAGE_MAX_BYTES, logger=_LOGGER)
        self._frames: list[Frame] = []
        self._received = 0
        self._last_id = 0
        self.has_crashed = False
        self._socket = socket.create_connection(
            (address.host, address.port), timeout=deadline.require_s()
        )

    def __enter__(self) -> Self:
        try:
            self._protocol.send_request(self._protocol.connect())
            self._flush()
            while not self._protocol.events_received():
                self._receive()
                if isinstance(self._protocol.handshake_exc, WebSocketException | ValueError):
                    raise ValueError("the DevTools port refused the WebSocket")
        except BaseException:
            self._socket.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def shorten_deadline(self, seconds: float) -> None:
        """Limit the sum of all further waits to ``seconds``."""
        self._deadline = self._deadline.sooner(seconds)

    def command(self, method: str, **params: Any) -> dict[str, Any]:
        """Send one command and return its result."""
        self._last_id += 1
        message = {"id": self._last_id, "method": method, "params": params}
        self._protocol.send_text(json.dumps(message).encode())
        self._flush()
        while True:
            data = self._next_message()
            if (answer := parse_answer(data, self._last_id)) is not None:
                return answer
            self.has_crashed |= json.loads(data).get("method") == "Inspector.targetCrashed"

    def _next_message(self) -> bytes:
        """Return the next complete text message."""
        parts: list[bytes] = []
        while True:
            while not self._frames:
                self._receive()
                self._frames += [
                    e for e in self._protocol.events_received() if isinstance(e, Frame)
                ]
            frame = self._frames.pop(0)
            if frame.opcode not in {Opcode.TEXT, Opcode.CONT}:
                continue
            parts.append(bytes(frame.data))
            if frame.fin:
                return b"".join(parts)

    def _receive(self) -> None:
        self._socket.settimeout(self._deadline.require_s())
        data = self._socket.recv(65536)
        self._received += len(data)
        if not data or self._protocol.close_expected():
            raise ConnectionResetError("the browser closed the connection")
        if self._received > RECEIVED_MAX_BYTES:
            raise ValueError(f"the browser sent more than {RECEIVED_MAX_BYTES} bytes")
        self._protocol.receive_data(data)
        self._flush()
        if self._protocol.parser_exc is not None:
            raise ValueError("the DevTools port sent data that is not WebSocket")

    def _flush(self) -> None:
        for data in self._protocol.data_to_send():
            if data:
                self._socket.settimeout(self._deadline.require_s())
                self._socket.sendall(data)


def parse_answer(data: bytes, command_id: int) -> dict[str, Any] | None:
    """Return the result of the command ``command_id``. Returns None for any other message.

    Raises:
        ValueError: The browser refused the command, or the data is not a message of the protocol.
    """
    message = load_object(data, "the DevTools port")
    if message.get("id") != command_id:
        return None
    result, error = message.get("result"), message.get("error")
    if isinstance(result, dict):
        return result
    # Only the code of the error is reported, because its text may quote the page.
    code = error.get("code") if isinstance(error, dict) else None
    detail = code if isinstance(code, int) else "no code"
    raise ValueError(f"the browser refused a DevTools command ({detail})")
