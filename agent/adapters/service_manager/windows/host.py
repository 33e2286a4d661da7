"""The packaged executable as a Windows service.

The SCM kills a service that does not answer within 30 s, and a cold disk may need that long for
our imports: so the answer comes first, from a thread, and the daemon is imported after it. It says
"starting"; "running" is told when the daemon is ready, so that one with a wrong configuration was
never running. The daemon has the main thread, because Python runs signal handlers there only, and a
request to stop is given to it as SIGTERM.
"""

import _thread
import importlib
import io
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, Final, Protocol

from agent.adapters.notify import Notifier
from agent.adapters.service_manager.windows.service import LOG_NAME, NAME, Status

STOP_WITHIN_S: Final = 15.0
LOG_MAX_BYTES: Final = 5_000_000
CONTROL_STOP, CONTROL_INTERROGATE, CONTROL_SHUTDOWN = 1, 4, 5
ACCEPTS_STOP_AND_SHUTDOWN: Final = 1 | 4
_STOP_HINT_MS: Final = int(STOP_WITHIN_S * 1000)
_START_HINT_MS: Final = 60_000

OnControl = Callable[[int], None]
RunDaemon = Callable[[Callable[[], None]], int]


class Scm(Protocol):
    """The side of the SCM a running service sees."""

    def serve(self, on_start: Callable[[], None], on_control: OnControl) -> None:
        """Connect to the SCM; call ``on_start`` in the service's thread and ``on_control`` for
        each control. Returns when the service has stopped; raises OSError when this process was
        not started by the SCM."""
        ...

    def tell(self, status: Status, *, exit_code: int = 0, wait_hint_ms: int = 0) -> None: ...

    def log(self, text: str, *, is_error: bool = False) -> None:
        """Write to the Event Log."""
        ...


class Host:
    """``run_daemon`` runs in the calling thread, calls what it is given when the daemon is ready,
    and returns the exit code; ``ask_to_stop`` makes it return; ``kill`` ends the process if it does
    not, and after an error."""

    def __init__(
        self,
        scm: Scm,
        run_daemon: RunDaemon,
        ask_to_stop: Callable[[], None] = lambda: _thread.interrupt_main(signal.SIGTERM),
        kill: Callable[[int], None] = os._exit,
        stop_within_s: float = STOP_WITHIN_S,
    ) -> None:
        self._scm = scm
        self._run_daemon = run_daemon
        self._ask_to_stop = ask_to_stop
        self._kill = kill
        self._stop_within_s = stop_within_s
        self._begun = threading.Event()
        self._ended = threading.Event()
        self._status = Status.START_PENDING
        self._refusal: OSError | None = None
        self._deadline: threading.Timer | None = None

    def run(self) -> int:
        """Be the service until it is stopped. Raises OSError when not started by the SCM."""
        dispatcher = threading.Thread(target=self._dispatch, name="scm", daemon=True)
        dispatcher.start()
        self._begun.wait()
        if self._refusal is not None:
            raise self._refusal
        code = 1
        try:
            code = self._run_daemon(self._on_ready)
        finally:
            if self._deadline is not None:
                self._deadline.cancel()
            self._log_end(code)
            self._tell(Status.STOPPED, exit_code=code)
            if code:
                # When the service's thread returns, pywin32 says "stopped, without an error".
                self._kill(code)
            self._ended.set()
            dispatcher.join(self._stop_within_s)
        return code

    def _dispatch(self) -> None:
        try:
            self._scm.serve(self._on_start, self._on_control)
        except OSError as error:
            self._refusal = error
        finally:
            self._begun.set()

    def _on_start(self) -> None:
        """The service's own thread: it must last as long as the service."""
        self._tell(Status.START_PENDING, wait_hint_ms=_START_HINT_MS)
        self._begun.set()
        self._ended.wait()

    def _on_ready(self) -> None:
        if self._status is Status.START_PENDING:
            self._tell(Status.RUNNING)

    def _on_control(self, control: int) -> None:
        if control in {CONTROL_STOP, CONTROL_SHUTDOWN} and self._deadline is None:
            self._tell(Status.STOP_PENDING, wait_hint_ms=_STOP_HINT_MS)
            self._deadline = threading.Timer(self._stop_within_s, self._give_up)
            self._deadline.daemon = True
            self._deadline.start()
            self._ask_to_stop()
        elif control == CONTROL_INTERROGATE:
            self._tell(self._status)

    def _give_up(self) -> None:
        self._scm.log(f"did not stop in {self._stop_within_s:.0f} s and is ended", is_error=True)
        self._tell(Status.STOPPED, exit_code=1)
        self._kill(1)

    def _tell(self, status: Status, *, exit_code: int = 0, wait_hint_ms: int = 0) -> None:
        self._status = status
        self._scm.tell(status, exit_code=exit_code, wait_hint_ms=wait_hint_ms)

    def _log_end(self, code: int) -> None:
        if code != 0:
            self._scm.log(f"ended with exit code {code}: see the log file", is_error=True)


class Win32Scm:
    """The SCM by pywin32's servicemanager."""

    def __init__(self) -> None:
        self._manager: Any = importlib.import_module("servicemanager")
        self._service: Any = importlib.import_module("win32service")
        self._handle: Any = None

    def serve(self, on_start: Callable[[], None], on_control: OnControl) -> None:
        scm = self

        class Service:
            """What pywin32 makes and runs in the service's thread."""

            def __init__(self, arguments: Any) -> None:
                scm._handle = scm._manager.RegisterServiceCtrlHandler(
                    arguments[0], lambda control, *_: on_control(control), True
                )

            def SvcRun(self) -> None:  # noqa: N802 - the name pywin32 calls
                on_start()

        self._manager.Initialize(NAME, None)
        self._manager.PrepareToHostSingle(Service)
        try:
            self._manager.StartServiceCtrlDispatcher()
        except importlib.import_module("pywintypes").error as error:
            raise OSError(error.winerror, error.strerror) from None

    def tell(self, status: Status, *, exit_code: int = 0, wait_hint_ms: int = 0) -> None:
        accepted = ACCEPTS_STOP_AND_SHUTDOWN if status is Status.RUNNING else 0
        code = 1066 if exit_code else 0  # ERROR_SERVICE_SPECIFIC_ERROR: the next field counts
        values = (
            self._service.SERVICE_WIN32_OWN_PROCESS, int(status), accepted, code, exit_code, 0,
            wait_hint_ms,
        )  # fmt: skip
        self._service.SetServiceStatus(self._handle, values)

    def log(self, text: str, *, is_error: bool = False) -> None:
        write = self._manager.LogErrorMsg if is_error else self._manager.LogInfoMsg
        write(f"{NAME}: {text}")


def main() -> int:
    """Be started by the SCM: `venue-agent.exe windows-service`."""
    home = Path(os.environ.get("PROGRAMDATA", r"C:\ProgramData")) / "venue-agent"
    try:
        return Host(Win32Scm(), lambda on_ready: _daemon(home, on_ready)).run()
    except OSError as error:
        sys.stderr.write(f"venue-agent: only the service manager starts this: {error.strerror}\n")
        return 1


class BoundedLog(io.TextIOBase):
    """A log file that is set aside when it has grown to ``max_bytes``; one such is kept."""

    def __init__(self, path: Path, max_bytes: int = LOG_MAX_BYTES) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._file = path.open("ab")

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        content = text.encode("utf-8", "backslashreplace")
        if self._file.tell() and self._file.tell() + len(content) > self._max_bytes:
            self._quarantine_file()
        self._file.write(content)
        self._file.flush()
        return len(text)

    def close(self) -> None:
        self._file.close()
        super().close()

    def _quarantine_file(self) -> None:
        self._file.close()
        try:
            self._path.replace(self._path.with_suffix(".old.log"))
        except OSError:
            # Somebody reads it, which forbids to rename it: what it held is given up.
            self._path.write_bytes(b"")
        self._file = self._path.open("ab")


class ReadyNotifier(Notifier):
    """Tells the host, instead of a socket, that the daemon is ready."""

    def __init__(self, on_ready: Callable[[], None]) -> None:
        super().__init__({})
        self._on_ready = on_ready

    def ready(self) -> None:
        self._on_ready()


def _daemon(home: Path, on_ready: Callable[[], None]) -> int:
    home.mkdir(parents=True, exist_ok=True)
    with BoundedLog(home / LOG_NAME) as log, redirect_stdout(log), redirect_stderr(log):
        # Only now: the service manager has its answer.
        asyncio = importlib.import_module("asyncio")
        run_command = importlib.import_module("agent.cli.main").run_command
        daemon = importlib.import_module("agent.daemon")

        def run() -> int:
            notifier = ReadyNotifier(on_ready)
            asyncio.run(daemon.run(home / "config.toml", foreground=False, notifier=notifier))
            return 0

        code: int = run_command(run)
    return code
