"""Tests of how commands print lists.

A list is a table if the table fits the width of the terminal. Otherwise, each record has several
lines. In a pipe, a list is always a table, and ids are not shortened.
"""

import re
from datetime import UTC, datetime
from uuid import UUID

import pytest

from agent.wire.operator_operations import Device
from controlplane.cli.connection import find_device
from controlplane.cli.devices.verbs import device_facts, print_devices
from controlplane.cli.screen.tables import ids_of, print_facts, print_rows
from controlplane.client.errors import CommandError

INSTANCE = UUID("0f7e4a52-8f4c-4f0e-9c52-6f1b1d1c7a10")
DEVICE = Device(
    instance_id=INSTANCE,
    location_id="loc-0001",
    legacy_install_id="bar-till-2",
    app_version="0.1.0",
    capabilities=("network",),
    binding_id=UUID(int=2),
    organization_id="org-0001",
    platform="linux",
    user_id="user-1",
    revoked_at=None,
    last_seen_at=datetime.now(UTC),
    foreground=False,
    created_at=datetime.now(UTC),
    location_name="Main street",
    organization_name=None,
    online=True,
)


@pytest.mark.parametrize("width", [50, 80])
def test_devices_are_printed_with_their_names_at_any_width(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    print_devices([DEVICE], is_cut=False)
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line.rstrip()) <= width for line in lines)
    words = re.split(r" {2,}| · |\n", "\n".join(line.strip() for line in lines))
    assert {"0f7e4a52", "bar-till-2", "online", "Main street", "0.1.0"} <= set(words)
    assert ("instance" in words) is (width == 80)
    assert words[-1] == "1 device: 1 online; versions: 0.1.0 1"


def test_in_a_pipe_ids_are_whole_and_no_line_is_folded(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    long = DEVICE.model_copy(update={"location_name": "A very long name of a street " * 4})
    print_devices([long], is_cut=False, all_count=3)
    output = capsys.readouterr()
    headings, row = output.out.splitlines()
    assert headings.split() == ["instance", "name", "state", "location", "version", "seen"]
    assert str(INSTANCE) in row
    assert str(long.location_name).strip() in row
    assert "\x1b" not in output.out
    assert output.err == "1 of 3 devices: 1 online; versions: 0.1.0 1\n"


def test_short_ids_are_long_enough_to_be_unique(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    twin = UUID("0f7e4a52-8f4c-4f0e-ffff-6f1b1d1c7a10")
    assert ids_of([INSTANCE, twin, INSTANCE]) == {
        INSTANCE: "0f7e4a52-8f4c-4f0e-9",
        twin: "0f7e4a52-8f4c-4f0e-f",
    }
    assert ids_of([INSTANCE]) == {INSTANCE: "0f7e4a52"}
    assert ids_of([]) == {}


def test_an_empty_list_of_devices_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    print_devices([], is_cut=False)
    assert capsys.readouterr().out == "No device has enrolled yet.\n"


def test_the_first_line_of_a_device_is_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    print_facts(device_facts(DEVICE))
    assert capsys.readouterr().out.splitlines()[0].split() == ["name", "bar-till-2"]


@pytest.mark.parametrize("words", ["bar-till-2", "Bar-Till-2", "0f7e", str(INSTANCE)])
def test_a_device_is_selected_by_its_name_or_the_start_of_its_id(words: str) -> None:
    other = DEVICE.model_copy(update={"instance_id": UUID(int=7), "legacy_install_id": "kitchen"})
    assert find_device(words, [other, DEVICE]).instance_id == INSTANCE


@pytest.mark.parametrize(
    ("words", "message"), [("cellar", "no device matches"), ("bar-till-2", "matches 2 devices")]
)
def test_a_word_that_matches_no_device_or_several_is_refused(words: str, message: str) -> None:
    twin = DEVICE.model_copy(update={"instance_id": UUID(int=7)})
    with pytest.raises(CommandError, match=message):
        find_device(words, [DEVICE, twin])


def test_a_table_is_folded_only_if_it_is_wider_than_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    headings, rows = ("name", "total"), [("tea", "7.50"), ("coffee", "17.50")]
    for width, lines in (
        (13, ["name    total", "tea      7.50", "coffee  17.50"]),
        (12, ["tea", "  7.50", "coffee", "  17.50"]),
    ):
        monkeypatch.setenv("COLUMNS", str(width))
        print_rows(headings, rows, "")
        assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == lines


def test_long_hours_of_support_are_wrapped_and_not_cut(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    hours = "Monday to Friday 09:00 to 18:00, Saturday and Sunday 10:00 to 16:00, but no holidays"
    print_rows(("kind", "address", "hours"), [("phone", "+97141234567", hours)], "")
    words = capsys.readouterr().out.split()
    assert {"phone", "+97141234567", *hours.split()} <= set(words)


def test_numbers_are_aligned_to_the_right_in_a_pipe(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    print_rows(("name", "total", "unit"), [("tea", "7.50", "pcs"), ("coffee", "17.50", "")], "")
    assert capsys.readouterr().out.splitlines() == [
        "name    total  unit",
        "tea      7.50  pcs",
        "coffee  17.50",
    ]
