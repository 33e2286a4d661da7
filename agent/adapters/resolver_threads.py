"""Threads for the system's resolver, which can take half a minute if no name server answers."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Thread
from typing import Any


class ResolverThreads(ThreadPoolExecutor):
    """An executor whose threads are abandoned at the end of the program.

    ``asyncio.run`` and Python itself wait for the threads of an ordinary executor. With such an
    executor, a stop of the agent could take longer than service managers wait.
    """

    def submit(self, function: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()

        def work() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(function(*args, **named))
            except BaseException as error:  # noqa: BLE001 - the future passes it to the caller
                future.set_exception(error)

        Thread(target=work, name="resolver", daemon=True).start()
        return future
