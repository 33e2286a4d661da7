"""Hosts of the failover drill (`drill.py`): network namespaces that a bridge connects.

The processes of the drill itself run in the namespace of the bridge. Needs root and iproute2.
"""

import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

NETWORK = "10.88.0"
BRIDGE = f"{NETWORK}.254"
WITHIN_S = 60


class Host:
    """A network namespace with one interface. ``address`` is its IPv4 address."""

    def __init__(self, number: int, stack: ExitStack) -> None:
        self.address = f"{NETWORK}.{number}"
        self._link = f"host{number}"
        namespace_process = subprocess.Popen(("unshare", "--net", "sleep", "infinity"))
        stack.callback(namespace_process.wait)
        stack.callback(namespace_process.kill)
        self._namespace_pid = namespace_process.pid
        _until_separate(namespace_process.pid)
        peer = ("type", "veth", "peer", "name", "eth0", "netns", str(namespace_process.pid))
        run("ip", "link", "add", self._link, *peer)
        run("ip", "link", "set", self._link, "master", "bridge", "up")
        run(*self.command("ip", "addr", "add", f"{self.address}/24", "dev", "eth0"))
        run(*self.command("ip", "link", "set", "lo", "up"))
        run(*self.command("ip", "link", "set", "eth0", "up"))

    def command(self, *words: str, user: tuple[int, int] | None = None) -> tuple[str, ...]:
        """Return the command line that runs ``words`` on this host.

        Args:
            user: the ids of the user and the group that run it; root by default.
        """
        identity = () if user is None else ("-S", str(user[0]), "-G", str(user[1]))
        return ("nsenter", "-t", str(self._namespace_pid), "-n", *identity, *words)

    def disconnect(self) -> None:
        """Drop all packets from and to this host. No other host is notified."""
        run("ip", "link", "set", self._link, "down")

    def connect(self) -> None:
        run("ip", "link", "set", self._link, "up")


def make_bridge() -> None:
    run("ip", "link", "add", "bridge", "type", "bridge")
    run("ip", "addr", "add", f"{BRIDGE}/24", "dev", "bridge")
    run("ip", "link", "set", "bridge", "up")


def run(*words: str) -> str:
    """Run a command and return its output. Raises RuntimeError with the output if it fails."""
    result = subprocess.run(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, cwd="/"
    )
    if result.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: {result.stdout[-500:]}")
    return result.stdout


def _until_separate(pid: int) -> None:
    """Wait until a process has its own network namespace."""
    own_namespace, until_s = Path("/proc/self/ns/net").readlink(), time.monotonic() + WITHIN_S
    while Path(f"/proc/{pid}/ns/net").readlink() == own_namespace:
        if time.monotonic() > until_s:
            raise TimeoutError("no network namespace was created")
