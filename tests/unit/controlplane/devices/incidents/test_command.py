"""Tests of `venue-control incidents`, which prints the list of incidents of the service."""

import csv
import io
import json
import uuid
from datetime import UTC, datetime, timedelta

import pytest

from agent.wire.payloads.history import Cause
from controlplane.cli.devices import fleet
from controlplane.cli.main import main
from controlplane.devices.incidents.records import DeviceIncidentRecord, IncidentRecord

BEGAN = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=2)
TIME = f"{BEGAN.astimezone():%H:%M}"


def device_incident(
    name: str, cause: Cause = "gateway-silent", seconds: int | None = 95, correction: int = 0
) -> DeviceIncidentRecord:
    ended_at = None if seconds is None else BEGAN + timedelta(seconds=seconds)
    return DeviceIncidentRecord(
        instance_id=uuid.uuid4(), name=name, cause=cause, began_at=BEGAN, ended_at=ended_at,
        downtime_seconds=seconds or 0, count=1, evidence="the gateway 192.168.1.1 does not answer",
        clock_correction_seconds=correction,
    )  # fmt: skip


SHARED = IncidentRecord(
    location_id="loc-0001", location_name="Harbour", began_at=BEGAN,
    ended_at=BEGAN + timedelta(seconds=95), cause="gateway-silent",
    title="The router did not answer", device_count=2, observer_count=3, loss="lost the gateway",
    suspect="the router, not the tills",
    incidents=(device_incident("bar"), device_incident("=1+1", correction=-7200)),
)  # fmt: skip
SINGLE = IncidentRecord(
    location_id="loc-0002", location_name=None, began_at=BEGAN, ended_at=None, cause="link-down",
    title="The network cable or Wi-Fi had no link", device_count=1, observer_count=3, loss=None,
    suspect=None, incidents=(device_incident("kitchen", "link-down", None),),
)  # fmt: skip


@pytest.fixture(autouse=True)
def requests(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str | None, int]]:
    """Replace the call to the service: record the filters, and reply with two incidents."""
    recorded: list[tuple[str | None, int]] = []

    def incidents(_client: object, location: str | None, days: int) -> list[IncidentRecord]:
        recorded.append((location, days))
        return [] if location == "none" else [SHARED, SINGLE]

    monkeypatch.setattr(fleet, "incidents", incidents)
    monkeypatch.setenv("VENUE_CONTROL_API_KEY", "key")
    monkeypatch.delenv("COLUMNS", raising=False)
    return recorded


def run_command(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["incidents", *words]) == 0
    return capsys.readouterr().out


def test_a_shared_incident_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    headings, shared, single = run_command(capsys).splitlines()
    assert headings.split() == ["began", "lasted", "devices", "interruption"]
    assert (
        f"2 of 3 devices at Harbour lost the gateway at {TIME}: the router, not the tills."
        in shared
    )
    assert "Times were corrected with the clock of the service: =1+1 by 2 h (fast clock)." in shared
    assert "kitchen at loc-0002: The network cable or Wi-Fi had no link" in single
    assert "2 h…" in single


def test_csv_has_a_row_for_each_device(capsys: pytest.CaptureFixture[str]) -> None:
    rows = list(csv.DictReader(io.StringIO(run_command(capsys, "--csv"), newline="")))
    assert [(row["device"], row["sharedBy"], row["of"]) for row in rows] == [
        ("bar", "2", "3"),
        ("'=1+1", "2", "3"),
        ("kitchen", "1", "3"),
    ]
    assert [row["endedAt"] for row in rows][2] == ""


def test_filters_are_sent_to_the_service(
    capsys: pytest.CaptureFixture[str], requests: list[tuple[str | None, int]]
) -> None:
    records = json.loads(run_command(capsys, "--json"))
    assert [record["deviceCount"] for record in records] == [2, 1]
    assert run_command(capsys, "--location", "none", "--days", "1").strip() == (
        "No interruptions in the last day."
    )
    assert requests == [(None, 7), ("none", 1)]
    with pytest.raises(SystemExit):
        main(["incidents", "--days", "31"])
    assert "must be a whole number from 1 to 30" in capsys.readouterr().err


@pytest.mark.parametrize("columns", [50, 80, 140])
def test_the_list_fits_its_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    output = run_command(capsys)
    assert [line for line in output.splitlines() if len(line) > columns] == []
