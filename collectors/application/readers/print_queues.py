"""The print queues of CUPS and the jobs in them, asked over its local socket (IPP, RFC 8011).

Only states, counts and times are asked for, so no job's name or owner is ever received.
"""

import socket
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final

from collectors.application.deadline import Deadline
from collectors.application.http_reply import receive
from collectors.application.ipp import (
    JOB_ATTRIBUTES,
    PRINTER_ATTRIBUTES,
    Attributes,
    Response,
    encode_request,
    parse_response,
)
from collectors.application.source import (
    Reading,
    Unreadable,
    available,
    either,
    source,
)
from collectors.application.text import clean
from collectors.contract import Field

SOURCE: Final = "CUPS"
PEER: Final = "the print spooler"
QUEUES_MAX: Final = 32
STUCK_AFTER_S: Final = 600
"""A receipt that waits ten minutes is stuck, whatever the spooler calls it."""

SOCKETS: Final = ("/run/cups/cups.sock", "/var/run/cups/cups.sock", "/private/var/run/cupsd")

_CUPS_GET_PRINTERS: Final = 0x4002
_GET_JOBS: Final = 0x000A
_SUCCESS_BELOW: Final = 0x0100
_NOT_FOUND: Final = 0x0406
_REPLY_MAX_BYTES: Final = 2 * 1024 * 1024
_STATES: Final = {3: "idle", 4: "processing", 5: "stopped"}
_HELD, _STOPPED = 4, 6
_PRINTER_WANTED: Final = (
    "printer-name",
    "printer-state",
    "printer-state-reasons",
    "printer-is-accepting-jobs",
)
_JOB_WANTED: Final = ("job-id", "job-state", "time-at-creation", "job-printer-uri")


@dataclass(frozen=True, slots=True)
class Queue:
    name: str
    state: str
    accepting: bool | None
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Job:
    """``age_s`` is None when the spooler does not tell when it came."""

    queue: str
    held: bool
    stopped: bool
    age_s: int | None

    def is_stuck(self, stopped_queues: Collection[str] = ()) -> bool:
        """Somebody has to do something; a job held on purpose is not stuck."""
        if self.held:
            return False
        return self.stopped or self.queue in stopped_queues or (self.age_s or 0) > STUCK_AFTER_S


Ask = Callable[[bytes, Deadline], bytes]
"""Sends an IPP request and returns the IPP response."""


@source(
    "print queues",
    SOURCE,
    "printqueue.queues",
    "printqueue.waitingJobs",
    "printqueue.stuckJobs",
    "printqueue.oldestJobSeconds",
)
def read_print_queues(deadline: Deadline, ask: Ask | None = None) -> Reading:
    """Raises Unreadable, OSError or ValueError when the spooler cannot be asked."""
    asked = ask or ask_cups
    queues = parse_queues(_answer(asked, deadline, _CUPS_GET_PRINTERS, None, _PRINTER_WANTED))
    jobs = parse_jobs(
        _answer(asked, deadline, _GET_JOBS, "ipp://localhost/", _JOB_WANTED), time.time()
    )
    return queue_reading(queues, jobs)


def queue_reading(queues: Sequence[Queue], jobs: Sequence[Job]) -> Reading:
    stopped = {queue.name for queue in queues if queue.state in {"stopped", "offline"}}
    oldest = max((job.age_s for job in jobs if job.age_s is not None), default=None)
    fields = [
        available("printqueue.queues", SOURCE, tuple(queue.name for queue in queues)),
        available("printqueue.waitingJobs", SOURCE, len(jobs)),
        available("printqueue.stuckJobs", SOURCE, sum(job.is_stuck(stopped) for job in jobs)),
        either("printqueue.oldestJobSeconds", SOURCE, oldest, "no job waits", "not-applicable"),
    ]
    for queue in queues[:QUEUES_MAX]:
        mine = [job for job in jobs if job.queue == queue.name]
        fields += queue_fields(queue, len(mine), sum(job.is_stuck(stopped) for job in mine))
    cut = max(0, len(queues) - QUEUES_MAX)
    return Reading(
        tuple(fields),
        limitations=(f"{cut} print queues beyond {QUEUES_MAX} are not listed",) if cut else (),
    )


def queue_fields(queue: Queue, waiting: int, stuck: int) -> tuple[Field, ...]:
    prefix = f"printqueue.{queue.name}"
    return (
        available(f"{prefix}.state", SOURCE, queue.state),
        either(f"{prefix}.accepting", SOURCE, queue.accepting, "the spooler does not tell it"),
        available(f"{prefix}.reasons", SOURCE, queue.reasons),
        available(f"{prefix}.waitingJobs", SOURCE, waiting),
        available(f"{prefix}.stuckJobs", SOURCE, stuck),
    )


def parse_queues(response: Response) -> tuple[Queue, ...]:
    return tuple(
        Queue(
            name=clean(name, 128),
            state=_STATES.get(_number(printer, "printer-state") or 0, "unknown"),
            accepting=_flag(printer, "printer-is-accepting-jobs"),
            reasons=tuple(
                clean(str(reason), 64)
                for reason in printer.get("printer-state-reasons", [])[:16]
                if reason != "none"
            ),
        )
        for printer in response.of(PRINTER_ATTRIBUTES)
        if (name := _text(printer, "printer-name"))
    )


def parse_jobs(response: Response, now: float) -> tuple[Job, ...]:
    """The unfinished jobs; ``now`` is in seconds since 1970."""
    return tuple(_job(job, now) for job in response.of(JOB_ATTRIBUTES))


def ask_cups(request: bytes, deadline: Deadline, sockets: Sequence[str] = SOCKETS) -> bytes:
    """One request to the spooler of this machine."""
    last: OSError = FileNotFoundError()
    for path in sockets:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(deadline.require_s())
            try:
                connection.connect(path)
            except (FileNotFoundError, ConnectionRefusedError) as error:
                last = error
                continue
            # HTTP/1.0, so that the reply is not cut into chunks
            head = (
                "POST / HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/ipp\r\n"
                f"Content-Length: {len(request)}\r\n\r\n"
            )
            connection.sendall(head.encode() + request)
            return receive(connection, PEER, _REPLY_MAX_BYTES, deadline)
    raise Unreadable("not-applicable", "no print spooler (CUPS) runs here") from last


def _answer(
    ask: Ask, deadline: Deadline, operation: int, uri: str | None, wanted: tuple[str, ...]
) -> Response:
    which = {"which_jobs": "not-completed"} if operation == _GET_JOBS else {}
    response = parse_response(ask(encode_request(operation, uri, wanted, **which), deadline))
    if response.status >= _SUCCESS_BELOW and response.status != _NOT_FOUND:
        raise ValueError(f"{PEER} answered with IPP status 0x{response.status:04x}")
    return response


def _job(job: Attributes, now: float) -> Job:
    state = _number(job, "job-state")
    created = _number(job, "time-at-creation")
    return Job(
        queue=clean((_text(job, "job-printer-uri") or "").rpartition("/")[2], 128),
        held=state == _HELD,
        stopped=state == _STOPPED,
        age_s=None if created is None else max(0, int(now - created)),
    )


def _text(attributes: Attributes, name: str) -> str | None:
    value = next(iter(attributes.get(name, [])), None)
    return value if isinstance(value, str) else None


def _number(attributes: Attributes, name: str) -> int | None:
    value = next(iter(attributes.get(name, [])), None)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _flag(attributes: Attributes, name: str) -> bool | None:
    value = next(iter(attributes.get(name, [])), None)
    return value if isinstance(value, bool) else None
