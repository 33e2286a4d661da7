"""`venue-agent config`: check the configuration, show what holds and from where, or its schema."""

import argparse
import json
import sys
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from agent.cli.options import add_config_option, add_json_option
from agent.config import Config, LocalConfig, default_config_path
from agent.config_file import Loaded, load
from agent.credential import find_api_key
from agent.daemon import load_for_daemon

DEFAULT = "default"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("check", "show", "schema"))
    add_config_option(parser)
    add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    if options.action == "schema":
        sys.stdout.write(json.dumps(Config.model_json_schema(), indent=2) + "\n")
    elif options.action == "check":
        loaded = load_for_daemon(options.config)
        sys.stdout.write(f"{loaded.path or 'environment'}: ok\n")
    else:
        _show(load(LocalConfig, options.config), as_json=options.json)
    return 0


def _show(loaded: Loaded[LocalConfig], *, as_json: bool) -> None:
    rows = list(_rows(loaded.config, loaded.origins))
    if as_json:
        document = {key: {"value": value, "from": origin} for key, value, origin in rows}
        sys.stdout.write(json.dumps(document, indent=2) + "\n")
        return
    sys.stdout.write(f"# {loaded.path or f'no file at {default_config_path()}'}\n")
    for key, value, origin in rows:
        sys.stdout.write(f"{key} = {json.dumps(value)}  # {origin}\n")
    service = loaded.config.service
    source = find_api_key(service.api_key_file if service else "")
    sys.stdout.write(f"# the API key is read from {source.describe()} (not shown)\n")


def _rows(config: LocalConfig, origins: Any) -> Iterator[tuple[str, Any, str]]:
    """Yield (key, value, origin) of every effective value."""
    for section in type(config).model_fields:
        value = getattr(config, section)
        if isinstance(value, BaseModel):
            for key, inner in value.model_dump(mode="json").items():
                name = f"{section}.{key}"
                yield name, _masked(key, inner), origins.get(name, DEFAULT)
        elif value:
            items = [item.model_dump(mode="json") for item in value]
            yield section, items, "file"


def _masked(key: str, value: Any) -> Any:
    """Hide the password of a proxy URL."""
    if key == "proxy" and isinstance(value, str) and "@" in value:
        scheme, _, rest = value.rpartition("//")
        return f"{scheme}//***@{rest.rpartition('@')[2]}"
    return value
