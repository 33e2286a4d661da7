"""The web proxy in the settings of the operating system: "Internet Settings" of Windows, "Network"
of macOS. Other systems have no such settings; their programs use environment variables.

The settings are those of the account that runs this process.
"""

import re
import sys
import time
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

_FUNCTIONS: Final = {
    "win32": ("getproxies_registry", "proxy_bypass_registry"),
    "darwin": ("getproxies_macosx_sysconf", "proxy_bypass_macosx_sysconf"),
}
"""Functions of urllib.request: the first reads the settings, the second tests for exempt hosts."""
_INTERNET_SETTINGS: Final = r"Software\Microsoft\Windows\CurrentVersion\Internet Settings"
_SCOPED: Final = "__SCOPED__ : <dictionary> {"
"""The text in the output of `scutil --proxy` at which the settings of single interfaces begin. The
settings of the system are before this text."""
_SCRIPT_ENABLED = re.compile(r"^\s*ProxyAutoConfigEnable : 1$", re.MULTILINE)
_SCRIPT_ADDRESS = re.compile(r"^\s*ProxyAutoConfigURLString : (\S{1,2048})$", re.MULTILINE)
_SCUTIL_TIMEOUT_S: Final = 2.0

HAS_SETTINGS: Final = sys.platform in _FUNCTIONS


def system_proxies(
    host: str, platform: str = sys.platform, functions: Any = urllib.request
) -> Mapping[str, str]:
    """Return the URL of the proxy for ``host`` by scheme.

    Returns {} if the settings exempt ``host`` from the proxy, or if this system has no settings.
    """
    if platform not in _FUNCTIONS:
        return {}
    read, bypasses_proxy = (getattr(functions, name) for name in _FUNCTIONS[platform])
    if host and bypasses_proxy(host):
        return {}
    return {scheme: url for scheme, url in read().items() if scheme in {"http", "https"} and url}


def script_address(
    platform: str = sys.platform, read: Callable[[], str | None] | None = None
) -> str | None:
    """Return the address of the script that selects a proxy (PAC), which the agent does not run.

    The address has no user name, password or query. Returns None if no script is set. Raises
    OSError or ValueError if the settings cannot be read.
    """
    readers = {"win32": _script_of_windows, "darwin": _script_of_macos}
    address = (read or readers.get(platform, lambda: None))()
    return None if address is None else without_secrets(address)


def without_secrets(address: str) -> str | None:
    """Return an address without user name, password, query and fragment.

    Returns None if the address has no host, unless it is a ``file`` URL.
    """
    try:
        parts = urlsplit(address)
        host = parts.netloc.rpartition("@")[2]
    except ValueError:
        return None
    is_file = parts.scheme == "file"
    return urlunsplit((parts.scheme, host, parts.path, "", "")) if host or is_file else None


def parse_scutil_proxy(text: str) -> str | None:
    """Return the address of the script in the output of `scutil --proxy`."""
    settings = text.partition(_SCOPED)[0]
    address = _SCRIPT_ADDRESS.search(settings)
    return address[1] if address and _SCRIPT_ENABLED.search(settings) else None


def _script_of_windows() -> str | None:
    if sys.platform == "win32":
        import winreg

        try:
            with winreg.OpenKey(winreg.HKEY_CURRENT_USER, _INTERNET_SETTINGS) as key:
                return str(winreg.QueryValueEx(key, "AutoConfigURL")[0]).strip() or None
        except FileNotFoundError:
            return None
    return None


def _script_of_macos() -> str | None:
    # Imported here, because the daemon must not load code that runs programs.
    from collectors.shared.run_command import run_command
    from collectors.shared.text import decode

    output = run_command(("scutil", "--proxy"), time.monotonic() + _SCUTIL_TIMEOUT_S)
    return parse_scutil_proxy(decode(output.data))
