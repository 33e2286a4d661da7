"""The configuration as frozen models: each key with its default, bounds and description.

The example file, the JSON Schema and the error messages are generated from these models.
"""

import ipaddress
import os
import re
import sys
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, Literal, get_args
from urllib.parse import SplitResult, urlsplit

from pydantic import AfterValidator, ConfigDict, Field

from agent.config.local_hours import parse_local_hours
from agent.wire import limits
from agent.wire.addresses import has_usable_port, is_loopback, is_one_word
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
MAC = re.compile(r"[0-9A-Fa-f]{2}([:-])([0-9A-Fa-f]{2}\1){4}[0-9A-Fa-f]{2}|[0-9A-Fa-f]{12}")


def _parse_url(text: str, example: str) -> SplitResult:
    try:
        return urlsplit(text)
    except ValueError:
        # The original message may contain a part of the password.
        raise ValueError(f"must be a URL such as {example}") from None


def _check_service_url(text: str) -> str:
    parts = _parse_url(text, "https://ops.example.com")
    if parts.scheme not in {"http", "https"} or not parts.hostname or not is_one_word(text):
        raise ValueError("must be a URL such as https://ops.example.com")
    if not has_usable_port(text):
        raise ValueError("must have a port from 1 to 65535, or none")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ValueError("must not contain a user, a password, a query or a fragment")
    if parts.scheme == "http" and not is_loopback(parts.hostname):
        raise ValueError("must be https: plain http is accepted for loopback only")
    return text.rstrip("/")


def _refuse_control_characters(text: str) -> str:
    """Refuse an id with control characters, because the service would reject every call with it."""
    if any(unicodedata.category(character) == "Cc" for character in text):
        raise ValueError("must not contain control characters")
    return text


def _check_kiosk_url(text: str) -> str:
    if not text:
        return text
    parts = _parse_url(text, "http://127.0.0.1:9222")
    if parts.scheme != "http" or not parts.hostname or not is_loopback(parts.hostname):
        raise ValueError("must be an http URL on loopback, such as http://127.0.0.1:9222")
    return text.rstrip("/")


def _check_private_subnet(text: str) -> str:
    try:
        network = ipaddress.ip_network(text)
    except ValueError as error:
        raise ValueError(f"must be a subnet such as 192.168.1.0/24: {error}") from None
    if not isinstance(network, ipaddress.IPv4Network):
        raise ValueError("must be an IPv4 subnet: IPv6 ranges are too large to scan")
    if not any(network.subnet_of(private) for private in PRIVATE_NETWORKS):
        raise ValueError("is not a private range: only private networks are ever scanned")
    return text


def _check_subnet_or_address(text: str) -> str:
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise ValueError("must be an address or a subnet") from None
    return text


def _check_ipv4_address(text: str) -> str:
    try:
        return str(ipaddress.IPv4Address(text))
    except ValueError:
        raise ValueError("must be an IPv4 address such as 192.168.1.40") from None


def _check_mac_address(text: str) -> str:
    digits = text.replace(":", "").replace("-", "").lower()
    is_repeated_digit = len({*digits}) == 1  # no device has such an address: ff:ff:ff:ff:ff:ff
    if not MAC.fullmatch(text) or is_repeated_digit:
        raise ValueError("must be a MAC address such as 00:11:22:33:44:55")
    return ":".join(digits[start : start + 2] for start in range(0, 12, 2))


def _check_cron(text: str) -> str:
    if not text:
        return text
    from apscheduler.triggers.cron import CronTrigger  # slow to import

    try:
        CronTrigger.from_crontab(text)
    except ValueError as error:
        raise ValueError(f"must be a cron expression such as '0 4 * * *': {error}") from None
    return text


def _check_local_hours(text: str) -> str:
    parse_local_hours(text)
    return text


Cron = Annotated[str, AfterValidator(_check_cron)]
QuietHours = Annotated[str, AfterValidator(_check_local_hours)]
Subnet = Annotated[str, AfterValidator(_check_private_subnet)]
SubnetOrAddress = Annotated[str, AfterValidator(_check_subnet_or_address)]
Ipv4Address = Annotated[str, AfterValidator(_check_ipv4_address)]
MacAddress = Annotated[str, AfterValidator(_check_mac_address)]


SYSTEM_PROXY: Final = "system"
"""The value of `service.proxy` that selects the proxy in the operating system's settings."""


class Section(Model):
    """A table of the configuration."""

    model_config = ConfigDict(extra="forbid")


class Service(Section):
    base_url: Annotated[str, AfterValidator(_check_service_url)] = Field(
        description="Address of the service: https, or http for loopback only. Required."
    )
    location_id: Annotated[LocationId, AfterValidator(_refuse_control_characters)] = Field(
        description="Id of the venue where this machine is, as the service lists it. Required."
    )
    api_key_file: str = Field(
        default="",
        description=(
            "File with the API key, which needs a write grant. Default: the systemd credential"
            ' "api-key", or VENUE_AGENT_API_KEY. Changes take effect immediately.'
        ),
    )
    ca_file: str = Field(
        default="",
        description=(
            "PEM file of additional trusted certificates, such as the certificate of a TLS proxy."
        ),
    )
    proxy: str = Field(
        default="",
        description=(
            "Proxy such as http://user:password@proxy:3128. Default: HTTPS_PROXY and NO_PROXY."
            ' "system": the proxy in the settings of Windows or macOS; on Linux, the default'
            " applies. Not used for a service on this machine."
        ),
    )
    request_timeout_seconds: float = Field(
        default=20, ge=1, le=300, description="Timeout of one call. Raise it on satellite links."
    )


class DeviceSection(Section):
    state_dir: str = Field(
        default="",
        description=(
            "Directory of identity, journal and outbox. Default: /var/lib/venue-agent or the"
            " platform's equivalent. On Linux and macOS, users other than root have a directory of"
            " their own, unless they use the configuration of the machine's agent. A change needs a"
            " restart."
        ),
    )
    legacy_install_id: Annotated[
        str, Utf16Length(limits.LEGACY_INSTALL_ID_MAX), AfterValidator(_refuse_control_characters)
    ] = Field(
        default="",
        description=(
            "The machine's name at the service and in reports. Default: the host name at the first"
            " start. After a change, run `enroll --force`."
        ),
    )


class Enrollment(Section):
    signature_encoding: Literal["hex", "base64"] = Field(
        default="hex",
        description="Encoding of the signature. Change it only if the service needs it.",
    )
    nonce_encoding: Literal["utf8", "base64", "hex"] = Field(
        default="utf8",
        description="Encoding of the challenge's nonce. Change it only if the service needs it.",
    )
    on_revoked: Literal["stop", "reenroll"] = Field(
        default="stop",
        description="After a revocation, keep running without collecting (stop), or enroll again.",
    )


class Heartbeat(Section):
    interval_seconds: float = Field(
        default=60,
        ge=0.1,
        le=3600,
        description="Interval of heartbeats, varied randomly by 10 %. Raise it on metered links.",
    )


class Commands(Section):
    delivery: Literal["auto", "stream", "poll"] = Field(
        default="auto",
        description=(
            "Receive commands by a stream if the service offers one, else by polling (auto)."
            " Choose poll if something in the network closes long connections."
        ),
    )
    poll_interval_seconds: float = Field(
        default=15, ge=0.1, le=3600, description="Interval of polls. Raise it on metered links."
    )


class Network(Section):
    enabled: bool = Field(default=True, description="Whether network reports are allowed.")
    subnets: Annotated[tuple[Subnet, ...], MaxItems(256)] = Field(
        default=(),
        description=(
            'Private IPv4 subnets to scan, such as "192.168.1.0/24". Default: the networks of this'
            " machine."
        ),
    )
    exclude: Annotated[tuple[SubnetOrAddress, ...], MaxItems(256)] = Field(
        default=(),
        description='Addresses and subnets that are never contacted, such as "192.168.1.20".',
    )
    ports: Annotated[tuple[Port, ...], MaxItems(256)] = Field(
        default=(22, 53, 80, 139, 443, 445, 515, 554, 631, 8008, 8043, 8080, 8443, 9100, 9101),
        description=(
            "TCP ports that are tried on each host. Data is sent to web and IPP ports only. A"
            " shorter list makes the scan faster."
        ),
    )
    max_hosts: int = Field(
        default=1024,
        ge=1,
        le=65536,
        description="Maximum number of addresses that are contacted for a report.",
    )
    max_services: int = Field(
        default=2048,
        ge=1,
        le=65536,
        description="Maximum number of announced services in a report.",
    )
    max_duration_seconds: float = Field(
        default=30,
        ge=1,
        le=600,
        description="Maximum duration of a report. Raise it for large networks.",
    )
    mdns_service_types: Annotated[tuple[PayloadText, ...], MaxItems(64)] = Field(
        default=(),
        description='Additional DNS-SD service types to browse, such as "_till._tcp".',
    )
    device_only: bool = Field(
        default=False,
        description=(
            "Examine this machine only and send no packets. For networks where scans are forbidden."
        ),
    )
    enrich: bool = Field(
        default=True,
        description=(
            "Query printers (IPP, port 631) and web pages (HTTP GET). If false, connections are"
            " only opened and closed."
        ),
    )
    snmp_community: str = Field(
        default="",
        max_length=64,
        pattern=r"^[\x21-\x7e]*$",
        description=(
            "SNMP community (v2c) for queries of this machine's printers: paper, cover, serial"
            ' number. Default: no queries. Most printers accept "public".'
        ),
    )


class Printer(Section):
    id: PayloadId = Field(description="Short name used in reports.")
    name: PayloadText = Field(description="Display name of the printer.")
    transport: Literal["network", "serial", "ble", "usb"] = Field(
        default="network", description="How the printer is connected."
    )
    address: PayloadText | None = Field(
        default=None, description="host:port, a host, a MAC address or a device path."
    )


class WatchedDevice(Section):
    name: PayloadText = Field(description="Name of the device in reports.")
    kind: Literal["payment-terminal", "kitchen-display", "scale", "cash-drawer", "other"] = Field(
        default="other",
        description=(
            "What the device is. A payment terminal gets no connection and no data: it is only"
            " looked up by ARP."
        ),
    )
    address: Ipv4Address | None = Field(
        default=None, description="The IPv4 address that the device should have."
    )
    mac: MacAddress | None = Field(
        default=None,
        description=(
            "MAC by which the device is recognised at another address. Default: the MAC that"
            " answers first at `address`."
        ),
    )


class Application(Section):
    enabled: bool = Field(default=True, description="Whether application snapshots are allowed.")
    watch_processes: Annotated[tuple[PayloadText, ...], MaxItems(32)] = Field(
        default=(),
        description='Programs whose processes are included in reports, such as "pos-till".',
    )
    kiosk_debug_url: Annotated[str, AfterValidator(_check_kiosk_url)] = Field(
        default="",
        description=(
            "DevTools address of the kiosk browser on loopback, such as http://127.0.0.1:9222."
            " Default: the browser is not queried."
        ),
    )
    max_duration_seconds: float = Field(
        default=10,
        ge=2,
        le=120,
        description="Maximum duration of a snapshot. Raise it on slow machines.",
    )


class Schedule(Section):
    network: Cron = Field(
        default="", description='Cron expression of scheduled network reports, such as "0 4 * * *".'
    )
    application: Cron = Field(
        default="",
        description='Cron expression of scheduled application snapshots, such as "*/30 * * * *".',
    )


class Limits(Section):
    max_report_bytes: int = Field(
        default=1_000_000,
        ge=10_000,
        le=100_000_000,
        description="Maximum size of a report. A larger report is shortened, and states this.",
    )
    outbox_max_bytes: int = Field(
        default=67_108_864,
        ge=100_000,
        description="Maximum size of the reports that wait to be sent. Lower it on small disks.",
    )
    outbox_max_age_days: float = Field(
        default=14,
        gt=0,
        le=365,
        description="Age after which waiting reports are dropped, and counted in `status --json`.",
    )
    min_collection_interval_seconds: float = Field(
        default=10,
        ge=0,
        le=3600,
        description=(
            "Minimum interval between two collections of a kind. One collection answers all"
            " requests that arrived in the interval."
        ),
    )


class Recorder(Section):
    enabled: bool = Field(
        default=True, description="Record interruptions of the connection and their causes."
    )
    keep_days: int = Field(
        default=30, ge=1, le=90, description="Time for which the record is kept."
    )
    quiet_hours: QuietHours = Field(
        default="",
        description='Local hours without a record, such as "23:00-06:00", if the venue switches its'
        " router off at night.",
    )


class Logging(Section):
    level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Minimum severity of log messages."
    )
    format: Literal["auto", "text", "json"] = Field(
        default="auto",
        description="Log format. auto: text on a terminal, journald under systemd, else JSON.",
    )


class LocalConfig(Section):
    """The configuration of a manual collection, where the service is optional."""

    service: Service | None = Field(default=None, description="The service that gets the reports.")
    device: DeviceSection = Field(default_factory=DeviceSection, description="This machine.")
    network: Network = Field(default_factory=Network, description="Network reports.")
    printers: Annotated[tuple[Printer, ...], MaxItems(64)] = Field(
        default=(), description="Printers in addition to the system's queues; one table for each."
    )
    watched_devices: Annotated[tuple[WatchedDevice, ...], MaxItems(32)] = Field(
        default=(),
        description="Devices that reports look for, such as payment terminals; one table for each.",
    )
    application: Application = Field(
        default_factory=Application, description="Application snapshots."
    )
    limits: Limits = Field(default_factory=Limits, description="Limits of reports.")
    recorder: Recorder = Field(
        default_factory=Recorder, description="The record of interruptions of the connection."
    )
    logging: Logging = Field(default_factory=Logging, description="The daemon's log on stderr.")
    enrollment: Enrollment = Field(
        default_factory=Enrollment, description="Enrollment at the service."
    )
    heartbeat: Heartbeat = Field(default_factory=Heartbeat, description="Heartbeats.")
    commands: Commands = Field(
        default_factory=Commands, description="Commands of the service: requests for reports."
    )
    schedule: Schedule = Field(
        default_factory=Schedule, description="Reports at fixed times, without a request."
    )

    @property
    def capabilities(self) -> tuple[str, ...]:
        """The capabilities that this configuration enables, by the service's names for them."""
        is_enabled_by_name = {
            "network": self.network.enabled,
            "application": self.application.enabled,
            "commands.stream": self.commands.delivery != "poll",
            "commands.poll": self.commands.delivery != "stream",
        }
        return tuple(name for name, is_enabled in is_enabled_by_name.items() if is_enabled)


class Config(LocalConfig):
    """The complete configuration of a daemon."""

    service: Service = Field(description="The service that gets the reports.")


SECTIONS: Final[Mapping[str, type[Section]]] = {
    name: kind
    for name, field in Config.model_fields.items()
    for kind in (field.annotation, *get_args(field.annotation))
    if isinstance(kind, type) and issubclass(kind, Section)
}
"""The model of each table of the configuration, by the table's name. An array of tables has one
model for all of them."""


def is_privileged() -> bool:
    """Return whether this process is root. On Windows it always counts as privileged."""
    return sys.platform == "win32" or os.geteuid() == 0


def default_config_path() -> Path:
    """Return the path of the configuration if no option names one."""
    paths = config_paths()
    return next((path for path in paths if may_exist(path)), paths[0])


def config_paths() -> tuple[Path, ...]:
    """Return the possible paths of the configuration, in the order of precedence.

    Without a configuration of their own, users get the configuration of the machine's agent.
    """
    if variable := os.environ.get("VENUE_AGENT_CONFIG"):
        return (Path(variable),)
    if is_privileged():
        return (system_config(),)
    base = os.environ.get("XDG_CONFIG_HOME") or str(_home() / ".config")
    return (Path(base) / "venue-agent/config.toml", SYSTEM_CONFIG)


def system_config() -> Path:
    """Return the path of the configuration of the machine's agent."""
    if sys.platform == "win32":
        return Path(os.environ.get("PROGRAMDATA", r"C:\ProgramData")) / "venue-agent/config.toml"
    return SYSTEM_CONFIG


def is_system_config(path: Path | None) -> bool:
    """Return whether ``path`` is the configuration of the machine's agent.

    If ``path`` is None, the default path for this user is checked.
    """
    return (path or default_config_path()).absolute() == system_config()


def may_exist(path: Path) -> bool:
    """Return whether a file exists. Return True if this user cannot read its directory."""
    try:
        return path.exists()
    except PermissionError:
        return True


def state_dir(device: DeviceSection, source: Path | None = None) -> Path:
    """Return the configured state directory, systemd's StateDirectory, or the platform's default.

    ``source`` is the path of the configuration. With the configuration of the machine's agent, the
    default is the state directory of the machine's agent, for every user.
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
    """Return the user's home directory, or /nonexistent if the user has no account."""
    try:
        return Path.home()
    except RuntimeError:
        return Path("/nonexistent")
