"""Tests of `venue-control retail`: keys are created, listed, used and revoked."""

import sys
from pathlib import Path

import pytest

from controlplane.cli.main import main
from controlplane.client.refusals import UnauthenticatedError
from controlplane.client.retail import RetailClient
from tests.unit.controlplane.cli.merchant.conftest import SandboxMerchant

pytestmark = [
    pytest.mark.medium,
    pytest.mark.skipif(
        sys.platform == "win32", reason="the test stops the service with POSIX signals"
    ),
]


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "service.db"
    monkeypatch.setenv("VENUE_CONTROL_DATABASE", str(path))
    monkeypatch.delenv("COLUMNS", raising=False)  # without a width, ids are not shortened
    return path


@pytest.mark.usefixtures("database")
def test_a_retail_key_is_created_listed_and_revoked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["retail", "keys", "create", "--name", "reader"]) == 0
    reader = capsys.readouterr()
    assert reader.out.startswith("venue_test_")
    assert "this test key: read only" in reader.err
    assert main(["retail", "keys", "create", "--live", "--write", "--organization", "org-7"]) == 0
    writer = capsys.readouterr()
    assert writer.out.startswith("venue_live_")
    assert "create goods" in writer.err

    assert main(["retail", "keys", "list"]) == 0
    _, first, second = capsys.readouterr().out.splitlines()
    assert first.split()[1:5] == [f"…{reader.out.strip()[-4:]}", "read", "org-0001", "reader"]
    assert second.split()[1:4] == [f"…{writer.out.strip()[-4:]}", "write", "org-7"]
    assert reader.out.strip() not in first

    assert main(["retail", "keys", "revoke", "reader"]) == 0
    assert capsys.readouterr().out.strip() == f"revoked {first.split()[0]}"
    assert main(["retail", "keys", "list"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[2] == "revoked"
    assert main(["retail", "keys", "revoke", "nobody"]) == 2
    assert "`venue-control retail keys list` lists the keys" in capsys.readouterr().err


@pytest.mark.usefixtures("database")
def test_a_long_organization_id_is_folded_and_the_key_id_is_not(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["retail", "keys", "create", "--organization", "o" * 200]) == 0
    key = capsys.readouterr().out.strip()
    assert main(["retail", "keys", "list"]) == 0
    _, row, *folded = capsys.readouterr().out.splitlines()
    assert row.split()[1:3] == [f"…{key[-4:]}", "read"]
    assert len(row.split()[0]) == 8
    assert folded


@pytest.mark.parametrize(
    "words", [["keys", "list"], ["keys", "revoke", "x"], ["rotate-signing-key"]]
)
def test_commands_that_need_an_existing_database_do_not_create_one(
    words: list[str], database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["retail", *words]) == 2
    assert "there is no database" in capsys.readouterr().err
    assert not database.exists()


def test_a_running_service_accepts_a_key_until_the_key_is_revoked(
    sandbox_environment: SandboxMerchant, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["retail", "keys", "create", "--name", "temporary"]) == 0
    key = capsys.readouterr().out.strip()
    with RetailClient(sandbox_environment.service.url, key) as client:
        assert next(client.sales()).status == "completed"
    assert main(["retail", "keys", "revoke", key[-4:]]) == 0
    with (
        RetailClient(sandbox_environment.service.url, key) as client,
        pytest.raises(UnauthenticatedError, match="401"),
    ):
        next(client.sales())


def test_one_signing_key_is_active_after_a_rotation(
    sandbox_environment: SandboxMerchant, capsys: pytest.CaptureFixture[str]
) -> None:
    with RetailClient(
        sandbox_environment.service.url, sandbox_environment.keys["VENUE_CONTROL_RETAIL_KEY"]
    ) as client:
        assert next(client.sales())
        assert main(["retail", "rotate-signing-key"]) == 0
        key_id = capsys.readouterr().out.removeprefix("new signing key: ").strip()
        # The rotation revoked the token of the client, so the client requests a new token.
        assert next(client.sales())
    count_keys = "SELECT COUNT(*) FROM signing_keys WHERE purpose = 'access tokens'"
    assert sandbox_environment.query_number(f"{count_keys} AND retired_at IS NULL") == 1
    assert sandbox_environment.query_number(f"{count_keys} AND retired_at IS NOT NULL") >= 1
    assert len(key_id) == 36
