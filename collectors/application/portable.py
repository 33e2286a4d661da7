"""The sources that are read the same way on every platform."""

from functools import partial

from collectors.application import measured
from collectors.application.deadline import Deadline
from collectors.application.kiosk.browser_fields import BROWSER_KEYS
from collectors.application.source import Reading, Source
from collectors.contract import ApplicationJob


def shared_sources(job: ApplicationJob) -> tuple[Source, ...]:
    return (
        Source("memory", "psutil", measured.MEMORY_KEYS, measured.read_memory),
        Source("cpu", "psutil", measured.CPU_KEYS, measured.read_cpu),
        Source("load", "getloadavg", measured.LOAD_KEYS, measured.read_load),
        Source("power", "psutil", measured.POWER_KEYS, measured.read_power),
        Source(
            "kiosk",
            "kiosk browser",
            BROWSER_KEYS,
            partial(_read_kiosk, job.kiosk_debug_url),
            in_browser=True,
        ),
    )


def _read_kiosk(url: str, deadline: Deadline) -> Reading:
    # The WebSocket library is a fifth of the child's memory: not without a kiosk.
    from collectors.application.kiosk.kiosk import read_kiosk  # noqa: PLC0415

    return read_kiosk(url, deadline)
