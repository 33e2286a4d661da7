"""Lists the sources of each platform. The sources define the keys of a snapshot."""

from functools import partial
from pathlib import Path

from collectors.application.kiosk import source as kiosk
from collectors.application.linux import (
    bluetooth,
    displays,
    drives,
    hardware,
    mounts,
    operating_system,
    power,
    pressure,
    services,
    smart,
    usb,
)
from collectors.application.linux.network import links
from collectors.application.macos import readers as macos
from collectors.application.readers import clock, disk_space, print_queues, processes, resources
from collectors.application.readers.network import (
    interfaces,
    resolver,
    service_probe,
    watched_devices,
)
from collectors.application.source import Source, unsupported_source
from collectors.application.windows import devices, machine, time_service
from collectors.contract import ApplicationJob

Sources = tuple[Source[[]], ...]

_RESOURCES: Sources = (
    resources.read_memory,
    resources.read_swap,
    resources.read_cpu,
    resources.read_load,
)
_NO_PRESSURE = pressure.read_pressure.unsupported(
    "only Linux measures how long tasks wait for processor, memory and disk"
)


def sources_for(
    platform: str, job: ApplicationJob, query_drive: smart.QueryDrive = smart.read_health
) -> Sources:
    """Return the sources of ``platform`` (a value of sys.platform).

    The facts of a snapshot have the order of their sources. The last source has the keys that only
    other platforms can fill, with the status "unsupported". ``query_drive`` reads the SMART health
    of a drive; only Linux uses it.
    """
    linux = linux_sources(job, query_drive=query_drive)
    other_sources = {"darwin": macos_sources(job), "win32": windows_sources(job)}
    own_sources = other_sources.get(platform, linux)
    own_keys = {key for source in own_sources for key in source.keys}
    all_sources = (source for sources in (linux, *other_sources.values()) for source in sources)
    foreign_keys = dict.fromkeys(
        key for source in all_sources for key in source.keys if key not in own_keys
    )
    reason = "this operating system does not provide it"
    if not foreign_keys:
        return own_sources
    return (*own_sources, unsupported_source("other systems", tuple(foreign_keys), reason))


def sources_before_confinement(platform: str, job: ApplicationJob) -> Sources:
    """Return the sources of a platform. Call this before the process confines itself.

    On Linux, this also starts smartctl, which must open the drives. A confined process cannot open
    them.
    """
    if platform != "linux":
        return sources_for(platform, job)
    return sources_for(platform, job, smart.start_checks(drives.drives_for_smartctl(Path("/"))))


def linux_sources(
    job: ApplicationJob, root: Path = Path("/"), query_drive: smart.QueryDrive = smart.read_health
) -> Sources:
    """Return the sources of Linux. ``root`` contains ``proc``, ``sys``, ``etc`` and ``run``."""
    return (
        operating_system.read_system.bind(root),
        operating_system.read_boot.bind(root),
        operating_system.read_regional_settings.bind(root),
        clock.read_clock.bind(root),
        hardware.read_machine.bind(root),
        hardware.read_processor.bind(root),
        hardware.read_temperatures.bind(root),
        displays.read_displays.bind(root),
        pressure.read_pressure.bind(root),
        *_RESOURCES,
        power.read_power.bind(root),
        disk_space.read_disk_space.bind(partial(mounts.read_mounts, root)),
        drives.read_drives.bind(root, query_drive=query_drive),
        interfaces.read_interfaces.bind(partial(links.read_links, root)),
        resolver.read_resolver.bind(partial(resolver.read_servers, root), job.service_url),
        service_probe.read_service.bind(job.service_url, job.has_proxy),
        watched_devices.read_watched_devices.bind(job),
        processes.read_processes.bind(job.watch_processes, partial(services.count_restarts, root)),
        services.read_services.bind(),
        print_queues.read_print_queues.bind(),
        usb.read_usb.bind(root),
        bluetooth.read_bluetooth.bind(),
        *_kiosk_sources(job, root),
    )


def macos_sources(job: ApplicationJob) -> Sources:
    return (
        macos.read_system,
        macos.read_boot,
        macos.read_regional_settings.bind(),
        macos.read_clock,
        macos.read_hardware.bind(),
        hardware.read_temperatures.unsupported("macOS does not provide temperatures to services"),
        _NO_PRESSURE,
        macos.read_displays.bind(),
        *_RESOURCES,
        resources.read_power,
        disk_space.read_disk_space.bind(disk_space.psutil_mounts),
        macos.read_drives.bind(),
        macos.read_interfaces,
        macos.read_resolver.bind(job.service_url),
        service_probe.read_service.bind(job.service_url, job.has_proxy),
        watched_devices.read_watched_devices.bind(job),
        processes.read_processes.bind(job.watch_processes),
        macos.read_services,
        print_queues.read_print_queues.bind(),
        macos.read_usb.bind(),
        macos.read_bluetooth.bind(),
        *_kiosk_sources(job, Path("/")),
    )


def windows_sources(job: ApplicationJob) -> Sources:
    return (
        machine.read_machine.bind(job.service_url),
        time_service.read_clock,
        hardware.read_temperatures.unsupported("Windows does not provide temperatures to services"),
        _NO_PRESSURE,
        *_RESOURCES,
        resources.read_power,
        disk_space.read_disk_space.bind(disk_space.psutil_mounts),
        machine.read_interfaces,
        service_probe.read_service.bind(job.service_url, job.has_proxy),
        watched_devices.read_watched_devices.bind(job),
        processes.read_processes.bind(job.watch_processes),
        devices.read_devices,
        *_kiosk_sources(job, Path("/")),
    )


def _kiosk_sources(job: ApplicationJob, root: Path) -> Sources:
    url = job.kiosk_debug_url
    return (
        kiosk.read_kiosk_browser.bind(url),
        kiosk.read_kiosk_page.bind(url),
        kiosk.read_kiosk_policies.bind(url, root),
    )
