"""Checks the property list of a launchd daemon for wrong keys and values.

launchd ignores unknown keys without an error. Therefore the keys are compared with those of the
manual, launchd.plist(5).
"""

import plistlib
from collections.abc import Mapping
from typing import Any, Final

KNOWN_KEYS: Final[Mapping[str, type | tuple[type, ...]]] = {
    "Label": str,
    "Disabled": bool,
    "UserName": str,
    "GroupName": str,
    "inetdCompatibility": dict,
    "LimitLoadToHosts": list,
    "LimitLoadFromHosts": list,
    "LimitLoadToSessionType": (str, list),
    "LimitLoadToHardware": dict,
    "LimitLoadFromHardware": dict,
    "Program": str,
    "BundleProgram": str,
    "ProgramArguments": list,
    "EnableGlobbing": bool,
    "EnableTransactions": bool,
    "EnablePressuredExit": bool,
    "OnDemand": bool,
    "ServiceIPC": bool,
    "KeepAlive": (bool, dict),
    "RunAtLoad": bool,
    "RootDirectory": str,
    "WorkingDirectory": str,
    "EnvironmentVariables": dict,
    "Umask": (int, str),
    "TimeOut": int,
    "ExitTimeOut": int,
    "ThrottleInterval": int,
    "InitGroups": bool,
    "WatchPaths": list,
    "QueueDirectories": list,
    "StartOnMount": bool,
    "StartInterval": int,
    "StartCalendarInterval": (dict, list),
    "StandardInPath": str,
    "StandardOutPath": str,
    "StandardErrorPath": str,
    "Debug": bool,
    "WaitForDebugger": bool,
    "SoftResourceLimits": dict,
    "HardResourceLimits": dict,
    "Nice": int,
    "ProcessType": str,
    "AbandonProcessGroup": bool,
    "LowPriorityIO": bool,
    "LowPriorityBackgroundIO": bool,
    "MaterializeDatalessFiles": bool,
    "LaunchOnlyOnce": bool,
    "MachServices": dict,
    "Sockets": dict,
    "LaunchEvents": dict,
    "SessionCreate": bool,
    "LegacyTimers": bool,
    "AssociatedBundleIdentifiers": (str, list),
}
_RESOURCE_KEYS: Final = frozenset(
    {"Core", "CPU", "Data", "FileSize", "MemoryLock", "NumberOfFiles", "NumberOfProcesses",
     "ResidentSetSize", "Stack"}
)  # fmt: skip
_KEEP_ALIVE_KEYS: Final = frozenset(
    {"SuccessfulExit", "NetworkState", "PathState", "OtherJobEnabled", "Crashed"}
)
_PROCESS_TYPES: Final = frozenset({"Background", "Standard", "Adaptive", "Interactive"})
_OBSOLETE_OR_DEBUGGING: Final = frozenset({"OnDemand", "ServiceIPC", "Debug", "WaitForDebugger"})


def lint(document: bytes) -> tuple[str, ...]:
    """Return a line for each problem of a daemon's property list."""
    try:
        values = plistlib.loads(document)
    except (ValueError, plistlib.InvalidFileException, OverflowError) as error:
        return (f"not a property list: {error}",)
    except Exception as error:  # noqa: BLE001 - expat's errors are of a private class
        return (f"not a property list: {type(error).__name__}: {error}",)
    if not isinstance(values, dict):
        return ("not a dictionary",)
    return (*_wrong_keys(values), *_wrong_values(values))


def _wrong_keys(values: Mapping[str, Any]) -> tuple[str, ...]:
    lines = [f"{key}: unknown key" for key in values if key not in KNOWN_KEYS]
    lines += [
        f"{key}: obsolete, or only for debugging" for key in values if key in _OBSOLETE_OR_DEBUGGING
    ]
    for section, known in (
        ("SoftResourceLimits", _RESOURCE_KEYS),
        ("HardResourceLimits", _RESOURCE_KEYS),
        ("KeepAlive", _KEEP_ALIVE_KEYS),
    ):
        inner = values.get(section)
        if isinstance(inner, dict):
            lines += [f"{section}.{key}: unknown key" for key in inner if key not in known]
    return tuple(lines)


def _wrong_values(values: Mapping[str, Any]) -> tuple[str, ...]:
    lines = [
        f"{key}: is of the wrong type, {type(value).__name__}"
        for key, value in values.items()
        if key in KNOWN_KEYS and not _is_of(value, KNOWN_KEYS[key])
    ]
    if not values.get("Label"):
        lines.append("Label: is required")
    arguments = values.get("ProgramArguments")
    program = values.get("Program") or (arguments[0] if isinstance(arguments, list) else None)
    if not isinstance(program, str) or not program.startswith("/"):
        lines.append("Program: an absolute path is required")
    if values.get("ProcessType", "Standard") not in _PROCESS_TYPES:
        lines.append("ProcessType: unknown value")
    if "UserName" in values:
        lines.append("UserName: a daemon that is not root needs the Local Network permission")
    return tuple(lines)


def _is_of(value: object, kinds: type | tuple[type, ...]) -> bool:
    """Return whether a value is of one of the types. A bool is not accepted as an int."""
    kinds = kinds if isinstance(kinds, tuple) else (kinds,)
    return isinstance(value, kinds) and (not isinstance(value, bool) or bool in kinds)
