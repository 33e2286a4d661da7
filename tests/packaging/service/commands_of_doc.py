"""Reads the commands of docs/service-install.md. The verification runs them unchanged."""

import re

from tests.paths import ROOT

_BLOCK = re.compile(r"<!-- tested: ([\w-]+) -->\n```sh\n(.*?)```", re.DOTALL)


def documented_commands() -> dict[str, tuple[str, ...]]:
    """Return the command lines of each named block."""
    text = (ROOT / "docs/service-install.md").read_text(encoding="utf-8")
    return {name: tuple(body.splitlines()) for name, body in _BLOCK.findall(text)}
