"""The sources that are read the same way on every platform."""

from functools import partial

from collectors.application.deadline import Deadline
from collectors.application.keys import (
    CPU_KEYS,
    LOAD_KEYS,
    MEMORY_KEYS,
    POWER_KEYS,
    PROCESS_KEYS,
    SWAP_KEYS,
)
from collectors.application.kiosk.browser_fields import BROWSER_KEYS
from collectors.application.readers import processes, service_probe
from collectors.application.readers import resources as measured
from collectors.application.readers.processes import CountRestarts
from collectors.application.source import Reading, Source, all_absent
from collectors.contract import ApplicationJob

KIOSK_S = 2.0


def measured_sources() -> tuple[Source, ...]:
    return (
        Source("memory", "psutil", MEMORY_KEYS, measured.read_memory),
        Source("swap", "psutil", SWAP_KEYS, measured.read_swap),
        Source("cpu", "psutil", CPU_KEYS, measured.read_cpu),
        Source("load", "getloadavg", LOAD_KEYS, measured.read_load),
        Source("power", "psutil", POWER_KEYS, measured.read_power),
    )


def process_source(
    job: ApplicationJob, count_restarts: CountRestarts = processes.nobody_counts
) -> Source:
    def read(deadline: Deadline) -> Reading:
        return processes.read_processes(job.watch_processes, deadline, count_restarts)

    return Source("processes", processes.SOURCE, PROCESS_KEYS, read)


def service_source(job: ApplicationJob) -> Source:
    read = partial(service_probe.read_service, job.service_url)
    return Source("service", service_probe.SOURCE, service_probe.PROBE_KEYS, read)


def kiosk_source(job: ApplicationJob) -> Source:
    def read(deadline: Deadline) -> Reading:
        # The WebSocket library costs memory and time: not without a kiosk.
        from collectors.application.kiosk.kiosk import read_kiosk

        return read_kiosk(job.kiosk_debug_url, deadline)

    return Source("kiosk", "kiosk browser", BROWSER_KEYS, read, KIOSK_S, in_browser=True)


def unsupported_source(name: str, keys: tuple[str, ...], reason: str) -> Source:
    """What a platform has no way to tell; its keys stand in the snapshot all the same."""

    def read(_: Deadline) -> Reading:
        return Reading(all_absent(keys, "system", "unsupported", reason))

    return Source(name, "system", keys, read)
