"""Tests that `service install` refuses programs and directories that other users may change."""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from agent.adapters.service_manager import posix
from agent.adapters.service_manager.contract import (
    ServiceManager,
    ServiceManagerError,
    ServicePaths,
)
from agent.adapters.service_manager.launchd import LaunchdService
from agent.adapters.service_manager.posix import (
    program_directories,
    require_safe_configuration,
    require_safe_program,
    require_safe_state,
)
from agent.adapters.service_manager.systemd import SystemdService
from agent.adapters.service_manager.windows.rights import (
    ADMINISTRATORS,
    INHERIT_ONLY,
    RIGHTS_TO_REPLACE,
    RIGHTS_TO_WRITE,
    SYSTEM,
    TRUSTED_INSTALLER,
    Entry,
    Security,
    untrusted_account,
)
from agent.adapters.service_manager.windows.trusted_paths import prepare_directory
from agent.adapters.service_manager.windows.trusted_paths import (
    require_safe_program as require_safe_windows_program,
)

TRUSTED_OWNERS = frozenset({0, os.geteuid()})
USERS, MALLORY = "S-1-5-32-545", "S-1-5-21-1-2-3-1001"
"""The SIDs of the group Users and of a single user."""
FULL, MODIFY, READ = 0x1F01FF, 0x1301BF, 0x1200A9
"""The access masks of the Windows rights "Full control", "Modify" and "Read & execute"."""
CLOSED = Security(ADMINISTRATORS, (Entry(0, 3, FULL, SYSTEM), Entry(0, 3, FULL, ADMINISTRATORS)))
"""Only SYSTEM and the administrators have access."""
PROGRAM_DATA = Security(
    SYSTEM,
    (*(CLOSED.entries or ()), Entry(0, 0x0B, 0x1000_0000, "S-1-3-0"), Entry(0, 2, 0x116, USERS)),
)
"""The rights that `icacls C:\\ProgramData` displays as (CI)(WD,AD,WEA,WA) for Users."""


# POSIX


def create_directories(root: Path) -> ServicePaths:
    """Create the directories of the configuration and of the state below ``root``."""
    (root / "etc/venue-agent").mkdir(parents=True, mode=0o755)
    (root / "state").mkdir(mode=0o700)
    return ServicePaths(
        root / "etc/venue-agent/config.toml", root / "etc/venue-agent/api-key", root / "state", True
    )


def test_files_of_the_current_user_are_accepted(tmp_path: Path) -> None:
    paths = create_directories(tmp_path)
    paths.config.write_text("")
    require_safe_configuration(paths, TRUSTED_OWNERS)
    require_safe_state(paths, TRUSTED_OWNERS)


def test_missing_files_are_accepted_before_the_installation(tmp_path: Path) -> None:
    missing = tmp_path / "none"
    paths = ServicePaths(missing / "config.toml", missing / "api-key", missing / "state", True)
    require_safe_configuration(paths, TRUSTED_OWNERS)
    require_safe_state(paths, TRUSTED_OWNERS)


def test_a_configuration_that_others_can_replace_is_refused(tmp_path: Path) -> None:
    paths = create_directories(tmp_path)
    paths.config.parent.chmod(0o777)
    with pytest.raises(ServiceManagerError, match=r"check its content, then `chmod go-w"):
        require_safe_configuration(paths, TRUSTED_OWNERS)


def test_directories_of_another_user_are_refused(tmp_path: Path) -> None:
    paths = create_directories(tmp_path)
    with pytest.raises(ServiceManagerError, match=" belongs to "):
        require_safe_configuration(paths, {4711})
    with pytest.raises(ServiceManagerError, match=" belongs to "):
        require_safe_state(paths, {4711})


def test_a_link_in_place_of_the_key_is_refused(tmp_path: Path) -> None:
    paths = create_directories(tmp_path)
    paths.api_key.symlink_to("/etc/passwd")
    with pytest.raises(ServiceManagerError, match=r"api-key is a symbolic link.*remove it"):
        require_safe_configuration(paths, TRUSTED_OWNERS)


def test_an_identity_file_that_others_can_write_is_refused(tmp_path: Path) -> None:
    paths = create_directories(tmp_path)
    (paths.state / "identity.pem").write_text("")
    (paths.state / "identity.pem").chmod(0o666)
    with pytest.raises(ServiceManagerError, match=r"identity\.pem is writable for every user"):
        require_safe_state(paths, TRUSTED_OWNERS)


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A packaged program in its own directory."""
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    venue_agent = tmp_path / "opt/venue-agent/venue-agent"
    (venue_agent.parent / "_internal").mkdir(parents=True)
    for file in (venue_agent, venue_agent.parent / "_internal/library.so"):
        file.write_text("")
        file.chmod(0o755)
    return venue_agent


def test_a_program_of_the_current_user_is_accepted(program: Path) -> None:
    require_safe_program((str(program),), TRUSTED_OWNERS)


@pytest.mark.parametrize("weak", [".", "_internal", "_internal/library.so", "venue-agent", ".."])
def test_a_program_that_others_may_change_is_refused(program: Path, weak: str) -> None:
    (program.parent / weak).chmod(0o777)
    with pytest.raises(
        ServiceManagerError, match=r"(?s)is writable for every user.*/opt/venue-agent"
    ):
        require_safe_program((str(program),), TRUSTED_OWNERS)


def test_a_program_of_another_user_is_refused(program: Path) -> None:
    """For example, /usr/local belongs to the user who installed Homebrew."""
    with pytest.raises(ServiceManagerError, match=r"(?s) belongs to .*chown root"):
        require_safe_program((str(program),), {4711})


def test_the_target_of_a_linked_program_is_checked(program: Path, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    link = tmp_path / "bin/venue-agent"
    link.symlink_to(program)
    require_safe_program((str(link),), TRUSTED_OWNERS)
    program.parent.chmod(0o777)
    with pytest.raises(ServiceManagerError, match="is writable for every user"):
        require_safe_program((str(link),), TRUSTED_OWNERS)


def test_program_directories_include_the_environment_and_the_import_paths() -> None:
    own_directories, import_directories = program_directories(Path(sys.executable))
    package = Path(posix.__file__).parents[2]
    assert package in own_directories
    assert Path(sys.prefix) in own_directories
    assert package.name == "agent"
    assert Path(os.__file__).parent in import_directories
    assert Path.cwd() not in import_directories or Path.cwd() == package.parent


# Windows


@pytest.mark.parametrize("owner", [SYSTEM, ADMINISTRATORS, TRUSTED_INSTALLER])
def test_files_of_system_accounts_are_trusted(owner: str) -> None:
    assert untrusted_account(Security(owner, CLOSED.entries)) is None


def test_the_owner_of_a_file_counts_as_able_to_write_it() -> None:
    assert untrusted_account(Security(MALLORY, CLOSED.entries)) == MALLORY


def test_a_missing_acl_permits_everyone_and_an_empty_acl_permits_nobody() -> None:
    assert untrusted_account(Security(SYSTEM, None)) == "S-1-1-0"
    assert untrusted_account(Security(SYSTEM, ())) is None


@pytest.mark.parametrize("mask", RIGHTS_TO_WRITE.values(), ids=list(RIGHTS_TO_WRITE))
@pytest.mark.parametrize("kind", [0x00, 0x05, 0x09, 0x0B])  # entries that permit access
def test_an_account_with_any_right_to_write_is_reported(mask: int, kind: int) -> None:
    security = Security(SYSTEM, (*(CLOSED.entries or ()), Entry(kind, 0, READ | mask, USERS)))
    assert untrusted_account(security) == USERS
    reported_for_parent = untrusted_account(security, is_parent=True)
    assert reported_for_parent == (USERS if mask in RIGHTS_TO_REPLACE.values() else None)


@pytest.mark.parametrize(
    "entry",
    [
        Entry(0, 0, READ, USERS),
        Entry(0, INHERIT_ONLY, FULL, USERS),
        Entry(1, 0, FULL, USERS),
        Entry(0, 0, FULL, "S-1-3-0"),
        Entry(0, 0, FULL, TRUSTED_INSTALLER),
    ],
    ids=["reads", "inherit-only", "denied", "creator-owner", "trusted-installer"],
)
def test_acl_entries_without_write_access_for_others_are_accepted(entry: Entry) -> None:
    assert untrusted_account(Security(SYSTEM, (entry,))) is None


def test_the_default_rights_of_program_data_are_safe_only_for_a_parent_directory() -> None:
    assert untrusted_account(PROGRAM_DATA, is_parent=True) is None
    assert untrusted_account(PROGRAM_DATA) == USERS


@dataclass
class FakeRights:
    """Fake file rights of Windows. ``rights_by_name`` contains the rights of some files. All other
    files may be changed only by administrators.
    """

    rights_by_name: dict[str, Security] = field(default_factory=dict)
    created: list[Path] = field(default_factory=list)
    protected: list[Path] = field(default_factory=list)

    def create_protected(self, directory: Path) -> None:
        directory.mkdir()
        self.created.append(directory)

    def protect(self, path: Path) -> None:
        self.protected.append(path)

    def security(self, path: Path) -> Security:
        return self.rights_by_name.get(path.name, CLOSED)

    def name_of(self, sid: str) -> str:
        return {MALLORY: r"TILL\mallory", USERS: r"BUILTIN\Users"}.get(sid, sid)


def test_new_directory_is_created_with_restricted_rights(tmp_path: Path) -> None:
    rights = FakeRights({tmp_path.name: PROGRAM_DATA})
    prepare_directory(rights, tmp_path / "venue-agent")
    assert rights.created == [tmp_path / "venue-agent"]


def test_a_directory_of_an_earlier_installation_is_accepted(tmp_path: Path) -> None:
    directory = tmp_path / "venue-agent"
    directory.mkdir()
    (directory / "config.toml").write_text("")
    rights = FakeRights()
    prepare_directory(rights, directory)
    assert (rights.created, rights.protected) == ([], [directory])


@pytest.mark.parametrize(
    "planted", ["venue-agent", "config.toml", "api-key", "identity.pem", "quarantine", "agent.db"]
)
@pytest.mark.parametrize(
    ("security", "message"),
    [
        (Security(MALLORY, CLOSED.entries), r"belongs to TILL\mallory"),
        (Security(SYSTEM, (Entry(0, 0, FULL, USERS),)), r"may be changed by BUILTIN\Users"),
    ],
)
def test_planted_files_with_unsafe_permissions_are_refused(
    tmp_path: Path, planted: str, security: Security, message: str
) -> None:
    directory = tmp_path / "venue-agent"
    (directory / "quarantine").mkdir(parents=True)
    for name in ("config.toml", "api-key", "identity.pem", "quarantine/agent.db"):
        (directory / name).write_text("")
    rights = FakeRights({planted: security})
    with pytest.raises(ServiceManagerError) as error_info:
        prepare_directory(rights, directory)
    lines = str(error_info.value).splitlines()
    assert len(lines) == 2
    assert f"{planted} {message}" in lines[0]
    assert lines[1] == (
        f"to install: check the content of {directory}, move that directory away, and install again"
    )
    assert rights.protected == []


def test_a_parent_directory_that_others_may_change_is_refused(tmp_path: Path) -> None:
    rights = FakeRights({tmp_path.name: Security(SYSTEM, (Entry(0, 0, MODIFY, USERS),))})
    with pytest.raises(ServiceManagerError, match="may be changed by") as error_info:
        prepare_directory(rights, tmp_path / "venue-agent")
    assert str(error_info.value).splitlines()[1] == (
        rf"to install: remove the write and delete access of BUILTIN\Users to {tmp_path},"
        " and install again"
    )
    assert rights.created == []


def test_a_parent_directory_of_another_account_is_refused(tmp_path: Path) -> None:
    rights = FakeRights({tmp_path.name: Security(MALLORY, CLOSED.entries)})
    with pytest.raises(ServiceManagerError, match="belongs to TILL") as error_info:
        prepare_directory(rights, tmp_path / "venue-agent")
    assert str(error_info.value).splitlines()[1] == (
        f"to install: make the Administrators group the owner of {tmp_path}, and install again"
    )
    assert rights.created == []


@pytest.mark.parametrize("weak", ["venue-agent.exe", "library.dll", "program"])
def test_a_windows_program_that_others_may_change_is_refused(tmp_path: Path, weak: str) -> None:
    directory = tmp_path / "program"
    (directory / "_internal").mkdir(parents=True)
    for name in ("venue-agent.exe", "_internal/library.dll"):
        (directory / name).write_text("")
    require_safe_windows_program(FakeRights(), directory / "venue-agent.exe")
    rights = FakeRights({weak: Security(MALLORY, CLOSED.entries)})
    with pytest.raises(ServiceManagerError, match=r"(?s)belongs to TILL.*Program Files"):
        require_safe_windows_program(rights, directory / "venue-agent.exe")


def run_no_program(*words: str) -> CompletedProcess[str]:
    """Fail, because `prepare` must not run programs of the service manager."""
    raise AssertionError(words)


CreateManager = Callable[[Path, tuple[str, ...]], ServiceManager]


def systemd_service(root: Path, command: tuple[str, ...]) -> ServiceManager:
    return SystemdService(
        command, run_no_program, file_system=root, is_root=lambda: True, owners=TRUSTED_OWNERS
    )


def launchd_service(root: Path, command: tuple[str, ...]) -> ServiceManager:
    return LaunchdService(
        command, run_no_program, root, lambda: True, TRUSTED_OWNERS, sleep=lambda _: None
    )


@pytest.mark.parametrize("create_manager", [systemd_service, launchd_service])
def test_installation_checks_permissions_before_it_writes(
    create_manager: CreateManager, program: Path, tmp_path: Path
) -> None:
    command = (str(program),)
    create_manager(tmp_path, command).prepare()
    program.chmod(0o777)
    with pytest.raises(ServiceManagerError, match=r"/venue-agent is writable for every user \("):
        create_manager(tmp_path, command).prepare()
    program.chmod(0o755)
    (tmp_path / "etc/venue-agent").mkdir(parents=True)
    (tmp_path / "etc").chmod(0o777)
    with pytest.raises(ServiceManagerError, match=r"/etc is writable for every user \("):
        create_manager(tmp_path, command).prepare()


def test_launchd_service_refuses_an_identity_file_that_others_can_write(
    program: Path, tmp_path: Path
) -> None:
    service = launchd_service(tmp_path, (str(program),))
    service.paths.state.mkdir(parents=True)
    (service.paths.state / "identity.pem").write_text("")
    (service.paths.state / "identity.pem").chmod(0o646)
    with pytest.raises(ServiceManagerError, match=r"identity\.pem is writable for every user"):
        service.prepare()
