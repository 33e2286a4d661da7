"""Reads the names of the managed browser policies about access to the local network.

Such a policy decides whether a page may connect to the local network or to programs on this
machine.
"""

import importlib
import json
import plistlib
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from xml.parsers.expat import ExpatError

from collectors.shared.sysfs import read_bytes

_PREFIXES: Final = ("LocalNetwork", "LoopbackNetwork")
"""A policy is reported if its name begins with one of these prefixes. Examples of such names are
LocalNetworkAccessAllowedForUrls and LocalNetworkAccessBlockedForUrls.
"""

_JSON_FOLDERS: Final = (
    "etc/chromium/policies/managed",
    "etc/chromium-browser/policies/managed",
    "etc/opt/chrome/policies/managed",
    "etc/opt/edge/policies/managed",
)
_PROPERTY_LISTS: Final = ("com.google.Chrome", "com.microsoft.Edge", "org.chromium.Chromium")
_REGISTRY_KEYS: Final = (r"Google\Chrome", r"Microsoft\Edge", "Chromium")
_FILE_MAX_BYTES: Final = 1024 * 1024


def read_policies(root: Path) -> tuple[str, ...]:
    """Return the names of the policies that are set for any browser of this machine.

    The values are not returned.

    Raises:
        OSError: A policy file or registry key cannot be read.
        ValueError: A policy file is malformed. The browser ignores such a file.
    """
    names = names_in_registry() if sys.platform == "win32" else _names_in_files(root)
    return tuple(sorted({name for name in names if name.startswith(_PREFIXES)}))


def names_in_registry() -> Iterator[str]:
    """Yield the names of the policies of each browser on Windows.

    A policy with a list of values is a registry key. Any other policy is a registry value.
    """
    winreg: Any = importlib.import_module("winreg")
    for browser in _REGISTRY_KEYS:
        path = rf"SOFTWARE\Policies\{browser}"
        with suppress(FileNotFoundError), winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, path) as key:
            keys, values, _ = winreg.QueryInfoKey(key)
            yield from (winreg.EnumKey(key, index) for index in range(keys))
            yield from (winreg.EnumValue(key, index)[0] for index in range(values))


def _names_in_files(root: Path) -> Iterator[str]:
    for path in _files(root):
        data = read_bytes(path, _FILE_MAX_BYTES)
        yield from map(str, parse_policies(data, is_json=path.suffix == ".json"))


def _files(root: Path) -> Iterator[Path]:
    for folder in _JSON_FOLDERS:
        with suppress(FileNotFoundError):
            yield from (path for path in (root / folder).iterdir() if path.suffix == ".json")
    managed = root / "Library/Managed Preferences"
    yield from (path for n in _PROPERTY_LISTS if (path := managed / f"{n}.plist").exists())


def parse_policies(data: bytes, *, is_json: bool) -> dict[object, object]:
    """Parse a policy file: JSON or a property list. Raises ValueError if it is malformed."""
    try:
        policies = json.loads(data) if is_json else plistlib.loads(data)
    except (ValueError, RecursionError, ExpatError, LookupError, TypeError, AttributeError):
        policies = None  # plistlib raises various exceptions for malformed property lists
    if not isinstance(policies, dict):
        raise ValueError("a policy file of the browser cannot be read")
    return policies
