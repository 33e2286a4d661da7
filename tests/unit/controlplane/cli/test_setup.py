"""Tests of `venue-control setup`, and of the log level of `venue-control serve`."""

import getpass
import io
import logging
from pathlib import Path

import pytest
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from controlplane.accounts.names import known_locations
from controlplane.accounts.passwords import hasher
from controlplane.accounts.users import find_user, memberships
from controlplane.cli import users as users_command
from controlplane.cli.main import main
from controlplane.settings import Settings
from controlplane.storage.audit_tables import AuditEntry
from controlplane.storage.database import Database
from controlplane.storage.layout import Base
from controlplane.storage.merchant.merchant_tables import Location, Organization
from controlplane.web.observability.logs import set_up_logging
from tests.unit.controlplane.running_service import caller_of_key

PASSWORD = "correct horse battery"


class Terminal(io.StringIO):
    """A stream that reports that it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    file = str(tmp_path / "service.db")
    monkeypatch.setenv("VENUE_CONTROL_DATABASE", file)
    monkeypatch.setenv("TZ", "Europe/Riga")
    quick = Settings(argon2_memory_kib=8, argon2_passes=1)
    monkeypatch.setattr(users_command, "Settings", lambda: quick)
    return file


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    file = tmp_path / "password"
    file.write_text(f"{PASSWORD}\n")
    return ["setup", "--organization-name", "Harbour Ltd", "--email", "ada@example.com",
            "--location-name", "Old harbour", "--password-file", str(file)]  # fmt: skip


def count_rows(file: str) -> dict[str, int]:
    """Return the number of rows of each table."""
    database = Database(file)
    try:
        with database.read(lambda session: session) as session:
            return {
                table.name: session.execute(select(func.count()).select_from(table)).scalar_one()
                for table in Base.metadata.sorted_tables
            }
    finally:
        database.close()


def test_setup_creates_everything_and_a_second_run_changes_nothing(
    database: str, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 0
    output = capsys.readouterr()
    secret = output.out.splitlines()[-1]
    assert output.err.splitlines()[-2] == "Next: venue-control serve"
    before = count_rows(database)

    def check(session: Session) -> None:
        user = find_user(session, "ada@example.com")
        assert user is not None
        assert hasher(8, 1).verify(user.password_hash, PASSWORD)
        (membership,) = memberships(session, user.id)
        assert (membership.organization_id, membership.role) == ("org-0001", "owner")
        assert session.get_one(Organization, "org-0001").name == "Harbour Ltd"
        location = session.scalars(select(Location)).one()
        assert (location.id, location.zone) == ("loc-0001", "Europe/Riga")
        caller = caller_of_key(session, secret)
        assert caller is not None
        assert caller.can_write
        operations = set(session.scalars(select(AuditEntry.operation)))
        assert {"organization.name", "member.add", "location.name", "key.create"} <= operations

    opened = Database(database)
    opened.read(check)
    opened.close()
    for arguments in (words, ["setup"]):
        assert main(arguments) == 0
        output = capsys.readouterr()
        assert output.out.startswith("org-0001 is set up already: nothing was changed.\n")
        for part in ("Harbour Ltd", "ada@example.com", "Old harbour (loc-0001)", "first key"):
            assert part in output.out
        assert "vck_" not in output.out + output.err
    assert count_rows(database) == before


def test_setup_prompts_for_missing_values_and_prompts_again_after_invalid_values(
    database: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # This command also creates the organization, so setup does not prompt for its name.
    assert main(["locations", "name", "loc-0007", "Quay"]) == 0
    capsys.readouterr()
    passwords = iter(["short", "short", PASSWORD, PASSWORD])
    monkeypatch.setattr(getpass, "getpass", lambda _question: next(passwords))
    monkeypatch.setattr("sys.stdin", Terminal("ada\nada@example.com\nAda\n"))
    monkeypatch.setattr("sys.stderr", Terminal())
    assert main(["setup"]) == 0
    assert list(passwords) == []
    assert "Quay (loc-0007)" in capsys.readouterr().out
    opened = Database(database)
    assert opened.read(lambda session: known_locations(session, "org-0001")) == {"loc-0007": "Quay"}
    opened.close()


def test_without_a_terminal_the_missing_options_are_named_and_nothing_is_created(
    database: str,
    words: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert main([*words[:3], *words[5:]]) == 2
    assert "these options are needed: --email\n" in capsys.readouterr().err
    monkeypatch.setattr("sys.stdin", Terminal("Harbour Ltd\n"))
    monkeypatch.setattr("sys.stderr", Terminal())
    assert main(["setup"]) == 2  # the input ends
    # The one row is the version of the database schema.
    assert set(count_rows(database).values()) <= {0, 1}
    assert count_rows(database)["organizations"] == 0


@pytest.mark.parametrize(("level", "shows_steps"), [("info", False), ("debug", True)])
def test_serve_logs_the_steps_of_a_migration_only_with_the_level_debug(
    level: str, shows_steps: bool
) -> None:
    root = logging.getLogger()
    handlers, before = root.handlers[:], root.level
    try:
        set_up_logging(level, "text")
        assert logging.getLogger("alembic.runtime.migration").isEnabledFor(logging.INFO) == (
            shows_steps
        )
    finally:
        root.handlers[:] = handlers
        root.setLevel(before)
        logging.getLogger("alembic").setLevel(logging.NOTSET)
