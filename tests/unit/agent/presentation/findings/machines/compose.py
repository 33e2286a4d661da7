"""Composes the reports of a machine from the facts that its operating system gives.

The real sources read files, outputs of commands and values of psutil, and the real rules create the
payloads. Python objects replace the network (the service, the name servers and the hosts of the
scan), the replies of CUPS (IPP), the commands of DevTools and the list of processes.
"""

import base64
import io
import ipaddress
import json
import socket
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from agent.presentation.findings.findings import findings_of
from agent.presentation.findings.rule import Finding
from agent.rules.reports.application import application_report
from agent.rules.reports.context import ReportContext
from agent.rules.reports.network import network_report
from collectors.application import collector, registry
from collectors.application.kiosk import kiosk
from collectors.application.linux import operating_system
from collectors.application.linux.network import dhcp as linux_dhcp
from collectors.application.linux.network import links as linux_links
from collectors.application.linux.network import nl80211 as linux_nl80211
from collectors.application.readers import clock, disk_space, print_queues, processes, resources
from collectors.application.readers.network import (
    name_servers,
    resolver,
    service_probe,
    watched_devices,
)
from collectors.application.source import Reading, Source
from collectors.application.windows import machine as windows
from collectors.contract import (
    ApplicationJob,
    Field,
    NetworkJob,
    SourceState,
    WatchedDevice,
)
from collectors.network.collected_facts import CollectedFacts
from collectors.network.observations import DeviceAnswers, Enrichment, Evidence, KnownPrinter
from collectors.network.report_facts import facts_of
from collectors.network.scan.scan import ScannedHost, ScanResult
from collectors.network.scan.targets import Target, TargetSelection
from collectors.shared import ipp, run_command
from collectors.shared.cups import NotRunning
from collectors.shared.host import interfaces_linux, interfaces_portable
from collectors.shared.host.local_network import LocalInterface, LocalNetwork
from collectors.shared.linux import rtnetlink
from collectors.shared.linux.rtnetlink import DefaultRoute, LinkAddress
from collectors.shared.watched_devices import Answers
from tests.fixtures.payloads import FINISHED_AT, REPORT_ID, STARTED_AT, environment, identity
from tests.unit.collectors.application.fixtures import RecordingRun, write_files
from tests.unit.collectors.application.linux.test_system import timex_of

GIB = 1024**3
SYNCHRONISED, UNSYNCHRONISED = (0, 0x2001, 1_500_000), (5, 0x0040, 0)
"""State, status and offset of the clock, from adjtimex(2)."""
UPTIME_S = 3 * 86400
NOW_S = datetime(2026, 11, 17, 6, 12, 30, tzinfo=UTC).timestamp() + UPTIME_S
CERTIFICATE = ("TLSv1.3", True, "Let's Encrypt, E7", "2026-10-20T00:00:00Z", "2027-01-18T00:00:00Z")
"""What a TLS handshake returns: version, whether the certificate is trusted, its issuer, the start
and the end of its validity.
"""
SCANNED = SourceState("succeeded")
PAGE = {"crashed": False, "drawing": True, "painted": True, "localNetworkPermission": "granted"}


@dataclass(frozen=True)
class Link:
    """An interface. ``gateway`` is the gateway of its default route: "" means no default route,
    "direct" a route without a gateway. The gateways of several routes are separated by spaces.

    ``kind`` is its type on Linux: "wifi" or "ethernet" for an interface with hardware, otherwise
    the number of ARPHRD_* and the DEVTYPE. ``speed`` is in Mbit/s.
    """

    name: str
    addresses: tuple[str, ...] = ()
    gateway: str = ""
    kind: str = "ethernet"
    is_up: bool = True
    speed: int = 1000
    duplex: int = psutil.NIC_DUPLEX_FULL
    errors: int = 0
    mac: str = "02:00:00:00:00:20"

    @property
    def has_arp(self) -> bool:
        return self.kind in {"ethernet", "wifi", "1 bridge", "1 bond"}


@dataclass(frozen=True)
class Disk:
    """A mounted file system. ``size`` and ``free`` are in GiB, and ``options`` are those of its
    superblock. ``df`` replaces the line that the program df prints about the file system. If
    ``df`` begins with "df:", it is an error message of this program.
    """

    path: str
    kind: str = "ext4"
    size: float = 100
    free: float = 60
    device: str = "/dev/sda"
    options: str = "rw"
    df: str = ""
    label: str = ""


@dataclass(frozen=True)
class Machine:
    """A machine. Its description is the id of its test.

    Attributes:
        commands: a word of a command, and the command's output, or None if the command fails.
        memory: total, available, swap total and swap used, in GiB.
        load: the load average, the use of each core (0 to 1), and the number of cores.
        battery: the charge (0 to 1), and whether the charger is connected.
        units: per systemd unit its state, its start type, and its number of restarts.
        watched: per watched program its memory in GiB, or 0 if the program does not run.
        restarts: how often the watched programs were restarted.
        service: what the TLS handshake with the service returns, or the error of the look-up,
            the connection or the handshake.
        service_ms: the durations of the name look-up and of the connection.
        dns_answers: a line for each name server. By default, each name server answers.
        kiosk: the values of the kiosk's page. None without a kiosk, empty if there is no page.
        agent: the fields that the agent adds to the application report.
        lan: the hosts that answer. By default, each gateway and one more host in its network.
        devices: the watched devices.
        answers: what the network printers answer.
    """

    description: str
    platform: str = "linux"
    files: Mapping[str, str] = field(default_factory=dict)
    commands: Mapping[str, str | None] = field(default_factory=dict)
    links: tuple[Link, ...] = ()
    disks: tuple[Disk, ...] = (Disk("/"),)
    memory: tuple[float, float, float, float] = (8, 5, 1, 0.1)
    load: tuple[float, float, int] = (0.5, 0.1, 4)
    clock: tuple[int, int, int] = SYNCHRONISED
    battery: tuple[float, bool] | None = None
    units: Mapping[str, tuple[str, str, int]] = field(default_factory=dict)
    queues: tuple[dict[str, Any], ...] | None = None
    jobs: tuple[dict[str, Any], ...] = ()
    watched: Mapping[str, float] = field(default_factory=dict)
    restarts: int = 0
    service: Exception | tuple[object, ...] = CERTIFICATE
    service_ms: tuple[float, float] = (12, 25)
    dns_answers: tuple[str, ...] = ()
    kiosk: Mapping[str, Any] | None = None
    agent: tuple[Field, ...] = ()
    lan: tuple[ScannedHost, ...] | None = None
    printers: tuple[KnownPrinter, ...] = ()
    devices: tuple[WatchedDevice, ...] = ()
    answers: tuple[Evidence, ...] = ()
    scan: SourceState = SCANNED
    is_cancelled: bool = False

    def vary(self, description: str, **changes: Any) -> "Machine":
        """Return this machine with ``changes``.

        Files, commands and units in ``changes`` are added to those of this machine.
        """
        for name in {"files", "commands", "units"} & changes.keys():
            changes[name] = {**getattr(self, name), **changes[name]}
        return replace(self, description=description, **changes)


class EndedProgram(io.BytesIO):
    """A program that has ended, with its output."""

    def __init__(self, data: str, error: str = "") -> None:
        super().__init__(data.encode())
        self.stdout, self.stderr = self, io.BytesIO(error.encode())
        self.returncode = 1 if error else 0

    def poll(self) -> int:
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        return self.returncode


def findings(machine: Machine, root: Path, patch: pytest.MonkeyPatch) -> tuple[Finding, ...]:
    """Return the findings of the application report and of the network report."""
    write_files(root, {**dict(files_of(machine)), **machine.files})
    fake_programs(machine, patch)
    fake_libraries(machine, patch)
    fake_connections(machine, patch)
    patch.setattr(collector, "in_background", at_once)
    context = ReportContext(REPORT_ID, FINISHED_AT, identity(), environment())
    snapshot = collector.take_snapshot(sources_of(machine, root), 3600, RecordingRun())
    snapshot = replace(snapshot, started_at=STARTED_AT)
    job = NetworkJob(devices=machine.devices)
    network = facts_of(collected_facts(machine), job, cancelled=machine.is_cancelled, final=True)
    return (
        *findings_of(application_report(snapshot, machine.agent, context)),
        *findings_of(network_report(network, job, context)),
    )


def at_once(read: Callable[[], Reading], _: str) -> "Future[Reading]":
    """Read a source without a thread, because starting a thread takes longer than reading."""
    future: Future[Reading] = Future()
    try:
        future.set_result(read())
    except Exception as error:  # noqa: BLE001 - the collector describes it
        future.set_exception(error)
    return future


def sources_of(machine: Machine, root: Path) -> list[Source[[]]]:
    """Return the platform's sources. Those in ``replacements`` get fakes as arguments."""
    url = "http://127.0.0.1:9222" if machine.kiosk is not None else ""
    job = ApplicationJob(
        3600, tuple(machine.watched), url, "https://ops.example", devices=machine.devices
    )
    is_linux = machine.platform == "linux"
    platform_sources = registry.sources_for(machine.platform, job)
    sources = registry.linux_sources(job, root) if is_linux else platform_sources
    replacements = {
        "processes": processes.read_processes.bind(
            job.watch_processes,
            lambda pid, _: processes.Restarts(pid),
            table=lambda _: tuple(samples(machine)),
            wait=lambda _: None,
        ),
        "watched-devices": watched_devices.read_watched_devices.bind(
            job, answers=lambda *_: Answers(macs_of(machine), silent_addresses(machine))
        ),
        "print queues": print_queues.read_print_queues.bind(lambda *given: cups(machine, *given)),
    }
    if is_linux:
        replacements["clock"] = clock.read_clock.bind(root, clock.adjtimex)  # see fake_libraries
    return [replace(replacements.get(source.name, source), limit_s=3600) for source in sources]


def macs_of(machine: Machine) -> dict[str, str | None]:
    hosts = hosts_of(machine) if machine.lan is None else machine.lan
    return {host.address: host.mac_address for host in hosts}


def silent_addresses(machine: Machine) -> frozenset[str]:
    """Return the addresses of watched devices that do not answer."""
    return frozenset(d.address for d in machine.devices if d.address) - macs_of(machine).keys()


def samples(machine: Machine) -> Iterator[processes.Sample]:
    """Yield a process for each watched program that uses memory.

    The id of each process is the number of restarts, because `sources_of` reads the number of
    restarts from the process id.
    """
    for name, gib in machine.watched.items():
        if gib:
            yield processes.Sample(machine.restarts, name, 1e9, 1, int(gib * GIB))


def cups(machine: Machine, request: bytes, _: float) -> ipp.Response:
    """Reply to a query for queues or jobs as the spooler of the machine does."""
    if machine.queues is None:
        raise NotRunning(is_socket_there=False)
    is_jobs = request[2:4] == ipp.GET_JOBS.to_bytes(2)
    tag, rows = (ipp.JOB_GROUP, machine.jobs) if is_jobs else (ipp.PRINTER_GROUP, machine.queues)
    groups = (
        {name: v if isinstance(v, tuple) else (v,) for name, v in row.items()} for row in rows
    )
    return ipp.Response(0, tuple(ipp.Group(tag, group) for group in groups))


def queue(name: str, *reasons: str, state: int = 3, accepts: bool = True) -> dict[str, Any]:
    """Return the attributes of a queue (RFC 8011). ``state`` is 3 if idle, 5 if stopped."""
    return {"printer-name": name, "printer-state": state,
            "printer-state-reasons": reasons or ("none",),
            "printer-is-accepting-jobs": accepts}  # fmt: skip


# ------------------------------------------------------------------ the operating system


def files_of(machine: Machine) -> Iterator[tuple[str, str]]:
    """Yield the files of procfs and sysfs that follow from the disks and links of a machine."""
    if machine.platform != "linux":
        return
    lines = (f"{n} 1 8:{n} / {d.path} rw - {d.kind} {d.device} {d.options}\n"
             for n, d in enumerate(machine.disks))  # fmt: skip
    yield "proc/self/mountinfo", "".join(lines)
    routes = (f"{n.name} 00000000 0101A8C0 0003 0 0 100 00000000\n"
              for n in machine.links if n.gateway)  # fmt: skip
    yield "proc/net/route", "".join(routes)
    for link in machine.links:
        at, (arp, _, kind) = f"sys/class/net/{link.name}", link.kind.partition(" ")
        yield f"{at}/type", arp if arp.isdigit() else "1"
        yield f"{at}/uevent", f"DEVTYPE={kind}\n" if kind else ""
        if not arp.isdigit():
            yield f"{at}/device/modalias", ""
            yield from [(f"{at}/phy80211/index", "0")] if link.kind == "wifi" else []


def fake_programs(machine: Machine, patch: pytest.MonkeyPatch) -> None:
    """Replace the programs of the system by their outputs."""

    def start(arguments: tuple[str, ...], _: object = None, **__: object) -> EndedProgram:
        line = " ".join(arguments)
        if "-EncodedCommand" in arguments:
            line = base64.b64decode(arguments[-1]).decode("utf-16-le")
        if arguments[0] == "df":
            return df(machine, arguments[-1])
        if "ListUnitsByNames" in line and machine.units:
            rows = [[name, "", "loaded", unit[0], "sub"] for name, unit in machine.units.items()]
            return EndedProgram(json.dumps({"data": [rows]}))
        for name, (_, start_type, restarts) in machine.units.items():
            if arguments[0] == "busctl" and name.partition(".")[0].replace("-", "_2d") in line:
                known = {"UnitFileState": {"data": start_type}, "NRestarts": {"data": restarts}}
                return EndedProgram(json.dumps({"data": [known]}))
        output = next((out for word, out in machine.commands.items() if word in line), None)
        if output is None:
            return EndedProgram("", f"{arguments[0]}: is not provided by any .service files")
        return EndedProgram(output)

    def output_of(process: EndedProgram, *_: object) -> run_command.Output:
        return run_command.Output(process.returncode, process.read(), process.stderr.read())

    for module in (run_command, disk_space):
        patch.setattr(module, "start_command", start)
    patch.setattr(run_command, "output_of", output_of)


def df(machine: Machine, path: str) -> EndedProgram:
    """Return the output of the program df for one file system."""
    disk = next(disk for disk in machine.disks if disk.path == path)
    if disk.df.startswith("df:"):
        return EndedProgram("", disk.df)
    size, free = round(disk.size * 1024**2), round(disk.free * 1024**2)
    line = f"{disk.device} {size} {size - free} {free} {100 - 100 * free // (size or 1)}% {path}"
    return EndedProgram(
        f"Filesystem 1024-blocks Used Available Capacity Mounted on\n{disk.df or line}"
    )


def fake_libraries(machine: Machine, patch: pytest.MonkeyPatch) -> None:
    """Replace the values that psutil and Python read from the operating system."""
    total, free, swap, swapped = (int(amount * GIB) for amount in machine.memory)
    load, use, cores = machine.load
    battery = machine.battery and SimpleNamespace(
        percent=machine.battery[0] * 100, power_plugged=machine.battery[1]
    )
    parts = [SimpleNamespace(mountpoint=d.path, fstype=d.kind, opts=d.options)
             for d in machine.disks]  # fmt: skip
    usage = {d.path: SimpleNamespace(total=int(d.size * GIB), free=int(d.free * GIB))
             for d in machine.disks}  # fmt: skip
    values = {
        "swap_memory": SimpleNamespace(total=swap, used=swapped),
        "cpu_percent": [use * 100] * cores,
        "cpu_freq": None,
        "cpu_count": cores,
        "boot_time": 1.79e9,
        "sensors_battery": battery,
        "disk_partitions": parts,
        "net_if_stats": {n.name: SimpleNamespace(
            isup=n.is_up, speed=n.speed, mtu=1500, duplex=n.duplex,
            flags="" if n.has_arp else "pointopoint") for n in machine.links},
        "net_if_addrs": {n.name: list(addresses_of(n)) for n in machine.links},
        "net_io_counters": {n.name: SimpleNamespace(
            bytes_recv=10**9, bytes_sent=10**8, packets_recv=10**6, packets_sent=10**5,
            errin=n.errors, errout=0, dropin=12, dropout=0) for n in machine.links},
    }  # fmt: skip
    for name, value in values.items():
        patch.setattr(psutil, name, lambda *_, value=value, **__: value, raising=False)
    patch.setattr(psutil, "disk_usage", usage.__getitem__)
    memory = SimpleNamespace(total=total, available=free)
    patch.setattr(resources, "_memory", lambda: memory)
    times = {"time": lambda: NOW_S, "CLOCK_BOOTTIME": 7, "clock_gettime": lambda _: UPTIME_S}
    for module in (operating_system, windows):
        patch.setattr(module, "time", SimpleNamespace(**times))
    functions = {} if machine.platform == "win32" else {"getloadavg": lambda: (load, load, load)}
    patch.setattr(resources, "os", SimpleNamespace(**functions))
    patch.setattr("os.cpu_count", lambda: cores)
    patch.setattr(linux_links, "ssid_by_ioctl", lambda _: "Venue")
    patch.setattr(linux_dhcp, "kernel_addresses", tuple)
    patch.setattr(linux_nl80211, "read_wifi", dict)
    if machine.platform == "win32":
        labels = {d.path: d.label for d in machine.disks}
        patch.setattr(disk_space, "sys", SimpleNamespace(platform="win32"))
        patch.setattr(disk_space, "volume_label", labels.__getitem__)
    state, *clock_values = machine.clock
    patch.setattr(clock, "adjtimex", lambda *_: (state, timex_of(*clock_values)))


def addresses_of(link: Link) -> Iterator[SimpleNamespace]:
    yield SimpleNamespace(family=psutil.AF_LINK, address=link.mac, netmask=None)
    for interface in map(ipaddress.ip_interface, link.addresses):
        family = socket.AF_INET if interface.version == 4 else socket.AF_INET6
        yield SimpleNamespace(
            family=family, address=str(interface.ip), netmask=str(interface.netmask)
        )


def fake_connections(machine: Machine, patch: pytest.MonkeyPatch) -> None:
    """Replace the connections to the service and to the kiosk's browser."""
    for module in (resolver, service_probe):
        patch.setattr(module, "getproxies", dict)
    patch.setattr(resolver, "script_address", lambda: None)

    patch.setattr(name_servers, "query_servers", lambda servers, *_: machine.dns_answers or tuple(
        f"{server}: answered in 4 ms" for server in servers))  # fmt: skip

    def fail_or(value: object, *kinds: type[Exception]) -> object:
        if isinstance(machine.service, kinds):
            raise machine.service
        return value

    durations = iter(machine.service_ms)
    address = ("192.0.2.1", 443)
    patch.setattr(service_probe, "timed", lambda action: (action(), next(durations)))
    patch.setattr(service_probe, "resolve", lambda *_: fail_or([address], socket.gaierror))
    patch.setattr(service_probe, "_connect", lambda *_: fail_or(io.BytesIO(), ConnectionError))
    patch.setattr(service_probe, "handshake", lambda *_, **__: fail_or(machine.service, Exception))
    patch.setattr(kiosk, "PageSession", lambda *_: Session(machine.kiosk or {}))
    pages = () if machine.kiosk == {} else ("A",)
    patch.setattr(kiosk, "read_page_ids", lambda *_: pages)


class Session:
    """A session with the kiosk's page. ``page`` has the values that scripts in the page return."""

    def __init__(self, page: Mapping[str, Any]) -> None:
        self._page = page
        self.has_crashed = page["crashed"]

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None:
        return

    def shorten_deadline(self, _: float) -> None:
        return

    def command(self, method: str, **_: object) -> dict[str, Any]:
        if method == "Runtime.evaluate" and self._page.get("frozen"):
            raise TimeoutError
        if method == "Page.getFrameTree":
            return {"frameTree": {"frame": {"id": "F", "url": self._page.get("url", "")}}}
        keys = {name if "." in name else f"kiosk.{name}": v for name, v in self._page.items()}
        text = json.dumps({key: {"value": value} for key, value in keys.items()})
        return {"executionContextId": 7, "result": {"value": text}}


# ------------------------------------------------------------------ the network


def collected_facts(machine: Machine) -> CollectedFacts:
    """Return what the network collector collects."""
    local = LocalNetwork(local_interfaces(machine))
    result = CollectedFacts(STARTED_AT, machine.platform, "12", local)
    result.interfaces_state = SourceState("succeeded")
    networks = [str(ipaddress.ip_interface(address).network) for link in machine.links
                for address in link.addresses if link.has_arp and ":" not in address]  # fmt: skip
    targets = tuple(Target(network, "arp") for network in networks)
    result.selection = TargetSelection(targets, tuple(networks))
    hosts = tuple(hosts_of(machine)) if machine.lan is None else machine.lan
    result.scan = ScanResult(hosts, machine.scan)
    result.mdns = replace(result.mdns, state=SourceState("succeeded"))
    result.known = machine.printers
    result.device_answers = DeviceAnswers(silent=silent_addresses(machine))
    result.enrichment = Enrichment(machine.answers)
    return result


def hosts_of(machine: Machine) -> Iterator[ScannedHost]:
    for link in machine.links:
        if link.has_arp and link.gateway and ":" not in link.gateway:
            yield host(link.gateway, 1, link.name, latency_ms=1.2, open_ports=(53, 80))
            yield host(f"{link.gateway.rpartition('.')[0]}.77", 77, link.name, refused_ports=(80,))


def host(address: str, number: int, interface: str = "eth0", **changes: Any) -> ScannedHost:
    """Return a host that answers. ``number`` is the last byte of its MAC."""
    return ScannedHost(address, interface, f"02:00:00:00:01:{number:02x}", **changes)


def local_interfaces(machine: Machine) -> tuple[LocalInterface, ...]:
    if machine.platform != "linux":
        gateways = [
            interfaces_portable.SystemGateway(n.gateway, frozenset(a.split("/")[0]
                                                                   for a in n.addresses))
            for n in machine.links if n.gateway
        ]  # fmt: skip
        return interfaces_portable.assemble(psutil.net_if_addrs(), psutil.net_if_stats(), gateways)
    links, addresses, routes = [], [], []
    for index, link in enumerate(machine.links):
        parsed = [ipaddress.ip_interface(address) for address in link.addresses]
        flags = (link.is_up, link.name == "lo", not link.has_arp, link.has_arp)
        links.append(rtnetlink.Link(index, link.name, link.mac, *flags))
        addresses += [
            LinkAddress(index, str(interface.ip), interface.network.prefixlen)
            for interface in parsed
        ]
        for number, gateway in enumerate(link.gateway.split()):
            routes.append(DefaultRoute(index, None if gateway == "direct" else gateway, number))
    return interfaces_linux.assemble(links, addresses, routes)
