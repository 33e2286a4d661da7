"""Runs the packaged executable as a Windows service.

The service control manager (SCM) kills a service that does not answer within 30 s. Importing the
daemon from a slow disk can take that long. Therefore a thread answers first, and the daemon is
imported afterwards. The status is "starting" until the daemon is ready, so a daemon with a wrong
configuration is never reported as running. The daemon runs in the main thread, because Python runs
signal handlers only there. A request to stop is delivered to the daemon as SIGTERM.
"""

import _thread
import importlib
import io
import os
import signal
import threading
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from agent.adapters.service_manager.windows.api import NAME, Status
from agent.adapters.service_manager.windows.service import LOG_NAME
from agent.wire.sd_notify import Notifier

STOP_WITHIN_S: Final = 15.0
LOG_MAX_BYTES: Final = 5_000_000
CONTROL_STOP, CONTROL_INTERROGATE, CONTROL_SHUTDOWN = 1, 4, 5
ACCEPTS_STOP_AND_SHUTDOWN: Final = 1 | 4
"""SERVICE_ACCEPT_STOP and SERVICE_ACCEPT_SHUTDOWN of SERVICE_STATUS.dwControlsAccepted."""
_STOP_HINT_MS: Final = int(STOP_WITHIN_S * 1000)
_START_HINT_MS: Final = 60_000


class Win32Scm:
    """The connection of a running service to the SCM, with pywin32's servicemanager."""

    def __init__(self) -> None:
        self._manager: Any = importlib.import_module("servicemanager")
        self._service: Any = importlib.import_module("win32service")
        self._handle: Any = None

    def serve(self, on_start: Callable[[], None], on_control: Callable[[int], None]) -> None:
        """Connect to the SCM, and return when the service has stopped.

        Args:
            on_start: is called in the service's thread when the service starts.
            on_control: is called with the number of each control that the SCM sends.

        Raises:
            OSError: the SCM did not start this process.
        """
        scm = self

        class Service:
            """pywin32 creates an object of this class, and calls SvcRun in the service's thread."""

            def __init__(self, arguments: Any) -> None:
                scm._handle = scm._manager.RegisterServiceCtrlHandler(
                    arguments[0], lambda control, *_: on_control(control), True
                )

            def SvcRun(self) -> None:  # noqa: N802 - the name that pywin32 calls
                on_start()

        self._manager.Initialize(NAME, None)
        self._manager.PrepareToHostSingle(Service)
        try:
            self._manager.StartServiceCtrlDispatcher()
        except importlib.import_module("pywintypes").error as error:
            raise OSError(error.winerror, error.strerror) from None

    def set_status(self, status: Status, *, exit_code: int = 0, wait_hint_ms: int = 0) -> None:
        """Report the service's status to the SCM."""
        controls = ACCEPTS_STOP_AND_SHUTDOWN if status is Status.RUNNING else 0
        code = 1066 if exit_code else 0  # ERROR_SERVICE_SPECIFIC_ERROR: use exit_code
        values = (
            self._service.SERVICE_WIN32_OWN_PROCESS, int(status), controls, code, exit_code, 0,
            wait_hint_ms,
        )  # fmt: skip
        self._service.SetServiceStatus(self._handle, values)

    def log_error(self, text: str) -> None:
        """Write an error to the Windows Event Log."""
        self._manager.LogErrorMsg(f"{NAME}: {text}")


@dataclass(slots=True, eq=False)
class Host:
    """Connects a daemon to the SCM.

    Args:
        run_daemon: runs the daemon in the calling thread, calls its argument when the daemon is
            ready, and returns the exit code.
        request_stop: makes ``run_daemon`` return.
        kill: ends the process at once. It is called if the daemon does not stop in time, or ends
            with an error.
    """

    scm: Win32Scm
    run_daemon: Callable[[Callable[[], None]], int]
    request_stop: Callable[[], None] = lambda: _thread.interrupt_main(signal.SIGTERM)
    kill: Callable[[int], None] = os._exit
    stop_within_s: float = STOP_WITHIN_S
    _started: threading.Event = field(default_factory=threading.Event)
    """Set when the service has started, or when the SCM did not start this process."""
    _ended: threading.Event = field(default_factory=threading.Event)
    _status: Status = Status.START_PENDING
    _connect_error: OSError | None = None
    _kill_timer: threading.Timer | None = None

    def run(self) -> int:
        """Run until the service is stopped. Raises OSError if the SCM did not start the process."""
        dispatcher = threading.Thread(target=self._dispatch, name="scm", daemon=True)
        dispatcher.start()
        self._started.wait()
        if self._connect_error is not None:
            raise self._connect_error
        code = 1
        try:
            code = self.run_daemon(self._on_ready)
        finally:
            if self._kill_timer is not None:
                self._kill_timer.cancel()
            if code:
                self.scm.log_error(f"ended with exit code {code}: see the log file")
            self._set_status(Status.STOPPED, exit_code=code)
            if code:
                # The process must end here: when the service's thread returns, pywin32 reports to
                # the SCM that the service stopped without an error.
                self.kill(code)
            self._ended.set()
            dispatcher.join(self.stop_within_s)
        return code

    def _dispatch(self) -> None:
        try:
            self.scm.serve(self._on_start, self._on_control)
        except OSError as error:
            self._connect_error = error
        finally:
            self._started.set()

    def _on_start(self) -> None:
        """Called in the service's thread. Returns when the service ends, as the SCM requires."""
        self._set_status(Status.START_PENDING, wait_hint_ms=_START_HINT_MS)
        self._started.set()
        self._ended.wait()

    def _on_ready(self) -> None:
        if self._status is Status.START_PENDING:
            self._set_status(Status.RUNNING)

    def _on_control(self, control: int) -> None:
        if control in {CONTROL_STOP, CONTROL_SHUTDOWN} and self._kill_timer is None:
            self._set_status(Status.STOP_PENDING, wait_hint_ms=_STOP_HINT_MS)
            self._kill_timer = threading.Timer(self.stop_within_s, self._kill_daemon)
            self._kill_timer.daemon = True
            self._kill_timer.start()
            self.request_stop()
        elif control == CONTROL_INTERROGATE:
            self._set_status(self._status)

    def _kill_daemon(self) -> None:
        self.scm.log_error(f"did not stop in {self.stop_within_s:.0f} s and is killed")
        self._set_status(Status.STOPPED, exit_code=1)
        self.kill(1)

    def _set_status(self, status: Status, *, exit_code: int = 0, wait_hint_ms: int = 0) -> None:
        self._status = status
        self.scm.set_status(status, exit_code=exit_code, wait_hint_ms=wait_hint_ms)


class BoundedLog(io.TextIOBase):
    """A log file that is renamed before it exceeds ``max_bytes``. One renamed file is kept."""

    def __init__(self, path: Path, max_bytes: int = LOG_MAX_BYTES) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._file = path.open("ab")

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        content = text.encode("utf-8", "backslashreplace")
        if self._file.tell() and self._file.tell() + len(content) > self._max_bytes:
            self._rotate()
        self._file.write(content)
        self._file.flush()
        return len(text)

    def close(self) -> None:
        self._file.close()
        super().close()

    def _rotate(self) -> None:
        self._file.close()
        try:
            self._path.replace(self._path.with_suffix(".old.log"))
        except OSError:
            # Windows does not rename a file that another program reads. The content of the log is
            # deleted instead.
            self._path.write_bytes(b"")
        self._file = self._path.open("ab")


class ReadyNotifier(Notifier):
    """Calls ``on_ready`` instead of notifying systemd."""

    def __init__(self, on_ready: Callable[[], None]) -> None:
        super().__init__({})
        self._on_ready = on_ready

    def ready(self, status: str = "") -> None:
        self._on_ready()


def run_service(home: Path, run_daemon: Callable[[Path, Notifier], int]) -> int:
    """Run this process as a service. Raises OSError if the SCM did not start the process.

    Args:
        home: the directory that contains the configuration, the log and the state.
        run_daemon: runs the daemon with a configuration file, and returns the exit code.
    """

    def run(on_ready: Callable[[], None]) -> int:
        home.mkdir(parents=True, exist_ok=True)
        with BoundedLog(home / LOG_NAME) as log, redirect_stdout(log), redirect_stderr(log):
            return run_daemon(home / "config.toml", ReadyNotifier(on_ready))

    return Host(Win32Scm(), run).run()
