from pathlib import Path

import pytest

from agent.adapters.atomic_file import write_atomically


def test_a_new_file_is_private_and_nothing_else_is_left(tmp_path: Path) -> None:
    write_atomically(tmp_path / "a", b"one")

    assert (tmp_path / "a").read_bytes() == b"one"
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o600
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_replacing_sets_the_mode_anew(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one")
    (tmp_path / "a").chmod(0o666)

    write_atomically(tmp_path / "a", b"two", 0o644)

    assert (tmp_path / "a").read_bytes() == b"two"
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o644


def test_a_failure_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "inside").write_text("kept")

    with pytest.raises(OSError, match="Is a directory"):
        write_atomically(tmp_path / "a", b"one")

    assert (tmp_path / "a" / "inside").read_text() == "kept"
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_a_missing_directory_is_said(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_atomically(tmp_path / "none" / "a", b"one")
