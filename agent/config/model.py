"""The configuration as frozen models: every key once, with its default, its bounds and its text.

The example file, the JSON Schema and the messages about mistakes are made from these.
"""

import ipaddress
import os
import sys
import unicodedata
from pathlib import Path
from typing import Annotated, Literal, get_args, get_origin
from urllib.parse import SplitResult, urlsplit

from pydantic import AfterValidator, ConfigDict, Field

from agent.wire import limits
from agent.wire.addresses import is_loopback
from agent.wire.base import MaxItems, Model, Port
from agent.wire.text import LocationId, PayloadId, PayloadText, Utf16Length

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


def _url(text: str, example: str) -> SplitResult:
    try:
        return urlsplit(text)
    except ValueError:
        # Its message may quote a part of the password.
        raise ValueError(f"must be a URL such as {example}") from None


def _service_url(text: str) -> str:
    parts = _url(text, "https://ops.example.com")
    if parts.scheme not in {"http", "https"} or not parts.hostname or not _is_one_word(text):
        raise ValueError("must be a URL such as https://ops.example.com")
    if not _has_usable_port(text):
        raise ValueError("must have a port from 1 to 65535, or none")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ValueError("must not hold a user, a password, a query or a fragment")
    if parts.scheme == "http" and not is_loopback(parts.hostname):
        raise ValueError("must be https: plain http is accepted for loopback only")
    return text.rstrip("/")


def _is_one_word(text: str) -> bool:
    return text.isprintable() and " " not in text


def _has_usable_port(url: str) -> bool:
    try:
        return urlsplit(url).port != 0
    except ValueError:
        return False


def _no_control_characters(text: str) -> str:
    """An id goes into every call: the service would refuse each, for ever."""
    if any(unicodedata.category(character) == "Cc" for character in text):
        raise ValueError("must not hold control characters")
    return text


def _kiosk_url(text: str) -> str:
    if not text:
        return text
    parts = _url(text, "http://127.0.0.1:9222")
    if parts.scheme != "http" or not parts.hostname or not is_loopback(parts.hostname):
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
    from apscheduler.triggers.cron import CronTrigger  # only where it is used

    try:
        CronTrigger.from_crontab(text)
    except ValueError as error:
        raise ValueError(f"must be a cron expression such as '0 4 * * *': {error}") from None
    return text


Cron = Annotated[str, AfterValidator(_cron)]
Subnet = Annotated[str, AfterValidator(_private_subnet)]
SubnetOrAddress = Annotated[str, AfterValidator(_subnet_or_address)]


class Section(Model):
    """A table of the configuration."""

    model_config = ConfigDict(extra="forbid")


class Service(Section):
    base_url: Annotated[str, AfterValidator(_service_url)] = Field(
        description="Address of the service, https (http only for loopback). Required.",
    )
    location_id: Annotated[LocationId, AfterValidator(_no_control_characters)] = Field(
        description="The venue this machine stands in, as the service calls it. Required.",
    )
    api_key_file: str = Field(
        default="",
        description=(
            "File that holds the API key (with a write grant) and nothing else; if it is not "
            'set, the key is the systemd credential "api-key" or VENUE_AGENT_API_KEY. Read '
            "again when it changes."
        ),
    )
    ca_file: str = Field(
        default="",
        description=(
            "PEM file of certificates trusted besides the operating system's. Set it where "
            "TLS is inspected or the service has an authority of its own."
        ),
    )
    proxy: str = Field(
        default="",
        description=(
            "Proxy such as http://user:password@proxy:3128. If it is not set, HTTPS_PROXY "
            "and NO_PROXY of the environment hold. A service on this machine (loopback) is "
            "asked straight."
        ),
    )
    request_timeout_seconds: float = Field(
        default=20,
        ge=1,
        le=300,
        description="Longest wait for one answer. Raise it on satellite links.",
    )


class DeviceSection(Section):
    state_dir: str = Field(
        default="",
        description=(
            "Where identity, journal and outbox live; if it is not set, /var/lib/venue-agent "
            "or the platform's equivalent, and a directory of the user's own for others than "
            "root. A change needs a restart."
        ),
    )
    legacy_install_id: Annotated[
        str, Utf16Length(limits.LEGACY_INSTALL_ID_MAX), AfterValidator(_no_control_characters)
    ] = Field(
        default="",
        description=(
            "The machine's name at the service and in reports; if it is not set, the host's name "
            "as it is at the first start, which is kept from then on. The service learns of "
            "a change by `enroll --force`."
        ),
    )


class Enrollment(Section):
    signature_encoding: Literal["hex", "base64"] = Field(
        default="hex",
        description=(
            "How the 64-byte signature is written. Change it only if the service asks for it."
        ),
    )
    nonce_encoding: Literal["utf8", "base64", "hex"] = Field(
        default="utf8",
        description=(
            "How the challenge's nonce becomes the bytes that are signed. Change it only if "
            "the service asks for it."
        ),
    )
    on_revoked: Literal["stop", "reenroll"] = Field(
        default="stop",
        description=(
            "After a revocation stay up and collect nothing (stop), or enroll anew by itself "
            "(reenroll). Leave it at stop unless machines are revoked only to be moved."
        ),
    )


class Heartbeat(Section):
    interval_seconds: float = Field(
        default=60,
        ge=0.1,
        le=3600,
        description=(
            "Time between two heartbeats; each is moved by up to a tenth. Raise it on "
            "metered links."
        ),
    )


class Commands(Section):
    delivery: Literal["auto", "stream", "poll"] = Field(
        default="auto",
        description=(
            "How commands come: by a stream where the service offers one, else by asking "
            "(auto). Choose poll where something on the way cuts long connections."
        ),
    )
    poll_interval_seconds: float = Field(
        default=15,
        ge=0.1,
        le=3600,
        description=(
            "Time between two questions when polling. Lower it for quicker answers, raise it "
            "on metered links."
        ),
    )


class Network(Section):
    enabled: bool = Field(
        default=True,
        description=(
            "Answer requests for network reports. Switch it off where networks may not be "
            "looked at."
        ),
    )
    subnets: Annotated[tuple[Subnet, ...], MaxItems(256)] = Field(
        default=(),
        description=(
            'Private IPv4 subnets to scan, such as "192.168.1.0/24"; if none is named, this '
            "machine's own networks. Name some to leave others alone."
        ),
    )
    exclude: Annotated[tuple[SubnetOrAddress, ...], MaxItems(256)] = Field(
        default=(),
        description=(
            'Addresses and subnets that are never contacted, such as "192.168.1.20". Name '
            "devices here that must be left alone."
        ),
    )
    ports: Annotated[tuple[Port, ...], MaxItems(256)] = Field(
        default=(22, 53, 80, 139, 443, 445, 515, 554, 631, 8008, 8043, 8080, 8443, 9100, 9101),
        description=(
            "TCP ports tried on each host: opened and closed, and only those of the web and "
            "of IPP are ever written to. Shorten the list for a quicker, quieter scan."
        ),
    )
    max_hosts: int = Field(
        default=1024,
        ge=1,
        le=65536,
        description=(
            "Most addresses one report contacts. Raise it where the venue's network is larger."
        ),
    )
    max_services: int = Field(
        default=2048,
        ge=1,
        le=65536,
        description=(
            "Most announced services one report keeps. There is hardly a reason to change it."
        ),
    )
    max_duration_seconds: float = Field(
        default=30,
        ge=1,
        le=600,
        description="Longest time for one report. Raise it for large networks.",
    )
    mdns_service_types: Annotated[tuple[PayloadText, ...], MaxItems(64)] = Field(
        default=(),
        description=(
            'DNS-SD service types browsed besides the built-in ones, such as "_till._tcp". '
            "Add those of the venue's own devices."
        ),
    )
    device_only: bool = Field(
        default=False,
        description=(
            "Look at this machine only and send nothing to the network. For networks that "
            "forbid scans."
        ),
    )
    enrich: bool = Field(
        default=True,
        description=(
            "Ask printers (IPP, port 631) and web pages (HTTP GET) what they are. Switch it "
            "off to open and close connections only."
        ),
    )
    snmp_community: str = Field(
        default="",
        max_length=64,
        pattern=r"^[\x21-\x7e]*$",
        description=(
            "SNMP community by which this machine's own printers are asked for paper, cover and "
            "serial number (v2c, one question each, UDP port 161). Nobody is asked without one; "
            'most printers know "public".'
        ),
    )


class Printer(Section):
    id: PayloadId = Field(
        description="Short name used in reports.",
    )
    name: PayloadText = Field(
        description="Name people know the printer by.",
    )
    transport: Literal["network", "serial", "ble", "usb"] = Field(
        default="network",
        description="How the printer is attached.",
    )
    address: PayloadText | None = Field(
        default=None,
        description="host:port, a host, a MAC address or a device path.",
    )


class Application(Section):
    enabled: bool = Field(
        default=True,
        description=(
            "Answer requests for application snapshots. Switch it off where they are not wanted."
        ),
    )
    watch_processes: Annotated[tuple[PayloadText, ...], MaxItems(32)] = Field(
        default=(),
        description=(
            'Names of the venue\'s own programs, such as "pos-till": reports say whether they run.'
        ),
    )
    kiosk_debug_url: Annotated[str, AfterValidator(_kiosk_url)] = Field(
        default="",
        description=(
            "The kiosk browser's DevTools address on loopback, such as "
            "http://127.0.0.1:9222; if it is not set, the browser is not asked."
        ),
    )
    max_duration_seconds: float = Field(
        default=10,
        ge=2,
        le=120,
        description="Longest time for one snapshot. Raise it on slow machines.",
    )


class Schedule(Section):
    network: Cron = Field(
        default="",
        description=(
            'Cron expression for network reports without a request, such as "0 4 * * *"; if '
            "it is not set, there are none."
        ),
    )
    application: Cron = Field(
        default="",
        description=(
            'Cron expression for application snapshots without a request, such as "*/30 * * '
            '* *"; if it is not set, there are none.'
        ),
    )


class Limits(Section):
    max_report_bytes: int = Field(
        default=1_000_000,
        ge=10_000,
        le=100_000_000,
        description=(
            "Largest report sent; a larger one is shrunk and says so. Lower it if the service asks."
        ),
    )
    outbox_max_bytes: int = Field(
        default=67_108_864,
        ge=100_000,
        description="Room for reports that wait for the service. Lower it on small disks.",
    )
    outbox_max_age_days: float = Field(
        default=14,
        gt=0,
        le=365,
        description=(
            "Reports older than this are given up, and counted. Raise it where links fail for long."
        ),
    )
    min_collection_interval_seconds: float = Field(
        default=10,
        ge=0,
        le=3600,
        description=(
            "Least time between two collections of a kind; the requests that come meanwhile are "
            "answered from the next one together. Raise it where requests come too often."
        ),
    )


class Logging(Section):
    level: Literal["debug", "info", "warning", "error"] = Field(
        default="info",
        description="How much is logged. Choose debug while looking for a cause.",
    )
    format: Literal["auto", "text", "json"] = Field(
        default="auto",
        description=(
            "Form of the log: text on a terminal, journald's under systemd, JSON otherwise "
            "(auto). Choose one where another reader expects it."
        ),
    )


class LocalConfig(Section):
    """What a collection by hand needs: everything, but the service may be left out."""

    service: Service | None = Field(
        default=None, description="The service this machine reports to, and the way to it."
    )
    device: DeviceSection = Field(default_factory=DeviceSection, description="This machine.")
    network: Network = Field(default_factory=Network, description="What network reports look at.")
    printers: Annotated[tuple[Printer, ...], MaxItems(64)] = Field(
        default=(),
        description=(
            "Printers to look for besides the system's own queues; one such table for each."
        ),
    )
    application: Application = Field(
        default_factory=Application, description="What application snapshots look at."
    )
    limits: Limits = Field(default_factory=Limits, description="What may be sent and kept.")
    logging: Logging = Field(default_factory=Logging, description="The daemon's log, on stderr.")
    enrollment: Enrollment = Field(
        default_factory=Enrollment, description="How this machine proves who it is."
    )
    heartbeat: Heartbeat = Field(default_factory=Heartbeat, description="Signs of life.")
    commands: Commands = Field(
        default_factory=Commands, description="How the service's requests arrive."
    )
    schedule: Schedule = Field(default_factory=Schedule, description="Reports without a request.")


class Config(LocalConfig):
    """The whole configuration of a daemon."""

    service: Service = Field(description="The service this machine reports to, and the way to it.")


def sections_of(model: type[Section]) -> dict[str, type[Section]]:
    """Return the tables of a model by name; of an array of tables, the model of one."""
    found: dict[str, type[Section]] = {}
    for name, field in model.model_fields.items():
        candidates = (field.annotation, *get_args(field.annotation))
        for kind in candidates:
            if isinstance(kind, type) and issubclass(kind, Section):
                found[name] = kind
    return found


def is_text(annotation: object) -> bool:
    """Tell whether a value of this type is written as a text."""
    return annotation is str or get_origin(annotation) is Literal


def is_privileged() -> bool:
    """Tell whether this process is root (an administrator's service on Windows)."""
    return sys.platform == "win32" or os.geteuid() == 0


def default_config_path() -> Path:
    """Return where the configuration is looked for when nobody says."""
    places = config_places()
    return next((place for place in places if is_there(place)), places[0])


def config_places() -> tuple[Path, ...]:
    """Return the places of a configuration, in the order in which they are looked at.

    A person who looks after the machine's agent has no configuration of their own.
    """
    if named := os.environ.get("VENUE_AGENT_CONFIG"):
        return (Path(named),)
    if is_privileged():
        return (system_config(),)
    base = os.environ.get("XDG_CONFIG_HOME") or str(_home() / ".config")
    return (Path(base) / "venue-agent/config.toml", SYSTEM_CONFIG)


def system_config() -> Path:
    """Return where the configuration of the machine's own agent lies."""
    if sys.platform == "win32":
        return Path(os.environ.get("PROGRAMDATA", r"C:\ProgramData")) / "venue-agent/config.toml"
    return SYSTEM_CONFIG


def is_there(path: Path) -> bool:
    """Tell whether there is such a file, also where its directory is closed to this user."""
    try:
        return path.exists()
    except PermissionError:
        return True


def state_dir(device: DeviceSection, source: Path | None = None) -> Path:
    """Return the state directory: configured, systemd's StateDirectory, or the platform's.

    ``source`` is the configuration's file. The machine's own one means the machine's own state,
    whoever asks.
    """
    if device.state_dir:
        return Path(device.state_dir)
    if from_systemd := os.environ.get("STATE_DIRECTORY"):
        return Path(from_systemd.split(":")[0])
    if sys.platform == "win32":
        return Path(os.environ.get("PROGRAMDATA", r"C:\ProgramData")) / "venue-agent"
    if is_privileged() or (source is not None and source.absolute() == SYSTEM_CONFIG):
        return Path(
            "/Library/Application Support/venue-agent"
            if sys.platform == "darwin"
            else "/var/lib/venue-agent"
        )
    base = os.environ.get("XDG_STATE_HOME") or str(_home() / ".local/state")
    return Path(base) / "venue-agent"


def _home() -> Path:
    """Return the user's home; a user whom the system does not know has none."""
    try:
        return Path.home()
    except RuntimeError:
        return Path("/nonexistent")
