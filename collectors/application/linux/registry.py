"""The sources of a Linux machine."""

from functools import partial
from pathlib import Path

from collectors.application import cross_platform as portable
from collectors.application.keys import (
    BLUETOOTH_KEYS,
    BOOT_KEYS,
    CLOCK_KEYS,
    DISK_KEYS,
    DISPLAY_KEYS,
    DRIVE_KEYS,
    INTERFACE_KEYS,
    MACHINE_KEYS,
    PLACE_KEYS,
    PRESSURE_KEYS,
    PROCESSOR_KEYS,
    QUEUE_KEYS,
    RESOLVER_KEYS,
    SERVICE_KEYS,
    SYSTEM_KEYS,
    TEMPERATURE_KEYS,
    USB_KEYS,
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
    restarts,
    services,
    smart,
    usb,
)
from collectors.application.readers import clock, disk_space, interfaces, print_queues, resolver
from collectors.application.source import Source
from collectors.contract import ApplicationJob


def linux_sources(
    job: ApplicationJob, root: Path = Path("/"), ask_drive: smart.AskDrive = smart.read_health
) -> tuple[Source, ...]:
    """``root`` is where /proc, /sys, /etc and /run are looked for."""
    return (
        *_system_sources(root),
        *_hardware_sources(root),
        *portable.measured_sources(),
        *_disk_sources(root, ask_drive),
        *_network_sources(job, root),
        portable.process_source(job, partial(restarts.count_restarts, root)),
        Source("services", services.SOURCE, SERVICE_KEYS, services.read_services),
        Source(
            "print queues",
            print_queues.SOURCE,
            QUEUE_KEYS,
            print_queues.read_print_queues,
        ),
        Source("usb", usb.SOURCE, USB_KEYS, partial(usb.read_usb, root)),
        Source("bluetooth", bluetooth.SOURCE, BLUETOOTH_KEYS, bluetooth.read_bluetooth),
        portable.kiosk_source(job),
    )


def _system_sources(root: Path) -> tuple[Source, ...]:
    system = operating_system
    return (
        Source("system", system.OS_RELEASE, SYSTEM_KEYS, partial(system.read_system, root)),
        Source("boot", "kernel", BOOT_KEYS, partial(system.read_boot, root)),
        Source("place", "/etc", PLACE_KEYS, partial(system.read_place, root)),
        Source("clock", clock.ADJTIMEX, CLOCK_KEYS, partial(clock.read_clock, root)),
    )


def _hardware_sources(root: Path) -> tuple[Source, ...]:
    machine = hardware
    return (
        Source("machine", machine.DMI, MACHINE_KEYS, partial(machine.read_machine, root)),
        Source(
            "processor",
            "/proc/cpuinfo",
            PROCESSOR_KEYS,
            partial(machine.read_processor, root),
        ),
        Source(
            "temperatures",
            "sysfs hwmon",
            TEMPERATURE_KEYS,
            partial(machine.read_temperatures, root),
        ),
        Source(
            "displays",
            displays.SOURCE,
            DISPLAY_KEYS,
            partial(displays.read_displays, root),
        ),
        Source(
            "pressure",
            "/proc/pressure",
            PRESSURE_KEYS,
            partial(pressure.read_pressure, root),
        ),
    )


def _disk_sources(root: Path, ask_drive: smart.AskDrive) -> tuple[Source, ...]:
    space = partial(disk_space.read_disk_space, partial(mounts.read_mounts, root))
    return (
        Source("disk", disk_space.SOURCE, DISK_KEYS, space),
        Source(
            "drives",
            drives.SOURCE,
            DRIVE_KEYS,
            partial(drives.read_drives, root, ask_drive=ask_drive),
        ),
    )


def _network_sources(job: ApplicationJob, root: Path) -> tuple[Source, ...]:
    name_servers = partial(resolver.servers_of, root)
    return (
        Source(
            "interfaces",
            interfaces.SOURCE,
            INTERFACE_KEYS,
            partial(interfaces.read_interfaces, links=partial(links.read_links, root)),
        ),
        Source(
            "resolver",
            "resolv.conf",
            RESOLVER_KEYS,
            partial(resolver.read_resolver, name_servers, "resolv.conf"),
        ),
        portable.service_source(job),
    )
