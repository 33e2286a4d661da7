"""The daemon. It locks the state directory, runs the loops, handles signals and stops cleanly."""

import asyncio
import contextlib
import logging
import os
import signal
import sqlite3
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from random import SystemRandom
from typing import Any, Final, Literal

from agent import __version__
from agent.adapters.accounts.privileges import step_down
from agent.adapters.clock import SystemClock
from agent.adapters.http_client import client_for
from agent.adapters.resolver_threads import ResolverThreads
from agent.adapters.sighup import SighupAction
from agent.adapters.storage.database import is_damaged
from agent.adapters.storage.state import StateDirectory
from agent.adapters.storage.visibility import require_visible
from agent.app import App, Runtime
from agent.config.credential import ApiKeySource, key_source
from agent.config.file import LoadedConfig, load
from agent.config.model import Config, default_config_path
from agent.errors import AgentError, ConfigError, CredentialRefused, StateError
from agent.logs.setup import set_up_logging
from agent.redaction.known import remember
from agent.redaction.secret_sources import find_secrets
from agent.rules.retry import Backoff
from agent.wire.sd_notify import Notifier

log = logging.getLogger(__name__)

STOP_WITHIN_S: Final = 8.0
"""Time for the loops to end. Service managers kill the process after ten seconds or more."""
RESTART: Final = Backoff(base_s=1.0, cap_s=60.0)
"""The delay before a failed loop is restarted. It grows with each failure."""
RESET_AFTER_S: Final = 600.0
"""Uptime of a loop after which its failure count resets."""
DAMAGE_PAUSE_S: Final = 60.0
"""After the database was found to be damaged, the daemon waits this long before it reloads."""


Signal = Literal["stop", "reload"]
"""The action that a signal of the operating system requests."""


def load_for_daemon(
    path: Path | None, kept_key: ApiKeySource | None = None
) -> LoadedConfig[Config]:
    """Read the configuration and check that a daemon can run with it. Raises ConfigError.

    ``kept_key`` is the API key that was read before root dropped its privileges, if any.
    """
    remember(*find_secrets(path or default_config_path(), os.environ))
    loaded = load(Config, path)
    client_for(loaded.config.service)  # only to check the settings
    source = kept_key or key_source(loaded.config.service.api_key_file, loaded.path)
    source.read_as_configured()
    if problem := source.access_problem():
        raise ConfigError((problem,))
    if source.readers() == "group" and loaded.config.service.api_key_file:
        log.warning("a group can read %s: run `chmod 600` on it", source.describe())
    return loaded


async def run(
    path: Path | None,
    *,
    foreground: bool,
    hangup: SighupAction = "reload",
    collector_command: Callable[[str], Sequence[str]] | None = None,
    notifier: Notifier | None = None,
) -> None:
    """Run until a signal requests a stop.

    Args:
        foreground: whether a user runs the daemon in a terminal. Heartbeats contain this value.
        hangup: the action that SIGHUP requests.
        collector_command: returns the command line of the collector for a kind. By default,
            `collector_process.default_command` is used.
        notifier: notifies the service manager, by default systemd.

    Raises:
        ConfigError, StateError: the daemon cannot start.
    """
    asyncio.get_running_loop().set_default_executor(ResolverThreads())
    loaded = load_for_daemon(path)
    set_up_logging(loaded.config.logging)
    clock = SystemClock()
    state = StateDirectory(loaded.state_dir)
    require_visible(state.path)
    kept_key = _drop_root(state, loaded)
    os.umask(0o077)
    state.prepare()
    signals: asyncio.Queue[Signal] = asyncio.Queue()
    runtime = Runtime(
        state=state,
        notifier=notifier or Notifier(),
        clock=clock,
        rng=SystemRandom(),
        started_at=clock.now(),
        foreground=foreground,
        config_path=path,
        collector_command=collector_command,
        kept_key=kept_key,
    )
    with state.lock(), _queue_signals(signals, hangup):
        log.info("venue-agent %s, state in %s", __version__, state.path)
        next_config: LoadedConfig[Config] | None = loaded
        while next_config is not None:
            next_config = await _run_once(next_config, runtime, signals)
    log.info("stopped")


def _drop_root(state: StateDirectory, loaded: LoadedConfig[Config]) -> ApiKeySource | None:
    """If this process runs as root, change to the owner of the state directory.

    Returns the API key if this owner cannot read the key's file, otherwise None.
    """
    source = key_source(loaded.config.service.api_key_file, loaded.path)
    key = source.read()
    if not step_down(state.path):
        return None
    log.info("started by root: continuing as the owner of %s", state.path)
    try:
        source.read()
    except CredentialRefused:
        log.info("only root can read %s: a new key needs a restart", source.describe())
        return ApiKeySource(None, key)
    return None


async def _wait_for_signal(
    loaded: LoadedConfig[Config], runtime: Runtime, signals: asyncio.Queue[Signal]
) -> LoadedConfig[Config] | None:
    """Wait for a signal to reload or stop. Return the new configuration, or None to stop.

    If the new configuration is invalid, continue to wait.
    """
    notifier = runtime.notifier
    while True:
        signal_ = await signals.get()
        log.info("received a request to %s", signal_)
        if signal_ == "stop":
            notifier.stopping()
            return None
        # sd_notify(3) requires CLOCK_MONOTONIC, but SystemClock uses CLOCK_BOOTTIME on Linux.
        notifier.reloading(time.monotonic_ns() // 1000)
        if (new := _reload(loaded, runtime)) is not None:
            return new
        notifier.ready()


def _reload(loaded: LoadedConfig[Config], runtime: Runtime) -> LoadedConfig[Config] | None:
    """Read the configuration again. Return it, or None if it is invalid."""
    try:
        new = load_for_daemon(runtime.config_path, runtime.kept_key)
    except ConfigError as error:
        for problem in error.problems:
            log.error("not reloaded: %s", problem)
        runtime.notifier.status("the new configuration is invalid: running with the old one")
        return None
    if new.state_dir != loaded.state_dir:
        log.warning("device.state_dir has changed: the new value needs a restart")
        device = new.config.device.model_copy(update={"state_dir": str(loaded.state_dir)})
        config = new.config.model_copy(update={"device": device})
        new = LoadedConfig(config, new.path, new.origins)
    set_up_logging(new.config.logging)
    log.info("the configuration was reloaded")
    return new


async def _run_once(
    loaded: LoadedConfig[Config], runtime: Runtime, signals: asyncio.Queue[Signal]
) -> LoadedConfig[Config] | None:
    """Run the loops until a signal. Return the new configuration, or None to stop the daemon."""
    app = App(loaded, runtime)
    next_config: LoadedConfig[Config] | None = None
    try:
        app.start()
        loops = [
            asyncio.create_task(_keep_running(name, loop, app, signals), name=name)
            for name, loop in app.loops().items()
        ]
        watchdog = asyncio.create_task(_feed_the_watchdog(runtime.notifier), name="watchdog")
        runtime.notifier.ready()
        signal_task = asyncio.create_task(
            _wait_for_signal(loaded, runtime, signals), name="signals"
        )
        try:
            next_config = await _wait_for_signal_or_failure(signal_task, loops)
        finally:
            app.stop_timers()
            await _end_tasks([*loops, watchdog, *([] if signal_task.done() else [signal_task])])
    finally:
        await app.close(next_config)
    return next_config


async def _wait_for_signal_or_failure(
    signal_task: asyncio.Task[LoadedConfig[Config] | None], loops: list[asyncio.Task[None]]
) -> LoadedConfig[Config] | None:
    """Return the result of `_wait_for_signal`. Raise AgentError if a task of ``loops`` ends first.

    Each task runs `_keep_running`, which restarts its loop and never ends normally. If a task ends
    nevertheless, the agent must stop, because it needs every loop. The service manager then
    restarts the agent.
    """
    await asyncio.wait((signal_task, *loops), return_when=asyncio.FIRST_COMPLETED)
    if not signal_task.done():
        ended_names = ", ".join(task.get_name() for task in loops if task.done())
        raise AgentError(f"the agent cannot continue without: {ended_names}")
    return signal_task.result()


async def _keep_running(
    name: str, loop: Callable[[], Awaitable[None]], app: App, signals: asyncio.Queue[Signal]
) -> None:
    """Run a loop, and restart it when it ends or fails. The delay grows with each failure."""
    attempt = 0
    while True:
        start_s = time.monotonic()
        try:
            await loop()
            _note_failure(name, "it ended", app)
        except asyncio.CancelledError:
            # If this task itself was cancelled, the daemon is stopping. Otherwise something that
            # the loop awaited was cancelled, which is a failure of the loop.
            if (task := asyncio.current_task()) is None or task.cancelling():
                raise
            _note_failure(name, "something that it awaited was cancelled", app)
        except (StateError, sqlite3.Error, OSError) as error:
            log.error("%s: %s", name, error)
            app.health.set("state-failing", f"{name}: {error}")
            if is_damaged(error):
                # A damaged database is quarantined only when it is opened. A reload opens it again.
                await asyncio.sleep(DAMAGE_PAUSE_S)
                signals.put_nowait("reload")
        except Exception as error:
            log.exception("%s failed", name)
            app.health.set("internal-error", f"{name}: {type(error).__name__}: {error}")
        attempt = 1 if time.monotonic() - start_s > RESET_AFTER_S else attempt + 1
        await asyncio.sleep(RESTART.delay_s(attempt, SystemRandom()))
        app.health.clear({"state-failing"})


def _note_failure(name: str, why: str, app: App) -> None:
    log.error("%s failed: %s", name, why)
    app.health.set("internal-error", f"{name}: {why}")


async def _end_tasks(tasks: Sequence[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    done_tasks, late_tasks = await asyncio.wait(tasks, timeout=STOP_WITHIN_S)
    for task in late_tasks:
        log.error("%s did not end in %.0f s and is abandoned", task.get_name(), STOP_WITHIN_S)
    for task in done_tasks:
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("%s ended with %s: %s", task.get_name(), type(error).__name__, error)


async def _feed_the_watchdog(notifier: Notifier) -> None:
    """Notify the watchdog from the event loop, so that systemd detects a hanging event loop."""
    if not notifier.watchdog_s:
        return
    while True:
        notifier.alive()
        await asyncio.sleep(notifier.watchdog_s / 2)  # sd_watchdog_enabled(3)


@contextlib.contextmanager
def _queue_signals(signals: asyncio.Queue[Signal], hangup: SighupAction) -> Iterator[None]:
    """Put SIGTERM, SIGINT and SIGHUP into the queue while the body runs."""
    loop = asyncio.get_running_loop()
    meanings: dict[signal.Signals, Signal] = {signal.SIGTERM: "stop", signal.SIGINT: "stop"}
    if sys.platform != "win32" and hangup != "ignore":
        meanings[signal.SIGHUP] = hangup

    def handle(number: int, frame: object) -> None:
        loop.call_soon_threadsafe(signals.put_nowait, meanings[signal.Signals(number)])

    previous = {number: signal.signal(number, handle) for number in meanings}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
