"""Tests of the command `keys create --out`, which creates either all key files or none."""

import csv
import errno
import os
import sys
from pathlib import Path

import pytest

from controlplane.accounts.keys import key_store
from controlplane.cli import key_files, keys
from controlplane.cli.main import main
from controlplane.client.errors import CommandError
from controlplane.operation.permissions import hash_secret
from controlplane.storage.database import Database
from controlplane.storage.tables import ApiKey


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    url = str(tmp_path / "service.db")
    monkeypatch.setenv("VENUE_CONTROL_DATABASE", url)
    monkeypatch.setenv("COLUMNS", "80")
    return url


def keys_in(database: str) -> list[ApiKey]:
    opened = Database(database)
    try:
        return list(opened.read(key_store.list_keys))
    finally:
        opened.close()


def test_keys_create_writes_a_file_for_each_key(
    database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    venues = tmp_path / "venues.txt"
    venues.write_text("# our venues\nloc-0001\n\n  loc/2 ä  \nloc-0001\n", encoding="utf-8")
    out = tmp_path / "new" / "keys"
    words = "keys create --write --count 2 --name rollout --new-locations --locations-file".split()
    assert main([*words, str(venues), "--out", str(out)]) == 0
    output = capsys.readouterr()
    assert output.out == f"wrote 4 keys and manifest.csv to {out}\n"
    assert "vck_" not in output.out + output.err
    with (out / "manifest.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["file"] for row in rows] == [
        "loc-0001-01.key", "loc-0001-02.key", "loc_2-01.key", "loc_2-02.key",
    ]  # fmt: skip
    keys_by_id = {str(key.id): key for key in keys_in(database)}
    assert len(keys_by_id) == 4
    for row in rows:
        secret = (out / row["file"]).read_text("ascii").strip()
        key = keys_by_id[row["keyId"]]
        assert key.secret_hash == hash_secret(secret)
        assert (key.can_write, key.locations) == (True, [row["locationId"]])
        assert row["hint"] == f"…{secret[-4:]}"
        assert key.name == row["name"]
        assert "vck_" not in (out / "manifest.csv").read_text("utf-8")
    assert rows[2]["name"] == "rollout loc/2 ä-01"
    assert sorted(path.name for path in out.parent.iterdir()) == ["keys"]


@pytest.mark.skipif(sys.platform == "win32", reason="the test reads POSIX file modes")
@pytest.mark.usefixtures("database")
def test_only_the_owner_can_read_key_files(tmp_path: Path) -> None:
    out = tmp_path / "keys"
    old_mask = os.umask(0)
    try:
        assert main(["keys", "create", "--count", "3", "--out", str(out)]) == 0
    finally:
        os.umask(old_mask)
    assert out.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in out.iterdir()} == {0o600}
    assert sorted(path.name for path in out.iterdir())[0] == "key-01.key"


def test_existing_key_files_are_not_overwritten(
    database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "keys"
    words = ["keys", "create", "--location", "a", "--new-locations"]
    assert main([*words, "--out", str(out)]) == 0
    content = (out / "a-01.key").read_text("ascii")
    assert main([*words, "--out", str(out)]) == 2
    assert "is a link or not empty, and keys are not overwritten" in capsys.readouterr().err
    assert (out / "a-01.key").read_text("ascii") == content
    assert len(keys_in(database)) == 1


def test_keys_of_unknown_locations_are_refused_unless_an_option_permits_them(
    database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "keys"
    words = ["keys", "create", "--location", "loc-0001"]
    assert main([*words, "--out", str(out)]) == 2
    error = " ".join(capsys.readouterr().err.split())
    assert "the location loc-0001 does not exist" in error
    assert "Locations: none. If a location is new, repeat" in error
    assert (out.exists(), keys_in(database)) == (False, [])
    assert main(["locations", "name", "loc-0001", "Quay"]) == 0
    assert main(words) == 0
    capsys.readouterr()
    mistyped = [*words, "--location", "loc-001", "--location", "lco-1"]
    assert main(mistyped) == 2
    error = " ".join(capsys.readouterr().err.split())
    assert "the locations lco-1, loc-001 do not exist" in error
    assert "Locations: loc-0001 (Quay)." in error
    assert len(keys_in(database)) == 1
    assert main([*mistyped, "--new-locations"]) == 0
    assert "New locations: lco-1, loc-001." in capsys.readouterr().err


def test_keys_are_kept_if_nobody_reads_the_error_output(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w", buffering=1, encoding="utf-8") as closed_pipe:  # noqa: PTH123 - no path
        monkeypatch.setattr(sys, "stderr", closed_pipe)
        words = ["keys", "create", "--location", "a", "--new-locations"]
        assert main([*words, "--out", str(tmp_path / "keys")]) == 1
    (key,) = keys_in(database)
    secret = (tmp_path / "keys" / "a-01.key").read_text("ascii").strip()
    assert key.secret_hash == hash_secret(secret)


@pytest.mark.parametrize("full_after", [0, 1, 2, 3, 4])
def test_a_full_disk_leaves_no_key_files(
    database: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    full_after: int,
) -> None:
    """The command calls fsync five times: for three keys, the manifest and the directory.

    The first ``full_after`` of these calls succeed. Then the disk is full.
    """
    assert main(["keys", "create"]) == 0  # creates the database and its first key
    synced: list[int] = []

    def fsync(handle: int) -> None:
        if len(synced) == full_after:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        synced.append(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    out = tmp_path / "place" / "keys"
    assert main(["keys", "create", "--count", "3", "--out", str(out)]) == 1
    assert "no key was created: cannot write to" in capsys.readouterr().err
    assert list(out.parent.iterdir()) == []
    assert len(keys_in(database)) == 1


def test_no_key_file_is_left_if_the_database_cannot_be_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VENUE_CONTROL_DATABASE", "/dev/null/x.db")
    out = tmp_path / "place" / "keys"
    assert main(["keys", "create", "--count", "3", "--out", str(out)]) == 2
    assert "cannot use the database" in capsys.readouterr().err
    assert list(out.parent.iterdir()) == []


def test_the_error_names_the_staging_directory_if_it_cannot_be_renamed(
    database: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = tmp_path / "place" / "keys"
    add = keys._add_keys

    def add_and_block(*arguments: object) -> None:
        add(*arguments)  # type: ignore[arg-type]
        (out / "in the way").mkdir(parents=True)

    monkeypatch.setattr(keys, "_add_keys", add_and_block)
    assert main(["keys", "create", "--count", "3", "--out", str(out)]) == 1
    hint = capsys.readouterr().err.splitlines()[-1]
    staging = Path(hint.removeprefix("The keys are in ").removesuffix(": move this directory."))
    assert len(list(staging.glob("*.key"))) == len(keys_in(database)) == 3


def test_locations_that_would_share_a_file_and_too_many_keys_are_refused() -> None:
    with pytest.raises(CommandError, match=r"the file a_b-01\.key"):
        key_files.plan_key_files(["a/b", "A:b"], 1, "")
    with pytest.raises(CommandError, match="more than the maximum of 10000"):
        key_files.plan_key_files(["a"], 10_001, "")


def test_a_key_is_revoked_by_name_last_four_characters_or_start_of_its_id(
    database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("one", "two", "two", "three"):
        assert main(["keys", "create", "--name", name]) == 0
    capsys.readouterr()
    by_name = {key.name: key for key in keys_in(database)}
    three = by_name["three"]
    assert main(["keys", "revoke", "one"]) == 0
    assert main(["keys", "revoke", f"…{three.hint}"]) == 0
    assert main(["keys", "revoke", str(three.id)[:9].upper()]) == 0
    assert main(["keys", "revoke", "two"]) == 2
    assert "'two' matches 2 keys" in capsys.readouterr().err
    assert main(["keys", "revoke", "four"]) == 2
    assert [key.name for key in keys_in(database) if key.revoked_at] == ["one", "three"]
