"""Queries the attributes of an IPP printer. Only Get-Printer-Attributes is ever sent."""

import re
from dataclasses import replace
from urllib.parse import quote

from collectors.network.discoveries import OpenPort
from collectors.network.matching.identity import normal_uuid
from collectors.network.observations import Evidence
from collectors.network.printers.device_id import SERIAL_KEYS, model_of, parse_device_id
from collectors.network.questions.connection import connect
from collectors.shared import ipp
from collectors.shared.addresses import join_host_port
from collectors.shared.http import HttpError, HttpReply, build_post_request, exchange
from collectors.shared.text import clean_text

BODY_MAX_BYTES = 256 * 1024
QUEUES_MAX = 4
USUAL_QUEUES = ("ipp/print", "ipp/printer", "ipp")
ATTRIBUTES = (
    "printer-uuid",
    "printer-make-and-model",
    "printer-name",
    "printer-info",
    "printer-dns-sd-name",
    "printer-state",
    "printer-state-reasons",
    "printer-device-id",
)
NAME_MAX = 255
REASONS_MAX = 16

_OK = 200
_NOT_FOUND = 404
_UPGRADE_REQUIRED = 426
_SAFE_PATH = re.compile(r"[A-Za-z0-9._~%/+-]{1,255}")
_PATH_CHARACTERS = "/:@+,;=&!$'()*~"  # not percent-encoded in a path (RFC 3986, section 3.3)


async def query_ipp(open_port: OpenPort) -> tuple[Evidence, ...]:
    """Query the queues of a port. The caller limits the time.

    The queues that this machine prints to and the announced queues are queried first. If no queue
    is announced and no queue has answered, the usual queues are queried until one of them answers.
    """
    queues = open_port.queues
    own_paths = [quote(queue, _PATH_CHARACTERS) for queue in queues.own]
    announced = [queue for queue in queues.announced if _SAFE_PATH.fullmatch(queue)]
    known_queues = list(dict.fromkeys((*own_paths, *announced)))[:QUEUES_MAX]
    own_queues = dict(zip(own_paths, queues.own, strict=True))
    answers: list[Evidence] = []
    spooler: str | None = None
    is_tls = False
    for queue in dict.fromkeys((*known_queues, *USUAL_QUEUES)):
        has_answer = any(not answer.is_missing for answer in answers)
        if queue not in known_queues and (announced or has_answer):
            break
        try:
            reply = await _query(open_port, queue, is_tls=is_tls)
            # The scan's connection is used for the first query only.
            open_port = replace(open_port, connection=None)
            if reply.status == _UPGRADE_REQUIRED and not is_tls:
                is_tls = True
                reply = await _query(open_port, queue, is_tls=True)
        except (OSError, HttpError):
            break
        spooler = spooler or _spooler(reply)
        evidence = _read_evidence(open_port, reply)
        if evidence is not None and not (evidence.is_missing and queue not in own_paths):
            answers.append(replace(evidence, queue=own_queues.get(queue, queue)))
    # CUPS runs, but no reply shows a queue. Its Server header is the only evidence.
    if spooler and all(answer.is_missing for answer in answers):
        answers.append(Evidence(open_port.address, open_port.port, server=spooler))
    return tuple(answers)


def parse_attributes(address: str, port: int, data: bytes) -> Evidence | None:
    """Return the evidence in a Get-Printer-Attributes response, or None if it lists no printer.

    Raises IppError if the bytes are not an IPP response.
    """
    response = ipp.decode_response(data)
    printer = next(iter(response.printers), None)
    if printer is None or not response.is_successful:
        return None
    device_id = parse_device_id(printer.text("printer-device-id") or "")
    reasons = (clean_text(r, NAME_MAX) for r in printer.texts("printer-state-reasons"))
    names = ("printer-dns-sd-name", "printer-info", "printer-name")
    return Evidence(
        address=address,
        port=port,
        uuid=normal_uuid(printer.text("printer-uuid")),
        make_model=_clean(printer.text("printer-make-and-model")) or model_of(device_id),
        serial=next((device_id[key] for key in SERIAL_KEYS if device_id.get(key)), None),
        name=next((name for key in names if _is_name(name := _clean(printer.text(key)))), None),
        state=printer.printer_state,
        state_reasons=tuple(r for r in reasons if r and r != "none")[:REASONS_MAX],
    )


async def _query(open_port: OpenPort, queue: str, *, is_tls: bool) -> HttpReply:
    host = join_host_port(open_port.address, open_port.port)
    scheme = "ipps" if is_tls else "ipp"
    question = ipp.encode_request(
        ipp.GET_PRINTER_ATTRIBUTES, requested=ATTRIBUTES, printer_uri=f"{scheme}://{host}/{queue}"
    )
    request = build_post_request(host, f"/{queue}", ipp.CONTENT_TYPE, question)
    address, port, connection = open_port.address, open_port.port, open_port.connection
    async with connect(address, port, is_tls=is_tls, connection=connection) as (reader, writer):
        return await exchange(reader, writer, request, BODY_MAX_BYTES)


def _spooler(reply: HttpReply) -> str | None:
    """Return the Server header if the host runs CUPS, which has no queues at the usual paths."""
    server = _clean(reply.header("server"))
    return server if server and server.startswith("CUPS/") else None


def _read_evidence(open_port: OpenPort, reply: HttpReply) -> Evidence | None:
    address, port = open_port.address, open_port.port
    if reply.status == _NOT_FOUND:
        return Evidence(address, port, is_missing=True)
    if reply.status != _OK:
        return None
    try:
        if ipp.decode_response(reply.body).status == ipp.NOT_FOUND:
            return Evidence(address, port, is_missing=True)
        return parse_attributes(address, port, reply.body)
    except ipp.IppError:
        return None


def _is_name(text: str | None) -> bool:
    """Return whether a text is a name. Many printers give the path of their queue instead."""
    return bool(text) and text not in USUAL_QUEUES


def _clean(text: str | None) -> str | None:
    return (clean_text(text, NAME_MAX) or None) if text else None
