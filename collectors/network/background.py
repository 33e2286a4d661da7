"""A step that runs beside others in a thread, and what became of it."""

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

_LOOK_S = 0.05

T = TypeVar("T")


class Background(Generic[T]):
    """Starts at once. The step itself keeps to its deadline; nobody kills a thread."""

    def __init__(self, step: Callable[[], T]) -> None:
        self._step = step
        self._result: list[T] = []
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def wait(self, deadline_s: float, is_cancelled: Callable[[], bool]) -> bool:
        """Wait for the end; False when the deadline or the cancellation came before."""
        while self._thread.is_alive() and not is_cancelled():
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                break
            self._thread.join(min(_LOOK_S, left_s))
        return not self._thread.is_alive()

    def result(self) -> T:
        """Return what the step returned; raises what it raised, TimeoutError while it runs."""
        if self._error is not None:
            raise self._error
        if not self._result:
            raise TimeoutError("stopped before it was done")
        return self._result[0]

    def _work(self) -> None:
        try:
            self._result.append(self._step())
        except Exception as error:  # noqa: BLE001 - raised again where the result is taken
            self._error = error
