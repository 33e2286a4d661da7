"""Tests of the stylesheets: what may differ between color schemes, and between window widths."""

import re
from pathlib import Path
from typing import Final

import pytest

from tests.paths import ROOT

STYLESHEETS: Final = [
    *sorted((ROOT / "controlplane/console").glob("*.css")),
    ROOT / "controlplane/web/openapi/viewer_files/viewer.css",
    ROOT / "agent/presentation/page/templates/report.css",
]
MEDIA: Final = re.compile(r"@media ([^{]+)\{((?:[^{}]*\{[^{}]*\})*[^{}]*)\}")
"""A media query and its rules."""
RULE: Final = re.compile(r"([^{}]+)\{([^{}]*)\}")
"""A selector and its declarations."""
COLORS: Final = re.compile(r"color|background|opacity|filter|text-shadow|mix-blend-mode")
"""Properties that change the contrast of text."""


def declarations(file: Path, query: str) -> list[tuple[str, str]]:
    """Return selector and property of each declaration in media queries that contain ``query``."""
    return [
        (selector.strip(), declaration.partition(":")[0].strip())
        for media, rules in MEDIA.findall(file.read_text(encoding="utf-8"))
        if query in media
        for selector, body in RULE.findall(rules)
        for declaration in body.split(";")
        if declaration.strip()
    ]


@pytest.mark.parametrize("file", STYLESHEETS, ids=lambda file: file.name)
def test_the_dark_scheme_changes_only_custom_properties(file: Path) -> None:
    dark = declarations(file, "prefers-color-scheme")
    assert [each for each in dark if each[0] != ":root" or not each[1].startswith("--")] == []


@pytest.mark.parametrize("file", STYLESHEETS, ids=lambda file: file.name)
def test_narrow_windows_change_no_colors(file: Path) -> None:
    narrow = [each for each in declarations(file, "max-width") if COLORS.search(each[1])]
    assert [each for each in narrow if not each[0].endswith("::before")] == []


def test_the_search_finds_rules_for_dark_schemes_and_narrow_windows() -> None:
    """The two tests above would also pass if the search found no rules."""
    dark = [file.name for file in STYLESHEETS if declarations(file, "prefers-color-scheme")]
    narrow = [file.name for file in STYLESHEETS if declarations(file, "max-width")]
    assert dark == ["console.css", "report.css"]
    assert set(narrow) == {file.name for file in STYLESHEETS}
