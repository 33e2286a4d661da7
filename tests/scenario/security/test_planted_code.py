"""No verb runs code that another user planted in the working directory or on a search path.

Two tests call the verbs in the other user's directory, with this directory in PATH. The second of
them also sets PYTHONPATH to this directory. `make test` calls each verb in at most one of the two.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import pytest

from tests import sizes
from tests.scenario.agent_process import environment, write_config

pytestmark = [pytest.mark.lab, pytest.mark.needs("network-namespace")]

MODULES: Final = (
    "agent", "collectors", "controlplane", "psutil", "zeroconf", "netifaces", "websockets",
    "httpx2", "pydantic", "rich", "jinja2", "apscheduler", "cryptography", "sqlalchemy", "uvicorn",
    "starlette", "json", "re", "ssl", "socket", "argparse", "logging", "asyncio", "subprocess",
    "ctypes", "sysconfig", "sitecustomize", "usercustomize",
)  # fmt: skip
PROGRAMS: Final = (
    "venue-agent", "venue-control", "python", "python3", "sh", "df", "busctl", "lpstat",
    "smartctl", "systemctl", "journalctl", "getent", "systemd-sysusers", "ps", "ip", "arp", "ndp",
    "uname", "ldconfig", "gcc", "ld", "objdump", "hostname", "id", "cat", "less", "pager",
)  # fmt: skip
VERBS: Final = (
    ("--help",),
    ("config", "check"),
    ("config", "show"),
    ("config", "schema"),
    ("status",),
    ("history",),
    ("enroll",),
    ("run",),
    ("collect", "network", "--json"),
    ("collect", "application", "--json"),
    ("doctor", "--bundle", "{home}/bundle.zip"),
    ("service", "status"),
    ("demo", "--dir", "{home}/demo"),
)
CASES: Final = [(words,) for words in VERBS]  # each test has one argument: a tuple of words
IN_A_DIRECTORY: Final = sizes.large_except(CASES[1::2], CASES)
WITH_A_PYTHONPATH: Final = sizes.large_except(CASES[:-1:2], CASES)
WITHOUT_CONFIG: Final = {"--help", "service", "demo"}


class Trap:
    """A directory of modules and programs. Each of them creates a file when it runs."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.folder = home / "trap"
        self.traces = home / "traces"
        self.folder.mkdir()
        self.traces.mkdir(mode=0o777)
        leave_trace = f"open({str(self.traces)!r} + '/' + __name__, 'w').close()\n"
        for name in MODULES:
            package = self.folder / name
            package.mkdir()
            (package / "__init__.py").write_text(leave_trace)
            (package / "__main__.py").write_text(leave_trace)
        for name in PROGRAMS:
            program = self.folder / f"{name}.new"
            program.write_text(f"#!/bin/sh\n: > {self.traces}/$(/usr/bin/basename $0)-program\n")
            program.chmod(0o755)
            program.rename(self.folder / (name if name not in MODULES else f"{name}.sh"))

    @property
    def executed(self) -> list[str]:
        return sorted(path.name for path in self.traces.iterdir())

    def environment(self, **variables: str) -> dict[str, str]:
        path = f"{self.folder}:.:{os.environ['PATH']}"
        bus = f"unixexec:path={self.folder / 'busctl'}"
        return environment() | {"PATH": path, "DBUS_SYSTEM_BUS_ADDRESS": bus, **variables}


@pytest.fixture
def trap(tmp_path: Path) -> Trap:
    return Trap(tmp_path)


def test_planted_code_is_detected_without_protection(trap: Trap) -> None:
    """Check that planted code leaves a trace. Otherwise, the other tests would always pass."""
    env = trap.environment(PYTHONPATH=str(trap.folder))
    subprocess.run(["/bin/sh", "-c", "lpstat"], env=env, cwd=trap.folder, check=True)
    command = [sys.executable, "-c", "import psutil"]
    subprocess.run(command, env=trap.environment(), cwd=trap.folder, check=True)
    assert trap.executed == ["lpstat-program", "psutil"]
    subprocess.run([sys.executable, "-m", "collectors"], env=env, cwd="/", check=True)
    assert {"collectors", "sitecustomize"} <= set(trap.executed)


@pytest.mark.parametrize("words", IN_A_DIRECTORY, ids=" ".join)
def test_no_planted_code_runs_in_a_directory_of_another_user(
    trap: Trap, words: tuple[str, ...]
) -> None:
    """Call the installed program, as an administrator does with `sudo venue-agent VERB`."""
    program = "venue-control" if "demo" in words else "venue-agent"
    _run(trap, [str(Path(sys.executable).with_name(program)), *words], trap.environment())
    assert trap.executed == []


@pytest.mark.parametrize("words", WITH_A_PYTHONPATH, ids=" ".join)
def test_no_planted_code_runs_with_a_pythonpath_of_another_user(
    trap: Trap, words: tuple[str, ...]
) -> None:
    """Start the agent as service managers do. Its child processes must ignore PYTHONPATH, too."""
    module = "controlplane" if "demo" in words else "agent"
    command = [sys.executable, "-I", "-m", module, *words]
    _run(trap, command, trap.environment(PYTHONPATH=str(trap.folder)))
    assert trap.executed == []


def _run(trap: Trap, command: list[str], env: dict[str, str]) -> None:
    """Run a verb in a network that has only loopback. The verb must print something."""
    config = write_config(trap.home, "http://127.0.0.1:9")
    words = [word.format(home=trap.home) for word in command]
    if not WITHOUT_CONFIG & set(words):
        words += ["--config", str(config)]
    as_root = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    command_in_namespace = [
        "/usr/bin/unshare",
        *as_root,
        "--net",
        sys.executable,
        "-I",
        "-c",
        _WITH_LOOPBACK,
        *words,
    ]
    output_file = trap.home / "output"
    with output_file.open("wb") as file:
        process = subprocess.Popen(
            command_in_namespace,
            env=env,
            cwd=trap.folder,
            stdout=file,
            stderr=file,
            stdin=subprocess.DEVNULL,
        )
        try:
            if "run" in words:
                _until(trap.home / "state" / "status.json", process)
                process.send_signal(signal.SIGTERM)
            code = process.wait(timeout=120)
        finally:
            process.kill()
            process.wait()
    output = output_file.read_text()
    assert output
    # No service runs, so verbs other than demo, collect and run may end with a problem.
    assert code in ({0} if {"demo", "collect", "run"} & set(words) else {0, 1, 2, 3}), output
    assert "Traceback" not in output
    assert "unexpected" not in output


def _until(path: Path, process: subprocess.Popen[bytes], within_s: float = 120) -> None:
    deadline = time.monotonic() + within_s
    while not path.exists():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)


# Brings up loopback (netdevice(7): SIOCSIFFLAGS), then executes the program.
_WITH_LOOPBACK: Final = """
import fcntl, os, socket, struct, sys
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
    fcntl.ioctl(control, 0x8914, struct.pack("16sH14x", b"lo", 0x1))
os.execv(sys.argv[1], sys.argv[1:])
"""
