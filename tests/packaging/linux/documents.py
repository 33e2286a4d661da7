"""Reads the commands and files that the documents mark as tested. The tests use them unchanged."""

import re

from tests.paths import ROOT

_BLOCK = re.compile(r"<!-- tested: ([\w-]+) -->\n```\w+\n(.*?)```", re.DOTALL)


def documented(document: str) -> dict[str, str]:
    """Return the content of each named block of a document."""
    return dict(_BLOCK.findall((ROOT / document).read_text(encoding="utf-8")))
