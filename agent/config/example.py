"""The example configuration, which is generated from the models.

Each key has one line of comment. Three keys are set, because every agent needs them. Every other
key is commented out. It shows its default, or an example value in an array of tables.
"""

import json
from collections.abc import Iterator
from typing import Any, Final, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from agent.config.model import SECTIONS, Config, Section

HEAD: Final = """\
# Configuration of the venue agent. The three keys that are set below are enough. A line of the
# form "# key = value" shows the default of a key. In a table such as [[printers]], it shows an
# example. `venue-agent config check` checks this file, `venue-agent config show` prints the
# effective values.
# VENUE_AGENT_<SECTION>__<KEY> in the environment overrides a key of this file.
"""

_SET_KEYS: Final = {
    "base_url": "https://ops.example.com",
    "location_id": "loc-0001",
    "api_key_file": "/etc/venue-agent/api-key",
}
_TABLES: Final = {
    "printers": {
        "id": "kitchen",
        "name": "Kitchen printer",
        "transport": "network",
        "address": "192.168.1.50:9100",
    },
    "watched_devices": {
        "name": "Bar terminal",
        "kind": "payment-terminal",
        "address": "192.168.1.40",
        "mac": "00:11:22:33:44:55",
    },
}
"""An example of a table for each array of tables."""
_UNITS: Final = {"_seconds": "seconds", "_bytes": "bytes", "_days": "days"}


def example() -> str:
    """Return the text of config.example.toml."""
    parts = [HEAD]
    for section, model in SECTIONS.items():
        parts.append(f"\n# {Config.model_fields[section].description}\n")
        if section in _TABLES:
            parts.append(f"# [[{section}]]\n")
            parts.extend(_keys(model, _TABLES[section], prefix="# "))
        else:
            parts.append(f"[{section}]\n")
            parts.extend(_keys(model, _SET_KEYS))
    return "".join(parts)


def _keys(model: type[Section], values: dict[str, str], prefix: str = "") -> Iterator[str]:
    """Yield the lines of a table. Keys in ``values`` are set; other keys show their default.

    ``prefix`` is written before each line. "# " comments out the whole table.
    """
    for key, field in model.model_fields.items():
        yield f"{prefix}# {_comment(key, field)}\n"
        if key in values:
            yield f"{prefix}{key} = {_toml(values[key])}\n"
        else:
            yield f"{prefix}# {key} = {_toml(field.default)}\n"


def _comment(key: str, field: FieldInfo) -> str:
    """Return description, unit and valid values of a key on one line."""
    text = (field.description or "").rstrip(".")
    facts = []
    if unit := next((unit for end, unit in _UNITS.items() if key.endswith(end)), None):
        facts.append(f"in {unit}")
    if get_origin(field.annotation) is Literal:
        facts.append(" or ".join(json.dumps(choice) for choice in get_args(field.annotation)))
    least = next((limit.ge for limit in field.metadata if hasattr(limit, "ge")), None)
    most = next((limit.le for limit in field.metadata if hasattr(limit, "le")), None)
    if least is not None and most is not None:
        facts.append(f"{least} to {most}")
    return f"{text}. {_sentence(', '.join(facts))}".rstrip()


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}." if text else ""


def _toml(value: Any) -> str:
    """Return a value as TOML. Strings, numbers and lists of JSON are also valid in TOML."""
    return json.dumps(value, ensure_ascii=False)
