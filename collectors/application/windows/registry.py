"""The sources of a Windows machine."""

from pathlib import Path

from collectors.application.kiosk.source import (
    read_kiosk_browser,
    read_kiosk_page,
    read_kiosk_policies,
)
from collectors.application.linux.hardware import read_temperatures
from collectors.application.linux.pressure import read_pressure
from collectors.application.readers import disk_space, processes, resources, service_probe
from collectors.application.source import Source
from collectors.application.windows import devices, machine, time_service
from collectors.contract import ApplicationJob


def windows_sources(job: ApplicationJob) -> tuple[Source[[]], ...]:
    return (
        machine.read_machine,
        time_service.read_clock,
        read_temperatures.unsupported("Windows tells temperatures to no ordinary service"),
        read_pressure.unsupported("only Linux accounts for stalled work"),
        resources.read_memory,
        resources.read_swap,
        resources.read_cpu,
        resources.read_load,
        resources.read_power,
        disk_space.read_disk_space.bind(disk_space.psutil_mounts),
        machine.read_interfaces,
        service_probe.read_service.bind(job.service_url),
        processes.read_processes.bind(job.watch_processes),
        devices.read_devices,
        read_kiosk_browser.bind(job.kiosk_debug_url),
        read_kiosk_page.bind(job.kiosk_debug_url),
        read_kiosk_policies.bind(job.kiosk_debug_url, Path("/")),
    )
