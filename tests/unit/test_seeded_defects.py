"""Tests that each known defect of `make seeded-defects` can still be planted."""

import pytest

from tests.paths import ROOT
from tests.seeded_defects_table import DEFECTS, Defect


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.description)
def test_the_replaced_text_occurs_once_in_its_file(defect: Defect) -> None:
    assert (ROOT / defect.file).read_text().count(defect.before) == 1
    assert defect.before != defect.after
