"""Reads the configuration: a TOML file, then the environment, then the models' own check.

Problems are reported one a line as ``file:line:column: what is wrong``, with the nearest valid
key where one was mistyped. Nothing here asks whether the service answers.
"""

import difflib
import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from agent.config import LocalConfig, default_config_path
from agent.errors import ConfigError

ENVIRONMENT_PREFIX = "VENUE_AGENT_"
MAX_FILE_BYTES = 1_000_000

ConfigModel = TypeVar("ConfigModel", bound=LocalConfig)
Location = tuple[int | str, ...]

_HEADER = re.compile(r"^\s*(\[{1,2})\s*([\w.\-]+)\s*\]{1,2}")
_ASSIGNMENT = re.compile(r"^\s*([\w\-]+)\s*=")


@dataclass(frozen=True, slots=True)
class Loaded(Generic[ConfigModel]):
    """A checked configuration and where each value came from (keys as ``section.key``)."""

    config: ConfigModel
    path: Path | None
    origins: Mapping[str, str]


def load(
    model: type[ConfigModel],
    path: Path | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Loaded[ConfigModel]:
    """Read and check the configuration for ``model``.

    A missing file is an error only if ``path`` names it. Raises ConfigError.
    """
    text, source = _read(path)
    name = str(source) if source else "environment"
    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError((_syntax_problem(name, error, text),)) from None
    origins = {f"{section}.{key}": name for section, key in _keys(tree)}
    for variable, section, key, value in _overrides(model, environment):
        values = tree.setdefault(section, {})
        if not isinstance(values, dict):
            raise ConfigError((f"{variable}: [{section}] cannot be set by the environment",))
        values[key] = value
        origins[f"{section}.{key}"] = variable
    try:
        config = model.model_validate_json(json.dumps(tree, default=str))
    except ValidationError as error:
        positions = _positions(text)
        first_at: dict[Location, ErrorDetails] = {}
        for details in error.errors():
            details["loc"] = _place(model, details["loc"])
            first_at.setdefault(details["loc"], details)
        problems = (_problem(model, name, origins, positions, e) for e in first_at.values())
        raise ConfigError(tuple(dict.fromkeys(problems))) from None
    return Loaded(config, source, origins)


def _read(path: Path | None) -> tuple[str, Path | None]:
    source = path or default_config_path()
    try:
        content = source.read_bytes()
    except FileNotFoundError:
        if path is None:
            return "", None
        raise ConfigError((f"{source}: there is no such file",)) from None
    except OSError as error:
        raise ConfigError((f"{source}: cannot be read: {error.strerror}",)) from None
    if len(content) > MAX_FILE_BYTES:
        raise ConfigError((f"{source}: is larger than {MAX_FILE_BYTES} bytes",))
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n"), source
    except UnicodeDecodeError as error:
        raise ConfigError((f"{source}: is not UTF-8 text (byte {error.start})",)) from None


def _keys(tree: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for section, values in tree.items():
        if isinstance(values, dict):
            yield from ((section, key) for key in values)


def _overrides(
    model: type[BaseModel], environment: Mapping[str, str]
) -> Iterator[tuple[str, str, str, Any]]:
    """Yield (variable, section, key, value) of each ``VENUE_AGENT_<SECTION>__<KEY>``."""
    for variable, text in sorted(environment.items()):
        if not variable.startswith(ENVIRONMENT_PREFIX) or "__" not in variable:
            continue
        section, key = variable.removeprefix(ENVIRONMENT_PREFIX).lower().split("__", 1)
        yield variable, section, key, _value_of(model, section, key, text)


def _value_of(model: type[BaseModel], section: str, key: str, text: str) -> Any:
    """Read a variable as a TOML value where the key is not a string; else as it stands."""
    field = _fields_below(model, (section,)).get(key)
    if field is not None and (isinstance(field.default, str) or field.annotation is str):
        return text
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _fields_below(model: type[BaseModel], location: Location) -> Mapping[str, Any]:
    """Return the fields of the section that ``location`` leads to; none if it leads nowhere."""
    for part in location:
        if isinstance(part, int):
            continue
        field = model.model_fields.get(part)
        if field is None:
            return {}
        inner = next(
            (t for t in _types_in(field.annotation) if issubclass(t, BaseModel)),
            None,
        )
        if inner is None:
            return {}
        model = inner
    return model.model_fields


def _place(model: type[BaseModel], location: Location) -> Location:
    """Return ``location`` without the names that pydantic gives to the branches of a union."""
    for depth, part in enumerate(location):
        if isinstance(part, str) and not _fields_below(model, location[:depth]):
            return location[:depth]
    return location


def _types_in(annotation: Any) -> Iterator[type]:
    if isinstance(annotation, type):
        yield annotation
    for argument in getattr(annotation, "__args__", ()):
        yield from _types_in(argument)


def _syntax_problem(name: str, error: tomllib.TOMLDecodeError, text: str) -> str:
    message = str(error)
    if found := re.search(r" \(at line (\d+), column (\d+)\)$", message):
        line, column = int(found[1]), int(found[2])
        offending = text.splitlines()[line - 1].strip() if line <= text.count("\n") + 1 else ""
        return f"{name}:{line}:{column}: {message[: found.start()]}: {offending!r}"
    return f"{name}: {message}"


def _positions(text: str) -> dict[Location, tuple[int, int]]:
    """Map each table and key of a TOML text to the line and column where it stands.

    Enough for this configuration: plain tables, arrays of tables and bare keys.
    """
    positions: dict[Location, tuple[int, int]] = {}
    table: Location = ()
    counts: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _HEADER.match(line):
            table = tuple(header[2].split("."))
            if header[1] == "[[":
                counts[header[2]] = counts.get(header[2], -1) + 1
                table = (*table, counts[header[2]])
            positions[table] = (number, header.start(2) + 1)
        elif assignment := _ASSIGNMENT.match(line):
            positions[(*table, assignment[1])] = (number, assignment.start(1) + 1)
    return positions


def _problem(
    model: type[BaseModel],
    name: str,
    origins: Mapping[str, str],
    positions: Mapping[Location, tuple[int, int]],
    error: ErrorDetails,
) -> str:
    location = error["loc"]
    key = ".".join(str(part) for part in location)
    message = _message(model, location, error)
    prefix = ".".join(str(part) for part in location[:2])
    origin = next(
        (o for k, o in origins.items() if k == prefix or k.startswith(f"{prefix}.")), name
    )
    if origin != name:
        return f"{origin}: {message}"
    for length in range(len(location), 0, -1):
        if position := positions.get(location[:length]):
            return f"{name}:{position[0]}:{position[1]}: {message}"
    return f"{name}: {message}" if key else f"{name}: {error['msg']}"


def _message(model: type[BaseModel], location: Location, error: ErrorDetails) -> str:
    *section, key = location or ("",)
    where = f" in [{section[0]}]" if section else ""
    if error["type"] == "extra_forbidden":
        known = list(_fields_below(model, tuple(section)))
        nearest = difflib.get_close_matches(str(key), known, n=1, cutoff=0.5)
        suggestion = f"; did you mean {nearest[0]!r}?" if nearest else ""
        return f"unknown key {str(key)!r}{where}{suggestion}"
    if error["type"] == "missing":
        return f"the key {str(key)!r}{where} is required"
    value = f" (it is {repr(error['input'])[:80]})"
    text = error["msg"].removeprefix("Value error, ")
    name = ".".join(str(part) for part in location if isinstance(part, str))
    return f"{name} {text[:1].lower()}{text[1:]}{value}"
