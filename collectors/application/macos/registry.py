"""The sources of a Mac."""

from pathlib import Path

from collectors.application.kiosk.source import (
    read_kiosk_browser,
    read_kiosk_page,
    read_kiosk_policies,
)
from collectors.application.linux.hardware import read_temperatures
from collectors.application.linux.pressure import read_pressure
from collectors.application.macos import readers
from collectors.application.readers import (
    disk_space,
    print_queues,
    processes,
    resources,
    service_probe,
)
from collectors.application.source import Source
from collectors.contract import ApplicationJob


def macos_sources(job: ApplicationJob) -> tuple[Source[[]], ...]:
    return (
        readers.read_system,
        readers.read_boot,
        readers.read_place,
        readers.read_clock,
        readers.read_hardware.bind(),
        read_temperatures.unsupported("macOS tells temperatures to no service"),
        read_pressure.unsupported("only Linux accounts for stalled work"),
        readers.read_displays.bind(),
        resources.read_memory,
        resources.read_swap,
        resources.read_cpu,
        resources.read_load,
        resources.read_power,
        disk_space.read_disk_space.bind(disk_space.psutil_mounts),
        readers.read_drives.bind(),
        readers.read_interfaces,
        readers.read_resolver,
        service_probe.read_service.bind(job.service_url),
        processes.read_processes.bind(job.watch_processes),
        readers.read_services,
        print_queues.read_print_queues.bind(),
        readers.read_usb.bind(),
        readers.read_bluetooth.bind(),
        read_kiosk_browser.bind(job.kiosk_debug_url),
        read_kiosk_page.bind(job.kiosk_debug_url),
        read_kiosk_policies.bind(job.kiosk_debug_url, Path("/")),
    )
