"""Reads the queues of this machine's CUPS over IPP (CUPS-Get-Printers)."""

import os
import sys
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from collectors.contract import Failure
from collectors.network.matching.identity import real_serial
from collectors.network.observations import KnownPrinter, KnownPrinters
from collectors.network.printers.device_uri import DeviceUri, parse_device_uri
from collectors.network.printers.lpstat import read_lpstat
from collectors.shared import ipp
from collectors.shared.addresses import join_host_port
from collectors.shared.cups import NotRunning, query_cups
from collectors.shared.print_jobs import JOBS_REQUEST, parse_jobs
from collectors.shared.text import clean_text

QUEUES_MAX = 512
STEP = "printers: CUPS"
_BACKEND_MAX = 64
_CLASS = 0x0001  # printer-type bit CUPS_PRINTER_CLASS
_ATTRIBUTES = (
    "printer-name",
    "printer-info",
    "printer-make-and-model",
    "printer-state",
    "printer-state-reasons",
    "printer-type",
    "printer-is-accepting-jobs",
    "queued-job-count",
    "device-uri",
)
_QUEUES_FILE = Path("/etc/cups/printers.conf")
"""CUPS creates this file when the first queue is set up, on macOS as well."""

START_COMMAND = (
    "launchctl kickstart system/org.cups.cupsd"
    if sys.platform == "darwin"
    else "systemctl start cups"
)
NOT_RUNNING = f"the print spooler (CUPS) does not run: start it (`{START_COMMAND}`)"
_UNREADABLE = "the queues of CUPS cannot be read"
_HARMLESS_REASONS = frozenset({"none", "cups-ipp-conformance-failure-report"})


def read_cups_printers(
    deadline_s: float, environ: Mapping[str, str] = os.environ, queues_file: Path = _QUEUES_FILE
) -> KnownPrinters:
    """Return the queues of the local CUPS, if there is one. Never raises.

    If CUPS runs but its queues cannot be read over IPP, ``lpstat`` is run. ``queues_file`` exists
    if CUPS has queues, even if it is not running.
    """
    request = ipp.encode_request(ipp.CUPS_GET_PRINTERS, requested=_ATTRIBUTES)
    try:
        response = query_cups(request, deadline_s, environ)
        return _bounded(_with_jobs(response, deadline_s, environ))
    except NotRunning as error:
        if not error.is_socket_there and not queues_file.exists():
            return KnownPrinters()
        return KnownPrinters(failures=(Failure(STEP, NOT_RUNNING),))
    except OSError as error:
        return _by_lpstat(f"{error}", deadline_s)


def queue_printers(response: ipp.Response) -> tuple[KnownPrinter, ...]:
    """Return the printers in a CUPS-Get-Printers response, without classes and virtual queues."""
    queues = (_printer(group) for group in response.printers)
    return tuple(queue for queue in queues if queue is not None)


def queue_printer(name: str, info: str, uri: str, make_model: str | None) -> KnownPrinter | None:
    """Return the printer of a queue, or None if the queue prints to a file or a program.

    A model in the device URI is preferred to the name of the queue's driver (``make_model``), which
    may be the driver of a different model.
    """
    device = parse_device_uri(uri)
    if device.kind == "virtual":
        return None
    is_network = device.kind == "network"
    return KnownPrinter(
        id=f"cups:{clean_text(name, 255)}",
        name=clean_text(info) or clean_text(name),
        transport=device.transport,
        source="cups",
        address=_address(device),
        host=device.host if is_network else None,
        port=device.port if is_network else None,
        queue=device.queue,
        uuid=device.uuid,
        mac_address=device.mac_address,
        serial=real_serial(device.serial),
        dns_sd_name=device.dns_sd_name,
        dns_sd_type=device.dns_sd_type,
        make_model=device.model or clean_text(make_model or "") or None,
        backend=_backend(device, uri) if device.kind == "unknown" else None,
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
        is_queue_stopped=group.printer_state == "stopped",
        is_rejecting=group.boolean("printer-is-accepting-jobs") is False,
        state_reasons=tuple(r for r in reasons if r and r not in _HARMLESS_REASONS),
    )


def _with_jobs(
    response: ipp.Response, deadline_s: float, environ: Mapping[str, str]
) -> tuple[KnownPrinter, ...]:
    """Return the queues with the number of stuck jobs. Jobs are queried only if any job waits."""
    printers = queue_printers(response)
    if not any(group.integer("queued-job-count") for group in response.printers):
        return printers
    try:
        jobs = parse_jobs(query_cups(JOBS_REQUEST, deadline_s, environ), time.time())
    except OSError:
        return printers  # the queues are returned without their jobs
    stopped = {printer.id.removeprefix("cups:") for printer in printers if printer.is_queue_stopped}
    stuck = Counter(f"cups:{job.queue}" for job in jobs if job.is_stuck(stopped))
    return tuple(replace(printer, stuck_jobs=stuck[printer.id]) for printer in printers)


def _backend(device: DeviceUri, uri: str) -> str:
    """Return the backend, the program that CUPS starts for a URI. Its name is the URI's scheme."""
    return device.scheme or clean_text(uri.partition(":")[0], _BACKEND_MAX) or "without a name"


def _address(device: DeviceUri) -> str | None:
    if device.path:
        return device.path
    if device.kind in ("network", "unknown") and device.host:
        return join_host_port(device.host, device.port)
    return None


def _by_lpstat(reason: str, deadline_s: float) -> KnownPrinters:
    queues = read_lpstat(deadline_s)
    if queues is None:
        return KnownPrinters(failures=(Failure(STEP, f"{_UNREADABLE}: {reason}"),))
    printers = (queue_printer(name, "", uri, None) for name, uri in queues.items())
    text = f"{_UNREADABLE} over IPP ({reason}); they were read with lpstat"
    return _bounded(tuple(printer for printer in printers if printer is not None), text)


def _bounded(printers: tuple[KnownPrinter, ...], *limitations: str) -> KnownPrinters:
    left_out = len(printers) - QUEUES_MAX
    if left_out > 0:
        limitations += (f"print queues left out: {left_out} of {len(printers)}",)
    return KnownPrinters(printers[:QUEUES_MAX], limitations=limitations)
