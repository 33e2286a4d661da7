"""Tests the queries to devices, with servers on loopback that behave like devices."""

import asyncio
import datetime
import socket
import ssl
import struct
import time
from collections.abc import AsyncIterator, Awaitable
from concurrent.futures import wait
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from collectors.contract import Interface, InterfaceAddress
from collectors.network.discoveries import Discoveries, OpenPort, Queues
from collectors.network.mdns.names import PARSED_PER_HOST_MAX, NameQueries, query_names
from collectors.network.observations import Evidence
from collectors.network.questions.ipp import parse_attributes, parse_device_id, query_ipp
from collectors.network.questions.page_title import parse_title
from collectors.network.questions.web import query_web
from collectors.shared.background import in_background
from collectors.shared.http import HttpReply
from collectors.shared.ipp import IppError
from tests.unit.collectors.network.mdns.mdns_answers import PTR, Responder, name, record, response
from tests.unit.collectors.network.mdns.test_browse import open_link_to
from tests.unit.collectors.network.questions.test_questions import FakeRun
from tests.unit.collectors.shared.test_ipp import PRINTER, item, message

UUID = "d4d1e202-baff-3fff-46ff-3ab6dbae6ea6"
NOT_FOUND = 0x0406  # client-error-not-found of IPP
ZERO_WIDTH_JOINER = "\u200d"  # titles may contain it, although `isprintable` rejects it


def http(body: bytes, *, status: str = "200 OK", headers: str = "") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{headers}\r\n"
    return head.encode() + body


@asynccontextmanager
async def device(
    *replies: bytes, tls: ssl.SSLContext | None = None
) -> AsyncIterator[tuple[OpenPort, list[bytes]]]:
    """Run a server that sends ``replies`` in order, one for each connection, and the last one for
    all further connections. Yield its port and the requests that it has received.
    """
    requests: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            requests.append(await reader.read(65536))
            writer.write(replies[min(len(requests), len(replies)) - 1])
            await writer.drain()
        finally:
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=tls)
    async with server:
        yield OpenPort("127.0.0.1", server.sockets[0].getsockname()[1]), requests


async def evidence_of(query: Awaitable[tuple[Evidence, ...]]) -> tuple[Evidence, ...]:
    """Return the result of the query. Raises TimeoutError after 60 s."""
    async with asyncio.timeout(60):
        return await query


async def test_the_attributes_of_a_printer_are_queried():
    async with device(http(PRINTER)) as (port, requests):
        (result,) = await evidence_of(query_ipp(port))
    assert (result.uuid, result.make_model) == (UUID, "Brother HL-L2350DW")
    assert (result.name, result.state, result.state_reasons) == ("Kitchen 4.2 printer", "idle", ())
    assert requests[0].startswith(b"POST /ipp/print HTTP/1.1\r\n")
    assert b"Content-Type: application/ipp\r\n" in requests[0]


async def test_every_announced_queue_with_a_valid_path_is_queried():
    async with device(http(PRINTER)) as (port, requests):
        queues = ("printers/bar", "x\r\nHost: evil", "printers/till")
        evidence = await evidence_of(query_ipp(OpenPort(port.address, port.port, Queues(queues))))
    assert len(evidence) == 2
    paths = [request.split(b" ")[1] for request in requests]
    assert paths == [b"/printers/bar", b"/printers/till"]


async def test_the_usual_queues_are_queried_until_one_answers():
    async with device(http(message(status=NOT_FOUND)), http(PRINTER)) as (port, requests):
        (value,) = await evidence_of(query_ipp(port))
    assert value.uuid == UUID
    assert [request.split(b" ")[1] for request in requests] == [b"/ipp/print", b"/ipp/printer"]


@pytest.mark.parametrize(
    "reply", [http(message(status=NOT_FOUND)), http(b"", status="404 Not Found")]
)
async def test_configured_queue_is_queried_first_and_reported_missing(reply: bytes):
    async with device(reply, http(PRINTER)) as (port, requests):
        own = OpenPort(port.address, port.port, Queues(("printers/bar",), ("printers/Bar Küche",)))
        missing, bar = await evidence_of(query_ipp(own))
    assert (missing.queue, missing.is_missing) == ("printers/Bar Küche", True)
    assert (bar.queue, bar.is_missing, bar.uuid) == ("printers/bar", False, UUID)
    paths = [request.split(b" ")[1] for request in requests]
    assert paths == [b"/printers/Bar%20K%C3%BCche", b"/printers/bar"]


async def test_device_is_queried_at_the_usual_path_if_the_configured_queue_is_missing():
    async with device(http(message(status=NOT_FOUND)), http(PRINTER)) as (port, _):
        missing, evidence = await evidence_of(
            query_ipp(OpenPort(port.address, port.port, Queues((), ("GONE",))))
        )
    assert (missing.is_missing, evidence.queue) == (True, "ipp/print")


@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b"SSH-2.0-x\r\n\r\n",
        http(b"<html>no ipp</html>"),
        http(b"", status="404 Not Found"),
        http(message()),
    ],
)
async def test_a_reply_without_printer_attributes_gives_no_evidence(reply: bytes):
    async with device(reply) as (port, _):
        assert await evidence_of(query_ipp(port)) == ()


@pytest.mark.parametrize(
    "reply",
    [
        b"HTTP/1.1 100 Continue\r\n\r\n" + http(PRINTER),
        b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + PRINTER,
        b"HTTP/1.0 200 OK\r\nServer: EPSON_Linux UPnP/1.0\r\n\r\n" + PRINTER,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n%b\r\n%x\r\n%b\r\n0\r\n\r\n"
        % (PRINTER[:9], len(PRINTER[9:]), PRINTER[9:]),
        http(PRINTER).replace(b"\r\n", b"\n", 3),
    ],
)
async def test_each_form_of_http_reply_of_a_printer_is_parsed(reply: bytes):
    async with device(reply) as (port, _):
        (evidence,) = await evidence_of(query_ipp(port))
    assert (evidence.uuid, evidence.make_model) == (UUID, "Brother HL-L2350DW")


def test_state_reasons_serial_number_and_model_are_parsed():
    data = message(
        b"\x04",
        item(0x23, "printer-state", struct.pack("!i", 5)),
        item(0x44, "printer-state-reasons", b"media-empty-error"),
        item(0x44, "", b"cover-open\x1b[2J"),
        item(0x41, "printer-device-id", b"MFG:EPSON;MDL:TM-m30;SN:X4YZ;"),
    )
    assert parse_attributes("10.0.0.9", 631, data) == Evidence(
        "10.0.0.9",
        631,
        make_model="EPSON TM-m30",
        serial="X4YZ",
        state="stopped",
        state_reasons=("media-empty-error", "cover-open [2J"),
    )


@given(st.text(max_size=200))
def test_parsing_a_device_id_never_raises(text: str):
    parse_device_id(text)


@given(st.binary(max_size=300))
def test_any_attributes_are_read_or_raise_ipp_error(data: bytes):
    try:
        evidence = parse_attributes("10.0.0.9", 631, message(b"\x04", data, end=b""))
    except IppError:
        return
    assert evidence is None or evidence.address == "10.0.0.9"


def test_names_with_a_language_are_parsed_and_members_of_collections_are_ignored():
    # Value tags (RFC 8010, section 3.5.2): 0x34 and 0x37 are the begin and the end of a collection,
    # 0x4A is the name of a member, and 0x36 and 0x35 are a name and a text with their language.
    members = (
        item(0x34, "media-col-default", b""),
        item(0x4A, "", b"printer-info"),
        item(0x41, "", b"A member"),
        item(0x37, "", b""),
    )
    texts = (
        item(0x36, "printer-name", b"\x00\x02de\x00\x06K\xc3\xbcche"),
        item(0x35, "printer-make-and-model", b"\x00\x02de\x00\x06HL-L23"),
    )
    evidence = parse_attributes("10.0.0.9", 631, message(b"\x04", *members, *texts))
    assert evidence == Evidence("10.0.0.9", 631, name="Küche", make_model="HL-L23")


def test_a_printer_name_that_is_the_path_of_its_queue_is_ignored():
    items = (item(0x42, "printer-name", b"ipp/print"),)
    evidence = parse_attributes("10.0.0.9", 631, message(b"\x04", *items))
    assert evidence == Evidence("10.0.0.9", 631)


def test_the_maker_appears_only_once_in_the_model():
    for device_id in (b"MFG:Lexmark;MDL:Lexmark CS310;", b"MANUFACTURER:Lexmark;MODEL:CS310;"):
        evidence = parse_attributes(
            "10.0.0.9", 631, message(b"\x04", item(0x41, "printer-device-id", device_id))
        )
        assert evidence == Evidence("10.0.0.9", 631, make_model="Lexmark CS310")


async def test_title_and_server_of_a_page_are_read():
    page = b"<html><head><TITLE lang=en>\n Till &amp; <b>x</TITLE></head>"
    reply = http(page, headers="Server: \x07lighttpd/1.4\r\n")
    async with device(reply) as (port, requests):
        (evidence,) = await evidence_of(query_web(port, is_tls=False))
    assert (evidence.title, evidence.server) == ("Till &", "lighttpd/1.4")
    assert requests[0].startswith(b"GET / HTTP/1.1\r\n")
    assert len(requests) == 1


async def test_a_page_with_bare_line_feeds_in_its_head_is_read():
    page = b"HTTP/1.0 200 OK\nServer: Boa/0.94\nContent-Type: text/html\n\n<title>Camera</title>"
    async with device(page) as (port, _):
        (evidence,) = await evidence_of(query_web(port, is_tls=False))
    assert (evidence.title, evidence.server) == ("Camera", "Boa/0.94")


async def test_a_redirection_is_not_followed():
    moved = http(b"", status="301 Moved", headers="Location: https://example.com/\r\nServer: s\r\n")
    async with device(moved) as (port, requests):
        (evidence,) = await evidence_of(query_web(port, is_tls=False))
    assert (evidence.server, evidence.title, len(requests)) == ("s", None, 1)


async def test_a_large_page_is_cut():
    page = b"HTTP/1.1 200 OK\r\n\r\n<title>Long</title>" + b"x" * 5_000_000
    async with device(page) as (port, _):
        (evidence,) = await evidence_of(query_web(port, is_tls=False))
    assert evidence.title == "Long"


async def test_a_page_with_a_self_signed_certificate_is_read(tmp_path: Path):
    async with device(http(b"<title>TLS</title>"), tls=_self_signed_context(tmp_path)) as (port, _):
        (evidence,) = await evidence_of(query_web(port, is_tls=True))
    assert evidence.title == "TLS"


async def test_printer_that_requires_tls_is_queried_over_tls():
    upgrade = http(b"", status="426 Upgrade Required")
    async with device(upgrade) as (port, requests):
        assert await evidence_of(query_ipp(port)) == ()
    assert requests[0].startswith(b"POST")
    assert requests[1].startswith(b"\x16\x03")  # a TLS handshake


async def test_cups_without_a_printer_at_the_usual_paths_is_reported():
    not_found = message(b"\x01", status=NOT_FOUND)
    async with device(http(not_found, headers="Server: CUPS/2.4 IPP/2.1\r\n")) as (port, _):
        (evidence,) = await evidence_of(query_ipp(port))
    assert evidence == Evidence(port.address, port.port, server="CUPS/2.4 IPP/2.1")
    async with device(http(not_found, headers="Server: Other/1\r\n")) as (port, _):
        assert await evidence_of(query_ipp(port)) == ()


async def test_closed_port_gives_no_evidence():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = OpenPort("127.0.0.1", taken.getsockname()[1])
        assert await evidence_of(query_web(port, is_tls=False)) == ()
        assert await evidence_of(query_ipp(port)) == ()


@given(st.binary(max_size=500), st.sampled_from(["", "text/html; charset=iso-8859-1"]))
def test_any_page_has_a_clean_title_or_none(body: bytes, content_type: str):
    reply = HttpReply(200, (("content-type", content_type),), b"<title>" + body + b"</title>")
    title = parse_title(reply)
    assert title is None or title.replace(ZERO_WIDTH_JOINER, "").isprintable()


def test_a_title_is_decoded_with_the_declared_charset():
    latin = HttpReply(200, (("content-type", "text/html; charset=ISO-8859-1"),), b"<title>caf\xe9")
    assert parse_title(latin) == "café"


def test_names_of_hosts_on_a_link_of_this_machine_are_queried():
    reverse = "9.0.0.127.in-addr.arpa"
    answer = response(record(name(*reverse.split(".")), PTR, name("till", "local")))
    lan = Interface("eth0", (InterfaceAddress("127.0.0.1", "ipv4", 8),))
    with Responder({b"\x019\x010\x010\x03127\x07in-addr": [answer]}) as responder:
        names = query_names(
            [lan],
            discoveries_of("127.0.0.9"),
            time.monotonic() + 60,
            FakeRun(),
            open_link=open_link_to(responder),
        )
        assert names == {"127.0.0.9": "till.local"}
        # Addresses that are not on a link of this machine are never queried.
        question_count = len(responder.questions)
        far = discoveries_of("10.0.0.9")
        soon = time.monotonic() + 5
        far_names = query_names([lan], far, soon, FakeRun(), open_link=open_link_to(responder))
        assert (far_names, len(responder.questions)) == ({}, question_count)


def test_host_name_is_queried_as_soon_as_a_host_is_discovered():
    reverse = "9.0.0.127.in-addr.arpa"
    answer = response(record(name(*reverse.split(".")), PTR, name("till", "local")))
    lan = Interface("eth0", (InterfaceAddress("127.0.0.1", "ipv4", 8),))
    with Responder({b"\x019\x010\x010\x03127\x07in-addr": [answer]}) as responder:
        discoveries = Discoveries()
        discoveries.add_host("127.0.0.9")
        future = in_background(
            lambda: query_names(
                [lan],
                discoveries,
                time.monotonic() + 60,
                FakeRun(),
                open_link=open_link_to(responder),
            )
        )
        assert responder.query_received.acquire(timeout=60)
        assert not wait([future], timeout=0.2).done
        discoveries.is_complete = True
        assert wait([future], timeout=60).done
        assert future.result() == {"127.0.0.9": "till.local"}


def test_after_the_scan_a_silent_host_is_not_queried_again(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("collectors.network.mdns.names.ROUND_INTERVAL_S", 0.0)
    lan = Interface("eth0", (InterfaceAddress("127.0.0.1", "ipv4", 8),))
    with Responder({}) as responder:
        discoveries = discoveries_of("127.0.0.9")
        soon = time.monotonic() + 60
        query_names([lan], discoveries, soon, FakeRun(), open_link=open_link_to(responder))
    assert len(responder.questions) == 1


def discoveries_of(*addresses: str) -> Discoveries:
    """Return the discoveries of a scan that has ended and has reached these hosts."""
    discoveries = Discoveries()
    for address in addresses:
        discoveries.add_host(address)
    discoveries.is_complete = True
    return discoveries


def _self_signed_context(directory: Path) -> ssl.SSLContext:
    """Return the TLS context of a server with an expired, self-signed certificate."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "printer")])
    start = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(start)
        .not_valid_after(start + datetime.timedelta(days=1))  # expired
        .sign(key, hashes.SHA256())
    )
    path = directory / "printer.pem"
    pem = serialization.Encoding.PEM
    path.write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + certificate.public_bytes(pem)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context


def test_the_name_that_a_host_gives_itself_is_preferred():
    reverse = "9.0.0.127.in-addr.arpa"

    def ptr_answer(label: str) -> bytes:
        return response(record(name(*reverse.split(".")), PTR, name(label, "local")))

    queries = NameQueries(())
    queries.add_address("127.0.0.9")
    for number in range(1000):
        queries.add_answer("127.0.0.66", ptr_answer(f"lie-{number}"))
    assert queries.names() == {"127.0.0.9": "lie-0.local"}
    assert queries.parsed_counts.total() <= 2 * PARSED_PER_HOST_MAX
    queries.add_answer("", ptr_answer("from-beyond-the-link"))
    queries.add_answer("127.0.0.9", b"noise")
    queries.add_answer("127.0.0.9", ptr_answer("till"))
    queries.add_answer("127.0.0.9", ptr_answer("later"))
    assert queries.names() == {"127.0.0.9": "till.local"}


async def test_the_first_query_reuses_the_connection_of_the_scan():
    async with device(http(message(status=NOT_FOUND)), http(PRINTER)) as (port, requests):
        socket_ = socket.socket()
        socket_.setblocking(False)
        await asyncio.get_running_loop().sock_connect(socket_, (port.address, port.port))
        connected_port = replace(port, connection=socket_)
        (evidence,) = await evidence_of(query_ipp(connected_port))
        descriptor = socket_.fileno()
    assert (evidence.uuid, len(requests), descriptor) == (UUID, 2, -1)
