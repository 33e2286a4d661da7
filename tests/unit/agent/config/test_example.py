"""Tests that the example configuration is generated from the models and is valid."""

import tomllib
from pathlib import Path
from typing import Any

from agent.cli.config import schema
from agent.config.example import example
from agent.config.file import load
from agent.config.model import SECTIONS, Config, LocalConfig
from tests.paths import ROOT


def _without(config: LocalConfig, *sections: str) -> dict[str, Any]:
    return {k: v for k, v in dict(config).items() if k not in sections}


def test_the_example_in_the_repository_equals_the_generated_example() -> None:
    assert (ROOT / "config.example.toml").read_text("utf-8") == example(), (
        "generate it again: venue-agent config example > config.example.toml"
    )


def test_the_example_is_valid_and_contains_only_defaults(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(example())
    assert _without(load(Config, file, {}).config, "service") == _without(LocalConfig(), "service")


def test_commented_out_options_of_the_example_are_the_defaults(tmp_path: Path) -> None:
    # Remove the "# " of options. Lines with "# #" and "# key =" are explanations.
    lines = [
        line.removeprefix("# ") if " = " in line and line.startswith("# ") else line
        for line in example().splitlines()
        if not line.startswith("# #") and "# key =" not in line
    ]
    text = "\n".join(line.replace("# [[", "[[") for line in lines)
    assert set(tomllib.loads(text)) == set(Config.model_fields)
    file = tmp_path / "config.toml"
    file.write_text(text)
    loaded = load(Config, file, {})
    tables = ("service", "printers", "watched_devices")
    assert _without(loaded.config, *tables) == _without(LocalConfig(), *tables)
    assert [p.id for p in loaded.config.printers] == ["kitchen"]
    assert [d.kind for d in loaded.config.watched_devices] == ["payment-terminal"]


def test_every_key_of_the_example_has_a_comment() -> None:
    lines = example().splitlines()
    keys = [at for at, line in enumerate(lines) if " = " in line and "# key =" not in line]
    assert len(keys) > 30
    for at in keys:
        assert lines[at - 1].startswith("# "), lines[at]
        assert lines[at - 1].endswith("."), lines[at - 1]
        assert len(lines[at - 1]) > 20, lines[at]


def test_the_schema_describes_every_key() -> None:
    document = schema()
    assert document["$schema"].startswith("https://json-schema.org/")
    sections = [document, *document["$defs"].values()]
    for section in sections:
        assert section["additionalProperties"] is False
        for key, entry in section["properties"].items():
            assert entry.get("description"), f"{section.get('title')}.{key}"


def test_every_key_has_a_description() -> None:
    for name, section in SECTIONS.items():
        assert Config.model_fields[name].description, name
        for key, field in section.model_fields.items():
            assert field.description, f"{name}.{key}"
