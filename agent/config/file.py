"""Reads the configuration: a TOML file, then the environment, then validation by the models.

Each problem is one line of the form ``file:line:column: message``, with the nearest valid key if a
key is mistyped. The service is not called.
"""

import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, get_origin

from agent.config.model import (
    SECTIONS,
    Config,
    DeviceSection,
    LocalConfig,
    default_config_path,
    state_dir,
)
from agent.errors import ConfigError, ConfigMissing, ConfigNotVisible
from agent.redaction.known import remember
from agent.redaction.secret_sources import find_secrets
from agent.regular_file import read_regular
from agent.wire.codec import validate
from agent.wire.validation import Issue, ValidationError

if TYPE_CHECKING:
    from agent.config.problems import Source

ENVIRONMENT_PREFIX = "VENUE_AGENT_"
MAX_FILE_BYTES = 1_000_000

ConfigModel = TypeVar("ConfigModel", bound=LocalConfig)


@dataclass(frozen=True, slots=True)
class LoadedConfig(Generic[ConfigModel]):
    """A valid configuration.

    ``path`` is the file, or None if there is no file. ``origins`` maps each ``section.key`` that is
    set to its origin: the file's name or the name of a variable.
    """

    config: ConfigModel
    path: Path | None
    origins: Mapping[str, str]

    @property
    def state_dir(self) -> Path:
        return state_dir(self.config.device, self.path)


@dataclass(frozen=True, slots=True)
class _RawConfig:
    """The configuration from the file and the environment variables, before validation.

    ``name`` is the name of the file.
    """

    tree: dict[str, Any]
    name: str
    path: Path | None
    text: str
    origins: Mapping[str, str]
    environment: Mapping[str, str]

    def problems(self, issues: Iterable[Issue]) -> tuple[str, ...]:
        """Return a line for each issue."""
        from agent.config.problems import problems_of  # rarely needed

        # The messages repeat the invalid values. Only remembered secrets are masked in them.
        remember(*find_secrets(self.path or default_config_path(), self.environment))
        return problems_of(tuple(issues), self.source())

    def source(self) -> "Source":
        from agent.config.problems import Source, positions_of  # rarely needed

        return Source(self.name, positions_of(self.text), self.origins)


def load(
    model: type[ConfigModel],
    path: Path | None = None,
    environment: Mapping[str, str] = os.environ,
) -> LoadedConfig[ConfigModel]:
    """Read and validate the configuration for ``model``.

    A missing file is an error only if ``path`` names it, or if ``model`` requires a value that no
    variable sets. Raises ConfigError.
    """
    raw = _read_raw(path, environment)
    try:
        config = validate(raw.tree, model)
    except ValidationError as error:
        if raw.path is None and issubclass(model, Config) and "service" not in raw.tree:
            from agent.config.rights import no_configuration  # rarely needed

            raise ConfigMissing((no_configuration(),)) from None
        raise ConfigError(raw.problems(error.issues)) from None
    return LoadedConfig(config, raw.path, raw.origins)


def review(
    path: Path | None = None, environment: Mapping[str, str] = os.environ
) -> tuple[str, ...]:
    """Return a line for every problem, including problems that do not stop a daemon.

    Raises ConfigError if the file cannot be read at all.
    """
    from agent.config.review import review_of  # rarely needed

    raw = _read_raw(path, environment)
    issues = review_of(raw.tree)
    try:
        validate(raw.tree, Config)
    except ValidationError as error:
        issues = chain(error.issues, issues)
    return raw.problems(issues)


def place_of(key: str, path: Path | None) -> str | None:
    """Return where ``section.key`` is set: a variable or file:line:column. None if it is unset."""
    raw = _read_raw(path, os.environ)
    return raw.source().place_of(tuple(key.split(".")))[1] if key in raw.origins else None


def _read_raw(path: Path | None, environment: Mapping[str, str]) -> _RawConfig:
    text, source = _read_text(path)
    name = str(source) if source else "environment"
    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        from agent.config.syntax import syntax_problem  # rarely needed

        raise ConfigError((syntax_problem(name, error, text),)) from None
    tables = {section: keys for section, keys in tree.items() if isinstance(keys, dict)}
    origins = {f"{section}.{key}": name for section, keys in tables.items() for key in keys}
    for variable, section, key, value in _overrides(environment):
        values = tree.setdefault(section, {})
        if not isinstance(values, dict):
            raise ConfigError((f"{variable}: [{section}] cannot be set by the environment",))
        values[key] = value
        origins[f"{section}.{key}"] = variable
    return _RawConfig(tree, name, source, text, origins, environment)


def guessed_state_dir(path: Path | None = None) -> Path:
    """Return the state directory that an invalid or unreadable configuration probably names."""
    source = path or default_config_path()
    try:
        configured_dir = tomllib.loads(_read_text(path)[0]).get("device", {}).get("state_dir", "")
    except (ConfigError, tomllib.TOMLDecodeError, AttributeError):
        configured_dir = ""
    return state_dir(
        DeviceSection(state_dir=configured_dir if isinstance(configured_dir, str) else ""), source
    )


def _read_text(path: Path | None) -> tuple[str, Path | None]:
    source = path or default_config_path()
    try:
        content = read_regular(source, MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        if path is None:
            return "", None
        raise ConfigError((f"{source}: the file does not exist",)) from None
    except PermissionError:
        raise ConfigNotVisible((f"{source} is closed to this user",)) from None
    except OSError as error:
        raise ConfigError((f"{source}: cannot be read: {error.strerror}",)) from None
    if len(content) > MAX_FILE_BYTES:
        raise ConfigError((f"{source}: is larger than {MAX_FILE_BYTES} bytes: shorten it",))
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n"), source
    except UnicodeDecodeError as error:
        raise ConfigError(
            (f"{source}: is not UTF-8 text (byte {error.start}): save it with the encoding UTF-8",)
        ) from None


def _overrides(environment: Mapping[str, str]) -> Iterator[tuple[str, str, str, Any]]:
    """Yield (variable, section, key, value) of each ``VENUE_AGENT_<SECTION>__<KEY>``."""
    for variable, text in sorted(environment.items()):
        if not variable.startswith(ENVIRONMENT_PREFIX) or "__" not in variable:
            continue
        section, key = variable.removeprefix(ENVIRONMENT_PREFIX).lower().split("__", 1)
        yield variable, section, key, _value_of(section, key, text)


def _value_of(section: str, key: str, text: str) -> Any:
    """Parse the text of a variable as TOML.

    Returns the text unchanged if the key needs a string, or if the text is not TOML.
    """
    table = SECTIONS.get(section)
    field = None if table is None else table.model_fields.get(key)
    if field and (field.annotation is str or get_origin(field.annotation) is Literal):
        return text
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
