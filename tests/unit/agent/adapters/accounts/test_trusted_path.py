"""Tests of the check whether other users could change the file at a path.

Root and the current user are the trusted owners, so that any user can run the tests.
"""

import grp
import os
import pwd
from pathlib import Path

import pytest

from agent.adapters.accounts import accounts, trusted_path
from agent.adapters.accounts.trusted_path import Weakness, weakness_below, weakness_of
from agent.adapters.storage.state import StateDirectory
from agent.errors import StateError

TRUSTED_OWNERS = {0, os.geteuid()}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    directory = tmp_path / "parent" / "directory"
    directory.mkdir(parents=True, mode=0o700)
    return directory


def test_a_directory_of_the_current_user_is_trusted(directory: Path) -> None:
    assert weakness_of(directory, TRUSTED_OWNERS) is None


@pytest.mark.parametrize(("mode", "writers"), [(0o770, "its group"), (0o707, "every user")])
def test_a_directory_that_others_can_write_is_reported_with_the_fix(
    directory: Path, mode: int, writers: str
) -> None:
    directory.chmod(mode)
    assert weakness_of(directory, TRUSTED_OWNERS) == Weakness(
        f"{directory} is writable for {writers} (mode {mode:04o})", f"`chmod go-w {directory}`"
    )


def test_a_parent_directory_that_others_can_write_is_a_weakness(directory: Path) -> None:
    directory.parent.chmod(0o777)
    weakness = weakness_of(directory, TRUSTED_OWNERS)
    assert weakness is not None
    assert weakness.fix == f"`chmod go-w {directory.parent}`"


def test_a_parent_directory_that_others_can_write_is_trusted_with_the_sticky_bit(
    directory: Path,
) -> None:
    directory.parent.chmod(0o1777)
    assert weakness_of(directory, TRUSTED_OWNERS) is None


def test_a_sticky_directory_itself_is_not_trusted(directory: Path) -> None:
    directory.chmod(0o1777)
    assert weakness_of(directory, TRUSTED_OWNERS) is not None


def test_a_directory_of_an_untrusted_owner_is_reported(directory: Path) -> None:
    other_owners = {0} if os.geteuid() else {4711}  # without the current user
    weakness = weakness_of(directory, other_owners)
    assert weakness is not None
    assert " belongs to " in weakness.detail


def test_the_directory_of_every_link_in_a_chain_is_checked(directory: Path, tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "open" / "link").symlink_to("../parent/directory")
    (tmp_path / "first").symlink_to(tmp_path / "open" / "link")
    weakness = weakness_of(tmp_path / "first", TRUSTED_OWNERS)
    assert weakness is not None
    assert weakness.fix == f"`chmod go-w {tmp_path / 'open'}`"
    (tmp_path / "open").chmod(0o755)
    assert weakness_of(tmp_path / "first", TRUSTED_OWNERS) is None


def test_a_cycle_of_links_raises_an_error(tmp_path: Path) -> None:
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    with pytest.raises(OSError, match="too many links") as raised:
        weakness_of(tmp_path / "one", TRUSTED_OWNERS)
    assert (raised.value.filename, raised.value.strerror) == (
        str(tmp_path / "one"),
        "contains too many links",
    )


def test_a_parent_directory_is_trusted_if_only_a_private_group_can_write_to_it(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory.parent.chmod(0o775)
    monkeypatch.setattr(trusted_path, "is_private_group", lambda gid, uid: False)
    assert weakness_of(directory, TRUSTED_OWNERS) is not None
    monkeypatch.setattr(trusted_path, "is_private_group", lambda gid, uid: True)
    assert weakness_of(directory, TRUSTED_OWNERS) is None
    directory.chmod(0o770)
    assert weakness_of(directory, TRUSTED_OWNERS) is not None


def test_files_below_a_directory_are_checked(directory: Path) -> None:
    (directory / "deep").mkdir()
    (directory / "deep" / "file").write_text("")
    (directory / "deep" / "file").chmod(0o644)
    assert weakness_below(directory, TRUSTED_OWNERS) is None
    (directory / "deep" / "file").chmod(0o666)
    assert weakness_below(directory, TRUSTED_OWNERS) == Weakness(
        f"{directory / 'deep' / 'file'} is writable for every user (mode 0666)",
        f"`chmod go-w {directory / 'deep' / 'file'}`",
    )


def test_prepare_refuses_an_unsafe_state_directory_with_problem_and_fix(directory: Path) -> None:
    directory.chmod(0o777)
    with pytest.raises(StateError) as error_info:
        StateDirectory(directory).prepare()
    assert str(error_info.value).splitlines() == [
        (
            f"the state directory {directory} is not safe:"
            f" {directory} is writable for every user (mode 0777)"
        ),
        f"to use it: `chmod go-w {directory}`",
    ]


def test_users_outside_of_a_user_namespace_have_the_overflow_uid(tmp_path: Path) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "sys/kernel").mkdir(parents=True)
    (tmp_path / "sys/kernel/overflowuid").write_text("65534\n")
    (tmp_path / "self/uid_map").write_text("         0       1000          1\n")
    assert accounts.ids_of_unmapped_users(tmp_path) == {65534}
    (tmp_path / "self/uid_map").write_text("         0          0 4294967295\n")
    assert accounts.ids_of_unmapped_users(tmp_path) == frozenset()
    assert accounts.ids_of_unmapped_users(tmp_path / "none") == frozenset()


def test_a_primary_group_of_two_users_is_not_private(monkeypatch: pytest.MonkeyPatch) -> None:
    user = ("till", "x", 1000, 1000, "", "/home/till", "/bin/sh")
    users = [pwd.struct_passwd(user)]
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: users[0])
    monkeypatch.setattr(pwd, "getpwall", lambda: users)
    monkeypatch.setattr(grp, "getgrgid", lambda gid: grp.struct_group(("till", "x", gid, [])))
    assert accounts.is_private_group(1000, 1000)
    users.append(pwd.struct_passwd(("bar", "x", 1001, *user[3:])))
    assert not accounts.is_private_group(1000, 1000)


def test_the_group_of_root_is_private_only_for_root() -> None:
    assert accounts.is_private_group(0, 0)
    assert not accounts.is_private_group(0, 4711)


def test_a_user_is_named_by_the_account_or_else_by_the_uid() -> None:
    assert accounts.user_name(0) == "root"
    assert accounts.user_name(4_000_000_000) == "4000000000"
