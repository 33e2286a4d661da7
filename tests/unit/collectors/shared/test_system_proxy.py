"""Tests reading the proxy from the settings of Windows and macOS, with fakes of the functions that
read the settings.
"""

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.shared.system_proxy import (
    parse_scutil_proxy,
    script_address,
    system_proxies,
    without_secrets,
)

SCUTIL = """<dictionary> {
  ExceptionsList : <array> {
    0 : *.local
  }
  ProxyAutoConfigEnable : 1
  ProxyAutoConfigURLString : http://user:secret@wpad.example/proxy.pac?token=1
}
"""


def settings(read: str, is_exception: str) -> Any:
    """Return fakes of the functions of urllib.request that read the settings of one platform.

    ``read`` and ``is_exception`` are the names of these functions.
    """
    proxies = {"http": "http://p:1", "https": "http://p:3128", "ftp": "http://p:2", "socks": ""}
    return SimpleNamespace(**{read: lambda: proxies, is_exception: "till.local".__eq__})


@pytest.mark.parametrize(
    ("platform", "functions"),
    [
        ("win32", settings("getproxies_registry", "proxy_bypass_registry")),
        ("darwin", settings("getproxies_macosx_sysconf", "proxy_bypass_macosx_sysconf")),
    ],
    ids=["win32", "darwin"],
)
def test_the_proxy_of_the_settings_is_read_with_its_exceptions(
    platform: str, functions: Any
) -> None:
    proxies = {"http": "http://p:1", "https": "http://p:3128"}
    assert system_proxies("ops.example", platform, functions) == proxies
    assert system_proxies("", platform, functions) == proxies
    assert system_proxies("till.local", platform, functions) == {}


def test_linux_has_no_proxy_settings_of_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    assert system_proxies("ops.example", "linux") == {}
    assert script_address("linux") is None


def test_the_address_of_the_proxy_script_of_macos_is_returned_without_secrets() -> None:
    address = script_address("darwin", lambda: parse_scutil_proxy(SCUTIL))
    assert address == "http://wpad.example/proxy.pac"
    disabled = SCUTIL.replace("Enable : 1", "Enable : 0")
    assert script_address("darwin", lambda: parse_scutil_proxy(disabled)) is None


def test_the_proxy_script_of_a_single_interface_of_macos_is_ignored() -> None:
    scoped = """<dictionary> {
  ProxyAutoConfigEnable : 0
  __SCOPED__ : <dictionary> {
    utun4 : <dictionary> {
      ProxyAutoConfigEnable : 1
      ProxyAutoConfigURLString : http://vpn.example/proxy.pac
    }
  }
}
"""
    assert parse_scutil_proxy(scoped) is None


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("http://pac/x.pac#y", "http://pac/x.pac"),
        ("file://C:/proxy.pac", "file://C:/proxy.pac"),
        ("http://anna:p@ss@pac:8080/x", "http://pac:8080/x"),
        ("nonsense", None),
        ("http://[", None),
    ],
)
def test_secrets_are_removed_from_an_address(address: str, expected: str | None) -> None:
    assert without_secrets(address) == expected


@given(st.text())
def test_any_address_is_returned_without_credentials(text: str) -> None:
    address = without_secrets(f"http://user:secret@{text}")
    assert address is None or "secret" not in address or "secret" in text


@given(st.text())
def test_parsing_any_output_of_scutil_never_raises(text: str) -> None:
    parse_scutil_proxy(text)
