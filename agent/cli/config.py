"""`venue-agent config`: checks the configuration, shows its values, schema and an example."""

import argparse
import contextlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Final
from urllib.request import getproxies

from agent.cli.terminal.options import add_config_and_json_options
from agent.cli.terminal.screen import Part, Screen, Style, print_json
from agent.config.credential import ApiKeySource, key_source
from agent.config.file import ENVIRONMENT_PREFIX, LoadedConfig, load, place_of, review
from agent.config.model import Config, LocalConfig, Section, Service
from agent.config.rights import no_configuration
from agent.errors import ConfigError, ConfigMissing, ConfigNotVisible
from agent.redaction.known import redact, redact_value
from agent.wire.codec import to_plain

DEFAULT: Final = "default"
SCHEMA_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

ACTIONS: Final = {
    "check": "validate the configuration, and print where each problem is",
    "show": "print every effective value and its origin; secrets are masked",
    "schema": "print the JSON Schema of the configuration, for editors",
    "example": "print an example with every key, its meaning and its default",
}


@dataclass(frozen=True, slots=True)
class Value:
    """An effective value of the configuration.

    ``origin`` is "default", a file's path or a variable's name. For an entry of an array of tables,
    such as [[printers]], ``key`` is the entry's id or name, and ``value`` has its other keys.
    """

    section: str
    key: str
    value: Any
    origin: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, summary in ACTIONS.items():
        action = actions.add_parser(name, help=summary, description=summary)
        if name in {"check", "show"}:
            add_config_and_json_options(action)


def run(options: argparse.Namespace) -> int:
    if options.action == "schema":
        print_json(schema())
    elif options.action == "example":
        from agent.config.example import example

        sys.stdout.write(example())
    elif options.action == "check":
        return _check(options)
    else:
        return _show_effective(load(LocalConfig, options.config), as_json=options.json)
    return 0


def schema() -> dict[str, Any]:
    """Return the configuration's JSON Schema."""
    document = Config.model_json_schema()
    for definition in (document, *document["$defs"].values()):
        # This description is a docstring. The packaged agent has no docstrings, but must print the
        # same schema.
        definition.pop("description", None)
    return {"$schema": SCHEMA_DIALECT, **document, "title": "Configuration of the venue agent"}


def _check(options: argparse.Namespace) -> int:
    """Print that the configuration is valid and return 0, or raise ConfigError.

    With `--json`, print the problems instead of raising them. Then return 2, or 3 if this user is
    not permitted to read the configuration or the API key.
    """
    try:
        source = _validate(options.config)
    except ConfigError as error:
        if not options.json:
            raise
        is_visible = not isinstance(error, ConfigNotVisible)
        document = {"ok": False if is_visible else None, "problems": error.problems}
        print_json(document)
        return 2 if is_visible else 3
    if options.json:
        print_json({"ok": True, "problems": []})
    else:
        sys.stdout.write(f"{source or 'environment'}: ok\n")
    return 0


def _validate(path: Path | None) -> Path | None:
    """Check the configuration and return the path of its file. Raises ConfigError."""
    try:
        loaded = load(Config, path)
    except ConfigMissing:
        raise
    except ConfigError as error:
        raise ConfigError(review(path) or error.problems) from None
    problems = list(review(path))
    access_problems: list[str] = []
    for key, check in _external_checks(loaded):
        try:
            check()
        except ConfigNotVisible as error:
            access_problems += error.problems
        except ConfigError as error:
            place = place_of(key, path)
            problems += [f"{place}: {problem}" if place else problem for problem in error.problems]
    if problems:
        raise ConfigError((*problems, *access_problems))
    if access_problems:
        raise ConfigNotVisible(tuple(access_problems))
    return loaded.path


def _external_checks(loaded: LoadedConfig[Config]) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield the keys whose values depend on files or the system, each with its check."""
    service = loaded.config.service
    api_key = key_source(service.api_key_file, loaded.path)
    # The proxy and the CA file are checked separately, so that a problem names the right key.
    if service.proxy or getproxies():
        yield "service.proxy", lambda: _check_service(service.model_copy(update={"ca_file": ""}))
    if service.ca_file:
        yield "service.ca_file", lambda: _check_service(service.model_copy(update={"proxy": ""}))
    yield "service.api_key_file", lambda: _check_api_key(api_key)
    yield "device.state_dir", lambda: _require_directory(loaded.state_dir)


def _check_service(service: Service) -> None:
    from agent.adapters.http_client import client_for  # the import takes half of the command's time

    client_for(service)


def _check_api_key(source: ApiKeySource) -> None:
    from agent.config.review import is_placeholder  # needed for `check` only

    if is_placeholder(source.read_as_configured()):
        problem = f"{source.describe()} contains a placeholder: write the API key into it"
        raise ConfigError((problem,))
    if access_problem := source.access_problem():
        raise ConfigError((access_problem,))


def _require_directory(path: Path) -> None:
    with contextlib.suppress(PermissionError):
        if path.exists() and not path.is_dir():
            raise ConfigError((f"{path} is not a directory",))


def _show_effective(loaded: LoadedConfig[LocalConfig], *, as_json: bool) -> int:
    """Show the values that `collect` would use. Return 2 if there is no configuration."""
    _show(loaded, as_json=as_json)
    if loaded.path is not None or loaded.config.service is not None:
        return 0
    sys.stderr.write(f"venue-agent: {no_configuration()}\n")
    return 2


def _show(loaded: LoadedConfig[LocalConfig], *, as_json: bool) -> None:
    values = list(_values(loaded.config, loaded.origins, str(loaded.path)))
    if as_json:
        document = {
            f"{v.section}.{v.key}" if v.key else v.section: {"value": v.value, "from": v.origin}
            for v in values
        }
        print_json(document)
        return
    screen = Screen()
    # Blank headings set the widths of the columns, so that the tables of all sections are aligned.
    headings = (" " * max(len(value.key) for value in values), " " * len("variable"), "")
    screen.line((f"# {loaded.path or 'defaults and variables: there is no file'}", "quiet"))
    for section, group in groupby(values, key=lambda v: v.section):
        screen.blank()
        screen.line((f"[{section}]", "strong"))
        screen.table(headings, [_row(value) for value in group])
    screen.blank()
    service = loaded.config.service
    key = key_source(service.api_key_file if service else "", loaded.path)
    has_key = key.file is not None or key.variable_value is not None
    key_note = f"The API key is read from {key.describe()}; it is not shown."
    screen.paragraph(key_note if has_key else "No API key is configured.", "quiet")
    if any(v.origin.startswith(ENVIRONMENT_PREFIX) for v in values):
        name = f"{ENVIRONMENT_PREFIX}<SECTION>__<KEY>"
        screen.paragraph(f"`variable` means: set by the variable {name}.", "quiet")


def _row(value: Value) -> tuple[Part, ...]:
    is_default = value.origin == DEFAULT
    style: Style = "quiet" if is_default else "none"
    origin = "variable" if value.origin.startswith(ENVIRONMENT_PREFIX) else "file"
    text = json.dumps(value.value, ensure_ascii=False)
    return value.key, (DEFAULT if is_default else origin, style), (text, style)


def _values(config: LocalConfig, origins: Mapping[str, str], file: str) -> Iterator[Value]:
    for section in type(config).model_fields:
        value = getattr(config, section)
        if isinstance(value, Section):
            for key, inner in to_plain(value).items():
                origin = origins.get(f"{section}.{key}", DEFAULT)
                yield Value(section, key, redact_value(key, inner), origin)
        else:
            for item in value or ():
                inner = to_plain(item)
                key = inner.pop("id" if "id" in inner else "name")
                yield Value(section, redact(key), redact_value(section, inner), file)
