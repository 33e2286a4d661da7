"""The sources of a Linux machine."""

from functools import partial
from pathlib import Path

from collectors.application.kiosk.source import (
    read_kiosk_browser,
    read_kiosk_page,
    read_kiosk_policies,
)
from collectors.application.linux import (
    bluetooth,
    displays,
    drives,
    hardware,
    links,
    mounts,
    operating_system,
    pressure,
    services,
    smart,
    usb,
)
from collectors.application.readers import (
    clock,
    disk_space,
    interfaces,
    print_queues,
    processes,
    resolver,
    resources,
    service_probe,
)
from collectors.application.source import Source
from collectors.contract import ApplicationJob


def linux_sources(
    job: ApplicationJob, root: Path = Path("/"), ask_drive: smart.AskDrive = smart.read_health
) -> tuple[Source[[]], ...]:
    """``root`` is where /proc, /sys, /etc and /run are looked for."""
    return (
        operating_system.read_system.bind(root),
        operating_system.read_boot.bind(root),
        operating_system.read_place.bind(root),
        clock.read_clock.bind(root),
        hardware.read_machine.bind(root),
        hardware.read_processor.bind(root),
        hardware.read_temperatures.bind(root),
        displays.read_displays.bind(root),
        pressure.read_pressure.bind(root),
        resources.read_memory,
        resources.read_swap,
        resources.read_cpu,
        resources.read_load,
        resources.read_power,
        disk_space.read_disk_space.bind(partial(mounts.read_mounts, root)),
        drives.read_drives.bind(root, ask_drive=ask_drive),
        interfaces.read_interfaces.bind(partial(links.read_links, root)),
        resolver.read_resolver.bind(partial(resolver.servers_of, root)),
        service_probe.read_service.bind(job.service_url),
        processes.read_processes.bind(job.watch_processes, partial(services.count_restarts, root)),
        services.read_services.bind(),
        print_queues.read_print_queues.bind(),
        usb.read_usb.bind(root),
        bluetooth.read_bluetooth.bind(),
        read_kiosk_browser.bind(job.kiosk_debug_url),
        read_kiosk_page.bind(job.kiosk_debug_url),
        read_kiosk_policies.bind(job.kiosk_debug_url, root),
    )
