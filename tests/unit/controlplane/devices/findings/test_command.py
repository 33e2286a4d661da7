"""Tests of `venue-control findings`, which prints the lists of findings of the service."""

import csv
import io
import json
import uuid
from datetime import UTC, datetime
from typing import Any

import pytest

from controlplane.cli.devices import fleet
from controlplane.cli.main import main
from controlplane.cli.screen.tables import WIDE
from controlplane.devices.findings.records import (
    FindingDevice,
    FindingDevicesReply,
    FindingDevicesRequest,
    FindingEntry,
    FindingRecord,
    FindingsReply,
    FindingsRequest,
)

SINCE = datetime(2026, 11, 20, tzinfo=UTC)
COUNTS = FindingsReply(
    device_count=9, unknown_count=2, locations=(), more_locations=0, platforms=(), versions=(),
    findings=(
        FindingRecord(
            rule="printer-moved", title="… has moved.", severity="bad", fix="fix it",
            kinds=("network",), device_count=3, unknown_count=2, new_count=1,
            trend=(1,) * 29 + (3,), link="/#/findings?rule=printer-moved",
        ),
    ),
)  # fmt: skip
TILL = FindingDevice(
    instance_id=uuid.uuid4(), name="=1+1", platform="linux", app_version=None, health="broken",
    kind="network", sentence="Kitchen printer has moved.", since=SINCE, last_seen=SINCE,
    report_id=None,
)  # fmt: skip
LIST = FindingDevicesReply(
    next_cursor=None, unknown_count=2,
    entries=(
        FindingEntry(
            rule="printer-moved", title="… has moved.", severity="bad", fix="fix it",
            location_id="loc-0001", location_name="Harbour", device_count=2, since=SINCE,
            devices=(TILL, TILL.model_copy(update={"name": "bar"})), link="/#/findings",
        ),
    ),
)  # fmt: skip


@pytest.fixture(autouse=True)
def requests(monkeypatch: pytest.MonkeyPatch) -> list[FindingsRequest]:
    """Replace the calls to the service: record each request, and reply with COUNTS or LIST."""
    recorded: list[FindingsRequest] = []

    def findings(_client: object, body: FindingsRequest) -> FindingsReply:
        recorded.append(body)
        return COUNTS

    def devices(_client: object, body: FindingDevicesRequest) -> FindingDevicesReply:
        recorded.append(body)
        return LIST

    monkeypatch.setattr(fleet, "findings", findings)
    monkeypatch.setattr(fleet, "finding_devices", devices)
    monkeypatch.setenv("VENUE_CONTROL_API_KEY", "key")
    monkeypatch.delenv("COLUMNS", raising=False)
    return recorded


def run_command(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["findings", *words]) == 0
    output = capsys.readouterr()
    return output.out + output.err


def test_counts_are_printed_with_unknown_devices(
    capsys: pytest.CaptureFixture[str], requests: list[FindingsRequest]
) -> None:
    output = run_command(capsys, "--location", "loc-0001", "--state", "broken")
    assert "printer-moved" in output
    assert "The findings of 2 of 9 devices are unknown" in " ".join(output.split())
    assert (requests[0].location, requests[0].state, requests[0].rule) == (
        "loc-0001",
        "broken",
        None,
    )


def test_devices_of_a_finding_are_printed_by_location(
    capsys: pytest.CaptureFixture[str], requests: list[FindingsRequest]
) -> None:
    output = run_command(capsys, "printer-moved")
    assert "Harbour" in output
    assert "=1+1, bar: … has moved." in output
    assert requests[0].rule == "printer-moved"


@pytest.mark.parametrize("words", [(), ("printer-moved",)])
def test_long_sentences_are_wrapped_on_a_wide_terminal(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    title = "… has moved to another address, as its announcements show. " * 3 + "The last word."
    counts = COUNTS.findings[0].model_copy(update={"title": title})
    entry = LIST.entries[0].model_copy(update={"title": title})
    monkeypatch.setattr(
        fleet, "findings", lambda *_: COUNTS.model_copy(update={"findings": (counts,)})
    )
    monkeypatch.setattr(
        fleet, "finding_devices", lambda *_: LIST.model_copy(update={"entries": (entry,)})
    )
    monkeypatch.setenv("COLUMNS", str(WIDE))
    output = " ".join(run_command(capsys, *words).split())
    assert "printer-moved" in output
    assert "The last word." in output


@pytest.mark.parametrize(
    ("words", "expected"),
    [((), ["3", "2", "1"]), (("--new",), ["Harbour", "'=1+1", "Kitchen printer has moved."])],
)
def test_records_are_printed_as_json_and_csv(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], expected: list[str]
) -> None:
    records: list[Any] = json.loads(run_command(capsys, *words, "--json"))
    assert [each["rule"] for each in records] == ["printer-moved"]
    _, first, *_ = csv.reader(io.StringIO(run_command(capsys, *words, "--csv")))
    assert set(expected) <= set(first)
