"""Rules for every test: it contacts only loopback, and leaves no thread behind."""

import gc
import ipaddress
import logging
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.redaction.known import forget
from tests import prerequisites, sizes


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--size", choices=sizes.SIZES, default="large", help="how much to run (tests/sizes.py)"
    )


def pytest_configure(config: pytest.Config) -> None:
    sizes.choose(config.getoption("size"))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Keep thousands of collected tests out of the garbage collector: they live to the end.

    Collections of the few other objects are a tenth as frequent as Python's default.
    """
    _register_random()
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(7_000, 10, 10)
        gc.enable()


@given(st.none())
def _register_random(_: None) -> None:
    """Have hypothesis create its generator of random numbers.

    Then it asks the garbage collector who refers to it, and that knows no frozen object.
    """


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect tests that are larger than the run."""
    items[:], left_out = sizes.select(items)
    if left_out:
        config.hook.pytest_deselected(items=left_out)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Stop a run that skips a prerequisite on purpose although this machine has it."""
    # A shell's background processes ignore Ctrl-C; processes that tests start would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if getattr(session.config, "workerinput", None) is None:
        try:
            untrue = prerequisites.untrue()
        except ValueError as error:
            raise pytest.UsageError(str(error)) from error
        if untrue:
            raise pytest.UsageError(f"{prerequisites.WITHOUT} names what can be had: {untrue}")


def pytest_unconfigure() -> None:
    """End the servers that this process's tests needed: PostgreSQL, and the one that forks.

    Objects that stay frozen would end after the modules that they use.
    """
    gc.unfreeze()
    if (module := sys.modules.get("tests.postgresql")) is not None:
        module.stop_shared_server()
    if (module := sys.modules.get("tests.scenario.forked_process")) is not None:
        module.stop_server()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip tests whose prerequisites this machine lacks, before any fixture is created."""
    for mark in item.iter_markers("needs"):
        try:
            prerequisites.demand(*mark.args)
        except prerequisites.Skipped as reason:
            pytest.skip(str(reason))
        except prerequisites.Lost as reason:
            pytest.fail(str(reason), pytrace=False)


_SOCKET_EVENTS = frozenset({"socket.connect", "socket.sendto"})
_strangers: list[str] = []


def _watch_sockets(
    event: str, args: tuple[Any, ...], watched: frozenset[str] = _SOCKET_EVENTS
) -> None:
    # The hook outlives this module's names: at the end of the process they are None.
    if event not in watched or not isinstance(args[1], tuple):
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


@pytest.fixture(autouse=True, scope="session")
def _nothing_left_to_the_collector() -> Iterator[None]:
    """Collect garbage in the last test, so that it reports leaks in reference cycles.

    Later, a leak would end a worker of pytest-xdist without a message.
    """
    yield
    for _ in range(3):
        gc.collect()


@pytest.fixture(autouse=True)
def _only_loopback() -> Iterator[None]:
    _strangers.clear()
    yield
    assert not _strangers, f"contacted: {_strangers}"


@pytest.fixture(autouse=True)
def _same_logging() -> Iterator[None]:
    """Restore the root logger, which a daemon inside a test configures."""
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    yield
    root.setLevel(level)
    root.handlers[:] = handlers


@pytest.fixture(autouse=True)
def _no_known_secrets() -> Iterator[None]:
    """Clear the known secrets: a key that one test reads would be masked in the next one."""
    yield
    forget()


@pytest.fixture(autouse=True, scope="session")
def _only_collected_tests_are_frozen() -> Iterator[None]:
    """A daemon that runs inside a test would freeze what that test leaves, for all that follow."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(gc, "freeze", lambda: None)
        yield


@pytest.fixture(autouse=True)
def _no_leaked_threads() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    for thread in set(threading.enumerate()) - before:
        thread.join(timeout=5)
        assert not thread.is_alive(), f"left behind: {thread}"
