"""Calls the Windows service API with pywin32. This module can be imported on every system."""

import ctypes
import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any, Final

from agent.adapters.service_manager.contract import ServiceManagerError
from agent.adapters.service_manager.windows.rights import ADMINISTRATORS, Entry, Security

NAME: Final = "venue-agent"
DISPLAY_NAME: Final = "Venue agent"
DESCRIPTION: Final = "Remote control and diagnostics of this machine."
RESTART_DELAYS_MS: Final = (1_000, 10_000, 60_000)
"""The waits before the restarts of a failed service. The last wait applies to the third failure and
to all later failures."""
RESET_AFTER_S: Final = 86_400
"""Time without a failure after which Windows resets the failure count, in seconds."""
_DOES_NOT_EXIST: Final = 1060  # ERROR_SERVICE_DOES_NOT_EXIST
_ALREADY_RUNNING: Final = 1056  # ERROR_SERVICE_ALREADY_RUNNING
_NOT_ACTIVE: Final = 1062  # ERROR_SERVICE_NOT_ACTIVE
_SPECIFIC: Final = 1066  # ERROR_SERVICE_SPECIFIC_ERROR: the service has its own exit code
_UNKNOWN_LEVEL: Final = 124  # ERROR_INVALID_LEVEL: this version of Windows lacks the setting
_SYNCHRONIZE: Final = 0x100000
_WAIT_TIMEOUT: Final = 258
_PROTECTED: Final = "O:BAD:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)"
"""A security descriptor (Security Descriptor Definition Language). The owner is the group of the
administrators. Only this group and SYSTEM have access. Files in a directory with these rights
inherit them."""
_WINE_USERS: Final = "S-1-5-21-0-0-0-"
"""Start of the SID of Wine's only user, who owns every file. The agent treats this user as the
group of the administrators, so that its checks of files succeed under Wine."""


class Status(IntEnum):
    """The values of SERVICE_STATUS.dwCurrentState."""

    STOPPED = 1
    START_PENDING = 2
    STOP_PENDING = 3
    RUNNING = 4
    CONTINUE_PENDING = 5
    PAUSE_PENDING = 6
    PAUSED = 7


@dataclass(frozen=True, slots=True)
class QueryResult:
    """The service's state. ``exit_code`` is the code of its last exit, and 0 after a clean stop."""

    status: Status
    pid: int = 0
    exit_code: int = 0
    starts_at_boot: bool = True


class Win32ServiceControl:
    """The Windows API for services, event sources and file rights, as `WindowsService` needs it.

    A call of the API that fails raises ServiceManagerError.
    """

    def __init__(self) -> None:
        # These modules exist on Windows only.
        self._windll: Any = vars(ctypes)["windll"]
        self._types: Any = importlib.import_module("pywintypes")
        self._error: Any = self._types.error
        self._service: Any = importlib.import_module("win32service")
        self._security: Any = importlib.import_module("win32security")

    def is_administrator(self) -> bool:
        return bool(self._windll.shell32.IsUserAnAdmin())

    def query(self) -> QueryResult | None:
        """Return the service's state, or None if the service does not exist."""
        api = self._service
        try:
            with self._open(api.SERVICE_QUERY_STATUS | api.SERVICE_QUERY_CONFIG) as handle:
                service_status = api.QueryServiceStatusEx(handle)
                start_type = api.QueryServiceConfig(handle)[1]
        except _NoSuchService:
            return None
        code = service_status["Win32ExitCode"]
        return QueryResult(
            status=Status(service_status["CurrentState"]),
            pid=service_status["ProcessId"],
            exit_code=service_status["ServiceSpecificExitCode"] if code == _SPECIFIC else code,
            starts_at_boot=start_type == api.SERVICE_AUTO_START,
        )

    def create(self, command_line: str) -> None:
        api = self._service
        with self._open_manager(api.SC_MANAGER_CREATE_SERVICE) as manager, self._errors():
            handle = api.CreateService(
                manager, NAME, DISPLAY_NAME, api.SERVICE_ALL_ACCESS,
                api.SERVICE_WIN32_OWN_PROCESS, api.SERVICE_AUTO_START, api.SERVICE_ERROR_NORMAL,
                command_line, None, 0, None, None, None,
            )  # fmt: skip
            try:
                self._apply_optional_settings(handle)
            finally:
                api.CloseServiceHandle(handle)

    def change(self, command_line: str) -> None:
        api = self._service
        with self._open(api.SERVICE_ALL_ACCESS) as handle, self._errors():
            api.ChangeServiceConfig(
                handle, api.SERVICE_WIN32_OWN_PROCESS, api.SERVICE_AUTO_START,
                api.SERVICE_ERROR_NORMAL, command_line, None, 0, None, None, None, DISPLAY_NAME,
            )  # fmt: skip
            self._apply_optional_settings(handle)

    def delete(self) -> None:
        with self._open(self._service.SERVICE_ALL_ACCESS) as handle, self._errors():
            self._service.DeleteService(handle)

    def start(self) -> None:
        api = self._service
        with self._open(api.SERVICE_START) as handle, self._errors(ignored=_ALREADY_RUNNING):
            api.StartService(handle, None)

    def stop(self) -> None:
        api = self._service
        with self._open(api.SERVICE_STOP) as handle, self._errors(ignored=_NOT_ACTIVE):
            api.ControlService(handle, api.SERVICE_CONTROL_STOP)

    def add_event_source(self) -> None:
        # The Event Log reads the message texts of the events from servicemanager.pyd.
        messages = importlib.import_module("servicemanager").__file__
        with self._errors():
            importlib.import_module("win32evtlogutil").AddSourceToRegistry(NAME, messages)

    def remove_event_source(self) -> None:
        with self._errors(ignored=2):  # ERROR_FILE_NOT_FOUND: already removed
            importlib.import_module("win32evtlogutil").RemoveSourceFromRegistry(NAME)

    def is_alive(self, pid: int) -> bool:
        """Return whether the process ``pid`` is still running."""
        try:
            process = importlib.import_module("win32api").OpenProcess(_SYNCHRONIZE, False, pid)
        except self._error:
            return False
        wait_result: int = importlib.import_module("win32event").WaitForSingleObject(process, 0)
        return wait_result == _WAIT_TIMEOUT

    def protect(self, path: Path) -> None:
        """Restrict access to a file or directory to SYSTEM and the administrators.

        The content of a directory inherits the restriction.
        """
        api = self._security
        parts = api.OWNER_SECURITY_INFORMATION | api.DACL_SECURITY_INFORMATION
        descriptor = api.ConvertStringSecurityDescriptorToSecurityDescriptor(_PROTECTED, 1)
        with self._errors(prefix=f"{path} cannot be protected"):
            api.SetNamedSecurityInfo(
                str(path), api.SE_FILE_OBJECT, parts | api.PROTECTED_DACL_SECURITY_INFORMATION,
                descriptor.GetSecurityDescriptorOwner(), None,
                descriptor.GetSecurityDescriptorDacl(), None,
            )  # fmt: skip

    def create_protected(self, directory: Path) -> None:
        """Create a directory that only SYSTEM and the administrators can access.

        The directory must not exist yet. It has these rights as soon as it exists.
        """
        attributes = self._types.SECURITY_ATTRIBUTES()
        convert = self._security.ConvertStringSecurityDescriptorToSecurityDescriptor
        attributes.SECURITY_DESCRIPTOR = convert(_PROTECTED, 1)
        with self._errors(prefix=f"{directory} cannot be created"):
            importlib.import_module("win32file").CreateDirectory(str(directory), attributes)

    def security(self, path: Path) -> Security:
        """Return the owner and the access rights of a file. Links are not followed."""
        api = self._security
        parts = api.OWNER_SECURITY_INFORMATION | api.DACL_SECURITY_INFORMATION
        with self._errors(prefix=str(path)):
            descriptor = api.GetFileSecurity(str(path), parts)
        access_list, entries = descriptor.GetSecurityDescriptorDacl(), None
        if access_list is not None:
            aces = map(access_list.GetAce, range(access_list.GetAceCount()))
            entries = tuple(map(self._entry, aces))
        return Security(self._sid(descriptor.GetSecurityDescriptorOwner()), entries)

    def name_of(self, sid: str) -> str:
        """Return the name of the account with this SID, or the SID if no name is known."""
        api = self._security
        try:
            name, domain, _ = api.LookupAccountSid(None, api.ConvertStringSidToSid(sid))
        except self._error:
            return sid
        return f"{domain}\\{name}" if domain else str(name)

    def _entry(self, ace: Any) -> Entry:
        """Convert an entry of pywin32: ((type, flags), mask, SID).

        Object ACEs have two GUIDs between the mask and the SID.
        """
        (kind, flags), mask, *_, sid = ace
        # pywin32 returns the mask as a signed number.
        return Entry(kind, flags, mask & 0xFFFF_FFFF, self._sid(sid))

    def _sid(self, sid: Any) -> str:
        text = str(self._security.ConvertSidToStringSid(sid))
        is_wine = hasattr(self._windll.ntdll, "wine_get_version")
        return ADMINISTRATORS if text.startswith(_WINE_USERS) and is_wine else text

    def _apply_optional_settings(self, handle: Any) -> None:
        for level, setting in optional_settings(self._service).items():
            with self._errors(ignored=_UNKNOWN_LEVEL):
                self._service.ChangeServiceConfig2(handle, level, setting)

    @contextmanager
    def _open_manager(self, access: int) -> Iterator[Any]:
        with self._errors():
            manager = self._service.OpenSCManager(None, None, access)
        try:
            yield manager
        finally:
            self._service.CloseServiceHandle(manager)

    @contextmanager
    def _open(self, access: int) -> Iterator[Any]:
        with self._open_manager(self._service.SC_MANAGER_CONNECT) as manager:
            with self._errors():
                handle = self._service.OpenService(manager, NAME, access)
            try:
                yield handle
            finally:
                self._service.CloseServiceHandle(handle)

    @contextmanager
    def _errors(self, *, ignored: int | None = None, prefix: str | None = None) -> Iterator[None]:
        """Convert errors of the API to ServiceManagerError, but suppress the error ``ignored``.

        The message begins with ``prefix``, or with the name of the failed function of the API.
        """
        try:
            yield
        except self._error as error:
            if error.winerror == _DOES_NOT_EXIST:
                raise _NoSuchService from None
            if error.winerror != ignored:
                raise ServiceManagerError(f"{prefix or error.funcname}: {error.strerror}") from None


def optional_settings(api: Any) -> dict[int, Any]:
    """Return the settings that some versions of Windows lack, by their level in the API."""
    actions = [(api.SC_ACTION_RESTART, delay) for delay in RESTART_DELAYS_MS]
    recovery = {"ResetPeriod": RESET_AFTER_S, "RebootMsg": "", "Command": "", "Actions": actions}
    return {
        api.SERVICE_CONFIG_DESCRIPTION: DESCRIPTION,
        api.SERVICE_CONFIG_DELAYED_AUTO_START_INFO: True,
        api.SERVICE_CONFIG_FAILURE_ACTIONS: recovery,
        # Restart also after an exit with an error code, not only after a crash.
        api.SERVICE_CONFIG_FAILURE_ACTIONS_FLAG: True,
    }


class _NoSuchService(ServiceManagerError):
    def __init__(self) -> None:
        super().__init__("the service is not installed: run `venue-agent service install`")
