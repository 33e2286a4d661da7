"""The configuration as frozen models. Every key, default and bound stands here once.
What each key means is said in `config_texts`.
"""

import ipaddress
import os
import sys
import unicodedata
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from msgspec import Meta

from agent.wire import limits
from agent.wire.model import Check, Record
from agent.wire.text import LocationId, PayloadId, PayloadText, at_most

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


def is_loopback_url(url: str) -> bool:
    return is_loopback_host(urlsplit(url).hostname or "")


def _service_url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in {"http", "https"} or not parts.hostname or not _is_one_word(text):
        raise ValueError("must be a URL such as https://ops.example.com")
    if not _has_usable_port(text):
        raise ValueError("must have a port from 1 to 65535, or none")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ValueError("must not hold a user, a password, a query or a fragment")
    if parts.scheme == "http" and not is_loopback_host(parts.hostname):
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


Cron = Annotated[str, Check(_cron)]
Port = Annotated[int, Meta(ge=1, le=65535)]


class Section(Record, forbid_unknown_fields=True):
    """A table of the configuration."""


class Service(Section):
    base_url: Annotated[str, Check(_service_url)]
    location_id: Annotated[LocationId, Check(_no_control_characters)]
    api_key_file: str = ""
    ca_file: str = ""
    proxy: str = ""
    request_timeout_seconds: Annotated[float, Meta(ge=1, le=300)] = 20


class DeviceSection(Section):
    state_dir: str = ""
    legacy_install_id: Annotated[
        str,
        Meta(max_length=limits.LEGACY_INSTALL_ID_MAX),
        at_most(limits.LEGACY_INSTALL_ID_MAX),
        Check(_no_control_characters),
    ] = ""


class Enrollment(Section):
    signature_encoding: Literal["hex", "base64"] = "hex"
    nonce_encoding: Literal["utf8", "base64", "hex"] = "utf8"
    on_revoked: Literal["stop", "reenroll"] = "stop"


class Heartbeat(Section):
    interval_seconds: Annotated[float, Meta(ge=0.1, le=3600)] = 60


class Commands(Section):
    delivery: Literal["auto", "stream", "poll"] = "auto"
    poll_interval_seconds: Annotated[float, Meta(ge=0.1, le=3600)] = 15


class Network(Section):
    enabled: bool = True
    subnets: tuple[Annotated[str, Check(_private_subnet)], ...] = ()
    exclude: tuple[Annotated[str, Check(_subnet_or_address)], ...] = ()
    ports: Annotated[tuple[Port, ...], Meta(max_length=256)] = (
        22, 53, 80, 139, 443, 445, 515, 554, 631, 8008, 8043, 8080, 8443, 9100, 9101,
    )  # fmt: skip
    max_hosts: Annotated[int, Meta(ge=1, le=65536)] = 1024
    max_services: Annotated[int, Meta(ge=1, le=65536)] = 2048
    max_duration_seconds: Annotated[float, Meta(ge=1, le=600)] = 30
    mdns_service_types: Annotated[tuple[PayloadText, ...], Meta(max_length=64)] = ()
    device_only: bool = False
    enrich: bool = True


class Printer(Section):
    id: PayloadId
    name: PayloadText
    transport: Literal["network", "serial", "ble", "usb"] = "network"
    address: PayloadText | None = None


class Application(Section):
    enabled: bool = True
    watch_processes: Annotated[tuple[PayloadText, ...], Meta(max_length=32)] = ()
    kiosk_debug_url: Annotated[str, Check(_kiosk_url)] = ""
    max_duration_seconds: Annotated[float, Meta(ge=2, le=120)] = 10


class Schedule(Section):
    network: Cron = ""
    application: Cron = ""


class Limits(Section):
    max_report_bytes: Annotated[int, Meta(ge=10_000, le=100_000_000)] = 1_000_000
    outbox_max_bytes: Annotated[int, Meta(ge=100_000)] = 67_108_864
    outbox_max_age_days: Annotated[float, Meta(gt=0, le=365)] = 14
    min_collection_interval_seconds: Annotated[float, Meta(ge=0, le=3600)] = 10


class Logging(Section):
    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["auto", "text", "json"] = "auto"


class LocalConfig(Section):
    """What a collection by hand needs: everything, but the service may be left out."""

    service: Service | None = None
    device: DeviceSection = DeviceSection()
    network: Network = Network()
    printers: Annotated[tuple[Printer, ...], Meta(max_length=64)] = ()
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
