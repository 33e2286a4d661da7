"""`venue-agent run`: the daemon."""

import argparse
import asyncio
import sys

from agent import daemon
from agent.adapters.terminal import is_service, meaning_of_hangup
from agent.cli.options import add_config_option
from agent.errors import AgentError, ConfigError, ConfigNotVisible, NotVisible, StateError
from agent.rights import by_root, has_service_manager


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config_option(parser)


def run(options: argparse.Namespace) -> int:
    foreground = sys.stderr.isatty()
    try:
        asyncio.run(daemon.run(options.config, foreground=foreground, hangup=meaning_of_hangup()))
    except NotVisible as error:
        if is_service():
            raise _for_its_manager(error) from None
        raise NotVisible(str(error), _advice()) from None
    return 0


def _for_its_manager(error: NotVisible) -> AgentError:
    """Keep the exit codes that the unit knows: starting again helps against no configuration."""
    if isinstance(error, ConfigNotVisible):
        return ConfigError(error.problems)
    return StateError(str(error))


def _advice() -> str:
    """The machine's agent is its service: root would run one with rights it does not need."""
    if not has_service_manager():
        return ""
    return f"the service runs as a user of its own: {by_root('venue-agent service start')}"
