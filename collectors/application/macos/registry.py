"""The sources of a Mac."""

from functools import partial
from pathlib import Path
from typing import Final

from collectors.application import cross_platform as portable
from collectors.application import keys
from collectors.application.macos import readers
from collectors.application.readers import clock, disk_space, interfaces, print_queues, resolver
from collectors.application.source import Source
from collectors.contract import ApplicationJob

PROFILE_S: Final = 8.0
"""system_profiler takes seconds for USB and Wi-Fi on a cold start."""


def macos_sources(job: ApplicationJob) -> tuple[Source, ...]:
    profiled = "system_profiler"
    return (
        Source("system", "sw_vers", keys.SYSTEM_KEYS, readers.read_system),
        Source("boot", "kern.boottime", keys.BOOT_KEYS, readers.read_boot),
        Source("place", "/etc", keys.PLACE_KEYS, readers.read_place),
        Source(
            "clock",
            "ntp_adjtime",
            keys.CLOCK_KEYS,
            partial(clock.read_clock, Path("/"), ask=partial(clock.adjtimex, "ntp_adjtime")),
        ),
        Source(
            "hardware",
            profiled,
            (*keys.MACHINE_KEYS, *keys.PROCESSOR_KEYS),
            readers.read_hardware,
            PROFILE_S,
        ),
        portable.unsupported_source(
            "temperatures", keys.TEMPERATURE_KEYS, "macOS tells temperatures to no service"
        ),
        portable.unsupported_source(
            "pressure", keys.PRESSURE_KEYS, "only Linux accounts for stalled work"
        ),
        Source("displays", profiled, keys.DISPLAY_KEYS, readers.read_displays, PROFILE_S),
        *portable.measured_sources(),
        Source(
            "disk",
            disk_space.SOURCE,
            keys.DISK_KEYS,
            partial(disk_space.read_disk_space, disk_space.psutil_mounts),
        ),
        Source("drives", profiled, keys.DRIVE_KEYS, readers.read_drives, PROFILE_S),
        Source(
            "interfaces",
            interfaces.SOURCE,
            keys.INTERFACE_KEYS,
            partial(interfaces.read_interfaces, links=readers.read_links),
            PROFILE_S,
        ),
        Source(
            "resolver",
            "scutil",
            keys.RESOLVER_KEYS,
            partial(resolver.read_resolver, readers.name_servers, "scutil"),
        ),
        portable.service_source(job),
        portable.process_source(job),
        Source("services", "launchd", keys.SERVICE_KEYS, readers.read_services),
        Source(
            "print queues", print_queues.SOURCE, keys.QUEUE_KEYS, print_queues.read_print_queues
        ),
        Source("usb", profiled, keys.USB_KEYS, readers.read_usb, PROFILE_S),
        Source("bluetooth", profiled, keys.BLUETOOTH_KEYS, readers.read_bluetooth, PROFILE_S),
        portable.kiosk_source(job),
    )
