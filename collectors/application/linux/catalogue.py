"""The sources of a Linux machine."""

from functools import partial
from pathlib import Path

from collectors.application import disk_space
from collectors.application.linux import clock, hardware, mounts, operating_system, pressure
from collectors.application.source import Source
from collectors.contract import ApplicationJob


def linux_sources(job: ApplicationJob, root: Path = Path("/")) -> tuple[Source, ...]:
    """``root`` is where /proc, /sys, /etc and /run are looked for."""
    system, space = operating_system, disk_space
    return (
        Source("system", system.OS_RELEASE, system.SYSTEM_KEYS, partial(system.read_system, root)),
        Source("boot", "kernel", system.BOOT_KEYS, partial(system.read_boot, root)),
        Source("place", "/etc", system.PLACE_KEYS, partial(system.read_place, root)),
        Source("clock", clock.ADJTIMEX, clock.CLOCK_KEYS, partial(clock.read_clock, root)),
        Source(
            "machine", hardware.DMI, hardware.MACHINE_KEYS, partial(hardware.read_machine, root)
        ),
        Source(
            "processor",
            "/proc/cpuinfo",
            hardware.PROCESSOR_KEYS,
            partial(hardware.read_processor, root),
        ),
        Source(
            "temperatures",
            "sysfs hwmon",
            hardware.TEMPERATURE_KEYS,
            partial(hardware.read_temperatures, root),
        ),
        Source(
            "pressure",
            "/proc/pressure",
            pressure.PRESSURE_KEYS,
            partial(pressure.read_pressure, root),
        ),
        Source(
            "disk",
            space.SOURCE,
            space.DISK_KEYS,
            partial(space.read_disk_space, partial(mounts.read_mounts, root)),
        ),
    )
