"""Writes the first configuration of a service from the options of `service install`.

An existing configuration is never overwritten.
"""

import getpass
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agent.adapters.service_manager.contract import ServiceManagerError, ServicePaths
from agent.adapters.storage.atomic_file import PRIVATE, write_atomically
from agent.config.credential import MAX_KEY_LENGTH, ApiKeySource, parse_key
from agent.config.model import Service
from agent.config.review import review_of
from agent.errors import ConfigError, CredentialRefused
from agent.wire.codec import validate
from agent.wire.validation import Issue, ValidationError

_DIRECTORY_MODE = 0o755
STDIN: Final = "-"
"""The value of `--api-key-file` that means standard input."""
_OPTIONS: Final = {
    "base_url": "--base-url",
    "location_id": "--location",
    "api_key_file": "--api-key-file",
}
"""The command-line option for each key of the configuration section `service`."""


@dataclass(frozen=True, slots=True)
class InstallOptions:
    """The options of `service install`, from which the first configuration is written."""

    base_url: str | None = None
    location_id: str | None = None
    api_key_file: Path | None = None

    @property
    def missing(self) -> tuple[str, ...]:
        """The required options that were not passed."""
        return tuple(option for name, option in _OPTIONS.items() if getattr(self, name) is None)


def config_text(options: InstallOptions, paths: ServicePaths) -> str:
    """Return the first configuration as TOML. Raises ConfigError for an invalid value."""
    values = {"base_url": options.base_url, "location_id": options.location_id}
    present_values = {key: value for key, value in values.items() if value is not None}
    issues = tuple(review_of({"service": present_values}))
    try:
        validate(present_values, Service)
    except ValidationError as error:
        issues = error.issues
    if issues:
        raise ConfigError(tuple(f"{_option_of(issue)} {issue.reason}" for issue in issues))
    if paths.has_key_path_in_config:
        values["api_key_file"] = str(paths.api_key)
    lines = [f"{key} = {_toml_string(value or '')}" for key, value in values.items()]
    return "\n".join(("# All keys: `venue-agent config schema`.", "[service]", *lines, ""))


def write_first_config(options: InstallOptions, paths: ServicePaths) -> tuple[Path, ...]:
    """Write the configuration if it does not exist, and the API key if it has changed.

    If all options are empty, nothing is written. Returns the written files. If the first
    configuration lacks an option, or a value is invalid, raises ConfigError and writes nothing.
    """
    text = None
    if not paths.config.exists() and options != InstallOptions():
        if options.missing:
            problem = f"a first configuration needs {' and '.join(options.missing)} as well"
            raise ConfigError((problem,))
        text = config_text(options, paths)
    key = _new_key(options.api_key_file)
    written_files = []
    try:
        if key is not None and _read(paths.api_key) != key:
            _write(paths.api_key, key)
            written_files.append(paths.api_key)
        if text is not None:
            _write(paths.config, text)
            written_files.append(paths.config)
    except OSError as error:
        raise ServiceManagerError(f"{error.filename} cannot be written: {error.strerror}") from None
    return tuple(written_files)


def _option_of(issue: Issue) -> str:
    key = str(issue.path[-1]) if issue.path else ""
    return _OPTIONS.get(key, key)


def _toml_string(text: str) -> str:
    """Return ``text`` as a TOML string. JSON has the same syntax, but does not escape DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _new_key(file: Path | None) -> str | None:
    if file is None:
        return None
    try:
        if str(file) == STDIN:
            key = parse_key(_read_stdin(), "standard input")
        else:
            key = ApiKeySource(file, None).read()
    except CredentialRefused as error:
        raise ConfigError((str(error),)) from None
    return key + "\n"


def _read_stdin() -> str:
    """Return the first line of standard input. A terminal shows a prompt, but not the input."""
    if not sys.stdin.isatty():
        return sys.stdin.readline(MAX_KEY_LENGTH + 2)  # the key, CR and LF
    try:
        return getpass.getpass("API key (not shown): ")
    except EOFError:
        return ""


def _read(path: Path) -> str | None:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError):
        return None


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(mode=_DIRECTORY_MODE, parents=True, exist_ok=True)
    write_atomically(path, text.encode(), PRIVATE)
