"""Tests of `venue-control support`: tokens, links and channels."""

import json
import re
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy.orm import Session

from controlplane.cli.main import main
from controlplane.clock import system_clock
from controlplane.storage.copy import NotEmptyError, copy_rows
from controlplane.storage.database import Database
from controlplane.support.links import TOKEN_LIFE, find_link, make_link

LINK = ["support", "link", "--channel", "telegram @venue", "--asked-by", "Ada of support"]
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    file = str(tmp_path / "service.db")
    Database(file).close()
    monkeypatch.setenv("VENUE_CONTROL_DATABASE", file)
    return file


def run_command(capsys: Capture, *words: str, code: int = 0) -> str:
    """Run a command. Return its standard output, or standard error after a failure."""
    assert main(words) == code
    captured = capsys.readouterr()
    return captured.err if code else captured.out


def test_a_token_is_printed_once_and_never_listed(database: str, capsys: Capture) -> None:
    assert main(LINK) == 0
    message = capsys.readouterr()
    token = message.out.removesuffix("\n")
    assert re.fullmatch(r"[A-Za-z0-9_-]{43}", token)
    assert "telegram @venue" in message.err
    assert token not in message.err
    output = run_command(capsys, "support", "list")
    assert "Ada of support" in output
    assert "waiting" in output
    as_json = run_command(capsys, "support", "list", "--json")
    (link,) = json.loads(as_json)
    assert (link["channel"], link["organizationId"]) == ("telegram @venue", None)
    assert token not in output + as_json
    with closing(Database(database)) as opened, opened.read(lambda session: session) as session:
        row = find_link(session, token)
        assert row is not None
        assert row.expires_at - row.requested_at == TOKEN_LIFE
        assert row.requested_at <= system_clock()
    assert token.encode() not in Path(database).read_bytes()


def test_each_support_link_has_a_different_token(database: str, capsys: Capture) -> None:
    assert len({run_command(capsys, *LINK) for _ in range(3)}) == 3


def test_support_ends_a_link_by_the_start_of_its_id(database: str, capsys: Capture) -> None:
    run_command(capsys, *LINK)
    (link,) = json.loads(run_command(capsys, "support", "list", "--json"))
    assert run_command(capsys, "support", "disconnect", link["id"][:8].upper()) == (
        f"disconnected {link['id']}\n"
    )
    (ended,) = json.loads(run_command(capsys, "support", "list", "--json"))
    assert ended["state"] == "disconnected"
    assert "has ended already" in run_command(capsys, "support", "disconnect", link["id"], code=1)
    assert "no link matches" in run_command(capsys, "support", "disconnect", "nothing", code=2)
    assert "no link matches" in run_command(capsys, "support", "disconnect", "", code=2)


def make_17_links(session: Session) -> None:
    """Create 17 links, so that at least two ids begin with the same hexadecimal digit."""
    for _ in range(17):
        make_link(session, channel="chat", requested_by="Ada", now=system_clock())


def test_an_ambiguous_start_of_an_id_is_refused(database: str, capsys: Capture) -> None:
    with closing(Database(database)) as opened:
        opened.write(make_17_links)
    first_digits = [
        link["id"][0] for link in json.loads(run_command(capsys, "support", "list", "--json"))
    ]
    shared_digits = {start for start in first_digits if first_digits.count(start) > 1}
    output = run_command(capsys, "support", "disconnect", shared_digits.pop(), code=2)
    assert "matches" in output


def test_channels_are_set_listed_and_removed(database: str, capsys: Capture) -> None:
    channels = ("support", "channels")
    assert "There are no channels" in run_command(capsys, *channels, "list")
    run_command(capsys, *channels, "set", "phone", "+971 4 123 4567", "--hours", "Mon-Fri 9-18")
    run_command(capsys, *channels, "set", "email", "support@example.com")
    run_command(capsys, *channels, "set", "phone", "+971 4 123 4567", "--hours", "always")
    output = run_command(capsys, *channels, "list")
    assert "always" in output
    assert "Mon-Fri" not in output
    assert output.index("phone") < output.index("email")
    assert "removed" in run_command(capsys, *channels, "remove", "phone", "+971 4 123 4567")
    assert "phone" not in run_command(capsys, *channels, "list")
    assert "there is no channel phone +9" in run_command(
        capsys, *channels, "remove", "phone", "+9", code=1
    )


@pytest.mark.parametrize(
    "words",
    [
        ("support", "link", "--channel", " ", "--asked-by", "Ada"),
        ("support", "link", "--channel", "chat", "--asked-by", "A\x1b[31m"),
        ("support", "link", "--channel", "x" * 129, "--asked-by", "Ada"),
        ("support", "channels", "set", "Phone", "1"),
        ("support", "channels", "set", "phone", ""),
        ("support", "channels", "set", "phone", "1", "--hours", ""),
    ],
)
def test_invalid_texts_of_links_and_channels_are_refused(
    database: str, capsys: Capture, words: tuple[str, ...]
) -> None:
    run_command(capsys, *words, code=2)
    assert run_command(capsys, "support", "list", "--json") == "[]\n"


@pytest.mark.parametrize(
    "words", [LINK, ["support", "list"], ["support", "channels", "set", "email", "a@b"]]
)
def test_support_commands_do_not_create_a_database(
    tmp_path: Path, capsys: Capture, words: list[str]
) -> None:
    file = tmp_path / "none.db"
    assert "there is no database" in run_command(capsys, *words, "--database", str(file), code=2)
    assert not file.exists()


def test_a_copy_does_not_overwrite_channels(database: str, tmp_path: Path, capsys: Capture) -> None:
    run_command(capsys, "support", "channels", "set", "email", "support@example.com")
    with (
        closing(Database(str(tmp_path / "other.db"))) as source,
        closing(Database(database)) as target,
        pytest.raises(NotEmptyError, match="support_channels has 1 row"),
    ):
        copy_rows(source, target, lambda table, count: None)
