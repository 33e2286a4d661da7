"""Golden messages: one literal JSON file for each message, as it is sent over the network."""

import json
from typing import Any

from tests.paths import FIXTURES

ROOT = FIXTURES / "golden"


def text_of(name: str) -> str:
    """Return the text of the golden message ``name`` (folder/file, without the extension)."""
    return (ROOT / f"{name}.json").read_text(encoding="utf-8")


def document_of(name: str) -> Any:
    """Return the golden message ``name`` as parsed JSON."""
    return json.loads(text_of(name))


def names() -> tuple[str, ...]:
    """Return the name of every golden message."""
    return tuple(
        sorted(path.relative_to(ROOT).with_suffix("").as_posix() for path in ROOT.rglob("*.json"))
    )
