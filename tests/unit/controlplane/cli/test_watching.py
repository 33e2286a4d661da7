"""Tests of `venue-control` commands for locations, pending requests and timelines.

The options of `serve` for alerts and mail are also tested.
"""

import re
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx2
import pytest

from controlplane.cli.arguments.serve_settings import settings_of
from controlplane.cli.main import build_parser, main
from controlplane.settings import Smtp
from controlplane.storage.database import Database
from tests.unit.controlplane.simulated_device import SimulatedDevice
from tests.unit.controlplane.test_process import Process, serve_one_command, start, stop

pytestmark = pytest.mark.medium

posix = pytest.mark.skipif(
    sys.platform == "win32", reason="the test stops the service with POSIX signals"
)


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    file = str(tmp_path / "service.db")
    Database(file).close()
    monkeypatch.setenv("VENUE_CONTROL_DATABASE", file)
    return file


@pytest.mark.usefixtures("database")
def test_opening_hours_are_set_and_listed(capsys: pytest.CaptureFixture[str]) -> None:
    hours = ("--open", "Mon-Fri 08:00-22:00", "--open", "Sat 10:00-02:00")
    assert main(["locations", "set", "loc-1", "--zone", "Europe/Riga", *hours]) == 0
    assert main(["locations", "set", "loc-2", "--zone", "UTC", "--always-open"]) == 0
    capsys.readouterr()
    assert main(["locations", "list"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "loc-1: Mon-Fri 08:00-22:00, Sat 10:00-02:00 (Europe/Riga)",
        "loc-2: always open (UTC)",
    ]
    assert main(["locations", "list", "--organization", "org-2"]) == 0
    assert capsys.readouterr().out.startswith("No location has")


@pytest.mark.usefixtures("database")
def test_maintenance_is_set_in_the_time_zone_of_the_location_and_ended(
    capsys: pytest.CaptureFixture[str],
) -> None:
    main(["locations", "set", "loc-1", "--zone", "Europe/Riga", "--always-open"])
    assert main(["locations", "quiet", "loc-1", "--until", "2099-12-01T06:00"]) == 0
    assert capsys.readouterr().out.endswith("loc-1: maintenance until 2099-12-01 04:00 UTC\n")
    assert main(["locations", "quiet", "loc-1", "--end"]) == 0
    assert main(["locations", "quiet", "loc-1", "--end"]) == 1
    capsys.readouterr()
    main(["locations", "list"])
    assert "maintenance" not in capsys.readouterr().out


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("set", "loc-1", "--zone", "Europe/Rigga", "--always-open"), "is not a time zone"),
        (("set", "loc-1", "--zone", "UTC", "--open", "always"), "does not have the form"),
        (("quiet", "loc-1", "--until", "tomorrow"), "is not a date and time"),
        (("quiet", "loc-1", "--until", "2001-01-01"), "is in the past"),
        (("quiet", "loc-1", "--device", "till", "--end"), "is not the id of a device"),
    ],
)
def test_invalid_arguments_of_locations_are_reported_in_one_line(
    words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["locations", *words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line


def test_listing_locations_creates_no_database(tmp_path: Path) -> None:
    file = tmp_path / "none.db"
    assert main(["locations", "list", "--database", str(file)]) == 2
    assert not file.exists()


def test_serve_reads_the_options_for_alerts_and_the_webhook_secret(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("whsec_" + "QUJD" * 10 + "\n")
    words = ["serve", "--notify-url", "https://hook.example/in", "--offline-after", "5"]
    options = build_parser().parse_args([*words, "--notify-secret-file", str(secret)])
    settings = settings_of(options)
    assert settings.notify_secret == b"ABC" * 10
    assert settings.offline_window.total_seconds() == 300
    assert settings.online_window.total_seconds() == 180
    secret.write_text("hush")
    for bad in ([*words, "--notify-secret-file", str(secret)], ["serve", "--notify-url", "hook"]):
        assert main([*bad, "--database", str(tmp_path / "x.db")]) == 2


def test_serve_reads_the_options_for_the_smtp_server(tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("hush\n")
    words = ["serve", "--smtp", "mail.example:587", "--smtp-from", "alerts@venue.example"]
    authenticated = ["--smtp-user", "alerts", "--smtp-password-file", str(password)]
    settings = settings_of(build_parser().parse_args([*words, *authenticated]))
    assert settings.smtp == Smtp(
        host="mail.example", port=587, sender="alerts@venue.example", user="alerts", password="hush"
    )
    missing = ["--smtp-user", "alerts", "--smtp-password-file", str(tmp_path / "none")]
    for bad in (words[:3], words[:1] + words[3:], [*words, *authenticated[:2]], [*words, *missing]):
        assert main([*bad, "--database", str(tmp_path / "x.db")]) == 2


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    started = start(str(tmp_path_factory.mktemp("watching") / "service.db"))
    yield started
    stop(started)


@pytest.fixture
async def device(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[SimulatedDevice]:
    monkeypatch.setenv("VENUE_CONTROL_URL", process.url)
    monkeypatch.setenv("VENUE_CONTROL_API_KEY", process.api_key)
    monkeypatch.setenv("COLUMNS", "80")
    async with httpx2.AsyncClient(base_url=process.url, timeout=20) as http:
        yield await SimulatedDevice(http, process.api_key).enrolled()


@posix
async def test_a_pending_request_is_created_and_dispatched(
    device: SimulatedDevice, capsys: pytest.CaptureFixture[str]
) -> None:
    device_id = device.instance_id
    assert main(["request", device_id, "network", "--when-back", "--until", "12h"]) == 0
    assert capsys.readouterr().out.startswith("waiting for 1 device until ")
    assert main(["request", "--location", "loc-0001", "network", "--when-back"]) == 0
    assert main(["request", "--location", "nowhere", "network", "--when-back"]) == 1
    assert main(["request", "--all", device_id, "network", "--when-back"]) == 2
    assert main(["request", device_id, "network", "--when-back", "--wait"]) == 2
    assert main(["device", device_id]) == 0
    text = capsys.readouterr().out
    # A timeline has a character for each of 30 days. The device enrolled on the last of these days.
    (timeline,) = re.findall(r"^\d\d-\d\d  (.{30})  \d\d-\d\d$", text, re.MULTILINE)
    assert timeline[:-1].strip() == ""
    assert all(len(line) <= 80 for line in text.splitlines())
    await serve_one_command(device, "completed")
    (request,) = (await device.detail())["requests"]
    assert (request["kind"], request["status"]) == ("network", "completed")


def test_the_lifetime_of_a_pending_request_is_limited(capsys: pytest.CaptureFixture[str]) -> None:
    for bad in ("0d", "93d", "3w", "d", "-1d"):
        with pytest.raises(SystemExit):
            main(["request", "x", "network", "--when-back", f"--until={bad}"])
    assert "must be" in capsys.readouterr().err
