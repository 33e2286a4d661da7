"""Queries the state of printers by SNMP (RFC 2790, RFC 3805).

One GET requests the error bits, the state and the serial number. It is sent only to printers that
are set up on this machine, and only if the configuration has a community. Input is untrusted.
Replies that match no request are ignored.
"""

import secrets
import selectors
import socket
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Final, Literal

from pyasn1.codec.ber import decoder, encoder
from pyasn1.error import PyAsn1Error
from pysnmp.proto import api

from collectors.contract import Run
from collectors.network.observations import Evidence, SnmpTarget
from collectors.shared.text import clean_text, decode

PORT = 161
ANSWER_TIME_S = 1.0
_DATAGRAM_MAX = 4096
_SERIAL_MAX = 255
_POLL_S = 0.05
_HOST_RESOURCES: Final = (1, 3, 6, 1, 2, 1, 25, 3)
_STATUS: Final = (*_HOST_RESOURCES, 5, 1, 1, 1)  # hrPrinterStatus
_ERRORS: Final = (*_HOST_RESOURCES, 5, 1, 2, 1)  # hrPrinterDetectedErrorState
_DEVICE: Final = (*_HOST_RESOURCES, 2, 1, 5, 1)  # hrDeviceStatus
_SERIAL: Final = (1, 3, 6, 1, 2, 1, 43, 5, 1, 1, 17, 1)  # prtGeneralSerialNumber
_DEVICE_DOWN = 5
_STATES: Final[Mapping[int, Literal["idle", "processing"]]] = {3: "idle", 4: "processing"}
_ERROR_BITS: Final = (  # RFC 2790, in the words of IPP's printer-state-reasons
    "media-low",
    "media-empty",
    "toner-low",
    "toner-empty",
    "door-open",
    "media-jam",
    "offline",
    "service-requested",
    "input-tray-missing",
    "output-tray-missing",
    "marker-supply-missing",
    "output-area-almost-full",
    "output-area-full",
    "media-empty",  # inputTrayEmpty
    "maintenance-due",
)
_V2C = api.PROTOCOL_MODULES[api.SNMP_VERSION_2C]


def query_snmp(
    targets: Sequence[SnmpTarget], community: str, deadline_s: float, run: Run, *, port: int = PORT
) -> tuple[Evidence, ...]:
    """Query each target once, all at the same time. Returns the answers.

    Errors of the network or of hosts are not raised.
    """
    answers: list[Evidence] = []
    with ExitStack() as sockets, selectors.DefaultSelector() as selector:
        for target in targets:
            with suppress(OSError):
                family = socket.AF_INET6 if ":" in target.address else socket.AF_INET
                socket_ = sockets.enter_context(socket.socket(family, socket.SOCK_DGRAM))
                socket_.setblocking(False)
                # A connected socket receives only datagrams from this address and port.
                socket_.connect((target.address, port))
                request_id = secrets.randbelow(2**31)
                socket_.send(encode_question(community, request_id))
                selector.register(socket_, selectors.EVENT_READ, (socket_, target, request_id))
        ends_s = min(deadline_s, time.monotonic() + ANSWER_TIME_S)
        while selector.get_map() and not run.cancelled and time.monotonic() < ends_s:
            for key, _ in selector.select(_POLL_S):
                socket_, target, request_id = key.data
                data = _receive(socket_)
                evidence = parse_answer(target, request_id, data or b"")
                answers += (evidence,) if evidence else ()
                if evidence or data is None:
                    selector.unregister(socket_)
    return tuple(answers)


def encode_question(community: str, request_id: int) -> bytes:
    """Return the encoded GET request.

    It is SNMP v2c, in which a printer that lacks one value still returns the other values.
    """
    question, message = _V2C.GetRequestPDU(), _V2C.Message()
    _V2C.apiPDU.set_defaults(question)
    _V2C.apiPDU.set_request_id(question, request_id)
    oids = (_ERRORS, _STATUS, _DEVICE, _SERIAL)
    _V2C.apiPDU.set_varbinds(question, [(oid, _V2C.null) for oid in oids])
    _V2C.apiMessage.set_defaults(message)
    _V2C.apiMessage.set_community(message, community)
    _V2C.apiMessage.set_pdu(message, question)
    return bytes(encoder.encode(message))


def parse_answer(target: SnmpTarget, request_id: int, data: bytes) -> Evidence | None:
    """Return the evidence in the reply to a request; None for other data. Never raises."""
    try:
        message, _ = decoder.decode(data, asn1Spec=_V2C.Message())
        answer = _V2C.apiMessage.get_pdu(message)
        if not answer.isSameTypeWith(_V2C.ResponsePDU()):
            return None
        if int(_V2C.apiPDU.get_request_id(answer)) != request_id:
            return None
        values = {tuple(oid): value for oid, value in _V2C.apiPDU.get_varbinds(answer)}
        bits, serial = _octets(values.get(_ERRORS)), _octets(values.get(_SERIAL))
        status, device = _number(values.get(_STATUS)), _number(values.get(_DEVICE))
    except (PyAsn1Error, ValueError, TypeError, LookupError, ArithmeticError, RecursionError):
        return None
    return Evidence(
        target.address,
        target.port,
        serial=clean_text(decode(serial or b""), _SERIAL_MAX) or None,
        state="stopped" if device == _DEVICE_DOWN else _STATES.get(status or 0),
        state_reasons=tuple(dict.fromkeys(_reasons(bits or b""))),
        queue=target.queue,
    )


def _receive(socket_: socket.socket) -> bytes | None:
    """Read one datagram. Returns b"" if there is none, and None if the port is closed."""
    try:
        return socket_.recv(_DATAGRAM_MAX)
    except BlockingIOError:
        return b""
    except OSError:
        return None


def _reasons(bits: bytes) -> list[str]:
    """Return the keywords of the bits that are set. Bit 0 is the highest bit of the first byte."""
    return [
        word
        for position, word in enumerate(_ERROR_BITS)
        if position // 8 < len(bits) and bits[position // 8] & 0x80 >> position % 8
    ]


def _octets(value: object) -> bytes | None:
    return bytes(value) if isinstance(value, _V2C.OctetString) else None


def _number(value: object) -> int | None:
    return int(value) if isinstance(value, _V2C.Integer) else None
