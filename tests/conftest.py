"""Rules for every test: a test contacts only loopback, and its threads have ended when it ends."""

import asyncio
import atexit
import gc
import ipaddress
import logging
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.redaction.known import forget
from tests import prerequisites, sizes
from tests.paths import ROOT


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--size", choices=sizes.SIZES, default="large", help="how much to run (tests/sizes.py)"
    )


def pytest_configure(config: pytest.Config) -> None:
    sizes.choose(config.getoption("size"))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Exclude the thousands of collected tests from garbage collection: they exist until the end.

    The garbage collector then runs a tenth as often as by default.
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
    """Make hypothesis register its random number generator before objects are frozen.

    To register the generator, hypothesis queries the garbage collector for the objects that refer
    to the generator. The garbage collector does not return frozen objects.
    """


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """In a small run, do not import the folders that contain no small tests."""
    is_folder = collection_path.parent == ROOT / "tests" and collection_path.is_dir()
    if config.getoption("size") != "small" or not is_folder:
        return None
    return f"tests/{collection_path.name}/" not in sizes.SMALL_FOLDERS or None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect tests of a larger size than ``--size``, and run `test_killed.py` first.

    This file waits the most. At the end of the run, it would keep one worker busy while all other
    workers have ended.
    """
    items[:], left_out = sizes.select(items)
    items.sort(key=lambda item: item.path.name != "test_killed.py")
    if left_out:
        config.hook.pytest_deselected(items=left_out)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Let SIGINT interrupt the run. Stop the run if this machine has a prerequisite that
    `TESTS_WITHOUT` declares as missing.
    """
    # A shell makes its background processes ignore SIGINT. Processes that tests start would inherit
    # this.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if getattr(session.config, "workerinput", None) is None:
        try:
            present = prerequisites.declared_but_present()
        except ValueError as error:
            raise pytest.UsageError(str(error)) from error
        if present:
            raise pytest.UsageError(
                f"{prerequisites.WITHOUT} names prerequisites that this machine has: {present}"
            )


# Python would finalize frozen objects only after the modules that they use, so they are unfrozen
# when Python ends. If they were unfrozen earlier, they would slow down the garbage collections
# after the last test.
atexit.register(gc.unfreeze)


def pytest_unconfigure() -> None:
    """Stop the servers that tests of this process started: PostgreSQL, and the fork server."""
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
        except prerequisites.RequiredButMissing as reason:
            pytest.fail(str(reason), pytrace=False)


_RUNNER = "_function_scoped_runner"
"""The fixture of pytest-asyncio that an asynchronous test and its fixtures use."""
_SOCKET_EVENTS = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg"})
_foreign_hosts: list[str] = []


def _watch_sockets(
    event: str, args: tuple[Any, ...], watched: frozenset[str] = _SOCKET_EVENTS
) -> None:
    # Python still calls this hook while the process ends, when the names of this module are None.
    # Therefore the event names are a default argument.
    if event not in watched or not isinstance(args[1], tuple):
        return
    host = str(args[1][0]).split("%")[0]
    try:
        is_loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_loopback = host == "localhost"
    if not is_loopback:
        _foreign_hosts.append(host)
        raise PermissionError(f"a test tried to reach {host}: only loopback is allowed")


sys.addaudithook(_watch_sockets)


@pytest.fixture(autouse=True, scope="session")
def _collect_garbage_at_the_end() -> Iterator[None]:
    """Collect garbage after the last test, so that pytest reports leaks in reference cycles.

    A leak that is reported later would end a worker of pytest-xdist without a message.
    """
    yield
    for _ in range(3):
        gc.collect()


@pytest.fixture(autouse=True, scope="session")
def _only_collected_tests_are_frozen() -> Iterator[None]:
    """Disable `gc.freeze`. A daemon that runs inside a test would freeze the test's objects, and
    the garbage collector would ignore them in all later tests.
    """
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(gc, "freeze", lambda: None)
        yield


@pytest.fixture(autouse=True)
def _clean_process() -> Iterator[None]:
    """Fail a test that contacts another host or leaves a thread behind. Restore the state of this
    process that a test can change: the root logger, which a daemon inside a test configures, and
    the known secrets, which would be masked in later tests.

    These rules are in one fixture, because each fixture takes a second in a run of 9,000 tests.
    """
    _foreign_hosts.clear()
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    before = set(threading.enumerate())
    yield
    root.setLevel(level)
    root.handlers[:] = handlers
    forget()
    assert not _foreign_hosts, f"contacted: {_foreign_hosts}"
    for thread in set(threading.enumerate()) - before:
        thread.join(timeout=5)
        assert not thread.is_alive(), f"left behind: {thread}"


@pytest.fixture(autouse=True)
def _no_leaked_tasks(request: pytest.FixtureRequest, _clean_process: None) -> Iterator[None]:
    """Fail an asynchronous test whose tasks still run when its fixtures have ended.

    Otherwise pytest-asyncio would cancel them without a message. This fixture depends on
    `_clean_process`, so that `_clean_process` checks the threads last: the event loop and its
    threads have then ended.
    """
    if _RUNNER not in request.fixturenames:
        yield
        return
    runner = request.getfixturevalue(_RUNNER)
    yield
    assert not (running := runner.run(_running_tasks())), f"left behind: {running}"


async def _running_tasks() -> set[asyncio.Task[Any]]:
    """Return the tasks of this event loop that do not end within 1,000 turns of the loop. The task
    of this function is not included.
    """
    for _ in range(1000):
        if not (running := asyncio.all_tasks() - {asyncio.current_task()}):
            break
        await asyncio.sleep(0)
    return running
