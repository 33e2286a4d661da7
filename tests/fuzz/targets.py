"""Every parser of untrusted bytes, with its seed inputs and the errors that its docstring permits.

Any other error is a bug. A slow parser is also a bug. CI runs each parser on mutated
seeds (test_parsers.py); `make fuzz` runs it on inputs that atheris generates (__main__.py).
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from uuid import UUID

from agent.adapters.collector_process import parse_event
from agent.doctor.certificate import parse_certificate as read_certificate
from agent.rules.command_frames import parse_frame
from agent.rules.replies import error_of, http_date, retry_after_s
from agent.rules.reports.sealing import seal_smaller
from agent.wire.base import Message
from agent.wire.codec import decode
from agent.wire.device_operations import (
    ChallengeReply,
    EnrollmentRecord,
    HeartbeatReply,
    SubmitResultReply,
)
from agent.wire.validation import ValidationError
from collectors.application.kiosk.fields import parse_values
from collectors.application.kiosk.kiosk import parse_page_ids
from collectors.application.kiosk.session import parse_answer
from collectors.application.linux.edid import parse_edid
from collectors.application.linux.mounts import parse_mountinfo
from collectors.application.linux.network import dhcp, leases, nl80211
from collectors.application.linux.usb import parse_usage_page
from collectors.application.readers.disk_space import parse_df
from collectors.application.readers.network.service_probe import parse_certificate
from collectors.application.readers.print_queues import parse_jobs, parse_queues
from collectors.application.windows import wlan
from collectors.application.windows.script import parse_sections
from collectors.network.mdns.records import parse_txt
from collectors.network.mdns.wire import parse_response as parse_mdns
from collectors.network.printers.cups import queue_printers
from collectors.network.printers.device_uri import parse_device_uri
from collectors.network.questions.ipp import parse_attributes
from collectors.network.scan.sockets import parse_rtt_ms
from collectors.shared import dns
from collectors.shared.host.neighbours import parse_arp, parse_ndp, parse_proc_arp
from collectors.shared.host.neighbours_windows import parse_ip_net_table
from collectors.shared.http import HttpError, HttpExchange, HttpRequest
from collectors.shared.ipp import decode_response
from collectors.shared.linux import netlink, rtnetlink
from tests.paths import FIXTURES

NOW = datetime(2026, 11, 20, 19, 0, tzinfo=UTC)
COMMAND = json.dumps(
    {
        "version": 1,
        "requestId": str(UUID(int=1)),
        "bindingId": str(UUID(int=2)),
        "kind": "network",
        "expiresAt": "2026-11-20T19:10:00Z",
        "status": "queued",
    }
).encode()
MDNS = bytes.fromhex(
    "000084000000000100000000085f7072696e746572045f746370056c6f63616c00000c0001000000780009"
    "066b69746368c00c"
)
DNS_QUESTION = b"\3ops\4test\0\0\1\0\1"
DNS_REPLY = (
    b"\0\1\x81\x80\0\1\0\1\0\0\0\0" + DNS_QUESTION + b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\xc0\0\2\1"
)


@dataclass(frozen=True, slots=True)
class Target:
    """``parse`` may raise ``errors`` and nothing else."""

    parse: Callable[[bytes], object]
    seeds: tuple[bytes, ...] = (b"",)
    errors: tuple[type[Exception], ...] = ()


def _fixture(path: str) -> tuple[bytes, ...]:
    return ((FIXTURES / path).read_bytes(),)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _netlink(data: bytes) -> None:
    for message in netlink.parse_messages(data):
        _netlink_body(message.body)


def _netlink_body(body: bytes) -> None:
    rtnetlink.parse_link(body)
    rtnetlink.parse_address(body)
    rtnetlink.parse_default_routes(body)
    rtnetlink.parse_neighbour(body)
    rtnetlink.parse_neighbour_table_size(body)
    dhcp.parse_address(body, {0: "lo"}, 1.0)
    nl80211.parse_interface(body)
    nl80211.parse_station(body)


def _leases(data: bytes) -> None:
    leases.parse_dhcp_message(data, 0.0)
    for parse in (leases.parse_networkd, leases.parse_dhclient):
        tuple(parse(_text(data)))


def _wlan(data: bytes) -> None:
    wlan.parse_interfaces(data)
    wlan.parse_connection(data)
    wlan.parse_entries(data, bytes(6))


def _dns(data: bytes) -> None:
    if dns.parse_reply(data, 1, DNS_QUESTION) is not None:
        dns.read_addresses(data, DNS_QUESTION)


def _reply(data: bytes) -> None:
    """Parse a reply of the service.

    The first two bytes of ``data`` are its status, and all other bytes are its body. The first 198
    bytes of the body are also the value of each header.
    """
    status, value = int.from_bytes(data[:2], "big") % 600, _text(data[2:200])
    headers = {"retry-after": value, "content-type": value, "location": value, "date": value}
    error_of(status, headers, data[2:], NOW)
    retry_after_s(value, NOW)
    http_date(value)


def _http(data: bytes) -> None:
    pending = HttpExchange(HttpRequest("GET", "10.0.0.9", "/"), 65536)
    if data and pending.receive(data) is None:
        pending.receive(b"")


def _queues(data: bytes) -> None:
    response = decode_response(data)
    parse_queues(response)
    parse_jobs(response, 1.8e9)


def _reader_of(kind: type[Message]) -> Callable[[bytes], object]:
    return partial(decode, kind=kind)


TARGETS: dict[str, Target] = {
    "command-frames": Target(parse_frame, (COMMAND, b"[" + COMMAND + b"]", b'{"commands": []}')),
    "replies": Target(_reply, (b"\x01\xad120", b"\x01\xf7Fri, 20 Nov 2026 19:00:00 GMT")),
    "challenge-reply": Target(
        _reader_of(ChallengeReply),
        _fixture("golden/challenge/reply.json"),
        (ValidationError,),
    ),
    "enrollment-record": Target(
        _reader_of(EnrollmentRecord),
        _fixture("golden/enroll/reply.json"),
        (ValidationError,),
    ),
    "heartbeat-reply": Target(
        _reader_of(HeartbeatReply),
        _fixture("golden/heartbeat/reply.json"),
        (ValidationError,),
    ),
    "submit-reply": Target(
        _reader_of(SubmitResultReply),
        _fixture("golden/submitResult/reply.json"),
        (ValidationError,),
    ),
    "sealed-body": Target(
        lambda data: seal_smaller(data, 10_000, tier=0),
        _fixture("golden/submitResult/request-network.json"),
        (ValueError,),
    ),
    "collector-event": Target(
        parse_event,
        (b'{"event": "progress", "step": "scan", "done": 1, "total": 2}',),
        (ValidationError,),
    ),
    "mdns-message": Target(parse_mdns, (MDNS,)),
    "dns-reply": Target(_dns, (DNS_REPLY,)),
    "mdns-txt": Target(parse_txt, (b"\x09txtvers=1\x06ty=Foo\x00",)),
    "ipp-cups": Target(
        lambda data: queue_printers(decode_response(data)),
        _fixture("network/ipp/cups_get_printers.bin"),
        (ValueError,),
    ),
    "ipp-attributes": Target(
        lambda data: parse_attributes("192.168.1.9", 631, data),
        _fixture("network/ipp/ippeveprinter_attributes.bin"),
        (ValueError,),
    ),
    "ipp-queues": Target(
        _queues,
        _fixture("network/ipp/cups_get_printers.bin")
        + _fixture("application/linux/cups-get-jobs.ipp"),
        (ValueError,),
    ),
    "http-reply": Target(
        _http,
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]",
            b"HTTP/1.0 200 OK\nServer: x\n\n<title>x</title>",
        ),
        (HttpError,),
    ),
    "device-uri": Target(
        lambda data: parse_device_uri(_text(data)),
        (b"ipp://printer.local:631/ipp/print?uuid=1", b"usb://Brother/HL?serial=1", b"lpd://[::1"),
    ),
    "netlink-messages": Target(_netlink, (bytes(64),)),
    "netlink-body": Target(_netlink_body, (bytes(range(64)),)),
    "windows-neighbours": Target(parse_ip_net_table, (bytes(256),)),
    "proc-arp": Target(lambda data: parse_proc_arp(_text(data))),
    "arp": Target(lambda data: parse_arp(_text(data))),
    "ndp": Target(lambda data: parse_ndp(_text(data))),
    "tcp-info": Target(parse_rtt_ms, (bytes(104),)),
    "devtools-pages": Target(
        parse_page_ids, (b'[{"id": "A1", "type": "page", "url": "x"}]',), (ValueError,)
    ),
    "devtools-answer": Target(
        lambda data: parse_answer(data, 7),
        (b'{"id": 7, "result": {"result": {"value": "x"}}}', b'{"id": 7, "error": {}}'),
        (ValueError,),
    ),
    "devtools-values": Target(
        lambda data: parse_values(_text(data)),
        (b'{"browser.online": true, "browser.languages": ["en"]}',),
        (ValueError,),
    ),
    "certificate": Target(
        parse_certificate, _fixture("application/certificate.der"), (ValueError,)
    ),
    "certificate-of-the-service": Target(
        read_certificate, _fixture("application/certificate.der"), ()
    ),
    "edid": Target(parse_edid, (b"\x00" + b"\xff" * 6 + b"\x00" + bytes(120),)),
    "hid-descriptor": Target(parse_usage_page, (b"\x06\x01\x02",)),
    "df": Target(parse_df, (b"F 1024-blocks Used Available Capacity M\n/dev/x 9 4 5 44% /\n",)),
    "mountinfo": Target(
        lambda data: parse_mountinfo(_text(data)),
        _fixture("application/linux/mountinfo.txt"),
        (),
    ),
    "powershell": Target(parse_sections, (b'{"os": {"ok": [{"Caption": "x"}]}}',), (ValueError,)),
    "leases": Target(_leases, (b"ADDRESS=10.0.0.1\n", b"lease {\n fixed-address 10.0.0.1;\n}\n")),
    "wlan": Target(_wlan, (b"\1" + bytes(607), bytes(4) + b"\1" + bytes(363))),
}
