"""The sources that are read the same way on every platform."""

from collectors.application import measured
from collectors.application.source import Source
from collectors.contract import ApplicationJob


def shared_sources(job: ApplicationJob) -> tuple[Source, ...]:
    return (
        Source("memory", "psutil", measured.MEMORY_KEYS, measured.read_memory),
        Source("cpu", "psutil", measured.CPU_KEYS, measured.read_cpu),
        Source("load", "getloadavg", measured.LOAD_KEYS, measured.read_load),
        Source("power", "psutil", measured.POWER_KEYS, measured.read_power),
    )
