"""The collectors' jobs, with the bounds that the configuration sets."""

from dataclasses import replace

from agent.config.model import SYSTEM_PROXY, LocalConfig, Printer
from agent.redaction.userinfo import replace_userinfo
from agent.wire.vocabulary import Kind
from collectors.contract import ApplicationJob, ConfiguredPrinter, Job, NetworkJob, WatchedDevice


def job_of(config: LocalConfig, kind: Kind) -> Job:
    """Return the job of the collector that collects the facts of ``kind``."""
    return network_job(config) if kind == "network" else application_job(config)


def is_enabled(config: LocalConfig, kind: Kind) -> bool:
    """Return whether the configuration allows reports of ``kind``."""
    return config.network.enabled if kind == "network" else config.application.enabled


def application_job(config: LocalConfig) -> ApplicationJob:
    """Return the job of an application snapshot."""
    return ApplicationJob(
        max_duration_s=config.application.max_duration_seconds,
        watch_processes=config.application.watch_processes,
        kiosk_debug_url=config.application.kiosk_debug_url,
        service_url="" if config.service is None else config.service.base_url,
        has_proxy=config.service is not None and config.service.proxy not in {"", SYSTEM_PROXY},
        devices=_devices(config),
        exclude=config.network.exclude,
        device_only=config.network.device_only,
    )


def network_job(config: LocalConfig) -> NetworkJob:
    """Return the job of a network report."""
    network = config.network
    return NetworkJob(
        ports=network.ports,
        max_hosts=network.max_hosts,
        max_services=network.max_services,
        max_duration_s=network.max_duration_seconds,
        subnets=network.subnets,
        exclude=network.exclude,
        mdns_service_types=network.mdns_service_types,
        printers=tuple(
            ConfiguredPrinter(p.id, p.name, p.transport, _address(p)) for p in config.printers
        ),
        device_only=network.device_only,
        enrich=network.enrich,
        snmp_community=network.snmp_community,
        devices=_devices(config),
    )


def printers_job(config: LocalConfig, printer: str = "") -> NetworkJob:
    """Return the job that checks this machine's printers.

    If ``printer`` is not empty, only the printer that it names is checked.
    """
    return replace(network_job(config), printers_only=True, printer=printer)


def _devices(config: LocalConfig) -> tuple[WatchedDevice, ...]:
    """Return the watched devices that have an address or a MAC.

    Of devices with the same name, only the first is returned.
    """
    devices: dict[str, WatchedDevice] = {}
    for watched_device in config.watched_devices:
        if watched_device.address or watched_device.mac:
            device = WatchedDevice(
                watched_device.name, watched_device.kind, watched_device.address, watched_device.mac
            )
            devices.setdefault(watched_device.name, device)
    return tuple(devices.values())


def _address(printer: Printer) -> str | None:
    """Return a printer's address, without the user and password of a URL.

    The collector does not need them.
    """
    if printer.transport != "network" or printer.address is None:
        return printer.address
    return replace_userinfo(printer.address)
