"""Tests of `venue-control alerts` against a running service."""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import select

from controlplane.accounts.keys.key_store import DEFAULT_ORGANIZATION
from controlplane.clock import system_clock
from controlplane.storage.database import Database
from controlplane.storage.monitoring_tables import Alert, AlertSilence
from tests.unit.controlplane.cli.running_fleet import ServiceProcess, run, service_process

pytestmark = pytest.mark.medium  # it starts processes

ID = uuid.UUID("4f6c1c1a-5f3e-4c6e-8a56-2b7d1c9e0a44")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """Run a service with a site outage that is firing, and a resolved one of another location."""
    path: Path = tmp_path_factory.mktemp("alerts") / "service.db"
    with service_process(path) as process:
        database = Database(process.database)
        database.write(
            lambda session: session.add_all(
                [_outage(ID, "loc-0001"), _outage(uuid.uuid4(), "loc-0002", is_resolved=True)]
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


def test_firing_alerts_are_listed(service: ServiceProcess) -> None:
    result = run("alerts", "list", "--json", **service.as_environment())
    assert [alert["id"] for alert in json.loads(result.stdout)] == [str(ID)]
    table = run("alerts", "list", **service.as_environment()).stdout
    assert "site_outage" in table
    assert "5 of 6 devices" in table
    elsewhere = run("alerts", "list", "--location", "loc-0002", **service.as_environment())
    assert elsewhere.stdout == "No alerts are firing.\n"


def test_an_alert_is_acknowledged_by_the_start_of_its_id(service: ServiceProcess) -> None:
    result = run("alerts", "acknowledge", str(ID)[:8], **service.as_environment())
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("site_outage of loc-0001: acknowledged by ")
    (alert,) = json.loads(run("alerts", "list", "--json", **service.as_environment()).stdout)
    assert alert["acknowledgedAt"] is not None


@pytest.mark.parametrize("text", ["ffff", str(uuid.UUID(int=1))])
def test_an_unknown_alert_is_refused(service: ServiceProcess, text: str) -> None:
    result = run("alerts", "acknowledge", text, **service.as_environment())
    assert result.returncode == 1
    assert "alert" in result.stderr


def test_a_silence_is_added(service: ServiceProcess) -> None:
    result = run(
        "alerts", "silence", "--rule", "offline", "--until", "2999-12-01T06:00",
        "--reason", "paint",
        **service.as_environment(),
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert "every location, every device, rule offline, until 2999-12-01T06:00:00Z" in result.stdout
    database = Database(service.database)
    (row,) = database.read(lambda session: session.scalars(select(AlertSilence)).all())
    database.close()
    assert (row.rule, row.location_id, row.reason) == ("offline", "", "paint")


def test_an_end_in_the_past_is_refused(service: ServiceProcess) -> None:
    result = run(
        "alerts", "silence", "--until", "2020-01-01T06:00",
        **service.as_environment(),
    )  # fmt: skip
    assert result.returncode == 1
    assert "must be in the future" in result.stderr


def test_a_silence_is_listed_and_ended(service: ServiceProcess) -> None:
    added = run(
        "alerts", "silence", "--rule", "site_outage", "--until", "2999-12-01T06:00",
        **service.as_environment(),
    )  # fmt: skip
    assert added.returncode == 0, added.stderr
    silence_id = added.stdout.split()[1].rstrip(":")
    table = run("alerts", "silences", **service.as_environment()).stdout
    assert "site_outage" in table
    ended = run("alerts", "unsilence", silence_id[:8], **service.as_environment())
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith(f"silence {silence_id}: every location, ")
    assert ended.stdout.endswith("rule site_outage, ended\n")
    remaining = json.loads(run("alerts", "silences", "--json", **service.as_environment()).stdout)
    assert silence_id not in {silence["id"] for silence in remaining}


def test_an_unknown_silence_is_refused(service: ServiceProcess) -> None:
    result = run("alerts", "unsilence", "ffff", **service.as_environment())
    assert result.returncode == 1
    assert "no silence matches 'ffff'" in result.stderr
