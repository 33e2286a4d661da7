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
    """File that holds the API key (with a write grant) and nothing else. Without it the key
    comes from VENUE_AGENT_API_KEY or the systemd credential "api-key"."""
    ca_file: str = ""
    """PEM file of extra trust anchors. Default: the operating system's trust store."""
    proxy: str = ""
    """Proxy URL. Default: HTTPS_PROXY and NO_PROXY of the environment."""
    request_timeout_seconds: Annotated[float, Field(ge=1, le=300)] = 20
    """Longest wait for one answer. Raise it on satellite links."""


class DeviceSection(Section):
    state_dir: str = ""
    """Where identity, journal and outbox live. Default: /var/lib/venue-agent or the platform's
    equivalent; a user's own directory when not run as a service."""
    legacy_install_id: LegacyInstallId | Literal[""] = ""
    """Name of this installation in reports. Default: made at first start and kept."""


class Enrollment(Section):
    signature_encoding: Literal["hex", "base64"] = "hex"
    """How the 64-byte signature is written. Change it only if the service asks for it."""
    nonce_encoding: Literal["utf8", "base64", "hex"] = "utf8"
    """How the challenge's nonce becomes the bytes that are signed."""
    on_revoked: Literal["stop", "reenroll"] = "stop"
    """After a revocation: stay up and collect nothing, or enroll as a new binding."""


class Heartbeat(Section):
    interval_seconds: Annotated[float, Field(ge=0.1, le=3600)] = 60
    """Time between two heartbeats; each is moved by up to a tenth."""


class Commands(Section):
    delivery: Literal["auto", "stream", "poll"] = "auto"
    """auto: a stream where the service offers one, else polling."""
    poll_interval_seconds: Annotated[float, Field(ge=0.1, le=3600)] = 15
    """Time between two questions when polling."""


class Network(Section):
    enabled: bool = True
    """Answer requests for network reports."""
    subnets: tuple[Annotated[str, AfterValidator(_private_subnet)], ...] = ()
    """IPv4 subnets to scan. Default: this machine's own private networks."""
    exclude: tuple[Annotated[str, AfterValidator(_subnet_or_address)], ...] = ()
    """Addresses and subnets that are never contacted."""
    ports: Annotated[tuple[Port, ...], Field(max_length=256)] = (
        22, 53, 80, 139, 443, 445, 515, 554, 631, 8008, 8043, 8080, 8443, 9100, 9101,
    )  # fmt: skip
    """TCP ports tried on each host; they are opened and closed, never written to."""
    max_hosts: Annotated[int, Field(ge=1, le=65536)] = 1024
    """Most addresses one report contacts."""
    max_services: Annotated[int, Field(ge=1, le=65536)] = 2048
    """Most announced services one report keeps."""
    max_duration_seconds: Annotated[float, Field(ge=1, le=600)] = 30
    """Longest time for one report."""
    mdns_service_types: Annotated[tuple[PayloadText, ...], Field(max_length=64)] = ()
    """Service types browsed besides the built-in ones, such as "_till._tcp"."""
    device_only: bool = False
    """Look at this machine only: nothing is sent to the network."""
    enrich: bool = True
    """Ask printers (IPP, port 631) and web pages (HTTP GET) what they are."""


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
    """Answer requests for application snapshots."""
    watch_processes: Annotated[tuple[PayloadText, ...], Field(max_length=32)] = ()
    """Names of the venue's own programs, such as "pos-till"."""
    kiosk_debug_url: Annotated[str, AfterValidator(_kiosk_url)] = ""
    """The kiosk browser's DevTools address, loopback only, such as http://127.0.0.1:9222."""
    max_duration_seconds: Annotated[float, Field(ge=2, le=120)] = 10
    """Longest time for one snapshot."""


class Schedule(Section):
    network: Cron = ""
    """Cron expression for network reports without a request. Default: none."""
    application: Cron = ""
    """Cron expression for application snapshots without a request. Default: none."""


class Limits(Section):
    max_report_bytes: Annotated[int, Field(ge=10_000, le=100_000_000)] = 1_000_000
    """Largest report sent, in bytes; a larger one is shrunk and says so."""
    outbox_max_bytes: Annotated[int, Field(ge=100_000)] = 67_108_864
    """Room for reports that wait for the service, in bytes."""
    outbox_max_age_days: Annotated[float, Field(gt=0, le=365)] = 14
    """Reports older than this are given up, and counted."""


class Logging(Section):
    level: Literal["debug", "info", "warning", "error"] = "info"
    """How much is logged."""
    format: Literal["auto", "text", "json"] = "auto"
    """auto: text on a terminal, journald priorities under systemd, JSON otherwise."""


class LocalConfig(Section):
    """What a collection by hand needs: everything, but the service may be left out."""

    service: Service | None = None
    device: DeviceSection = DeviceSection()
    network: Network = Network()
    printers: Annotated[tuple[Printer, ...], Field(max_length=64)] = ()
    application: Application = Application()
    limits: Limits = Limits()
    logging: Logging = Logging()
    enrollment: Enrollment = Enrollment()
    heartbeat: Heartbeat = Heartbeat()
    commands: Commands = Commands()
    schedule: Schedule = Schedule()


class Config(LocalConfig):
    """The whole configuration of a daemon."""

    service: Service


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
        return Path("/etc/venue-agent/config.toml")
    base = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(base) / "venue-agent/config.toml"


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
