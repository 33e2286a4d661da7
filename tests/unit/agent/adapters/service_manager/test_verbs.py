"""Tests of the output and files of `venue-agent service`, with a service manager in memory."""

import contextlib
import io
import os
import subprocess
import sys
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.adapters.service_manager.contract import ServicePaths, ServiceState
from agent.adapters.service_manager.first_config import InstallOptions, config_text
from agent.adapters.service_manager.last_exit import NAME, LastExit, parse_last_exit, read_last_exit
from agent.cli.service import describe, install, show, uninstall
from agent.cli.terminal.screen import Screen
from agent.errors import ConfigError

URL, LOCATION = "https://ops.venue.test", "loc-0001"


@dataclass
class FakeService:
    """A service manager that records its calls. The files of the service are below ``root``."""

    root: Path
    has_key_path_in_config: bool = False
    calls: list[str] = field(default_factory=list)
    protected: list[Path] = field(default_factory=list)
    had_key_at_prepare: bool = False

    @property
    def paths(self) -> ServicePaths:
        etc = self.root / "etc"
        return ServicePaths(
            etc / "config.toml", etc / "api-key", self.root / "state", self.has_key_path_in_config
        )

    def require_rights(self) -> None:
        self.calls.append("require_rights")

    def prepare(self) -> None:
        self.had_key_at_prepare = self.paths.api_key.exists()
        self.calls.append("prepare")

    def protect(self, file: Path) -> None:
        self.protected.append(file)

    def install(self) -> None:
        self.calls.append("install")

    def uninstall(self) -> None:
        self.calls.append("uninstall")

    def purge(self) -> tuple[str, ...]:
        self.calls.append(f"purge with state {self.paths.state.exists()}")
        return ("the user venue-agent",)

    def start(self) -> None:
        self.calls.append("start")

    def stop(self) -> None:
        self.calls.append("stop")

    def restart(self) -> None:
        self.calls.append("restart")

    def state(self) -> ServiceState:
        return ServiceState(is_installed=True)


@pytest.fixture
def options(tmp_path: Path) -> InstallOptions:
    key = tmp_path / "given-key"
    key.write_text("key-1\n")
    return InstallOptions(URL, LOCATION, key)


@pytest.mark.parametrize("has_key_path_in_config", [True, False])
def test_the_first_installation_writes_a_configuration_and_starts_the_service(
    tmp_path: Path, options: InstallOptions, has_key_path_in_config: bool
) -> None:
    service = FakeService(tmp_path, has_key_path_in_config)
    assert install(service, options) == 0
    paths = service.paths
    settings = tomllib.loads(paths.config.read_text())["service"]
    assert (settings["base_url"], settings["location_id"]) == (URL, LOCATION)
    assert settings.get("api_key_file") == (str(paths.api_key) if has_key_path_in_config else None)
    assert paths.api_key.read_text() == "key-1\n"
    assert paths.api_key.stat().st_mode & 0o077 == 0
    assert service.protected == [paths.api_key, paths.config]
    assert service.calls == ["prepare", "install", "restart"]
    assert not service.had_key_at_prepare


def test_the_key_is_read_from_standard_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = FakeService(tmp_path)
    monkeypatch.setattr("sys.stdin", io.StringIO("key-1\r\n"))
    assert install(service, InstallOptions(URL, LOCATION, Path("-"))) == 0
    assert service.paths.api_key.read_text() == "key-1\n"
    monkeypatch.setattr("sys.stdin", io.StringIO())
    with pytest.raises(ConfigError, match="standard input is empty"):
        install(FakeService(tmp_path / "other"), InstallOptions(URL, LOCATION, Path("-")))


PROMPT_PROGRAM = """
import sys
from pathlib import Path
from agent.adapters.service_manager.contract import ServicePaths
from agent.adapters.service_manager.first_config import InstallOptions, write_first_config
root = Path(sys.argv[1])
paths = ServicePaths(root / "config.toml", root / "api-key", root / "state", True)
write_first_config(InstallOptions("https://ops.venue.test", "loc-0001", Path("-")), paths)
"""
"""A program that writes the first configuration. It reads the API key from standard input."""


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
@pytest.mark.medium
def test_the_prompt_of_a_terminal_does_not_display_the_key(tmp_path: Path) -> None:
    terminal, child_end = os.openpty()
    words = (sys.executable, "-c", PROMPT_PROGRAM, str(tmp_path))
    with (
        os.fdopen(terminal, "r+b", buffering=0) as screen,
        subprocess.Popen(
            words, stdin=child_end, stdout=child_end, stderr=child_end, start_new_session=True
        ) as process,
    ):
        os.close(child_end)
        displayed = b""
        while b"API key (not shown): " not in displayed:
            displayed += screen.read(1024)
        screen.write(b"vck_secret\n")
        with contextlib.suppress(OSError):  # the terminal is closed when the process ends
            while data := screen.read(1024):
                displayed += data
    assert process.returncode == 0
    assert b"vck_secret" not in displayed
    assert (tmp_path / "api-key").read_text() == "vck_secret\n"


def test_a_second_installation_keeps_the_configuration(
    tmp_path: Path, options: InstallOptions, capsys: pytest.CaptureFixture[str]
) -> None:
    service = FakeService(tmp_path)
    install(service, options)
    service.paths.config.write_text("# mine")
    capsys.readouterr()
    install(service, options)
    assert service.paths.config.read_text() == "# mine"
    assert "is kept" in capsys.readouterr().out
    assert service.calls[-2:] == ["install", "start"]


def test_a_changed_key_is_written_and_the_service_restarted(
    tmp_path: Path, options: InstallOptions
) -> None:
    service = FakeService(tmp_path)
    install(service, options)
    (tmp_path / "given-key").write_text("key-2")
    install(service, InstallOptions(api_key_file=options.api_key_file))
    assert service.paths.api_key.read_text() == "key-2\n"
    assert service.calls[-1] == "restart"


def test_install_without_a_configuration_does_not_start_the_service(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    service = FakeService(tmp_path)
    assert install(service, InstallOptions()) == 0
    assert service.calls == ["prepare", "install"]
    assert "--base-url, --location" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"location_id": None}, "needs --location as well"),
        ({"base_url": "ftp://x"}, "--base-url must be a URL"),
        ({"base_url": "http://ops.example.com"}, "--base-url must be https"),
        ({"base_url": "https://ops.example.com"}, "--base-url is the address of the example"),
        ({"location_id": "ID"}, "--location is a placeholder"),
        ({"location_id": ""}, "--location "),
        ({"api_key_file": Path("/nonexistent/key")}, "cannot be read"),
    ],
)
def test_an_invalid_option_is_refused_before_anything_is_written(
    tmp_path: Path, options: InstallOptions, change: dict[str, object], problem: str
) -> None:
    service = FakeService(tmp_path)
    given_values = {
        "base_url": URL, "location_id": LOCATION, "api_key_file": options.api_key_file, **change,
    }  # fmt: skip
    with pytest.raises(ConfigError, match=problem):
        install(service, InstallOptions(**given_values))  # type: ignore[arg-type]
    assert service.calls == ["prepare"]
    assert not service.paths.config.parent.exists()


def test_uninstall_keeps_state_and_purge_deletes_it(
    tmp_path: Path, options: InstallOptions, capsys: pytest.CaptureFixture[str]
) -> None:
    service = FakeService(tmp_path)
    install(service, options)
    paths = service.paths
    paths.state.mkdir()
    (paths.state / "identity.key").touch()
    assert uninstall(service, purge=False) == 0
    assert paths.config.exists()
    assert (paths.state / "identity.key").exists()
    assert "deleted" not in capsys.readouterr().out
    assert uninstall(service, purge=True) == 0
    assert not paths.state.exists()
    assert not paths.config.parent.exists()
    assert "deleted: identity, state, configuration, API key and the user venue-agent\n" in (
        capsys.readouterr().out
    )
    assert service.calls[-2:] == ["uninstall", "purge with state False"], (
        "the files must be deleted before the user"
    )


def test_purge_keeps_other_files_beside_the_configuration(
    tmp_path: Path, options: InstallOptions
) -> None:
    service = FakeService(tmp_path)
    install(service, options)
    other_file = service.paths.config.with_name("ca.pem")
    other_file.touch()
    assert uninstall(service, purge=True) == 0
    assert list(other_file.parent.iterdir()) == [other_file]


@given(st.text(min_size=1, max_size=128))
def test_any_location_is_read_back_unchanged_or_refused(location: str) -> None:
    paths = ServicePaths(Path("/c"), Path("/k"), Path("/s"), has_key_path_in_config=False)
    try:
        text = config_text(InstallOptions(URL, location), paths)
    except ConfigError:
        return
    assert tomllib.loads(text)["service"]["location_id"] == location


def test_service_states_are_described_independently_of_the_platform() -> None:
    state = ServiceState(True, True, "running", 7, "idle", 2)
    assert describe(state, LastExit("watchdog", "ABRT")) == [
        ("service", "installed, starts at boot"),
        ("now", "running (process 7)"),
        ("detail", "idle"),
        ("restarts", "2 by the service manager"),
        ("last exit", "the event loop hung, so the watchdog killed the agent"),
    ]
    assert describe(ServiceState(False), LastExit("success")) == [("service", "not installed")]


@pytest.mark.parametrize(
    ("state", "has_config", "advice"),
    [
        (ServiceState(False), False, "→ install it: `venue-agent service install`"),
        (ServiceState(True), True, "→ start it: `venue-agent service start`"),
        (ServiceState(True), False, "is missing: write it, or run"),
        (ServiceState(True, activity="failed"), True, "→ find out why: `venue-agent doctor`"),
        (ServiceState(True, activity="running"), True, None),
        (ServiceState(True, activity="stopping"), True, None),
    ],
)
def test_status_advises_what_to_do_if_the_service_does_not_run(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    state: ServiceState,
    has_config: bool,
    advice: str | None,
) -> None:
    monkeypatch.setattr("agent.config.rights.is_privileged", lambda: True)
    config = tmp_path / "config.toml"
    if has_config:
        config.touch()
    message = status_text(state, None, config)
    assert ("→" in message) is (advice is not None)
    assert (advice or "") in " ".join(message.split())


@given(st.text(max_size=400), st.sampled_from([None, LastExit("oom-kill"), LastExit("x" * 90)]))
def test_status_of_the_service_manager_is_plain_and_fits_80_columns(
    detail: str, last: LastExit | None
) -> None:
    output = status_text(
        ServiceState(True, True, "running", 7, f"idle\x1b[2J\x07; {detail}", 3), last
    )
    lines = output.splitlines()
    assert all(line.isprintable() for line in lines)
    assert max(map(len, lines)) <= 80


def status_text(state: ServiceState, last: LastExit | None, config: Path = Path("/x")) -> str:
    stream = io.StringIO()
    show(Screen(stream, 80), state, last, config)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"success exited 0\n", "stopped cleanly"),
        (b"signal killed KILL\n", "killed by signal KILL"),
        (b"exit-code exited 1\n", "ended with exit code 1"),
        (b"exit-code exited 2\n", "ended with exit code 2: a wrong configuration"),
        (b"oom-kill killed KILL\n", "killed for lack of memory"),
        (b"something-new\n", "something-new"),
    ],
)
def test_last_exit_is_described(tmp_path: Path, line: bytes, words: str) -> None:
    assert read_last_exit(tmp_path) is None
    (tmp_path / NAME).write_bytes(line)
    last_exit = read_last_exit(tmp_path)
    assert last_exit is not None
    assert last_exit.describe() == words


@given(st.binary(max_size=300))
def test_any_last_exit_is_described_in_plain_text_or_ignored(line: bytes) -> None:
    last_exit = parse_last_exit(line)
    assert last_exit is None or last_exit.describe().isprintable()
