"""The queues of CUPS, asked over IPP on this machine (CUPS-Get-Printers)."""

import asyncio
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from collectors.contract import Failure
from collectors.network.observations import KnownPrinter, KnownPrinters
from collectors.network.printers.device_uri import DeviceUri, parse_device_uri
from collectors.network.printers.lpstat import read_lpstat
from collectors.shared import ipp
from collectors.shared.addresses import is_loopback, join_host_port, split_host_port
from collectors.shared.http import HttpError, HttpReply, exchange, post_request
from collectors.shared.text import clean_text

QUEUES_MAX = 512
STEP = "printers: CUPS"
_SOCKETS = {"darwin": "/private/var/run/cupsd"}
_DEFAULT_SOCKET = "/run/cups/cups.sock"
_PORT = 631
_OK = 200
_STOPPED = 5  # printer-state, RFC 8011, section 5.4.11
_CLASS = 0x0001  # printer-type bit CUPS_PRINTER_CLASS
_ATTRIBUTES = (
    "printer-name",
    "printer-info",
    "printer-make-and-model",
    "printer-state",
    "printer-state-reasons",
    "printer-type",
    "device-uri",
)
_NOT_A_FAULT = frozenset({"none", "cups-ipp-conformance-failure-report"})


@dataclass(frozen=True, slots=True)
class CupsServer:
    """Where the local CUPS listens: a socket's path, or a port of the loopback interface."""

    path: str | None = None
    host: str = "localhost"
    port: int = _PORT


def read_cups_printers(deadline_s: float, environ: Mapping[str, str] = os.environ) -> KnownPrinters:
    """Return the queues of the local CUPS; nothing where none runs. Never raises.

    ``lpstat`` is asked where CUPS is there but does not answer over IPP.
    """
    reason: str | None = None
    for server in cups_servers(environ, sys.platform):
        try:
            reply = asyncio.run(_ask(server, deadline_s))
            return _bounded(parse_cups_reply(reply.body))
        except (FileNotFoundError, ConnectionRefusedError) as error:
            is_left_behind = isinstance(error, ConnectionRefusedError) and server.path is not None
            reason = "its socket is there, but nothing listens on it" if is_left_behind else reason
        except (OSError, HttpError, ipp.IppError, TimeoutError) as error:
            reason = f"{error}" or type(error).__name__
    if reason is None:
        return KnownPrinters()
    return _by_lpstat(reason, deadline_s)


def cups_servers(environ: Mapping[str, str], platform: str) -> tuple[CupsServer, ...]:
    """Return where to ask: CUPS_SERVER if it names this machine, else the usual places."""
    named = environ.get("CUPS_SERVER", "").partition("/version=")[0]
    if named.startswith("/"):
        return (CupsServer(path=named),)
    host, port = split_host_port(named)
    if host and is_loopback(host):
        return (CupsServer(host=host, port=port or _PORT),)
    return (CupsServer(path=_SOCKETS.get(platform, _DEFAULT_SOCKET)), CupsServer())


def parse_cups_reply(data: bytes) -> tuple[KnownPrinter, ...]:
    """Turn a CUPS-Get-Printers response into printers, classes and virtual queues left out.

    Raises IppError when it is none.
    """
    response = ipp.decode_response(data)
    if not response.is_successful:
        return ()  # client-error-not-found is how CUPS says that it has no queue
    queues = (_printer(group) for group in response.printers)
    return tuple(queue for queue in queues if queue is not None)


def queue_printer(name: str, info: str, uri: str, make_model: str | None) -> KnownPrinter | None:
    """Build the printer of a queue; None where the queue leads to no device."""
    device = parse_device_uri(uri)
    if device.kind in ("virtual", "unknown"):
        return None
    return KnownPrinter(
        id=f"cups:{clean_text(name, 255)}",
        name=clean_text(info) or clean_text(name),
        transport=device.transport,
        source="cups",
        address=_address(device),
        host=device.host if device.kind == "network" else None,
        port=device.port if device.kind == "network" else None,
        queue=device.queue,
        uuid=device.uuid,
        mac_address=device.mac_address,
        serial=device.serial,
        dns_sd_name=device.dns_sd_name,
        make_model=clean_text(make_model or "") or device.model,
    )


def _printer(group: ipp.Group) -> KnownPrinter | None:
    uri, name = group.text("device-uri"), group.text("printer-name")
    if not uri or not name or (group.integer("printer-type") or 0) & _CLASS:
        return None
    printer = queue_printer(
        name, group.text("printer-info") or "", uri, group.text("printer-make-and-model")
    )
    if printer is None:
        return None
    reasons = (clean_text(reason, 255) for reason in group.texts("printer-state-reasons"))
    return replace(
        printer,
        stopped=group.integer("printer-state") == _STOPPED,
        state_reasons=tuple(r for r in reasons if r and r not in _NOT_A_FAULT),
    )


def _address(device: DeviceUri) -> str | None:
    if device.path:
        return device.path
    if device.kind == "network" and device.host:
        return join_host_port(device.host, device.port)
    return None


async def _ask(server: CupsServer, deadline_s: float) -> HttpReply:
    loop_time = asyncio.get_running_loop().time()
    async with asyncio.timeout_at(loop_time + max(0.0, deadline_s - time.monotonic())):
        if server.path is not None:
            reader, writer = await asyncio.open_unix_connection(server.path)
        else:
            reader, writer = await asyncio.open_connection(server.host, server.port)
        try:
            question = ipp.encode_request(ipp.CUPS_GET_PRINTERS, requested=_ATTRIBUTES)
            request = post_request("localhost", "/", ipp.CONTENT_TYPE, question)
            reply = await exchange(reader, writer, request, ipp.RESPONSE_MAX_BYTES)
        finally:
            writer.close()
    if reply.status != _OK:
        raise HttpError(f"it answered with HTTP status {reply.status}")
    return reply


def _by_lpstat(reason: str, deadline_s: float) -> KnownPrinters:
    queues = read_lpstat(deadline_s)
    if queues is None:
        return KnownPrinters(failures=(Failure(STEP, f"CUPS does not answer: {reason}"),))
    printers = (queue_printer(queue.name, "", queue.uri, None) for queue in queues)
    said = f"CUPS does not answer over IPP ({reason}); its queues are from lpstat"
    return _bounded(tuple(printer for printer in printers if printer is not None), said)


def _bounded(printers: tuple[KnownPrinter, ...], *limitations: str) -> KnownPrinters:
    left_out = len(printers) - QUEUES_MAX
    if left_out > 0:
        limitations += (f"{left_out} of {len(printers)} print queues were left out",)
    return KnownPrinters(printers[:QUEUES_MAX], limitations=limitations)
