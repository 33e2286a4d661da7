"""The Windows service API by pywin32. Imported on Windows only."""

import importlib
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from agent.adapters.service_manager.contract import ServiceManagerError
from agent.adapters.service_manager.windows import NAME, Definition, Query, Status

_DOES_NOT_EXIST: Final = 1060  # ERROR_SERVICE_DOES_NOT_EXIST
_ALREADY_RUNNING: Final = 1056  # ERROR_SERVICE_ALREADY_RUNNING
_NOT_ACTIVE: Final = 1062  # ERROR_SERVICE_NOT_ACTIVE
_SPECIFIC: Final = 1066  # ERROR_SERVICE_SPECIFIC_ERROR: the service's own code is meant
_SYSTEM, _ADMINISTRATORS = "*S-1-5-18", "*S-1-5-32-544"


class Win32ServiceControl:
    def __init__(self) -> None:
        # Not at the top: these modules exist on Windows only.
        self._service: Any = importlib.import_module("win32service")
        self._error: Any = importlib.import_module("pywintypes").error

    def is_administrator(self) -> bool:
        windll: Any = getattr(importlib.import_module("ctypes"), "windll")  # noqa: B009 - Windows only
        return bool(windll.shell32.IsUserAnAdmin())

    def query(self) -> Query | None:
        api = self._service
        try:
            with self._opened(api.SERVICE_QUERY_STATUS | api.SERVICE_QUERY_CONFIG) as handle:
                now = api.QueryServiceStatusEx(handle)
                start_type = api.QueryServiceConfig(handle)[1]
        except _NoSuchService:
            return None
        code = now["Win32ExitCode"]
        return Query(
            status=Status(now["CurrentState"]),
            pid=now["ProcessId"],
            exit_code=now["ServiceSpecificExitCode"] if code == _SPECIFIC else code,
            starts_at_boot=start_type == api.SERVICE_AUTO_START,
        )

    def create(self, definition: Definition) -> None:
        api = self._service
        with self._manager(api.SC_MANAGER_CREATE_SERVICE) as manager, self._told():
            handle = api.CreateService(
                manager, definition.name, definition.display_name, api.SERVICE_ALL_ACCESS,
                api.SERVICE_WIN32_OWN_PROCESS, api.SERVICE_AUTO_START, api.SERVICE_ERROR_NORMAL,
                definition.command_line, None, 0, None, None, None,
            )  # fmt: skip
            try:
                self._refine(handle, definition)
            finally:
                api.CloseServiceHandle(handle)

    def change(self, definition: Definition) -> None:
        api = self._service
        with self._opened(api.SERVICE_ALL_ACCESS) as handle, self._told():
            api.ChangeServiceConfig(
                handle, api.SERVICE_WIN32_OWN_PROCESS, api.SERVICE_AUTO_START,
                api.SERVICE_ERROR_NORMAL, definition.command_line, None, 0, None, None, None,
                definition.display_name,
            )  # fmt: skip
            self._refine(handle, definition)

    def delete(self) -> None:
        with self._opened(self._service.SERVICE_ALL_ACCESS) as handle, self._told():
            self._service.DeleteService(handle)

    def start(self) -> None:
        with self._opened(self._service.SERVICE_START) as handle, self._told(_ALREADY_RUNNING):
            self._service.StartService(handle, None)

    def stop(self) -> None:
        with self._opened(self._service.SERVICE_STOP) as handle, self._told(_NOT_ACTIVE):
            self._service.ControlService(handle, self._service.SERVICE_CONTROL_STOP)

    def add_event_source(self) -> None:
        # servicemanager.pyd holds the message texts of the events it writes.
        messages = importlib.import_module("servicemanager").__file__
        with self._told():
            importlib.import_module("win32evtlogutil").AddSourceToRegistry(NAME, messages)

    def remove_event_source(self) -> None:
        with self._told(2):  # ERROR_FILE_NOT_FOUND: it is gone already
            importlib.import_module("win32evtlogutil").RemoveSourceFromRegistry(NAME)

    def protect(self, file: Path) -> None:
        words = ("icacls", str(file), "/inheritance:r")
        grants = ("/grant:r", f"{_SYSTEM}:F", "/grant:r", f"{_ADMINISTRATORS}:F")
        done = subprocess.run((*words, *grants), capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ServiceManagerError(f"{file} cannot be protected: {done.stderr.strip()}")

    def _refine(self, handle: Any, definition: Definition) -> None:
        """Set what came to the API later: description, delayed start, recovery."""
        api, change = self._service, self._service.ChangeServiceConfig2
        restart = api.SC_ACTION_RESTART
        change(handle, api.SERVICE_CONFIG_DESCRIPTION, definition.description)
        change(handle, api.SERVICE_CONFIG_DELAYED_AUTO_START_INFO, definition.starts_delayed)
        actions = [(restart, delay) for delay in definition.restart_delays_ms]
        recovery = {
            "ResetPeriod": definition.reset_after_s,
            "RebootMsg": "",
            "Command": "",
            "Actions": actions,
        }
        change(handle, api.SERVICE_CONFIG_FAILURE_ACTIONS, recovery)
        # Also when it ends by itself with an error, not only when it crashes.
        flag = True
        change(handle, api.SERVICE_CONFIG_FAILURE_ACTIONS_FLAG, flag)

    @contextmanager
    def _manager(self, access: int) -> Iterator[Any]:
        with self._told():
            manager = self._service.OpenSCManager(None, None, access)
        try:
            yield manager
        finally:
            self._service.CloseServiceHandle(manager)

    @contextmanager
    def _opened(self, access: int) -> Iterator[Any]:
        with self._manager(self._service.SC_MANAGER_CONNECT) as manager:
            try:
                handle = self._service.OpenService(manager, NAME, access)
            except self._error as error:
                if error.winerror == _DOES_NOT_EXIST:
                    raise _NoSuchService from None
                raise ServiceManagerError(f"{error.funcname}: {error.strerror}") from None
            try:
                yield handle
            finally:
                self._service.CloseServiceHandle(handle)

    @contextmanager
    def _told(self, *accepted: int) -> Iterator[None]:
        """Turn an error of the API into its one line, except those that mean "done already"."""
        try:
            yield
        except self._error as error:
            if error.winerror not in accepted:
                raise ServiceManagerError(f"{error.funcname}: {error.strerror}") from None


class _NoSuchService(ServiceManagerError):
    def __init__(self) -> None:
        super().__init__("the service is not installed: run `venue-agent service install`")
