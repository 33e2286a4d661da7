"""The configuration as frozen models. Every key, default and bound stands here once.

The text of each key (unit, default, when to change it) is its ``description``: the example file
and the JSON Schema are made from it.
"""

import ipaddress
import os
import sys
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from agent.wire.text import LegacyInstallId, LocationId, PayloadId, PayloadText

PRIVATE_NETWORKS = tuple(
    ipaddress.IPv4Network(text)
    for text in (
        "10.0.0.0/8",  # RFC 1918
        "172.16.0.0/12",
        "192.168.0.0/16",
        "100.64.0.0/10",  # RFC 6598
        "169.254.0.0/16",  # RFC 3927
        "127.0.0.0/8",
    )
)


SYSTEM_CONFIG = Path("/etc/venue-agent/config.toml")


def is_loopback_host(host: str) -> bool:
    """Tell whether a URL's host never leaves this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _service_url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("must be a URL such as https://ops.example.com")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ValueError("must not hold a user, a password, a query or a fragment")
    if parts.scheme == "http" and not is_loopback_host(parts.hostname):
        raise ValueError("must be https: plain http is accepted for loopback only")
    return text.rstrip("/")


def _kiosk_url(text: str) -> str:
    if not text:
        return text
    parts = urlsplit(text)
    if parts.scheme != "http" or not parts.hostname or not is_loopback_host(parts.hostname):
        raise ValueError("must be an http URL on loopback, such as http://127.0.0.1:9222")
    return text.rstrip("/")


def _private_subnet(text: str) -> str:
    try:
        network = ipaddress.ip_network(text)
    except ValueError as error:
        raise ValueError(f"must be a subnet such as 192.168.1.0/24: {error}") from None
    if not isinstance(network, ipaddress.IPv4Network):
        raise ValueError("must be an IPv4 subnet: IPv6 ranges are too large to scan")
    if not any(network.subnet_of(private) for private in PRIVATE_NETWORKS):
        raise ValueError("is not a private range: only private networks are ever scanned")
    return text


def _subnet_or_address(text: str) -> str:
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise ValueError("must be an address or a subnet") from None
    return text


def _cron(text: str) -> str:
    if not text:
        return text
    from apscheduler.triggers.cron import CronTrigger  # noqa: PLC0415 - only where it is used

    try:
        CronTrigger.from_crontab(text)
    except ValueError as error:
        raise ValueError(f"must be a cron expression such as '0 4 * * *': {error}") from None
    return text


Cron = Annotated[str, AfterValidator(_cron)]
Port = Annotated[int, Field(ge=1, le=65535)]


class Section(BaseModel):
    model_config = ConfigDict(
        frozen=True, strict=True, extra="forbid", use_attribute_docstrings=True
    )


class Service(Section):
    base_url: Annotated[str, AfterValidator(_service_url)]
    """Address of the service, https (http only for loopback). Required."""
    location_id: LocationId
    """The venue this machine stands in, as the service calls it. Required."""
    api_key_file: str = ""
    """File that holds the API key (with a write grant) and nothing else; if it is not set, the key
    is the systemd credential "api-key" or VENUE_AGENT_API_KEY. Read again when it changes."""
    ca_file: str = ""
    """PEM file of certificates trusted besides the operating system's. Set it where TLS is
    inspected or the service has an authority of its own."""
    proxy: str = ""
    """Proxy such as http://user:password@proxy:3128. If it is not set, HTTPS_PROXY and NO_PROXY of
    the environment hold."""
    request_timeout_seconds: Annotated[float, Field(ge=1, le=300)] = 20
    """Longest wait for one answer. Raise it on satellite links."""


class DeviceSection(Section):
    state_dir: str = ""
    """Where identity, journal and outbox live; if it is not set, /var/lib/venue-agent or the
    platform's equivalent, and a directory of the user's own for others than root. A change needs
    a restart."""
    legacy_install_id: LegacyInstallId | Literal[""] = ""
    """Name of this installation in reports; if it is not set, one is made at the first start. Set
    it where machines already have names."""


class Enrollment(Section):
    signature_encoding: Literal["hex", "base64"] = "hex"
    """How the 64-byte signature is written. Change it only if the service asks for it."""
    nonce_encoding: Literal["utf8", "base64", "hex"] = "utf8"
    """How the challenge's nonce becomes the bytes that are signed. Change it only if the service
    asks for it."""
    on_revoked: Literal["stop", "reenroll"] = "stop"
    """After a revocation stay up and collect nothing (stop), or enroll anew by itself (reenroll).
    Leave it at stop unless machines are revoked only to be moved."""


class Heartbeat(Section):
    interval_seconds: Annotated[float, Field(ge=0.1, le=3600)] = 60
    """Time between two heartbeats; each is moved by up to a tenth. Raise it on metered links."""


class Commands(Section):
    delivery: Literal["auto", "stream", "poll"] = "auto"
    """How commands come: by a stream where the service offers one, else by asking (auto). Choose
    poll where something on the way cuts long connections."""
    poll_interval_seconds: Annotated[float, Field(ge=0.1, le=3600)] = 15
    """Time between two questions when polling. Lower it for quicker answers, raise it on metered
    links."""


class Network(Section):
    enabled: bool = True
    """Answer requests for network reports. Switch it off where networks may not be looked at."""
    subnets: tuple[Annotated[str, AfterValidator(_private_subnet)], ...] = ()
    """Private IPv4 subnets to scan, such as "192.168.1.0/24"; if none is named, this machine's own
    networks. Name some to leave others alone."""
    exclude: tuple[Annotated[str, AfterValidator(_subnet_or_address)], ...] = ()
    """Addresses and subnets that are never contacted, such as "192.168.1.20". Name devices here
    that must be left alone."""
    ports: Annotated[tuple[Port, ...], Field(max_length=256)] = (
        22, 53, 80, 139, 443, 445, 515, 554, 631, 8008, 8043, 8080, 8443, 9100, 9101,
    )  # fmt: skip
    """TCP ports tried on each host: opened and closed, and only those of the web and of IPP are
    ever written to. Shorten the list for a quicker, quieter scan."""
    max_hosts: Annotated[int, Field(ge=1, le=65536)] = 1024
    """Most addresses one report contacts. Raise it where the venue's network is larger."""
    max_services: Annotated[int, Field(ge=1, le=65536)] = 2048
    """Most announced services one report keeps. There is hardly a reason to change it."""
    max_duration_seconds: Annotated[float, Field(ge=1, le=600)] = 30
    """Longest time for one report. Raise it for large networks."""
    mdns_service_types: Annotated[tuple[PayloadText, ...], Field(max_length=64)] = ()
    """DNS-SD service types browsed besides the built-in ones, such as "_till._tcp". Add those of
    the venue's own devices."""
    device_only: bool = False
    """Look at this machine only and send nothing to the network. For networks that forbid scans."""
    enrich: bool = True
    """Ask printers (IPP, port 631) and web pages (HTTP GET) what they are. Switch it off to open
    and close connections only."""


class Printer(Section):
    id: PayloadId
    """Short name used in reports."""
    name: PayloadText
    """Name people know the printer by."""
    transport: Literal["network", "serial", "ble", "usb"] = "network"
    """How the printer is attached."""
    address: PayloadText | None = None
    """host:port, a host, a MAC address or a device path."""


class Application(Section):
    enabled: bool = True
    """Answer requests for application snapshots. Switch it off where they are not wanted."""
    watch_processes: Annotated[tuple[PayloadText, ...], Field(max_length=32)] = ()
    """Names of the venue's own programs, such as "pos-till": reports say whether they run."""
    kiosk_debug_url: Annotated[str, AfterValidator(_kiosk_url)] = ""
    """The kiosk browser's DevTools address on loopback, such as http://127.0.0.1:9222; if it is not
    set, the browser is not asked."""
    max_duration_seconds: Annotated[float, Field(ge=2, le=120)] = 10
    """Longest time for one snapshot. Raise it on slow machines."""


class Schedule(Section):
    network: Cron = ""
    """Cron expression for network reports without a request, such as "0 4 * * *"; if it is not set,
    there are none."""
    application: Cron = ""
    """Cron expression for application snapshots without a request, such as "*/30 * * * *"; if it is
    not set, there are none."""


class Limits(Section):
    max_report_bytes: Annotated[int, Field(ge=10_000, le=100_000_000)] = 1_000_000
    """Largest report sent; a larger one is shrunk and says so. Lower it if the service asks."""
    outbox_max_bytes: Annotated[int, Field(ge=100_000)] = 67_108_864
    """Room for reports that wait for the service. Lower it on small disks."""
    outbox_max_age_days: Annotated[float, Field(gt=0, le=365)] = 14
    """Reports older than this are given up, and counted. Raise it where links fail for long."""


class Logging(Section):
    level: Literal["debug", "info", "warning", "error"] = "info"
    """How much is logged. Choose debug while looking for a cause."""
    format: Literal["auto", "text", "json"] = "auto"
    """Form of the log: text on a terminal, journald's under systemd, JSON otherwise (auto). Choose
    one where another reader expects it."""


class LocalConfig(Section):
    """What a collection by hand needs: everything, but the service may be left out."""

    service: Service | None = None
    """The service this machine reports to, and the way to it."""
    device: DeviceSection = DeviceSection()
    """This machine."""
    network: Network = Network()
    """What network reports look at."""
    printers: Annotated[tuple[Printer, ...], Field(max_length=64)] = ()
    """Printers to look for besides the system's own queues; one such table for each."""
    application: Application = Application()
    """What application snapshots look at."""
    limits: Limits = Limits()
    """What may be sent and kept."""
    logging: Logging = Logging()
    """The daemon's log, on stderr."""
    enrollment: Enrollment = Enrollment()
    """How this machine proves who it is."""
    heartbeat: Heartbeat = Heartbeat()
    """Signs of life."""
    commands: Commands = Commands()
    """How the service's requests arrive."""
    schedule: Schedule = Schedule()
    """Reports without a request."""


class Config(LocalConfig):
    """The whole configuration of a daemon."""

    service: Service
    """The service this machine reports to, and the way to it."""


def is_privileged() -> bool:
    """Tell whether this process is root (an administrator's service on Windows)."""
    return sys.platform == "win32" or os.geteuid() == 0


def default_config_path() -> Path:
    """Return where the configuration is looked for when nobody says."""
    if named := os.environ.get("VENUE_AGENT_CONFIG"):
        return Path(named)
    if sys.platform == "win32":
        return Path(os.environ.get("PROGRAMDATA", r"C:\ProgramData")) / "venue-agent/config.toml"
    if is_privileged():
        return SYSTEM_CONFIG
    base = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    own = Path(base) / "venue-agent/config.toml"
    # A person who looks after the machine's agent has no configuration of their own.
    return own if own.exists() or not SYSTEM_CONFIG.exists() else SYSTEM_CONFIG


def state_dir(device: DeviceSection) -> Path:
    """Return the state directory: configured, systemd's StateDirectory, or the platform's."""
    if device.state_dir:
        return Path(device.state_dir)
    if from_systemd := os.environ.get("STATE_DIRECTORY"):
        return Path(from_systemd.split(":")[0])
    if sys.platform == "win32":
        return Path(os.environ.get("PROGRAMDATA", r"C:\ProgramData")) / "venue-agent"
    if is_privileged():
        return Path(
            "/Library/Application Support/venue-agent"
            if sys.platform == "darwin"
            else "/var/lib/venue-agent"
        )
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local/state")
    return Path(base) / "venue-agent"
