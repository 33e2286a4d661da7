"""Tests that programs are run only from the system's directories. PATH and the working
directory have no effect.
"""

import os
from pathlib import Path

import pytest

from collectors import programs
from collectors.programs import find_program, inherited_environment, program_environment


def create_program(folder: Path, name: str, mode: int = 0o755) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("#!/bin/sh\n")
    (folder / name).chmod(mode)


def test_neither_the_path_nor_the_current_directory_is_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_program(tmp_path, "planted")
    create_program(tmp_path, "sh")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:.")
    assert find_program("planted") is None
    path = find_program("sh")
    assert path is not None
    assert Path(path).parent in map(Path, programs.POSIX_DIRECTORIES)


def test_the_first_directory_with_an_executable_program_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    create_program(first, "ps", 0o644)
    create_program(second, "ps")
    (first / "df").mkdir()
    monkeypatch.setattr(programs, "POSIX_DIRECTORIES", (str(first), str(second)))
    assert find_program("ps") == str(second / "ps")
    assert find_program("df") is None
    create_program(first, "ps")
    assert find_program("ps") == str(first / "ps")


def test_other_users_cannot_write_the_program_directories() -> None:
    for directory in programs.POSIX_DIRECTORIES:
        assert Path(directory).is_absolute()
        status = Path(directory).stat()
        assert status.st_mode & 0o022 == 0, f"others may write {directory}"


def test_windows_directory_does_not_come_from_an_environment_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = tmp_path / "System32"
    create_program(system, "w32tm.exe")
    monkeypatch.setenv("SYSTEMROOT", "/planted")
    monkeypatch.setattr("sys.platform", "win32")
    monkeypatch.setattr(programs, "windows_system_directory", lambda: str(system))
    path = find_program("w32tm")
    directories = programs.system_directories()
    monkeypatch.undo()
    assert path == str(system / "w32tm.exe")
    assert directories == (str(system), f"{system}\\WindowsPowerShell\\v1.0")


def test_variables_that_affect_programs_are_not_inherited() -> None:
    planted = {
        "LD_PRELOAD": "x", "LD_LIBRARY_PATH": "x", "DYLD_INSERT_LIBRARIES": "x", "PYTHONPATH": "x",
        "BASH_ENV": "x", "ENV": "x", "PSModulePath": "x", "DBUS_SYSTEM_BUS_ADDRESS": "x",
        "SYSTEMD_PAGER": "x", "PATH": "x", "LC_ALL": "de_DE", "VENUE_AGENT_API_KEY": "x",
    }  # fmt: skip
    path = os.pathsep.join(programs.POSIX_DIRECTORIES)
    kept = {"HOME": "/root", "SystemRoot": r"C:\Windows", "TZ": "UTC"}
    assert inherited_environment({**planted, **kept}) == {**kept, "PATH": path}
    assert program_environment({**planted, **kept}) == {**kept, "PATH": path, "LC_ALL": "C"}
