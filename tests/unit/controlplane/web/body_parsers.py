"""Functions that tests call in the process that parses large bodies.

The process imports this module before it calls a function. Few imports keep this fast.
"""

import os
import signal

from controlplane.operation.errors import validation_error


def own_pid(body: bytes) -> int:
    return os.getpid()


def niceness(body: bytes) -> int:
    return os.nice(0)


def refuse(body: bytes) -> None:
    raise validation_error({"report": (body.decode(),)})


def kill_process(body: bytes) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def use_processor_time(body: bytes) -> int:
    return sum(range(10**6))
