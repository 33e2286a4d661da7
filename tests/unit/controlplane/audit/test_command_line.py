"""Tests of the audit log on the command line: commands add entries, and `audit` lists them."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from controlplane.cli import users as users_command
from controlplane.cli.arguments.serve_settings import settings_of
from controlplane.cli.main import build_parser, main
from controlplane.settings import Settings
from controlplane.storage.database import Database

PASSWORD = "correct horse battery"


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    file = str(tmp_path / "service.db")
    Database(file).close()
    monkeypatch.setenv("VENUE_CONTROL_DATABASE", file)
    quick = Settings(argon2_memory_kib=8, argon2_passes=1)
    monkeypatch.setattr(users_command, "Settings", lambda: quick)
    return file


def run_command(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    assert main(list(arguments)) == 0
    return capsys.readouterr().out


def entries(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = json.loads(run_command(capsys, "audit", "--json", *arguments))
    return results


@pytest.mark.usefixtures("database")
def test_each_change_on_the_command_line_has_an_audit_entry(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    secret = tmp_path / "password"
    secret.write_text(f"{PASSWORD}\n")
    password_options, ada = ["--password-file", str(secret)], "ada@example.com"
    key = run_command(capsys, "keys", "create", "--write", "--name", "till").strip()
    retail = run_command(capsys, "retail", "keys", "create", "--name", "shop").strip()
    changes = (
        ["keys", "revoke", "till"],
        ["keys", "revoke", "till"],  # the second revocation changes nothing
        ["retail", "keys", "revoke", "shop"],
        [
            "users",
            "add",
            ada,
            "--role",
            "viewer",
            "--location",
            "loc-0001",
            "--new-locations",
            *password_options,
        ],
        ["users", "role", ada, "owner", "--every-location"],
        ["users", "password", ada, *password_options],
        ["users", "remove", ada],
        ["locations", "set", "loc-0001", "--zone", "Europe/Riga", "--always-open"],
        ["locations", "name", "loc-0001", "Harbour"],
        ["locations", "name", "--of-organization", "Harbour Hospitality"],
        ["locations", "quiet", "loc-0001", "--until", "2999-12-01", "--reason", "new cables"],
        ["locations", "quiet", "loc-0001", "--end"],
    )
    for arguments in changes:
        run_command(capsys, *arguments)
    oldest_first = list(reversed(entries(capsys)))
    assert [entry["operation"] for entry in oldest_first] == [
        "key.create", "retail_key.create", "key.revoke", "retail_key.revoke", "member.add",
        "member.change", "password.change", "member.remove", "location.hours", "location.name",
        "organization.name", "maintenance.add", "maintenance.end",
    ]  # fmt: skip
    assert {entry["actorName"] for entry in oldest_first} == {"command line"}
    assert {entry["credentialKind"] for entry in oldest_first} == {"command_line"}
    details = {entry["operation"]: entry["detail"] for entry in oldest_first}
    assert details["key.create"] == "reads and writes, at every location"
    assert details["member.change"] == "viewer at loc-0001 → owner at every location"
    assert details["location.hours"] == "always open (Europe/Riga)"
    assert details["maintenance.add"].endswith("UTC new cables")
    assert oldest_first[4]["subjectName"] == ada
    log = json.dumps(oldest_first)
    for secret_text in (key, retail, PASSWORD):
        assert secret_text not in log


@pytest.mark.usefixtures("database")
def test_entries_are_listed_as_table_and_csv_and_filtered(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in ("first", "second"):
        run_command(capsys, "keys", "create", "--name", name)
    output = run_command(capsys, "audit")
    assert output.index("second") < output.index("first")
    assert "command line" in output
    rows = list(csv.DictReader(io.StringIO(run_command(capsys, "audit", "--csv"))))
    assert [row["operation"] for row in rows] == ["key.create"] * 2
    assert len(entries(capsys, "--limit", "1")) == 1
    assert len(entries(capsys, "--since", "1d")) == 2
    assert entries(capsys, "--since", "2998-01-01") == []
    assert len(entries(capsys, "--by", "Command")) == 2
    assert entries(capsys, "--by", "ada") == []
    assert entries(capsys, "--of-nobody") == []
    assert entries(capsys, "--organization", "org-0002") == []
    assert "There are no entries." in run_command(capsys, "audit", "--organization", "org-0002")


def test_retention_is_set_in_days() -> None:
    parser = build_parser()
    assert settings_of(parser.parse_args(["serve"])).keep_audit_s == 400 * 86_400
    options = parser.parse_args(["serve", "--keep-audit", "30d"])
    assert settings_of(options).keep_audit_s == 30 * 86_400
