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
def place(tmp_path: Path) -> Path:
    (tmp_path / "state").mkdir()
    return tmp_path / "state" / "file"


def test_a_file_of_the_current_user_is_opened(place: Path) -> None:
    place.write_bytes(b"content")
    assert read_safely(place, 7) == b"content"
    assert read_start_safely(place, 3) == b"con"
    with pytest.raises(UnsafeFile, match="larger than 6 bytes"):
        read_safely(place, 6)


def test_a_file_is_created_only_on_request_and_never_overwritten(place: Path) -> None:
    with pytest.raises(FileNotFoundError):
        open_safely(place, os.O_RDWR)
    os.close(open_safely(place, os.O_RDWR | os.O_CREAT))
    assert place.stat().st_mode & 0o777 == 0o600
    place.write_text("kept")
    os.close(open_safely(place, os.O_RDWR | os.O_CREAT))
    assert place.read_text() == "kept"


@pytest.mark.parametrize("flags", [os.O_RDONLY, os.O_RDWR, os.O_RDWR | os.O_CREAT, os.O_WRONLY])
def test_a_link_is_not_followed(place: Path, outside: Path, flags: int) -> None:
    place.symlink_to(outside)
    with pytest.raises(UnsafeFile, match="is a symbolic link"):
        open_safely(place, flags | os.O_TRUNC)
    assert outside.read_text() == "outside"


def test_a_dangling_symbolic_link_creates_no_file(place: Path, tmp_path: Path) -> None:
    place.symlink_to(tmp_path / "new")
    with pytest.raises(UnsafeFile, match="is a symbolic link"):
        open_safely(place, os.O_RDWR | os.O_CREAT)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("flags", [os.O_RDONLY, os.O_WRONLY, os.O_RDWR])
def test_a_fifo_is_refused_without_waiting(place: Path, flags: int) -> None:
    os.mkfifo(place)
    with pytest.raises(UnsafeFile, match="is a FIFO"):
        open_safely(place, flags)


def test_directories_and_sockets_are_refused_as_files(place: Path) -> None:
    place.mkdir()
    with pytest.raises(UnsafeFile, match="is a directory"):
        read_safely(place, 9)
    place.rmdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place))
        with pytest.raises(UnsafeFile, match="is a socket"):
            read_safely(place, 9)


def test_a_file_with_a_second_hard_link_is_refused(place: Path, outside: Path) -> None:
    place.hardlink_to(outside)
    with pytest.raises(UnsafeFile, match="another name"):
        open_safely(place, os.O_RDWR)


@pytest.mark.needs("other-user")
@pytest.mark.parametrize(("directory", "file"), [(0, 4711), (4711, 4712), (4711, 0)])
def test_only_the_directorys_owner_is_trusted(place: Path, directory: int, file: int) -> None:
    place.write_text("")
    os.chown(place, file, file)
    os.chown(place.parent, directory, directory)
    for read in (lambda: read_safely(place, 9), lambda: require_own(place)):
        with pytest.raises(UnsafeFile, match=r"belongs to .*: remove it, or `chown"):
            read()


def test_a_path_can_be_checked_without_opening_it(place: Path, outside: Path) -> None:
    require_own(place)
    place.write_text("")
    require_own(place)
    with pytest.raises(UnsafeFile, match="not a directory"):
        require_own_directory(place)
    place.unlink()
    place.symlink_to(outside.parent)
    with pytest.raises(UnsafeFile, match="symbolic link"):
        require_own(place)
    with pytest.raises(UnsafeFile, match="symbolic link"):
        require_own_directory(place)


def test_a_repeatedly_replaced_file_is_read(place: Path) -> None:
    """`status` reads a file while the daemon replaces it again and again."""
    place.write_text("0")
    for number in range(200):
        new = place.with_name("new")
        new.write_text(str(number))
        new.replace(place)
        assert read_safely(place, 9) == str(number).encode()


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
