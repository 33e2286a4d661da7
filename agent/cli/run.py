"""`venue-agent run`: the daemon."""

import argparse
import asyncio
import sys

from agent import daemon
from agent.cli.options import add_config_option


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config_option(parser)


def run(options: argparse.Namespace) -> int:
    asyncio.run(daemon.run(options.config, foreground=sys.stderr.isatty()))
    return 0
