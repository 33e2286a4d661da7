"""Tests that files are opened only if no other user could have created or replaced them."""

import os
import socket
from pathlib import Path

import pytest

from agent.adapters.storage.safe_file import (
    UnsafeFile,
    open_safely,
    read_safely,
    read_start_safely,
    require_own,
    require_own_directory,
)
from agent.config.credential import ApiKeySource
from agent.config.file import load
from agent.config.model import LocalConfig
from agent.errors import ConfigError, CredentialRefused


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    file = tmp_path / "outside"
    file.write_text("outside")
    return file


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "state").mkdir()
    return tmp_path / "state" / "file"


def test_a_file_of_the_current_user_is_opened(path: Path) -> None:
    path.write_bytes(b"content")
    assert read_safely(path, 7) == b"content"
    assert read_start_safely(path, 3) == b"con"
    with pytest.raises(UnsafeFile, match="larger than 6 bytes"):
        read_safely(path, 6)


def test_a_file_is_created_only_on_request_and_never_overwritten(path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        open_safely(path, os.O_RDWR)
    os.close(open_safely(path, os.O_RDWR | os.O_CREAT))
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_text("kept")
    os.close(open_safely(path, os.O_RDWR | os.O_CREAT))
    assert path.read_text() == "kept"


@pytest.mark.parametrize("flags", [os.O_RDONLY, os.O_RDWR, os.O_RDWR | os.O_CREAT, os.O_WRONLY])
def test_a_link_is_not_followed(path: Path, outside: Path, flags: int) -> None:
    path.symlink_to(outside)
    with pytest.raises(UnsafeFile, match="is a symbolic link"):
        open_safely(path, flags | os.O_TRUNC)
    assert outside.read_text() == "outside"


def test_a_dangling_symbolic_link_creates_no_file(path: Path, tmp_path: Path) -> None:
    path.symlink_to(tmp_path / "new")
    with pytest.raises(UnsafeFile, match="is a symbolic link"):
        open_safely(path, os.O_RDWR | os.O_CREAT)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("flags", [os.O_RDONLY, os.O_WRONLY, os.O_RDWR])
def test_a_fifo_is_refused_without_waiting(path: Path, flags: int) -> None:
    os.mkfifo(path)
    with pytest.raises(UnsafeFile, match="is a FIFO"):
        open_safely(path, flags)


def test_directories_and_sockets_are_refused_as_files(path: Path) -> None:
    path.mkdir()
    with pytest.raises(UnsafeFile, match="is a directory"):
        read_safely(path, 9)
    path.rmdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        with pytest.raises(UnsafeFile, match="is a socket"):
            read_safely(path, 9)


def test_a_file_with_a_second_hard_link_is_refused(path: Path, outside: Path) -> None:
    path.hardlink_to(outside)
    with pytest.raises(UnsafeFile, match="another name"):
        open_safely(path, os.O_RDWR)


@pytest.mark.needs("other-user")
@pytest.mark.parametrize(("directory_uid", "file_uid"), [(0, 4711), (4711, 4712), (4711, 0)])
def test_a_file_is_refused_if_its_directory_has_another_owner(
    path: Path, directory_uid: int, file_uid: int
) -> None:
    path.write_text("")
    os.chown(path, file_uid, file_uid)
    os.chown(path.parent, directory_uid, directory_uid)
    for read in (lambda: read_safely(path, 9), lambda: require_own(path)):
        with pytest.raises(UnsafeFile, match=r"belongs to .*: remove it, or `chown"):
            read()


def test_a_missing_path_passes_the_check_and_a_link_does_not(path: Path, outside: Path) -> None:
    require_own(path)
    path.write_text("")
    require_own(path)
    with pytest.raises(UnsafeFile, match="not a directory"):
        require_own_directory(path)
    path.unlink()
    path.symlink_to(outside.parent)
    with pytest.raises(UnsafeFile, match="symbolic link"):
        require_own(path)
    with pytest.raises(UnsafeFile, match="symbolic link"):
        require_own_directory(path)


def test_a_repeatedly_replaced_file_is_read(path: Path) -> None:
    """`status` reads a file while the daemon replaces it again and again."""
    path.write_text("0")
    for number in range(200):
        new = path.with_name("new")
        new.write_text(str(number))
        new.replace(path)
        assert read_safely(path, 9) == str(number).encode()


@pytest.mark.parametrize("kind", ["fifo", "device", "directory"])
def test_a_configuration_or_key_that_is_not_a_file_is_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "given"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        path.mkdir()
    with pytest.raises(ConfigError, match=r"given: cannot be read: .*(FIFO|device|directory)"):
        load(LocalConfig, path, {})
    with pytest.raises(CredentialRefused, match=r"cannot be read from .*(FIFO|device|directory)"):
        ApiKeySource(path, None).read()


def test_configuration_and_key_may_be_links(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[application]\nenabled = false\n")
    (tmp_path / "key").write_text("vck_1\n")
    for name in ("config.toml", "key"):
        (tmp_path / f"link-{name}").symlink_to(tmp_path / name)
    assert not load(LocalConfig, tmp_path / "link-config.toml", {}).config.application.enabled
    assert ApiKeySource(tmp_path / "link-key", None).read() == "vck_1"
