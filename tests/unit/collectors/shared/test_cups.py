"""Tests requests to the print spooler of this machine, and its possible replies."""

import socket
import threading
import time
from pathlib import Path

import pytest

from collectors.shared import cups, ipp
from collectors.shared.cups import CupsError, CupsServer, NotRunning, cups_servers, query_cups
from tests.unit.collectors.shared.spooler import deadline, http_response, spooler
from tests.unit.collectors.shared.test_ipp import QUEUES, message

QUESTION = ipp.encode_request(ipp.CUPS_GET_PRINTERS, requested=("printer-name",))


def query_spooler(path: Path, reply: bytes) -> tuple[ipp.Response, list[bytes]]:
    """Query a spooler that sends ``reply``. Return the response, and the received requests."""
    with spooler(path, reply) as requests:
        return query_cups(QUESTION, deadline(), {"CUPS_SERVER": str(path)}), requests


def test_the_servers_depend_on_the_environment_and_the_platform():
    assert cups_servers({}, "linux") == (CupsServer(path="/run/cups/cups.sock"), CupsServer())
    assert cups_servers({}, "darwin")[0].path == "/private/var/run/cupsd"
    assert cups_servers({"CUPS_SERVER": "/tmp/x.sock"}, "linux") == (
        CupsServer(path="/tmp/x.sock"),
    )
    local = CupsServer(host="localhost", port=8631)
    assert cups_servers({"CUPS_SERVER": "localhost:8631"}, "linux") == (local,)
    # The collector never queries a spooler on another machine, even if the variable names one.
    assert cups_servers({"CUPS_SERVER": "print.example.com"}, "linux")[0].path is not None


@pytest.mark.parametrize(
    "reply",
    [
        http_response(QUEUES),
        b"HTTP/1.0 200 OK\r\n\r\n" + QUEUES,
        http_response(QUEUES) + b"and more",
        b"HTTP/1.1 100 Continue\r\n\r\n" + http_response(QUEUES),
        b"HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n%x\r\n%b\r\n0\r\n\r\n"
        % (len(QUEUES), QUEUES),
    ],
)
def test_every_form_of_http_reply_is_parsed(tmp_path: Path, reply: bytes) -> None:
    response, (query,) = query_spooler(tmp_path / "cups.sock", reply)
    assert response == ipp.decode_response(QUEUES)
    assert query.startswith(b"POST / HTTP/1.1\r\n")
    assert query.endswith(QUESTION)


def test_a_not_found_reply_of_cups_is_returned(tmp_path: Path) -> None:
    response, _ = query_spooler(
        tmp_path / "cups.sock", http_response(message(status=ipp.NOT_FOUND))
    )
    assert response == ipp.Response(ipp.NOT_FOUND, ())


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (http_response(b"", "403 Forbidden"), "it answered with HTTP status 403"),
        (http_response(message(status=0x0503)), "it answered with IPP status 0x0503"),
        (http_response(QUEUES)[:-9], "its answer cannot be read"),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 9\r\n\r\nabc", "its answer cannot be read"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", "did not answer with HTTP"),
        (b"x" * 100_000, "it did not answer with HTTP"),
        (b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 1000, "it did not answer with HTTP"),
        (b"", "it did not answer with HTTP"),
        (http_response(b"x" * (ipp.RESPONSE_MAX_BYTES + 1)), "its answer is longer than the limit"),
    ],
)
def test_invalid_answer_raises_an_error(tmp_path: Path, reply: bytes, reason: str) -> None:
    with pytest.raises(CupsError, match=reason):
        query_spooler(tmp_path / "cups.sock", reply)


@pytest.mark.parametrize(
    "reply", [http_response(QUEUES), b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 10_000]
)
def test_a_slow_answer_raises_a_timeout_at_the_deadline(tmp_path: Path, reply: bytes) -> None:
    path = tmp_path / "cups.sock"
    with (
        spooler(path, reply, trickles=True),
        pytest.raises(TimeoutError, match="did not answer before the deadline"),
    ):
        query_cups(QUESTION, time.monotonic() + 0.3, {"CUPS_SERVER": str(path)})


def test_deadline_in_the_past_raises_a_timeout(tmp_path: Path) -> None:
    with pytest.raises(TimeoutError):
        query_cups(QUESTION, time.monotonic(), {"CUPS_SERVER": str(tmp_path / "cups.sock")})


def test_a_stopped_spooler_raises_not_running(tmp_path: Path) -> None:
    path = tmp_path / "cups.sock"
    with pytest.raises(NotRunning) as missing:
        query_cups(QUESTION, deadline(), {"CUPS_SERVER": str(path)})
    assert not missing.value.is_socket_there
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
    with pytest.raises(NotRunning, match="nothing listens on it") as leftover:
        query_cups(QUESTION, deadline(), {"CUPS_SERVER": str(path)})
    assert leftover.value.is_socket_there


def test_loopback_is_used_if_the_socket_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                while not connection.recv(65536).endswith(QUESTION[-20:]):
                    pass
                connection.sendall(http_response(QUEUES))

        missing_socket = CupsServer(path=str(tmp_path / "none"))
        loopback = CupsServer(host="127.0.0.1", port=server.getsockname()[1])
        monkeypatch.setattr(cups, "cups_servers", lambda *_: (missing_socket, loopback))
        thread = threading.Thread(target=serve)
        thread.start()
        assert query_cups(QUESTION, deadline(), {}).printers
        thread.join()
