"""Runs functions in daemon threads, which do not keep the process alive."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def in_background(function: Callable[[], T], name: str | None = None) -> "Future[T]":
    """Start ``function`` in a daemon thread called ``name``, and return its `Future`.

    The executors of `concurrent.futures` wait for their threads when the interpreter exits, so a
    system call that hangs would keep the process alive. This thread is abandoned instead.
    """
    future: Future[T] = Future()

    def work() -> None:
        try:
            future.set_result(function())
        except BaseException as error:  # noqa: BLE001 - raised again by Future.result
            future.set_exception(error)

    threading.Thread(target=work, name=name, daemon=True).start()
    return future
