"""Runs a collector as a child process and reads its events.

The child runs in its own session, so that it can be killed together with all processes that it has
started. At the child's deadline, the agent requests the facts collected so far, and then kills the
child. The child's environment contains no secret. If the child crashes, the facts of its last
checkpoint are used.
"""

import asyncio
import contextlib
import json
import logging
import os
import signal
import subprocess
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Final

from agent.adapters.failpoints import Failpoint, passing
from agent.errors import CollectorError
from agent.redaction.known import without_secrets
from agent.wire.codec import decode_strictly
from agent.wire.validation import ValidationError
from collectors import contract
from collectors.programs import inherited_environment, neutral_directory

log = logging.getLogger(__name__)

STDERR_TAIL_BYTES: Final = 4096
_LOGGED_STDERR_CHARS: Final = 500  # at the end of stderr
CANCEL_LINE: Final = b"cancel\n"
_TOO_LONG: Final = f"an event is longer than {contract.EVENT_MAX_BYTES} bytes"
_LINE_MAX_BYTES: Final = 4 * contract.EVENT_MAX_BYTES  # a longer line ends the collection

# Environment variables that are passed to a child: language, proxies, print spooler. A child also
# gets the variables of `collectors.programs.inherited_environment`.
_PASSED_VARIABLES: Final = frozenset(
    {
        "LC_ALL", "CUPS_SERVER",
        "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
    }
)  # fmt: skip
_NOT_INSTALLED: Final = "No module named collectors"  # a message of Python on stderr

OnProgress = Callable[[contract.Progress], None]


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long to wait for a child, in seconds.

    A child must end by itself within ``grace_s`` after the job's time limit. Otherwise it is
    cancelled, and has ``cancel_s`` to send its facts. Then it is killed. The agent waits at most
    ``exit_s`` for its end, because a killed child can hang in the kernel, and a process that the
    child started can keep its pipes open.
    """

    grace_s: float = 2.0
    cancel_s: float = 3.0
    exit_s: float = 2.0


@dataclass(frozen=True, slots=True)
class CollectedFacts:
    """The facts of a child. If they are incomplete, ``error`` is the reason."""

    facts: contract.Facts
    error: str | None = None


def default_command(kind: str) -> tuple[str, ...]:
    """Return the command line that starts a collector of ``kind``.

    Option -I prevents imports from the current directory, PYTHONPATH and the user's packages.
    """
    if getattr(sys, "frozen", False):
        return (sys.executable, "collector", kind)
    return (sys.executable, "-I", "-m", "collectors", kind)


@dataclass(frozen=True, slots=True)
class CollectorProcess:
    """Runs collectors. When `collect` ends, even by cancellation, it has killed its child."""

    command: Callable[[str], Sequence[str]] = default_command
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    timeouts: Timeouts = Timeouts()

    async def collect(
        self, job: contract.Job, on_progress: OnProgress, cancel: asyncio.Event | None = None
    ) -> CollectedFacts:
        """Run ``job`` and return its facts. After ``cancel`` is set, return the facts so far.

        Raises CollectorError if the child sent no facts at all.
        """
        process = await self._start(job)
        reader = _EventReader(process, on_progress)
        reading = asyncio.create_task(reader.read())
        stderr_tail = bytearray()
        stderr = asyncio.create_task(_read_tail(process.stderr, stderr_tail))
        try:
            error = await self._supervise(process, job, reading, cancel)
        finally:
            with passing(Failpoint.CHILD_ENDED):
                await _end(process, self.timeouts.exit_s)
            reading.cancel()
            # A process that the child left behind can keep stderr open.
            await asyncio.wait((reading, stderr), timeout=self.timeouts.exit_s)
            if not stderr.done():
                stderr.cancel()
                _abandon(process)
            if not reading.cancelled():
                reading.exception()  # marks the exception as retrieved; `_supervise` has handled it
        message = stderr_tail.decode("utf-8", "replace").strip()
        if message:
            log.warning("collector %s: %s", job.kind, message[-_LOGGED_STDERR_CHARS:])
        if _NOT_INSTALLED in message:
            raise CollectorError(
                "the collector is not installed for this Python, which ignores the current"
                " directory and PYTHONPATH: install the agent (pip install)"
            )
        return reader.result(error)

    async def _start(self, job: contract.Job) -> Process:
        line = json.dumps(asdict(job)).encode() + b"\n"
        passed_variables = {k: v for k, v in self.environment.items() if k in _PASSED_VARIABLES}
        with passing(Failpoint.CHILD_STARTED):
            try:
                process = await asyncio.create_subprocess_exec(
                    *self.command(job.kind),
                    stdin=PIPE,
                    stdout=PIPE,
                    stderr=PIPE,
                    limit=contract.EVENT_MAX_BYTES,
                    env=without_secrets(inherited_environment(self.environment) | passed_variables),
                    cwd=neutral_directory(),
                    start_new_session=True,
                    creationflags=_windows_flags(),
                )
            except OSError as error:
                raise CollectorError(f"the collector cannot be started: {error}") from None
            if process.stdin is not None:
                # `drain` is not awaited, because it would hang if the child never reads its job.
                # Such a child is stopped at its deadline.
                process.stdin.write(line)
        return process

    async def _supervise(
        self,
        process: Process,
        job: contract.Job,
        reading: asyncio.Task[None],
        cancel: asyncio.Event | None,
    ) -> str | None:
        """Wait for the child's last event. Return an error if its facts are incomplete."""
        cancel = cancel or asyncio.Event()
        cancelling = asyncio.create_task(cancel.wait())
        timeout_s = job.max_duration_s + self.timeouts.grace_s
        try:
            await asyncio.wait(
                (reading, cancelling), timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED
            )
            if reading.done():
                return _error_of(reading)
            _request_facts(process)
            await asyncio.wait((reading,), timeout=self.timeouts.cancel_s)
        finally:
            cancelling.cancel()
        if not cancel.is_set():
            return f"it was stopped at its deadline of {job.max_duration_s:g} s"
        return _error_of(reading) if reading.done() else "it was cancelled, but did not end in time"


def _error_of(task: asyncio.Task[None]) -> str | None:
    error = task.exception()
    return None if error is None else str(error)


class _EventReader:
    """Reads a child's events until its result, and stores the last facts."""

    def __init__(self, process: Process, on_progress: OnProgress) -> None:
        self._stream = process.stdout
        self._on_progress = on_progress
        self._facts: contract.Facts | None = None
        self._has_result = False
        self._crash: str | None = None
        self._has_skipped_event = False

    async def read(self) -> None:
        """Read until the result or the end of the stream.

        Raises CollectorError for a line that is not an event.
        """
        while not self._has_result:
            line = await self._next_line()
            if not line:
                return
            try:
                self._handle_event(parse_event(line))
            except ValidationError as error:
                raise CollectorError(f"an event cannot be read: {error}") from None

    async def _next_line(self) -> bytes:
        """Return the next line that is not too long, or no bytes at the end of the stream."""
        skipped_bytes = 0  # bytes read so far of a line that is too long
        while self._stream is not None:
            try:
                line = await self._stream.readuntil()
            except asyncio.IncompleteReadError as error:
                return b"" if skipped_bytes else error.partial
            except asyncio.LimitOverrunError as error:
                self._has_skipped_event = True
                await self._stream.readexactly(error.consumed)
                skipped_bytes += error.consumed
                if skipped_bytes > _LINE_MAX_BYTES:
                    raise CollectorError(_TOO_LONG) from None
                continue
            if not skipped_bytes:
                return line
            log.warning("collector: %s: ignored", _TOO_LONG)
            skipped_bytes = 0
        return b""

    def _handle_event(self, event: contract.Event) -> None:
        with passing(Failpoint(f"child-{event.event}")):
            if isinstance(event, contract.Progress):
                self._on_progress(event)
            elif isinstance(event, contract.Crash):
                self._crash = event.error
            elif isinstance(event, contract.Checkpoint | contract.Result):
                self._facts = event.facts
                self._has_result = isinstance(event, contract.Result)

    def result(self, error: str | None) -> CollectedFacts:
        """Return the facts. If the child sent no result, add a failure that contains the reason.

        Raises CollectorError if there are no facts.
        """
        if self._has_result and self._facts is not None:
            return CollectedFacts(self._facts, error)
        too_long = _TOO_LONG if self._has_skipped_event else None
        reason = error or self._crash or too_long or "it ended without a result"
        if self._facts is None:
            raise CollectorError(f"the collector sent no facts: {reason}")
        failure = contract.Failure("collector", reason)
        return CollectedFacts(
            replace(self._facts, failures=(*self._facts.failures, failure)), reason
        )


def parse_event(line: bytes) -> contract.Event:
    """Parse one line of a child's output. Raises ValidationError."""
    event: contract.Event
    try:
        event = decode_strictly(line, contract.Event)
    except ValidationError:
        # If a value contains bytes that are not valid text, the child writes a lone surrogate for
        # each of these bytes. Strict JSON does not permit lone surrogates, so each one is replaced
        # by a question mark.
        if b"\\ud" not in line:
            raise
        try:
            text = json.dumps(json.loads(line), ensure_ascii=False)
        except (ValueError, RecursionError):
            text = ""
        event = decode_strictly(text.encode("utf-8", "replace"), contract.Event)
    return event


def _request_facts(process: Process) -> None:
    if process.stdin is not None and not process.stdin.is_closing():
        process.stdin.write(CANCEL_LINE)


async def _read_tail(stream: asyncio.StreamReader | None, tail: bytearray) -> None:
    """Read a stream to its end, and store its last STDERR_TAIL_BYTES in ``tail``."""
    while stream is not None and (chunk := await stream.read(STDERR_TAIL_BYTES)):
        tail += chunk
        del tail[:-STDERR_TAIL_BYTES]


async def _end(process: Process, within_s: float) -> None:
    """Kill the child and everything that it started."""
    if sys.platform != "win32":
        # This is done even if the child has ended, because its process group can contain other
        # processes.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    elif process.returncode is None:
        process.kill()
    if process.stdin is not None:
        process.stdin.close()
    try:
        async with asyncio.timeout(within_s):
            await process.wait()
    except TimeoutError:
        # Up to Python 3.13, `wait` also waits until every process has closed the pipes (cpython,
        # gh-119710).
        _abandon(process)
    if process.stdin is not None:
        # If a child ended before it read its job, the pipe is broken. Without this call, some
        # versions of asyncio print a traceback.
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(within_s):
                await process.stdin.wait_closed()


def _abandon(process: Process) -> None:
    log.warning("collector process %d or one of its children cannot be killed", process.pid)
    process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001 - no public method


def _windows_flags() -> int:
    if sys.platform == "win32":
        return subprocess.CREATE_NO_WINDOW | subprocess.BELOW_NORMAL_PRIORITY_CLASS
    return 0
