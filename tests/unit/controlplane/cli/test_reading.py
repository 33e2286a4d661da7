"""Tests of commands that list and revoke devices and show reports, against a running service."""

import argparse
import asyncio
import csv
import io
import json
import sys
from collections.abc import AsyncIterator, Iterator

import httpx2
import pytest

from controlplane.cli.main import build_parser, main
from tests.unit.controlplane.cli.running_fleet import (
    REPORTS,
    TIMEOUT_S,
    ServiceProcess,
    enroll,
    service_process,
)
from tests.unit.controlplane.cli.test_setup import Terminal
from tests.unit.controlplane.simulated_device import SimulatedDevice

pytestmark = [
    pytest.mark.medium,
    pytest.mark.skipif(
        sys.platform == "win32", reason="the test stops the service with POSIX signals"
    ),
]
NAMES = ("bar-till", "kitchen-till", "=cmd|' /C calc'!A0")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """Run a service with three devices.

    The first device has two network reports and one application report.
    """
    database = tmp_path_factory.mktemp("service") / "service.db"
    with service_process(database, "--rate", "0") as process:
        asyncio.run(submit_reports(process))
        yield process


async def submit_reports(service: ServiceProcess) -> None:
    async with httpx2.AsyncClient(base_url=service.url, timeout=TIMEOUT_S) as http:
        bar, *_ = [await enroll(http, service.api_key, name) for name in NAMES]
        with_unreachable_printer = json.loads(json.dumps(REPORTS["network"]))
        (bar_printer,) = (
            printer
            for printer in with_unreachable_printer["printers"]
            if printer["name"] == "Bar receipts"
        )
        bar_printer |= {"status": "unreachable", "matchedEndpoint": None, "reason": "no answer"}
        for kind, report in (
            ("network", REPORTS["network"]),
            ("application", REPORTS["application"]),
            ("network", with_unreachable_printer),
        ):
            reply = await bar.submit(report, kind=kind)
            assert reply.status_code == 200, reply.text


@pytest.fixture(autouse=True)
def environment(service: ServiceProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in service.as_environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture
async def device(service: ServiceProcess) -> AsyncIterator[SimulatedDevice]:
    async with httpx2.AsyncClient(base_url=service.url, timeout=TIMEOUT_S) as http:
        yield await enroll(http, service.api_key, "to-be-revoked", locationId="loc-0009")


def run_command(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    assert main([*words]) == code
    return capsys.readouterr().out


def test_devices_are_printed_as_csv_json_and_ndjson(capsys: pytest.CaptureFixture[str]) -> None:
    list_devices = ("devices", "--location", "loc-0001")
    rows = list(
        csv.DictReader(io.StringIO(run_command(capsys, *list_devices, "--csv"), newline=""))
    )
    assert [row["name"] for row in rows] == ["bar-till", "kitchen-till", f"'{NAMES[2]}"]
    assert {row["state"] for row in rows} == {"online"}
    records = json.loads(run_command(capsys, *list_devices, "--json"))
    assert [record["instanceId"] for record in records] == [row["instanceId"] for row in rows]
    lines = run_command(capsys, *list_devices, "--ndjson").splitlines()
    assert [json.loads(line) for line in lines] == records


def test_reports_of_all_devices_are_listed_newest_first(capsys: pytest.CaptureFixture[str]) -> None:
    records = json.loads(run_command(capsys, "reports", "--json"))
    assert [record["kind"] for record in records] == ["network", "application", "network"]
    assert records == sorted(records, key=lambda record: str(record["createdAt"]), reverse=True)
    lines = run_command(capsys, "reports", "--kind", "application").splitlines()
    assert lines[0].split() == [
        *("report", "device", "location", "kind", "outcome", "received", "headline")
    ]
    assert lines[1].split()[:3] == [records[1]["reportId"], "bar-till", "loc-0001"]
    assert "The print queue kitchen is stuck" in lines[1]
    assert records[1]["headline"] in lines[1]
    assert len(lines) == 2


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("--health broken", [NAMES[0]]),
        ("--health healthy --health offline", [*NAMES[1:]]),
        ("--search laser", [NAMES[0]]),
        ("--search KITCHEN-TILL", [NAMES[1]]),
        ("--search laser --health healthy", []),
    ],
)
def test_devices_are_filtered_by_health_and_by_their_reports(
    capsys: pytest.CaptureFixture[str], words: str, names: list[str]
) -> None:
    list_devices = ("devices", "--location", "loc-0001", "--json")
    records = json.loads(run_command(capsys, *list_devices, *words.split()))
    assert [record["legacyInstallId"] for record in records] == names
    assert {record["health"] for record in records} <= {"broken", "healthy"}


def test_printers_are_listed_with_the_start_of_their_state_and_can_be_filtered(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = run_command(capsys, "printers").splitlines()
    assert lines[0].split() == ["printer", "state", "since", "device", "location", "reason"]
    assert {" ".join(line.split()[:2]) for line in lines[1:]} == {
        "Bar receipts", "Kitchen printer", "Office laser",
    }  # fmt: skip
    records = json.loads(run_command(capsys, "printers", "--state", "broken", "--json"))
    assert len(records) == 3
    # The bar printer is unreachable only in the newer network report.
    newest, _, oldest = json.loads(run_command(capsys, "reports", "--json"))
    since = {record["name"]: record["since"] for record in records}
    assert since["Bar receipts"] == newest["createdAt"]
    assert since["Office laser"] == oldest["createdAt"]
    assert json.loads(run_command(capsys, "printers", "--search", "no-such", "--json")) == []
    text = run_command(capsys, "printers", "--search", "laser", "--csv")
    (row,) = csv.DictReader(io.StringIO(text, newline=""))
    assert (row["name"], row["device"], row["state"]) == ("Office laser", "bar-till", "broken")


def test_the_error_for_a_device_without_reports_contains_the_command_to_request_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_command(capsys, "reports", "--device", "kitchen-till").startswith("No report since ")
    assert main(["report", "--latest", "kitchen-till", "network"]) == 1
    hint = capsys.readouterr().err.splitlines()[-1]
    assert hint == "Request one: venue-control request kitchen-till network --wait"


def test_a_report_is_selected_by_the_start_of_its_id_or_as_the_latest(
    capsys: pytest.CaptureFixture[str],
) -> None:
    newest, snapshot, _ = json.loads(run_command(capsys, "reports", "--json"))
    short = snapshot["reportId"][:8]
    assert json.loads(run_command(capsys, "report", short, "--json"))["id"] == snapshot["reportId"]
    latest = json.loads(run_command(capsys, "report", "--latest", "bar-till", "network", "--json"))
    assert latest["id"] == newest["reportId"]
    assert main(["report", "ffff-nope"]) == 2
    assert main(["report", "0000000000"]) == 1
    assert "Use the whole id for a report that is not recent." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("kind", "table", "column", "value"),
    [
        ("network", "printers", "name", "Kitchen printer"),
        ("network", "hosts", "kind", "printer"),
        ("network", "endpoints", "port", "9100"),
        ("application", "facts", "status", "available"),
    ],
)
def test_lists_of_a_report_are_printed_as_csv(
    capsys: pytest.CaptureFixture[str], kind: str, table: str, column: str, value: str
) -> None:
    text = run_command(capsys, "report", "--latest", "bar-till", kind, "--csv", table)
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert value in {row[column] for row in rows}


def test_a_list_that_a_report_lacks_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--latest", "bar-till", "network", "--csv", "facts"]) == 2
    assert "has no table facts: use one of hosts, endpoints, printers" in capsys.readouterr().err


def test_changes_since_the_previous_report_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    newest, snapshot, oldest = (
        record["reportId"] for record in json.loads(run_command(capsys, "reports", "--json"))
    )
    output = run_command(capsys, "changes", "bar-till", "network")
    assert "Bar receipts" in output
    result = json.loads(run_command(capsys, "changes", "bar-till", "network", "--json"))
    assert (result["before"], result["after"]) == (oldest, newest)
    assert result["changes"][0]["tone"] == "bad"
    for report, other in ((oldest, newest), (newest, oldest)):
        assert run_command(capsys, "report", report[:8], "--against", other[:8]) == output
    assert main(["report", newest, "--against", snapshot]) == 2
    assert "cannot be compared" in capsys.readouterr().err
    assert main(["changes", "bar-till", "application"]) == 1
    assert "has only one report of kind application" in capsys.readouterr().err


@pytest.mark.parametrize("columns", [50, 80, 140])
@pytest.mark.parametrize(
    "words",
    [
        "devices",
        "printers",
        "incidents",
        "reports",
        "device bar-till",
        "report --latest bar-till network",
        "changes bar-till network",
    ],
)
def test_every_list_fits_its_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: int, words: str
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    output = run_command(capsys, *words.split())
    assert output
    assert [line for line in output.splitlines() if len(line) > columns] == []


def test_no_help_is_wider_than_80_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for words in (
        "",
        "devices",
        "device",
        "request",
        "reports",
        "printers",
        "incidents",
        "report",
        "changes",
        "revoke",
        "keys create",
    ):
        with pytest.raises(SystemExit):
            main([*words.split(), "--help"])
        output = capsys.readouterr().out
        assert output
        assert [line for line in output.splitlines() if len(line) > 80] == []


async def test_the_command_revoke_requires_confirmation(
    device: SimulatedDevice, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    revoke = ["revoke", "to-be-revoked"]
    assert await asyncio.to_thread(main, revoke) == 2
    terminal_output = capsys.readouterr().err
    assert "to-be-revoked at loc-0009, online, last seen " in terminal_output
    assert "Use --yes." in terminal_output
    for answer, code in (("n\n", 1), ("\n", 1), ("", 1), ("Yes\n", 0)):
        monkeypatch.setattr(sys, "stdin", Terminal(answer))
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
        assert (await device.heartbeat()).status_code == 200
        assert await asyncio.to_thread(main, revoke) == code
        assert "Revoke to-be-revoked? [y/N] " in capsys.readouterr().err
    assert (await device.heartbeat()).status_code == 409


def test_examples_in_the_help_are_valid() -> None:
    """The help of the commands has at least ten examples, and the parser accepts each of them."""
    parser = build_parser()
    (verbs,) = (
        action for action in parser._actions if isinstance(action, argparse._SubParsersAction)
    )
    examples = [
        line.strip()
        for verb in verbs.choices.values()
        for line in (verb.epilog or "").splitlines()
        if line.startswith("  venue-control")
    ]
    assert len(examples) >= 10
    for example in examples:
        words = example.partition(" > ")[0].partition("  #")[0].split()[1:]
        assert parser.parse_args(words).function
