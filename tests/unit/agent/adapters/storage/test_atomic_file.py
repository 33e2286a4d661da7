"""Tests of the atomic replacement of files, and of its retries on Windows."""

from pathlib import Path

import pytest

from agent.adapters.storage.atomic_file import replace_with_retries, write_atomically


def test_a_new_file_is_private_and_no_temporary_file_is_left(tmp_path: Path) -> None:
    write_atomically(tmp_path / "a", b"one")

    assert (tmp_path / "a").read_bytes() == b"one"
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o600
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_replacing_a_file_sets_its_mode(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one")
    (tmp_path / "a").chmod(0o666)

    write_atomically(tmp_path / "a", b"two", 0o644)

    assert (tmp_path / "a").read_bytes() == b"two"
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o644


def test_a_failed_write_keeps_the_old_content_and_leaves_no_temporary_file(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "inside").write_text("kept")

    with pytest.raises(OSError, match="Is a directory"):
        write_atomically(tmp_path / "a", b"one")

    assert (tmp_path / "a" / "inside").read_text() == "kept"
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_writing_into_a_missing_directory_raises_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_atomically(tmp_path / "none" / "a", b"one")


@pytest.mark.parametrize("refusals", [0, 1, 2, 3])
def test_replacing_is_retried_after_a_temporary_refusal(tmp_path: Path, refusals: int) -> None:
    """Windows refuses to replace a file while another process has it open."""
    pauses: list[float] = []
    replaced: list[tuple[str, Path]] = []

    def replace(source: str, target: Path) -> None:
        if len(pauses) < refusals:
            raise PermissionError(5, "Access denied")
        replaced.append((source, target))

    replace_with_retries("new", tmp_path, (0.1, 0.2, 0.4), pauses.append, replace)
    assert pauses == [0.1, 0.2, 0.4][:refusals]
    assert replaced == [("new", tmp_path)]


def test_a_refusal_after_the_last_retry_is_raised(tmp_path: Path) -> None:
    def refuse(source: str, target: Path) -> None:
        raise PermissionError(5, "Access denied")

    pauses: list[float] = []
    with pytest.raises(PermissionError):
        replace_with_retries("new", tmp_path, (0.1, 0.2), pauses.append, refuse)
    assert pauses == [0.1, 0.2]
