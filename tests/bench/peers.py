"""Installs other common agents from Debian packages in a temporary overlay, and runs them.

Each agent is configured to use only loopback and runs in the caller's network namespace. Nothing is
installed on the machine itself: the kernel removes the overlay when the caller ends.
"""

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Peer:
    """An agent that is compared with ours. ``files`` are written before ``command`` runs."""

    package: str
    command: tuple[str, ...]
    files: tuple[tuple[str, str], ...] = ()


_ZABBIX = """\
Server=127.0.0.1
ServerActive=127.0.0.1
Hostname=bench
LogType=file
LogFile=/tmp/zabbix.log
PidFile=/tmp/zabbix.pid
ControlSocket=/tmp/zabbix.sock
PluginSocket=/tmp/zabbix-plugin.sock
"""
_NO_SERVER = "http://127.0.0.1:9/"
"""A URL at which no server listens."""
PEERS = (
    Peer(
        "puppet",
        ("puppet", "agent", "--no-daemonize", "--server", "localhost", "--waitforcert", "60"),
    ),
    Peer(
        "fusioninventory-agent",
        ("fusioninventory-agent", "--daemon", "--no-fork", "--no-httpd", "--server", _NO_SERVER),
    ),
    Peer(
        "zabbix-agent2",
        ("zabbix_agent2", "-f", "-c", "/tmp/zabbix.conf"),
        (("/tmp/zabbix.conf", _ZABBIX),),
    ),
    Peer(
        "mender-client",
        ("mender", "--data", "/tmp/mender", "daemon"),
        (
            ("/etc/mender/mender.conf", '{"ServerURL": "https://127.0.0.1:9"}'),
            ("/tmp/mender/device_type", "device_type=bench\n"),
        ),
    ),
)


@contextlib.contextmanager
def overlay(folder: Path) -> Iterator[Path]:
    """Mount a temporary overlay of `/` below ``folder``, with the file systems that programs
    expect. Yield its root.
    """
    memory, merged = folder / "memory", folder / "merged"
    memory.mkdir()
    merged.mkdir()
    with contextlib.ExitStack() as stack:
        _mount(stack, "-t", "tmpfs", "-o", "size=2g", "bench", str(memory))
        (memory / "upper").mkdir()
        (memory / "work").mkdir()
        layers = f"lowerdir=/,upperdir={memory}/upper,workdir={memory}/work"
        _mount(stack, "-t", "overlay", "-o", layers, "bench", str(merged))
        _mount(stack, "--bind", "/dev", str(merged / "dev"))
        _mount(stack, "-t", "proc", "proc", str(merged / "proc"))
        # Packages ask this program whether they may start their services. 101 means no.
        policy = merged / "usr/sbin/policy-rc.d"
        policy.write_text("#!/bin/sh\nexit 101\n")
        policy.chmod(0o755)
        yield merged


def _mount(stack: contextlib.ExitStack, *words: str) -> None:
    subprocess.run(("mount", *words), check=True)
    stack.callback(subprocess.run, ("umount", "-l", words[-1]), check=True)


def install(root: Path, peers: tuple[Peer, ...] = PEERS) -> tuple[Peer, ...]:
    """Install the peers in the overlay. Return the peers whose installation succeeded."""
    installed = []
    for peer in peers:
        words = ("apt-get", "install", "-y", "-qq", "--no-install-recommends", peer.package)
        result = subprocess.run(
            ("chroot", str(root), *words),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
            check=False,
            timeout=300,
        )
        if result.returncode == 0:
            installed.append(peer)
    return tuple(installed)


@contextlib.contextmanager
def running(root: Path, peer: Peer) -> Iterator[int]:
    """Run a peer in the overlay and yield its process id. Afterwards end it and its children."""
    for name, text in peer.files:
        path = root / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    with (root / f"tmp/{peer.package}.out").open("wb") as out:
        process = subprocess.Popen(
            ("chroot", str(root), *peer.command),
            stdout=out,
            stderr=out,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            yield process.pid
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
