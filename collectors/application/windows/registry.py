"""The sources of a Windows machine."""

from functools import partial
from typing import Final
from urllib.request import getproxies

from collectors.application import cross_platform as portable
from collectors.application import keys
from collectors.application.deadline import Deadline
from collectors.application.readers import disk_space, interfaces
from collectors.application.readers.interfaces import Links, Wireless
from collectors.application.source import Reading, Source
from collectors.application.windows import devices, machine, powershell, script, time_service
from collectors.contract import ApplicationJob

SCRIPT_S: Final = 8.0
"""PowerShell takes a second to start, CIM several to answer on a till's processor."""

_MACHINE_KEYS: Final = (
    *keys.SYSTEM_KEYS,
    *keys.BOOT_KEYS,
    *keys.PLACE_KEYS,
    *keys.MACHINE_KEYS,
    *keys.PROCESSOR_KEYS,
    *keys.DISPLAY_KEYS,
    *keys.DRIVE_KEYS,
    *keys.SERVICE_KEYS,
    *keys.RESOLVER_KEYS,
)


def windows_sources(job: ApplicationJob) -> tuple[Source, ...]:
    no_pressure = "only Linux accounts for stalled work"
    no_temperature = "Windows tells temperatures to no ordinary service"
    return (
        Source("machine", script.SOURCE, _MACHINE_KEYS, _read_machine, SCRIPT_S),
        Source("clock", time_service.SOURCE, keys.CLOCK_KEYS, time_service.read_clock, 4.0),
        portable.unsupported_source("temperatures", keys.TEMPERATURE_KEYS, no_temperature),
        portable.unsupported_source("pressure", keys.PRESSURE_KEYS, no_pressure),
        *portable.measured_sources(),
        Source(
            "disk",
            disk_space.SOURCE,
            keys.DISK_KEYS,
            partial(disk_space.read_disk_space, disk_space.psutil_mounts),
        ),
        Source(
            "interfaces",
            interfaces.SOURCE,
            keys.INTERFACE_KEYS,
            partial(interfaces.read_interfaces, links=_read_links),
            SCRIPT_S,
        ),
        portable.service_source(job),
        portable.process_source(job),
        Source(
            "devices",
            script.SOURCE,
            (*keys.QUEUE_KEYS, *keys.USB_KEYS, *keys.BLUETOOTH_KEYS),
            _read_devices,
            SCRIPT_S,
        ),
        portable.kiosk_source(job),
    )


def _read_machine(deadline: Deadline) -> Reading:
    return machine.machine_reading(script.read_sections(powershell.MACHINE, deadline), getproxies())


def _read_devices(deadline: Deadline) -> Reading:
    return devices.devices_reading(script.read_sections(powershell.DEVICES, deadline))


def _read_links(_names: tuple[str, ...], deadline: Deadline) -> Links:
    sections = script.read_sections(powershell.ADAPTERS, deadline)
    types = machine.parse_link_types(sections)
    return Links(types, {name: Wireless() for name, kind in types.items() if kind == "wifi"})
