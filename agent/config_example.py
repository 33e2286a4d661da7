"""The example configuration, written from the models: it can be neither late nor wrong.

Each key has one line of comment and stands commented out with its default; only what is required
is set.
"""

import json
from collections.abc import Iterator
from typing import Any, Final

import msgspec
from msgspec.structs import FieldInfo, fields

from agent.config import Config, Printer
from agent.config_texts import TEXTS
from agent.wire.mistakes import choices_of, section_of
from agent.wire.model import Record

HEAD: Final = """\
# Configuration of the venue agent. All but the three keys of [service] that are set may stay as
# they are: a line that begins with "# key =" shows the default.
# Check it with `venue-agent config check`; see what holds with `venue-agent config show`.
# VENUE_AGENT_<SECTION>__<KEY> in the environment overrides a key of this file.
"""

_REQUIRED: Final = {
    "base_url": "https://ops.example.com",
    "location_id": "loc-0001",
    "api_key_file": "/etc/venue-agent/api-key",
}
_PRINTER: Final = {
    "id": "kitchen",
    "name": "Kitchen printer",
    "transport": "network",
    "address": "192.168.1.50:9100",
}
_UNITS: Final = {"_seconds": "seconds", "_bytes": "bytes", "_days": "days"}


def example() -> str:
    """Return the text of config.example.toml."""
    parts = [HEAD]
    for section in fields(Config):
        parts.append(f"\n# {TEXTS[section.name]}\n")
        model = section_of(section.type)
        if model is None:
            raise TypeError(f"{section.name} is no section")
        if model is Printer:
            parts.append("# [[printers]]\n")
            parts.extend(_commented(section.name, model, _PRINTER))
        else:
            parts.append(f"[{section.name}]\n")
            parts.extend(_keys(section.name, model))
    return "".join(parts)


def _keys(section: str, model: type[Record]) -> Iterator[str]:
    for field in fields(model):
        yield f"# {_comment(section, field)}\n"
        if field.name in _REQUIRED:
            yield f"{field.name} = {_toml(_REQUIRED[field.name])}\n"
        else:
            yield f"# {field.name} = {_toml(field.default)}\n"


def _commented(section: str, model: type[Record], values: dict[str, str]) -> Iterator[str]:
    for field in fields(model):
        yield f"# # {_comment(section, field)}\n# {field.name} = {_toml(values[field.name])}\n"


def _comment(section: str, field: FieldInfo) -> str:
    """Return what a key means, its unit and what it may be, on one line."""
    text = TEXTS[f"{section}.{field.name}"].rstrip(".")
    facts = []
    if unit := next((unit for end, unit in _UNITS.items() if field.name.endswith(end)), None):
        facts.append(f"in {unit}")
    kind = msgspec.inspect.type_info(field.type)
    if choices := choices_of(field.type):
        facts.append(" or ".join(json.dumps(choice) for choice in choices))
    if isinstance(kind, msgspec.inspect.IntType | msgspec.inspect.FloatType) and None not in (
        kind.ge,
        kind.le,
    ):
        facts.append(f"{kind.ge} to {kind.le}")
    return f"{text}. {_sentence(', '.join(facts))}".rstrip()


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}." if text else ""


def _toml(value: Any) -> str:
    """Write a default as TOML; JSON writes strings, numbers, booleans and lists alike."""
    if isinstance(value, tuple):
        return json.dumps(list(value))
    return json.dumps(value, ensure_ascii=False)
