import re
from collections import Counter

import pytest

from agent.presentation.application_rows import (
    interface_and_peripheral_groups,
    snapshot_groups,
)
from agent.presentation.labels import LABELS, OBJECT_LABELS, field_label
from agent.wire.vocabulary import BrowserFieldKey
from tests.fixtures.healthy import HEALTHY, healthy
from tests.paths import ROOT

DOCUMENTED = frozenset(
    re.findall(r"`([a-zA-Z]+\.[^`]+)`", (ROOT / "docs/application-fields.md").read_text())
    + list(BrowserFieldKey.__args__)
)
WIDTH = 26
"""Width of the terminal's column for labels, in characters. Labels inside a section are indented by
two characters.
"""


@pytest.mark.parametrize(
    ("key", "label"),
    [
        ("cpu.load1", "Load over 1 minute"),
        ("cpu.core.3.useFraction", "over 1 second"),
        ("disk./mnt/v1.2.usedFraction", "Used"),
        ("disk.drive.sda.health", "Health (SMART)"),
        ("printqueue.bar.waitingJobs", "Jobs waiting"),
        ("interface.wifiSsid", "Wi-Fi network"),
        ("browser.permission.camera", "Permission: camera"),
        ("till.customFact", "Custom fact"),
    ],
)
def test_each_key_is_displayed_with_its_label(key: str, label: str) -> None:
    assert field_label(key) == label


def test_each_label_belongs_to_a_documented_key() -> None:
    # A label's key may leave out the name of the object, or contain "*" instead of it.
    short = {f"{key.partition('.')[0]}.{key.rpartition('.')[2]}" for key in DOCUMENTED}
    starred = {re.sub(r"\..*\.", ".*.", key) for key in DOCUMENTED}
    assert set(LABELS) <= DOCUMENTED | short | starred
    assert all(any(key.startswith(start) for key in DOCUMENTED) for start in OBJECT_LABELS)


def test_labels_fit_one_line_and_do_not_end_with_a_digit() -> None:
    for key in DOCUMENTED:
        label = field_label(key)
        is_inside = key.count(".") > 1 and not key.startswith("browser.")
        is_indented = is_inside or key.startswith(("interface.", "usb.", "bluetooth."))
        assert len(label) <= (WIDTH - 2 if is_indented else WIDTH), key
        assert not label[-1:].isdigit(), key


@pytest.mark.parametrize("name", HEALTHY)
def test_labels_are_unique_within_a_section(name: str) -> None:
    payload = healthy(name)
    groups = (*snapshot_groups(payload), *interface_and_peripheral_groups(payload))
    assert any(section.rows for group in groups for section in group.sections)
    for group in groups:
        for section in group.sections:
            labels = Counter(row.label for row in section.rows)
            assert set(labels.values()) <= {1}, (group.title, section.title, labels)
