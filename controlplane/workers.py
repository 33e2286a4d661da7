"""Starts and supervises worker processes that serve the same socket, to use several processors.

Each worker is a complete service. The workers share a PostgreSQL database, which notifies each
worker of requests that other workers created. A worker that dies is replaced. All workers end when
this process ends.
"""

import contextlib
import logging
import multiprocessing
import signal
import socket
import time
from collections.abc import Callable, Iterator
from multiprocessing import connection
from multiprocessing.context import SpawnProcess
from multiprocessing.synchronize import Event
from types import FrameType

from agent.wire.sd_notify import Notifier

log = logging.getLogger("controlplane.workers")
GRACE_S = 10
"""Time after which a worker that has not stopped is killed. It is longer than the time for which a
worker continues its calls (`controlplane.server.GRACE_S`)."""
RESTART_AFTER_S = 1
"""Wait before a dead worker is replaced, so that a worker that cannot start is not restarted in a
tight loop.
"""
_spawn = multiprocessing.get_context("spawn")

Work = Callable[[socket.socket, Callable[[], None]], None]
"""Serves a socket until SIGTERM, and calls the second argument when it listens.

It runs in another interpreter, so it must be picklable: a function of a module, or a
`functools.partial` of such a function.
"""


class _StopSignal(Exception):
    """A signal was received."""


def run_workers(
    count: int, work: Work, listener: socket.socket, on_listening: Callable[[], None]
) -> int:
    """Run ``count`` processes until SIGTERM or SIGINT. Returns 1 if none of them started."""
    ready = _spawn.Event()
    workers = [_start(work, listener, ready, number) for number in range(count)]
    try:
        with _raise_on_signals():
            while not ready.wait(0.1):
                if not any(worker.is_alive() for worker in workers):
                    return 1
            on_listening()
            while True:
                _replace_dead(workers, work, listener, ready)
    except _StopSignal:
        return 0
    finally:
        _end(workers)


def _start(work: Work, listener: socket.socket, ready: Event, number: int) -> SpawnProcess:
    # A replacement gets the name of the dead worker, so that its metrics continue.
    worker = _spawn.Process(target=work, args=(listener, ready.set), name=f"worker-{number}")
    worker.start()
    return worker


def _replace_dead(
    workers: list[SpawnProcess], work: Work, listener: socket.socket, ready: Event
) -> None:
    """Wait until a worker has died, and replace it."""
    notifier = Notifier()
    # systemd's watchdog monitors only this process, which notifies the watchdog in this loop.
    timeout_s = notifier.watchdog_s / 4 or None
    while not connection.wait([worker.sentinel for worker in workers], timeout_s):
        notifier.alive()
    time.sleep(RESTART_AFTER_S)
    for number, worker in enumerate(workers):
        if not worker.is_alive():
            log.error("worker %s ended with %s, starting another one", worker.pid, worker.exitcode)
            worker.close()
            workers[number] = _start(work, listener, ready, number)


def _end(workers: list[SpawnProcess]) -> None:
    for worker in workers:
        worker.terminate()
    deadline_s = time.monotonic() + GRACE_S
    for worker in workers:
        worker.join(max(0.0, deadline_s - time.monotonic()))
        if worker.exitcode is None:
            worker.kill()
            worker.join()
        worker.close()


@contextlib.contextmanager
def _raise_on_signals() -> Iterator[None]:
    """Raise `_StopSignal` on SIGTERM and SIGINT, which interrupts any wait."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise _StopSignal

    signals = (signal.SIGTERM, signal.SIGINT)
    old_handlers = [signal.signal(number, stop) for number in signals]
    try:
        yield
    finally:
        for number, handler in zip(signals, old_handlers, strict=True):
            signal.signal(number, handler)
