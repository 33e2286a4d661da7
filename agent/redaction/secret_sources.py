"""Finds the agent's secrets on this machine: key files, environment, configuration.

The secrets are found even if the configuration is invalid. Unreadable files are ignored, and no
exception is raised.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from agent.redaction.configuration import SHORTEST_VALUE, secrets_in_configuration
from agent.redaction.named_values import names_a_secret
from agent.redaction.userinfo import userinfo_of
from agent.regular_file import read_regular

_FILE_MAX_BYTES: Final = 1_000_000
_KEY_MAX_BYTES: Final = 4096
_KEY_NAME: Final = "api-key"
"""Name of the key file beside the configuration, and of the API key in systemd's credentials."""
_KEY_FILE: Final = re.compile(
    r"""(?m)^[^\S\n]*(?:service\.)?api_key_file[^\S\n]*=[^\S\n]*["']([^"'\n]{1,4096})"""
)
_PREFIX: Final = "VENUE_AGENT_"
_KEY_FILE_VARIABLE: Final = f"{_PREFIX}SERVICE__API_KEY_FILE"


def find_secrets(config: Path, environment: Mapping[str, str]) -> Iterator[str]:
    """Yield the secrets. ``config`` is the path of the configuration, which need not exist."""
    yield from secrets_in_environment(environment)
    text = _read(config, _FILE_MAX_BYTES)
    yield from secrets_in_configuration(text)
    files = [Path(name) for name in _KEY_FILE.findall(text)]
    files += [Path(name) for name in (environment.get(_KEY_FILE_VARIABLE),) if name]
    if directory := environment.get("CREDENTIALS_DIRECTORY"):  # systemd.exec(5)
        files.append(Path(directory) / _KEY_NAME)
    for file in (*files, config.parent / _KEY_NAME):
        yield from filter(None, map(str.strip, _read(file, _KEY_MAX_BYTES).splitlines()))


def secrets_in_environment(environment: Mapping[str, str]) -> Iterator[str]:
    """Yield the values of secret variables, and the credentials in URLs.

    URLs are expected only in the variables of proxies, and in the agent's own variables.
    """
    for name, value in environment.items():
        if name.lower().endswith("_proxy") or (name.startswith(_PREFIX) and "://" in value):
            yield from userinfo_of(value)
        elif names_a_secret(name) and len(value) >= SHORTEST_VALUE:
            yield value


def _read(path: Path, max_bytes: int) -> str:
    try:
        return read_regular(path, max_bytes).decode("utf-8-sig", "replace")
    except (OSError, ValueError):
        return ""
