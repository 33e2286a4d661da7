"""Large bodies are read by a process of their own.

Reading one keeps Python to itself for tens of milliseconds, whichever thread does it, and everybody
waits. The process is started for the first large body, gives way to the service where both want a
processor, and is started again should it die. It ends with the service, however that ends.
"""

import asyncio
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from controlplane.operation.errors import Refusal, unavailable

LARGE_BYTES = 65_536
NICENESS = 10
ATTEMPTS = 2

Parse = Callable[[bytes], Any]
"""Makes of a body what an operation works with, or raises a refusal. Both are pickled."""


class BodyReader:
    """Used from the event loop only; ``close`` ends the process."""

    def __init__(self) -> None:
        self._process: ProcessPoolExecutor | None = None
        self._turn = asyncio.Lock()

    async def read(self, parse: Parse, body: bytes) -> tuple[Any, float]:
        """Return what ``parse`` returns or the refusal it raises, and the processor time it took in
        seconds. Raises the refusal ``unavailable`` where the process cannot live."""
        loop = asyncio.get_running_loop()
        async with self._turn:
            for _ in range(ATTEMPTS):
                self._process = self._process or _started()
                try:
                    return await loop.run_in_executor(self._process, _read, parse, body)
                except BrokenProcessPool:
                    self.close()
        raise unavailable("the body could not be read")

    @property
    def is_running(self) -> bool:
        return self._process is not None

    def close(self) -> None:
        if self._process is not None:
            self._process.shutdown()
            self._process = None


def _started() -> ProcessPoolExecutor:
    spawn = multiprocessing.get_context("spawn")  # to fork a process with threads is not safe
    return ProcessPoolExecutor(1, mp_context=spawn, initializer=_settle_in)


def _settle_in() -> None:
    """Give way to the service, and end only with it: a signal may be sent to both."""
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)
    if sys.platform != "win32":
        os.nice(NICENESS)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(0)


def _read(parse: Parse, body: bytes) -> tuple[Any, float]:
    began_s = time.process_time()
    try:
        made = parse(body)
    except Refusal as refusal:
        made = refusal
    return made, time.process_time() - began_s
