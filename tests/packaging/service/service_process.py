"""Runs the service of this checkout as a process, with its own port, database and API key."""

import signal
import socket
import subprocess
import sys
from pathlib import Path

STOP_WITHIN_S = 300


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


class ServiceProcess:
    """A process of the service. The constructor starts it. ``api_key`` has a write grant.

    Args:
        folder: the directory of its database.
        module: the module to run. It must accept the arguments of ``venue-control``.
        options: further options of ``venue-control serve``.
    """

    def __init__(self, folder: Path, module: str = "controlplane", *options: str) -> None:
        self.module = module
        self.options = options
        self.database = str(folder / "service.db")
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.api_key = self.command("keys", "create", "--write").strip()
        self.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def command(self, *words: str) -> str:
        """Run a command on the service's database and return its output."""
        done = subprocess.run(
            (sys.executable, "-m", "controlplane", *words, "--database", self.database),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start(self) -> None:
        """Start the process, and wait until it accepts connections."""
        words = ("serve", "--port", str(self.port), "--database", self.database)
        words += self.options
        self._process = subprocess.Popen(
            (sys.executable, "-m", self.module, *words),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line == f"listening on {self.url}\n", line

    def stop(self, signal_number: int = signal.SIGTERM) -> int:
        """Stop the process if it still runs, and return its exit code."""
        self._process.send_signal(signal_number)
        try:
            return self._process.wait(STOP_WITHIN_S)
        finally:
            self._process.kill()
            self._process.wait()
            assert self._process.stdout is not None
            self._process.stdout.close()
