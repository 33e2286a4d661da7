"""`venue-agent run`: the daemon."""

import argparse
import asyncio
import gc
import os
import sys
from importlib.metadata import MetadataPathFinder

from agent import daemon
from agent.adapters.sighup import is_service, sighup_action
from agent.cli.terminal.options import add_config_option
from agent.config.rights import has_service_manager, with_sudo
from agent.errors import AgentError, ConfigError, ConfigNotVisible, NotVisible, StateError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config_option(parser)


def run(options: argparse.Namespace) -> int:
    gc.enable()  # the packaged agent starts with garbage collection disabled
    # On import, libraries look up their own versions. This drops the lists of files that Python
    # cached for these look-ups.
    MetadataPathFinder().invalidate_caches()
    foreground = sys.stderr.isatty()
    try:
        asyncio.run(daemon.run(options.config, foreground=foreground, hangup=sighup_action()))
    except NotVisible as error:
        if is_service():
            raise _error_for_systemd(error) from None
        raise NotVisible(str(error), _advice()) from None
    finally:
        _drop_unwritten_output()
    return 0


def _drop_unwritten_output() -> None:
    """Drop output that a closed terminal did not accept. Otherwise, Python exits with code 120."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            null_device = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null_device, stream.fileno())
            os.close(null_device)


def _error_for_systemd(error: NotVisible) -> AgentError:
    """Return the error with an exit code for systemd.

    If the configuration or the API key is not readable, the exit code is 2. After this code,
    systemd does not restart the agent. For other files, the exit code is 1, and systemd restarts
    the agent.
    """
    if isinstance(error, ConfigNotVisible):
        return ConfigError(error.problems)
    return StateError(str(error))


def _advice() -> str:
    """Return the advice to start the service; "" if this machine has no service manager.

    Without this advice, the error message advises to run the command as root.
    """
    if not has_service_manager():
        return ""
    start = with_sudo("venue-agent service start")
    return f"start the service, which runs as a user of its own: {start}"
