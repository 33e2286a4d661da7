"""Tests of `venue-control alerts` against a running service."""

import json
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import select

from controlplane.accounts.keys.key_store import DEFAULT_ORGANIZATION
from controlplane.cli.main import main
from controlplane.clock import system_clock
from controlplane.storage.database import Database
from controlplane.storage.monitoring_tables import Alert, AlertSilence
from tests.unit.controlplane.cli.running_fleet import ServiceProcess, service_process

pytestmark = pytest.mark.medium  # it starts the service

FIRING_ALERT_ID = uuid.UUID("4f6c1c1a-5f3e-4c6e-8a56-2b7d1c9e0a44")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """Run a service with two site outages: firing at loc-0001, and resolved at loc-0002."""
    path: Path = tmp_path_factory.mktemp("alerts") / "service.db"
    with service_process(path) as process:
        database = Database(process.database)
        database.write(
            lambda session: session.add_all(
                [
                    _outage(FIRING_ALERT_ID, "loc-0001"),
                    _outage(uuid.uuid4(), "loc-0002", is_resolved=True),
                ]
            )
        )
        database.close()
        yield process


def _outage(id_: uuid.UUID, location_id: str, *, is_resolved: bool = False) -> Alert:
    now = system_clock()
    return Alert(
        id=id_, organization_id=DEFAULT_ORGANIZATION, location_id=location_id, instance="",
        condition="site_outage", is_flapping=False, started_at=now, fired_at=now,
        ended_at=now if is_resolved else None, resolved_at=now if is_resolved else None,
        detail="5 of 6 devices", severity="critical", is_muted=False,
    )  # fmt: skip


Run = Callable[..., str]


@pytest.fixture
def run(
    service: ServiceProcess, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    """Return a function that runs `venue-control alerts` in this process.

    The function returns the standard output, or the standard error if ``code``, the expected exit
    code, is not 0.
    """
    for name, value in service.as_environment().items():
        monkeypatch.setenv(name, value)

    def run_command(*words: str, code: int = 0) -> str:
        assert main(["alerts", *words]) == code
        printed = capsys.readouterr()
        return printed.err if code else printed.out

    return run_command


def test_firing_alerts_are_listed(run: Run) -> None:
    assert [alert["id"] for alert in json.loads(run("list", "--json"))] == [str(FIRING_ALERT_ID)]
    table = run("list")
    assert "site_outage" in table
    assert "5 of 6 devices" in table
    assert run("list", "--location", "loc-0002") == "No alerts are firing.\n"


def test_an_alert_is_acknowledged_by_the_start_of_its_id(run: Run) -> None:
    message = run("acknowledge", str(FIRING_ALERT_ID)[:8])
    assert message.startswith("site_outage of loc-0001: acknowledged by ")
    (alert,) = json.loads(run("list", "--json"))
    assert alert["acknowledgedAt"] is not None


@pytest.mark.parametrize("text", ["ffff", str(uuid.UUID(int=1)), ""])
def test_an_unknown_alert_is_refused(run: Run, text: str) -> None:
    assert "alert" in run("acknowledge", text, code=1)


def test_a_silence_is_added(service: ServiceProcess, run: Run) -> None:
    words = ("--rule", "offline", "--until", "2999-12-01T06:00", "--reason", "paint")
    message = run("silence", *words)
    assert "every location, every device, rule offline, until 2999-12-01T06:00:00Z" in message
    database = Database(service.database)
    (row,) = database.read(lambda session: session.scalars(select(AlertSilence)).all())
    database.close()
    assert (row.rule, row.location_id, row.reason) == ("offline", "", "paint")


def test_a_silence_that_ends_in_the_past_is_refused(run: Run) -> None:
    message = run("silence", "--until", "2020-01-01T06:00", code=1)
    assert "must be in the future" in message


def test_a_silence_is_listed_and_ended(run: Run) -> None:
    added = run("silence", "--rule", "site_outage", "--until", "2999-12-01T06:00")
    silence_id = added.split()[1].rstrip(":")
    assert "site_outage" in run("silences")
    ended = run("unsilence", silence_id[:8])
    assert ended.startswith(f"silence {silence_id}: every location, ")
    assert ended.endswith("rule site_outage, ended\n")
    remaining = json.loads(run("silences", "--json"))
    assert silence_id not in {silence["id"] for silence in remaining}


def test_an_unknown_silence_is_refused(run: Run) -> None:
    assert "no silence matches 'ffff'" in run("unsilence", "ffff", code=1)
