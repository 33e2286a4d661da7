"""Tests of `venue-control users`, of the names of locations, and of `serve --origin`."""

import getpass
import io
import sys
from pathlib import Path

import pytest
from sqlalchemy.orm import Session

from controlplane.accounts.keys import key_store
from controlplane.accounts.passwords import hasher
from controlplane.accounts.users import find_user, memberships
from controlplane.cli import users as module_of_users
from controlplane.cli.arguments.serve_settings import settings_of
from controlplane.cli.main import build_parser, main
from controlplane.settings import Settings
from controlplane.storage.database import Database

PASSWORD = "correct horse battery"
ADD = ["users", "add", "Ada@example.com", "--name", "Ada", "--role", "owner"]


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    file = str(tmp_path / "service.db")
    Database(file).close()
    monkeypatch.setenv("VENUE_CONTROL_DATABASE", file)
    quick = Settings(argon2_memory_kib=8, argon2_passes=1)
    monkeypatch.setattr(module_of_users, "Settings", lambda: quick)
    return file


@pytest.fixture
def password_options(tmp_path: Path) -> list[str]:
    file = tmp_path / "password"
    file.write_text(f"{PASSWORD}\nonly the first line is read\n")
    return ["--password-file", str(file)]


def read_user(
    file: str, email: str = "ada@example.com"
) -> tuple[str, list[tuple[str, str, list[str]]]]:
    """Return a user's password hash, and each membership as (organization, role, locations)."""
    database = Database(file)
    try:
        with database.read(lambda session: session) as session:
            user = find_user(session, email)
            assert user is not None
            result = memberships(session, user.id)
            return user.password_hash, [
                (membership.organization_id, membership.role, membership.locations)
                for membership in result
            ]
    finally:
        database.close()


def test_users_are_added_listed_changed_and_removed(
    database: str, password_options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*ADD, *password_options]) == 0
    assert main(["users", "add", "bob@example.com", "--role", "viewer", "--location", "loc-1",
                 "--new-locations", *password_options]) == 0  # fmt: skip
    password_hash, memberships_of_ada = read_user(database)
    assert hasher(8, 1).verify(password_hash, PASSWORD)
    assert memberships_of_ada == [("org-0001", "owner", [])]
    capsys.readouterr()
    assert main(["users", "list"]) == 0
    output = capsys.readouterr().out
    assert "Ada@example.com" in output
    assert "loc-1" in output
    assert PASSWORD not in output
    assert "argon2" not in output
    assert main(["users", "role", "bob@example.com", "manager"]) == 0
    assert read_user(database, "bob@example.com")[1] == [("org-0001", "manager", ["loc-1"])]
    assert main(["users", "role", "bob@example.com", "manager", "--every-location"]) == 0
    assert read_user(database, "bob@example.com")[1] == [("org-0001", "manager", [])]
    assert main(["users", "remove", "BOB@example.com"]) == 0
    assert main(["users", "remove", "bob@example.com"]) == 1
    assert "no user with the address" in capsys.readouterr().err


def test_unknown_locations_are_refused_unless_an_option_permits_them(
    database: str, password_options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*ADD, "--location", "loc-1", *password_options]) == 2
    assert "the location loc-1 does not exist" in capsys.readouterr().err
    assert main([*ADD, "--location", "loc-1", "--new-locations", *password_options]) == 0
    assert "New location: loc-1." in capsys.readouterr().err
    role = ["users", "role", "ada@example.com", "viewer", "--location"]
    assert main([*role, "loc-2"]) == 2
    assert read_user(database)[1] == [("org-0001", "owner", ["loc-1"])]
    assert main([*role, "loc-1"]) == 0  # the member already has this location
    assert read_user(database)[1] == [("org-0001", "viewer", ["loc-1"])]


def test_a_list_of_keys_names_their_owners(
    database: str, password_options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    main(["keys", "create", "--name", "till"])
    main([*ADD, *password_options])
    capsys.readouterr()
    main(["keys", "list"])
    assert "owner" not in capsys.readouterr().out
    opened = Database(database)

    def set_owner(session: Session) -> None:
        user = find_user(session, "ada@example.com")
        (key,) = key_store.list_keys(session)
        assert user is not None
        key.owner_id = user.id

    opened.write(set_owner)
    opened.close()
    main(["keys", "list"])
    assert "Ada@example.com" in capsys.readouterr().out


def test_a_user_who_is_added_to_a_second_organization_keeps_the_password(
    database: str, password_options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    main([*ADD, *password_options])
    before = read_user(database)[0]
    assert main([*ADD, "--organization", "org-2", "--known"]) == 0
    assert "keeps the password" in capsys.readouterr().err
    assert read_user(database) == (before, [("org-0001", "owner", []), ("org-2", "owner", [])])
    assert main([*ADD, *password_options]) == 2
    assert "a member of org-0001 already" in capsys.readouterr().err


def test_the_password_command_sets_a_new_password(
    database: str, password_options: list[str], tmp_path: Path
) -> None:
    main([*ADD, *password_options])
    other = tmp_path / "other"
    other.write_text("another horse battery")
    assert main(["users", "password", "ada@example.com", "--password-file", str(other)]) == 0
    assert hasher(8, 1).verify(read_user(database)[0], "another horse battery")


def test_a_password_is_read_from_standard_input(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(PASSWORD + "\n"))
    assert main([*ADD, "--password-file", "-"]) == 0
    assert hasher(8, 1).verify(read_user(database)[0], PASSWORD)


class Terminal(io.StringIO):
    """A standard input that is a terminal. It is empty."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("again", "code"), [(PASSWORD, 0), ("something else", 2)])
def test_the_password_must_be_entered_twice(
    database: str, monkeypatch: pytest.MonkeyPatch, again: str, code: int
) -> None:
    answers = [again, PASSWORD]
    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr(getpass, "getpass", lambda _prompt: answers.pop())
    assert main(ADD) == code
    assert not answers


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["add", "ada", "--role", "owner"], "is not an e-mail address"),
        (["add", "ada@example.com", "--role", "owner"], "no terminal for a password prompt"),
        (["add", "a@b", "--role", "owner", "--password-file", "/nonexistent/x"], "cannot read"),
        (["add", "a@b", "--role", "owner", "--location", ""], "a location id has"),
        (["add", "a@b", "--role", "owner", "--name", "x" * 129], "a name has at most"),
    ],
)
def test_errors_of_the_command_users_have_at_most_two_lines(
    words: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert main(["users", *words]) == 2
    text = capsys.readouterr().err
    assert message in text
    assert len(text.splitlines()) <= 2


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize("password", ["", "short", "x" * 257])
def test_passwords_that_are_too_short_or_too_long_are_refused(
    password: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "password"
    file.write_text(password)
    assert main([*ADD, "--password-file", str(file)]) == 2
    assert "12 to 256 characters" in capsys.readouterr().err


@pytest.mark.usefixtures("database")
def test_no_option_accepts_a_password_as_its_value(capsys: pytest.CaptureFixture[str]) -> None:
    """The parser reads ``--password`` as an abbreviation of ``--password-file``.

    Therefore, the value of ``--password`` is used as the name of a file.
    """
    assert main([*ADD, "--password", PASSWORD]) == 2
    assert "cannot read a password from" in capsys.readouterr().err


@pytest.mark.usefixtures("database")
def test_locations_are_named_and_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["locations", "name", "loc-1", "Harbour"]) == 0
    assert main(["locations", "name", "--of-organization", "Harbour Ltd"]) == 0
    assert main(["locations", "set", "loc-1", "--zone", "Europe/Riga", "--always-open"]) == 0
    capsys.readouterr()
    assert main(["locations", "list"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "org-0001: Harbour Ltd (the organization)",
        "loc-1: Harbour (Europe/Riga)",
        "loc-1: always open (Europe/Riga)",
    ]


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize(
    "words", [["Harbour"], ["loc-1", "x", "--of-organization"], ["loc-1", " "], ["", "Harbour"]]
)
def test_an_invalid_name_is_refused(words: list[str]) -> None:
    assert main(["locations", "name", *words]) == 2


@pytest.mark.parametrize(
    ("value", "origin"),
    [
        ("https://Venue.example", "https://venue.example"),
        ("https://venue.example:443/", "https://venue.example"),
        ("http://venue.example:8080", "http://venue.example:8080"),
    ],
)
def test_an_origin_is_normalized_to_the_form_that_browsers_send(value: str, origin: str) -> None:
    options = build_parser().parse_args(["serve", "--origin", value])
    assert settings_of(options).origin == origin


@pytest.mark.parametrize(
    "value",
    [
        "venue.example",
        "https://venue.example/x",
        "ftp://x",
        "https://",
        "https://x:70000",
        "https://x?y",
        "https://x/#y",
        "https://me@x",
    ],
)
def test_an_invalid_origin_is_refused(value: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--origin", value, "--port", "0"]) == 2
    assert "is not an origin" in capsys.readouterr().err
