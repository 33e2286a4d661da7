"""For the benchmarks: configures the daemon, and starts a build of it as systemd would."""

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.lab.namespaces import LOOPBACK
from tests.packaging.local_service import LOCATION
from tests.paths import ROOT

PACKAGED = ROOT / "build/onedir/venue-agent/venue-agent"
BUILDS = {
    "venv": (sys.executable, "-m", "agent"),
    "package": (str(PACKAGED),),
}
UNIT_ENVIRONMENT = {"LANG": "C.UTF-8", "WATCHDOG_USEC": "120000000"}
"""Variables that systemd sets for the agent's unit."""
LOOPBACK_ONLY = ("unshare", "--net", *LOOPBACK)
"""The prefix of a command line that runs the command in its own network namespace."""


def builds_here() -> dict[str, tuple[str, ...]]:
    """Return the command lines of the builds that exist, by name. If the package is built, it is
    the last one.
    """
    return {name: command for name, command in BUILDS.items() if Path(command[0]).exists()}


def write_config(folder: Path, base_url: str, key: str, more: str = "") -> Path:
    """Write a venue's default configuration, with the network scan limited to this machine.

    ``more`` contains further TOML tables."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "api-key").write_text(key)
    (folder / "api-key").chmod(0o600)
    config = folder / "config.toml"
    config.write_text(
        f'[service]\nbase_url = "{base_url}"\nlocation_id = "{LOCATION}"\n'
        f'api_key_file = "{folder / "api-key"}"\n[device]\nstate_dir = "{folder / "state"}"\n'
        # The benchmarks send requests without a pause, so the minimum interval is switched off.
        f"[limits]\nmin_collection_interval_seconds = 0\n[network]\ndevice_only = true\n{more}"
    )
    return config


@dataclass(frozen=True, slots=True)
class RunningDaemon:
    """A daemon.

    ``began`` is the monotonic time of its exec. ``ready_s`` is the time from its exec until it sent
    READY=1, in seconds.
    """

    process: subprocess.Popen[bytes]
    began: float
    ready_s: float


@contextlib.contextmanager
def running(command: tuple[str, ...], config: Path) -> Iterator[RunningDaemon]:
    """Run the daemon as systemd would, and measure the time from its exec to READY=1."""
    address = str(config.parent / "notify")
    Path(address).unlink(missing_ok=True)
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify,
        (config.parent / "agent.log").open("ab") as log,
    ):
        notify.bind(address)
        notify.settimeout(30)
        began = time.monotonic()
        process = subprocess.Popen(
            (*command, "run", "--config", str(config)),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, **UNIT_ENVIRONMENT, "NOTIFY_SOCKET": address},
        )
        try:
            try:
                while b"READY=1" not in notify.recv(4096):
                    pass
            except TimeoutError:
                raise SystemExit((config.parent / "agent.log").read_text()) from None
            ready_s = time.monotonic() - began
            with _draining(notify, address):
                yield RunningDaemon(process, began, ready_s)
        finally:
            process.terminate()
            process.wait(30)


@contextlib.contextmanager
def _draining(notify: socket.socket, address: str) -> Iterator[None]:
    """Read the daemon's notifications. Otherwise the socket would become full, and the daemon would
    block.
    """
    notify.settimeout(None)

    def read() -> None:
        while notify.recv(4096):
            pass

    reader = threading.Thread(target=read)
    reader.start()
    try:
        yield
    finally:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as last:
            last.sendto(b"", address)
        reader.join()


def show(figure: str, *values: object) -> None:
    """Print a line with the title of a figure and its values."""
    sys.stdout.write(f"{figure:<52} {'  '.join(str(value) for value in values)}\n")
    sys.stdout.flush()
