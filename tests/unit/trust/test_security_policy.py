"""Tests that SECURITY.md explains how to report a vulnerability. Its e-mail address for reports is
a placeholder until the owner of the project sets it.
"""

import re
from typing import Final

from tests.paths import ROOT

TEXT: Final = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
SECTIONS: Final = ("Report a vulnerability", "Supported versions", "In scope", "Out of scope")


def test_the_policy_has_the_usual_sections() -> None:
    assert tuple(re.findall(r"^## (.+)$", TEXT, re.MULTILINE)) == SECTIONS


def test_the_address_is_invalid_if_and_only_if_it_is_a_placeholder() -> None:
    (address,) = re.findall(r"[\w.+-]+@[\w.-]+\w", TEXT)
    assert ("TO-BE-FILLED-IN" in address) == address.endswith(".invalid")
