"""What holds for every test: no address but loopback, and no thread left behind."""

import ipaddress
import logging
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

_SOCKET_EVENTS = {"socket.connect", "socket.sendto"}
_strangers: list[str] = []


def _watch_sockets(event: str, args: tuple[Any, ...]) -> None:
    if event not in _SOCKET_EVENTS or not isinstance(args[1], tuple):
        return
    host = str(args[1][0]).split("%")[0]
    try:
        is_loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_loopback = host == "localhost"
    if not is_loopback:
        _strangers.append(host)
        raise PermissionError(f"a test tried to reach {host}: only loopback is allowed")


sys.addaudithook(_watch_sockets)


@pytest.fixture(autouse=True)
def _only_loopback() -> Iterator[None]:
    _strangers.clear()
    yield
    assert not _strangers, f"contacted: {_strangers}"


@pytest.fixture(autouse=True)
def _same_logging() -> Iterator[None]:
    """A daemon run inside a test sets the root logger up: the next test starts as this one."""
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    yield
    root.setLevel(level)
    root.handlers[:] = handlers


@pytest.fixture(autouse=True)
def _no_leaked_threads() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    for thread in set(threading.enumerate()) - before:
        thread.join(timeout=5)
        assert not thread.is_alive(), f"left behind: {thread}"
