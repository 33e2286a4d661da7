"""Builds a LAN of real programs in network namespaces: a spooler, and IPP printers with mDNS.

One namespace is the switch (a bridge), one is the machine that the agent examines, and each printer
has its own namespace. Every peer runs in its own PID namespace, so that all of its processes end
when its first process is killed.
"""

import itertools
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from tests.lab.spooler import Spooler, queue_command
from tests.paths import ROOT

SUBNET = "10.66.0"
PREFIX_LENGTH = 24
READY_S = 120.0
_POLL_S = 0.05
_ANNOUNCED = b"Server startup complete"
_UUID = re.compile(r"printer-uuid \(uri\) = urn:uuid:(\S+)")
_GET_UUID = """{
OPERATION Get-Printer-Attributes
GROUP operation-attributes-tag
ATTR charset attributes-charset utf-8
ATTR naturalLanguage attributes-natural-language en
ATTR uri printer-uri $uri
}
"""
_AVAHI_CONF = """[server]
host-name={host}
allow-interfaces=eth0
use-ipv4=yes
use-ipv6=yes
[publish]
publish-workstation=yes
"""
_PRINTER = """
mount -t tmpfs t /run
mkdir -p /run/dbus /run/avahi-daemon
chown avahi:avahi /run/avahi-daemon
dbus-daemon --system --fork --nopidfile
avahi-daemon --no-chroot --no-drop-root --no-rlimits -f "$1/avahi.conf" &
until [ -S /run/avahi-daemon/socket ]; do sleep 0.02; done
exec ippeveprinter -p 631 -M "$2" -m "$3" -d "$1" "$4"
"""
_lans = itertools.count()
Result = TypeVar("Result")


@dataclass(slots=True)
class Peer:
    """A host of the LAN. Its interface is always ``eth0``.

    ``process`` is its printer or its spooler. ``uuid`` is the UUID that its printer returned.
    """

    name: str
    namespace: str
    address: str
    mac_address: str
    process: subprocess.Popen[bytes] | None = None
    uuid: str = ""
    is_printer: bool = False


@dataclass(slots=True)
class PeerLan:
    """Builds and removes the LAN.

    ``directory`` is for the files of the peers. ``excluded`` are addresses that must not receive
    packets. ``prefix`` is the first part of the name of each namespace.
    """

    directory: Path
    excluded: tuple[str, ...] = ()
    prefix: str = field(default_factory=lambda: f"vp{os.getpid()}x{next(_lans)}")
    peers: list[Peer] = field(default_factory=list)
    _namespaces: list[str] = field(default_factory=list)
    _watcher: subprocess.Popen[str] | None = None

    def add_host(self, name: str, number: int) -> Peer:
        """Add a namespace with the address ``10.66.0.number`` on the bridge."""
        if not self._namespaces:
            self._add_namespace("switch")
            self._run_in("switch", "ip", "link", "add", "br0", "type", "bridge")
            self._run_in("switch", "ip", "link", "set", "br0", "up")
            self._watch()
        namespace = self._add_namespace(name)
        mac = f"02:66:00:00:00:{number:02x}"
        switch, outer = self._namespace("switch"), f"v{number}"
        veth = ("type", "veth", "peer", "name", "eth0", "address", mac, "netns", namespace)
        _run("ip", "-n", switch, "link", "add", outer, *veth)
        self._run_in("switch", "ip", "link", "set", outer, "master", "br0", "up")
        address = f"{SUBNET}.{number}"
        self._run_in(name, "ip", "addr", "add", f"{address}/{PREFIX_LENGTH}", "dev", "eth0")
        # Without duplicate address detection, the IPv6 address is usable at once, and does not
        # change while an announcer probes its names.
        disable_detection = "echo 0 >/proc/sys/net/ipv6/conf/eth0/accept_dad"
        self._run_in(name, "sh", "-c", disable_detection)
        self._run_in(name, "ip", "link", "set", "eth0", "up")
        peer = Peer(name, namespace, address, mac)
        self.peers.append(peer)
        return peer

    def add_printer(self, name: str, number: int, maker: str, model: str) -> Peer:
        """Start an IPP printer with its own mDNS announcer. `wait_for_printers` waits until it
        runs."""
        peer = self.add_host(name, number)
        peer.is_printer = True
        printer_directory = self.directory / name
        printer_directory.mkdir()
        (printer_directory / "avahi.conf").write_text(_AVAHI_CONF.format(host=f"{name}-host"))
        arguments = [str(printer_directory), maker, model, name]
        peer.process = self._start(
            peer, ["sh", "-c", _PRINTER, "printer", *arguments], printer_directory
        )
        return peer

    def wait_for_printers(self, client: Peer) -> None:
        """Wait until every printer has announced itself, then read its UUID by IPP.

        The program that reads the UUIDs runs on ``client``. Call this method before `move`: an
        announcer whose address changes while it still probes its names (RFC 6762, section 8) never
        announces them.
        """
        test = self.directory / "uuid.test"
        test.write_text(_GET_UUID)
        for peer in self.peers:
            if peer.is_printer and not peer.uuid:
                log = self.directory / peer.name / "peer.log"
                _wait(lambda log=log: _ANNOUNCED in log.read_bytes(), f"{peer.name}'s announcer")  # type: ignore[misc]
                peer.uuid = _wait(lambda peer=peer: self._read_uuid(client, peer, test), peer.name)  # type: ignore[misc]

    def start_spooler(self, peer: Peer, listen: str = "") -> Spooler:
        """Start cupsd on a peer.

        ``listen`` is an address and port at which other hosts can reach cupsd. By default, cupsd
        listens only on its socket.
        """
        spooler = Spooler(self.directory / f"cups-{peer.name}")
        command = spooler.set_up(listen=listen)
        peer.process = self._start(peer, [*command], spooler.directory)
        _wait(spooler.socket.exists, "the spooler's socket")
        return spooler

    def add_queue(self, peer: Peer, spooler: Spooler, name: str, uri: str, *options: str) -> None:
        self.administer(peer, spooler, *queue_command(name, uri, *options))

    def administer(self, peer: Peer, spooler: Spooler, *command: str) -> None:
        """Run a CUPS command on a peer."""
        server = f"CUPS_SERVER={spooler.socket}"
        _run("ip", "netns", "exec", peer.namespace, "env", server, *command)

    def move(self, peer: Peer, number: int) -> None:
        """Give a running peer another address, as a DHCP server does."""
        old, peer.address = peer.address, f"{SUBNET}.{number}"
        self._run_in(peer.name, "ip", "addr", "del", f"{old}/{PREFIX_LENGTH}", "dev", "eth0")
        new = f"{peer.address}/{PREFIX_LENGTH}"
        self._run_in(peer.name, "ip", "addr", "add", new, "dev", "eth0")

    def stop(self, peer: Peer) -> None:
        """Kill all programs of a peer. Its address still answers ARP and ping."""
        if peer.process is not None:
            _end(peer.process)
            peer.process = None

    def unplug(self, peer: Peer) -> None:
        self._run_in(peer.name, "ip", "link", "set", "eth0", "down")

    def plug_in(self, peer: Peer) -> None:
        self._run_in(peer.name, "ip", "link", "set", "eth0", "up")

    def command(self, peer: Peer, *command: str) -> list[str]:
        """Return the command line that runs ``command`` on a peer."""
        return ["ip", "netns", "exec", peer.namespace, *command]

    def stop_watcher(self) -> str:
        """Stop the watcher, and return a description of the forbidden traffic; "" if none."""
        watcher, self._watcher = self._watcher, None
        return watcher.communicate(timeout=READY_S)[0] if watcher is not None else ""

    def close(self) -> None:
        self.stop_watcher()
        for peer in self.peers:
            self.stop(peer)
        for namespace in self._namespaces:
            _end_all_in(namespace)
            subprocess.run(["ip", "netns", "del", namespace], check=False, capture_output=True)

    def _watch(self) -> None:
        inside = ("ip", "netns", "exec", self._namespace("switch"))
        script = (sys.executable, "-m", "tests.lab.peers.watcher", "br0", *self.excluded)
        self._watcher = subprocess.Popen(
            [*inside, *script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
        )
        assert self._watcher.stdout is not None
        assert self._watcher.stdout.readline() == "ready\n"

    def _read_uuid(self, client: Peer, peer: Peer, test: Path) -> str | None:
        uri = f"ipp://{peer.address}/ipp/print"
        command = self.command(client, "ipptool", "-tv", "-T", "2", uri, str(test))
        result = subprocess.run(command, capture_output=True, check=False, text=True)
        match = _UUID.search(result.stdout)
        return match[1] if match else None

    def _start(self, peer: Peer, command: list[str], directory: Path) -> subprocess.Popen[bytes]:
        isolated_command = ["unshare", "-m", "-p", "-f", "--kill-child", *command]
        with (directory / "peer.log").open("wb") as log:
            return subprocess.Popen(
                self.command(peer, *isolated_command),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def _add_namespace(self, name: str) -> str:
        namespace = self._namespace(name)
        _run("ip", "netns", "add", namespace)
        self._namespaces.append(namespace)
        self._run_in(name, "ip", "link", "set", "lo", "up")
        return namespace

    def _namespace(self, name: str) -> str:
        return f"{self.prefix}-{name}"

    def _run_in(self, name: str, *command: str) -> None:
        _run("ip", "netns", "exec", self._namespace(name), *command)


@contextmanager
def peer_lan(directory: Path, excluded: tuple[str, ...] = ()) -> Iterator[PeerLan]:
    """Yield a LAN. After the test, check that there was no forbidden traffic."""
    lan = PeerLan(directory, excluded)
    try:
        yield lan
        harm = lan.stop_watcher()
        assert not harm, f"the LAN received forbidden traffic: {harm}"
    finally:
        lan.close()


def _run(*command: str) -> None:
    result = subprocess.run(command, capture_output=True, check=False, text=True)
    if result.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {result.stderr.strip()}")


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()  # unshare ignores SIGTERM; the whole PID namespace ends when unshare is killed
    process.wait(timeout=READY_S)


def _end_all_in(namespace: str) -> None:
    """Kill all processes that still run in a namespace after a test."""
    pids = subprocess.run(["ip", "netns", "pids", namespace], capture_output=True, check=False)
    for pid in pids.stdout.split():
        with suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)


def _wait(poll: Callable[[], Result | None], name: str) -> Result:
    deadline = time.monotonic() + READY_S
    while time.monotonic() < deadline:
        result = poll()
        if result:
            return result
        time.sleep(_POLL_S)
    raise TimeoutError(f"{name} was not ready within {READY_S} s")
