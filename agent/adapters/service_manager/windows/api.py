"""The Windows service API by pywin32. Imported on Windows only."""

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from agent.adapters.service_manager.contract import ServiceManagerError
from agent.adapters.service_manager.windows.rights import ADMINISTRATORS, Entry, Security
from agent.adapters.service_manager.windows.service import NAME, Definition, Query, Status

_DOES_NOT_EXIST: Final = 1060  # ERROR_SERVICE_DOES_NOT_EXIST
_ALREADY_RUNNING: Final = 1056  # ERROR_SERVICE_ALREADY_RUNNING
_NOT_ACTIVE: Final = 1062  # ERROR_SERVICE_NOT_ACTIVE
_SPECIFIC: Final = 1066  # ERROR_SERVICE_SPECIFIC_ERROR: the service's own code is meant
_UNKNOWN_LEVEL: Final = 124  # ERROR_INVALID_LEVEL: this system does not know that setting
_SYNCHRONIZE: Final = 0x100000
_WAIT_TIMEOUT: Final = 258
_CLOSED: Final = "O:BAD:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)"
"""Owned by the administrators; full rights for SYSTEM and them, for nobody else, also on what is
made in it (Security Descriptor Definition Language)."""


_WINE_USERS: Final = "S-1-5-21-0-0-0-"


def _is_wine() -> bool:
    """Tell whether this is Wine, which knows no owner but the one user who runs all of it."""
    windll: Any = getattr(importlib.import_module("ctypes"), "windll")  # noqa: B009 - Windows only
    return hasattr(windll.ntdll, "wine_get_version")


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

    def is_alive(self, pid: int) -> bool:
        try:
            process = importlib.import_module("win32api").OpenProcess(_SYNCHRONIZE, False, pid)
        except self._error:
            return False
        waited: int = importlib.import_module("win32event").WaitForSingleObject(process, 0)
        return waited == _WAIT_TIMEOUT

    def protect(self, path: Path) -> None:
        api = importlib.import_module("win32security")
        parts = api.OWNER_SECURITY_INFORMATION | api.DACL_SECURITY_INFORMATION
        wanted = api.ConvertStringSecurityDescriptorToSecurityDescriptor(_CLOSED, 1)
        try:
            api.SetNamedSecurityInfo(
                str(path), api.SE_FILE_OBJECT, parts | api.PROTECTED_DACL_SECURITY_INFORMATION,
                wanted.GetSecurityDescriptorOwner(), None, wanted.GetSecurityDescriptorDacl(), None,
            )  # fmt: skip
        except self._error as error:
            raise ServiceManagerError(f"{path} cannot be protected: {error.strerror}") from None

    def make_closed(self, directory: Path) -> None:
        attributes = importlib.import_module("pywintypes").SECURITY_ATTRIBUTES()
        api = importlib.import_module("win32security")
        attributes.SECURITY_DESCRIPTOR = api.ConvertStringSecurityDescriptorToSecurityDescriptor(
            _CLOSED, 1
        )
        try:
            importlib.import_module("win32file").CreateDirectory(str(directory), attributes)
        except self._error as error:
            raise ServiceManagerError(f"{directory} cannot be made: {error.strerror}") from None

    def security(self, path: Path) -> Security:
        api = importlib.import_module("win32security")
        parts = api.OWNER_SECURITY_INFORMATION | api.DACL_SECURITY_INFORMATION
        try:
            found = api.GetFileSecurity(str(path), parts)
        except self._error as error:
            raise ServiceManagerError(f"{path}: {error.strerror}") from None
        entries = found.GetSecurityDescriptorDacl()
        return Security(
            owner=self._sid(found.GetSecurityDescriptorOwner()),
            entries=None
            if entries is None
            else tuple(self._entry(entries.GetAce(at)) for at in range(entries.GetAceCount())),
        )

    def name_of(self, sid: str) -> str:
        api = importlib.import_module("win32security")
        try:
            name, domain, _ = api.LookupAccountSid(None, api.ConvertStringSidToSid(sid))
        except self._error:
            return sid
        return f"{domain}\\{name}" if domain else str(name)

    def _entry(self, found: Any) -> Entry:
        """Read ((type, flags), mask, …, SID); entries for objects have two ids in between."""
        (kind, flags), mask, *_, sid = found
        # Python has the mask's highest bit as a sign.
        return Entry(kind, flags, mask & 0xFFFF_FFFF, self._sid(sid))

    def _sid(self, sid: Any) -> str:
        text = str(importlib.import_module("win32security").ConvertSidToStringSid(sid))
        return ADMINISTRATORS if text.startswith(_WINE_USERS) and _is_wine() else text

    def _refine(self, handle: Any, definition: Definition) -> None:
        """Set what came to the API later: description, delayed start, recovery."""
        api = self._service
        actions = [(api.SC_ACTION_RESTART, delay) for delay in definition.restart_delays_ms]
        recovery = {
            "ResetPeriod": definition.reset_after_s,
            "RebootMsg": "",
            "Command": "",
            "Actions": actions,
        }
        settings = (
            (api.SERVICE_CONFIG_DESCRIPTION, definition.description),
            (api.SERVICE_CONFIG_DELAYED_AUTO_START_INFO, definition.starts_delayed),
            (api.SERVICE_CONFIG_FAILURE_ACTIONS, recovery),
            # Also when it ends by itself with an error, not only when it crashes.
            (api.SERVICE_CONFIG_FAILURE_ACTIONS_FLAG, True),
        )
        for level, setting in settings:
            with self._told(_UNKNOWN_LEVEL):
                api.ChangeServiceConfig2(handle, level, setting)

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
