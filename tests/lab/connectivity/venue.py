"""Builds a venue in network namespaces: a till, its gateway, and an internet with the service.

    till ── switch ── gateway ── internet
                         │          └ service, name server
                         └ name server

The till's interface keeps its carrier if the gateway disappears, as behind a real switch.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.lab.namespaces import LOOPBACK, entering
from tests.paths import ROOT

NAME = "ops.example.test"
TILL, GATEWAY, INTERNET = "10.66.1.2", "10.66.1.1", "203.0.113.10"
PORT, STREAM_PORT = 8443, 8080
_WAIT = ("sh", "-c", "echo ready; exec cat")
"""Holds a namespace until stdin is closed, which also happens if the tests are killed."""


@dataclass(slots=True)
class Venue:
    """The namespaces by name, and the programs in them."""

    _stack: contextlib.ExitStack
    _namespaces: dict[str, subprocess.Popen[str]] = field(default_factory=dict)
    programs: dict[str, subprocess.Popen[str]] = field(default_factory=dict)

    def build(self) -> None:
        self._namespaces["switch"] = self._start(*entering(), *_WAIT)
        for name in ("till", "gateway", "internet"):
            inside = self._inside("switch")
            self._namespaces[name] = self._start(*inside, "unshare", "--net", *LOOPBACK, *_WAIT)
        self.ip("switch", "link add br0 type bridge")
        self.ip("switch", "link set br0 up")
        for name in ("till", "gateway"):
            self._connect("switch", name, name, "eth0")
            self.ip("switch", f"link set {name} master br0")
        self._connect("gateway", "wan0", "internet", "eth0")
        self.ip("till", f"addr add {TILL}/24 dev eth0")
        self.ip("till", f"route add default via {GATEWAY}")
        self.ip("gateway", f"addr add {GATEWAY}/24 dev eth0")
        self.ip("gateway", "addr add 203.0.113.1/24 dev wan0")
        self.run("gateway", "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
        self.ip("internet", f"addr add {INTERNET}/24 dev eth0")
        self.ip("internet", "route add default via 203.0.113.1")
        self.start("service", "internet", "service", str(PORT))
        self.start("names", "internet", "names", NAME, INTERNET)
        self.start("forwarder", "gateway", "names", NAME, INTERNET, INTERNET)

    def ip(self, name: str, arguments: str) -> None:
        self.run(name, "ip", *arguments.split())

    def run(self, name: str, *command: str) -> None:
        result = subprocess.run(
            [*self._inside(name), *command], capture_output=True, check=False, text=True
        )
        assert result.returncode == 0, (name, command, result.stderr)

    def start(self, program: str, name: str, *arguments: str) -> None:
        """Start peer.py in the namespace ``name``, and store its process as ``program``."""
        module = (sys.executable, "-m", "tests.lab.connectivity.peer")
        self.programs[program] = self._start(*self._inside(name), *module, *arguments)

    def kill(self, program: str) -> None:
        _end(self.programs.pop(program))

    def pid_of(self, name: str) -> int:
        """Return the id of the process that holds a namespace."""
        return self._namespaces[name].pid

    def sensor(self, *servers: str, base_url: str = f"https://{NAME}:{PORT}") -> "SensorProcess":
        """Start the sensors on the till. ``servers`` are the addresses of its name servers."""
        module = (sys.executable, "-m", "tests.lab.connectivity.sensor")
        return SensorProcess(self._start(*self._inside("till"), *module, base_url, *servers))

    def stream(self) -> subprocess.Popen[str]:
        """Open a command stream on the till. The process prints why the stream ended."""
        self.start("stream", "internet", "stream", str(STREAM_PORT))
        module = (sys.executable, "-m", "tests.lab.connectivity.stream")
        url = f"http://{INTERNET}:{STREAM_PORT}"
        return self._start(*self._inside("till"), *module, url)

    @contextlib.contextmanager
    def stopped(self, program: str) -> Iterator[None]:
        """Stop a program: its ports stay open, and it does not answer."""
        os.kill(self.programs[program].pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.programs[program].pid, signal.SIGCONT)

    def _connect(self, name: str, interface: str, other: str, other_interface: str) -> None:
        """Connect two namespaces by a pair of interfaces, and set both interfaces up."""
        peer = f"peer name {other_interface} netns {self._namespaces[other].pid}"
        self.ip(name, f"link add {interface} type veth {peer}")
        self.ip(name, f"link set {interface} up")
        self.ip(other, f"link set {other_interface} up")

    def _inside(self, name: str) -> tuple[str, ...]:
        """Return the prefix that runs a command in the namespace ``name``."""
        pid = self.pid_of(name)
        is_own_namespace = (
            Path("/proc/self/ns/user").readlink() == Path(f"/proc/{pid}/ns/user").readlink()
        )
        user = () if is_own_namespace else ("--user", "--preserve-credentials")
        return ("nsenter", f"--target={pid}", "--net", *user)

    def _start(self, *command: str) -> subprocess.Popen[str]:
        """Start a command, and wait until it prints ``ready``, as text or as a JSON string."""
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
        )
        self._stack.callback(_end, process)
        assert process.stdout is not None
        while line := process.stdout.readline():
            if line.strip().strip('"') == "ready":
                return process
        raise RuntimeError(f"{command} did not start")


@dataclass(slots=True)
class SensorProcess:
    """The sensors of a machine, in a process."""

    process: subprocess.Popen[str]

    def ask(self, command: str) -> Any:
        """Return the reply to a command, without the notifications before it."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{command}\n")
        self.process.stdin.flush()
        while (reply := self._line()) == "change":
            pass
        return reply

    def wait_until(self, has_changed: Callable[[Any], bool]) -> None:
        """Wait until ``has_changed`` returns True for the state of the link.

        The state is read at once, and again after each notification.
        """
        while not has_changed(self.ask("link")):
            while self._line() != "change":
                pass

    def _line(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the sensors ended"
        return json.loads(line)


@contextlib.contextmanager
def venue() -> Iterator[Venue]:
    """Yield a venue in which everything works."""
    with contextlib.ExitStack() as stack:
        new_venue = Venue(stack)
        new_venue.build()
        yield new_venue


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    with process:  # closes the pipes, and waits
        pass
