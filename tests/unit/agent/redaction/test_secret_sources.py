"""Tests of the sources of secrets, including a broken configuration, and of the environment
variables that a child process may inherit.
"""

import os
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent.errors import AgentError, ConfigError, ServiceUnavailable
from agent.redaction import known
from agent.redaction.known import without_secrets
from agent.redaction.secret_sources import find_secrets, secrets_in_environment

BROKEN = """
[service]
api_key_file = "{}"
proxy = "http://user:p/ss@pl#ain@proxy:3128
password = 'planted value
"""


def test_secrets_are_collected_from_a_broken_configuration(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("9f8e7d6c\n")
    (tmp_path / "api-key").write_text("beside-it")
    config = tmp_path / "config.toml"
    config.write_text(BROKEN.format(key))
    results = set(find_secrets(config, {"VENUE_AGENT_API_KEY": "of the environment"}))
    assert {
        "9f8e7d6c",
        "beside-it",
        "p/ss@pl#ain",
        "planted value",
        "of the environment",
    } <= results


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the test creates a FIFO, which needs POSIX")
def test_fifos_are_not_read_for_secrets(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "api-key")
    os.mkfifo(tmp_path / "config.toml")
    assert list(find_secrets(tmp_path / "config.toml", {})) == []


def test_an_invalid_credentials_directory_is_ignored(tmp_path: Path) -> None:
    assert list(find_secrets(tmp_path / "config.toml", {"CREDENTIALS_DIRECTORY": "/\0"})) == []


def test_secrets_in_environment_variables_are_collected() -> None:
    environment = {
        "VENUE_AGENT_SERVICE__PROXY": "user:sche/me@proxy:1",
        "no_proxy": "localhost",
        "DB_PASSWORD": "longer than that",
        "PIN": "1234",  # too short to be masked wherever it occurs in a text
        "CREDENTIALS_DIRECTORY": "/run/credentials/x",
        "SSH_AUTH_SOCK": "/tmp/agent.1",
        "PWD": "/home/anna/venue",
    }
    assert set(secrets_in_environment(environment)) == {
        "user:sche/me", "sche/me", "longer than that",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://name:secret@proxy.example:3128", "http://proxy.example:3128"),
        ("http://name:se/cret@proxy.example:3128", "http://proxy.example:3128"),
        ("http://na%65me:se@c#r?et@proxy.example", "http://proxy.example"),
        ("name:secret@proxy.example:3128", "proxy.example:3128"),
        ("socks5://name:se cret@[::1]:1080", "socks5://[::1]:1080"),
        ("http://proxy.example:3128", "http://proxy.example:3128"),
        ("localhost,127.0.0.1,.example", "localhost,127.0.0.1,.example"),
    ],
)
def test_child_processes_get_the_address_of_a_proxy_without_its_password(
    url: str, expected: str
) -> None:
    for name in ("HTTPS_PROXY", "all_proxy"):
        assert without_secrets({name: url}) == {name: expected}


def test_a_variable_that_holds_a_secret_is_not_inherited() -> None:
    known.remember("9f8e7d6c")
    harmless = {
        "PATH": "/usr/bin:/opt/homebrew/opt/python@3.12/bin",
        "LANG": "de_DE.UTF-8@euro",
        "HOME": "/root",
    }
    secrets = {"TMPDIR": "/tmp/9f8e7d6c", "TZ": "vck_12345678", "API_KEY": "x"}
    assert without_secrets({**harmless, **secrets}) == harmless


# A user name with slashes is excluded: it could look like the beginning of a URL.
@given(st.text(st.characters(exclude_characters="/"), max_size=30), st.text(max_size=30))
@example("", "://")
@example("user", "://x")
def test_no_password_is_inherited(user: str, password: str) -> None:
    long_password = f"q7Zk{password}Wv9x"
    for url in (f"http://{user}:{long_password}@proxy:3128", f"{user}:{long_password}@proxy:3128"):
        (value,) = without_secrets({"HTTPS_PROXY": url}).values()
        assert value in {"http://proxy:3128", "proxy:3128"}


def test_error_messages_contain_no_known_secrets() -> None:
    known.remember("9f8e7d6c")
    assert str(AgentError("no key 9f8e7d6c")) == "no key ***"
    assert (
        str(ServiceUnavailable("proxy", "http://u:p/w@proxy refuses")) == "http://***@proxy refuses"
    )
    assert ConfigError(("password = x", "b")).problems == ("password = ***", "b")


def test_a_secret_that_is_remembered_again_is_kept_longer() -> None:
    for number in range(known.KNOWN_MAX):
        known.remember(f"secret-{number}-")
    known.remember("secret-0-")
    known.remember("secret-new-")
    assert known.redact("secret-0- secret-1-") == "*** secret-1-"


def test_the_oldest_known_secret_is_dropped_at_the_limit() -> None:
    for number in range(known.KNOWN_MAX + 1):
        known.remember(f"secret-{number}-")
    assert known.redact("secret-0- secret-1-") == "secret-0- ***"


def test_a_forgotten_secret_is_not_redacted() -> None:
    known.remember("9f8e7d6c")
    known.forget()
    assert known.redact("9f8e7d6c") == "9f8e7d6c"
