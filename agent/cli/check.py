"""`venue-agent check PRINTER`: contacts one printer now, and shows what is wrong with it."""

import argparse
import asyncio

from agent.adapters.storage.state import StateDirectory
from agent.cli.collect import check_printers
from agent.cli.terminal.options import add_config_and_json_options
from agent.cli.terminal.printer_view import printer_views, show_printers
from agent.cli.terminal.screen import Screen, print_json
from agent.config.file import load
from agent.config.model import LocalConfig
from agent.errors import AgentError
from agent.wire.addresses import split_host_port
from agent.wire.codec import to_plain
from agent.wire.payloads.network import NetworkPayload, Printer

HEALTHY, UNHEALTHY = 0, 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "printer",
        metavar="PRINTER",
        help="id, name or address of a print queue, or of a printer in the configuration",
    )
    add_config_and_json_options(parser)


def run(options: argparse.Namespace) -> int:
    """Return 0 if the printer is healthy, else 1. Raises AgentError if there is no such printer."""
    if not options.printer.strip():
        raise AgentError("the name of the printer is empty: see `venue-agent printers`")
    loaded = load(LocalConfig, options.config)
    state = StateDirectory(loaded.state_dir)
    payload, problem = asyncio.run(check_printers(loaded.config, state, options.printer))
    if problem is not None:
        raise AgentError(problem)
    views = printer_views(payload.printers or ())
    if options.json:
        document = {"printers": [to_plain(printer) for printer in payload.printers or ()]}
        print_json(document)
    else:
        screen = Screen()
        show_printers(screen, payload)
        if any(_is_missing(printer, payload) for printer in payload.printers or ()):
            screen.blank()
            screen.paragraph(
                "→ to search the network for the printer: `venue-agent collect network`"
            )
    return HEALTHY if {view.verdict for view in views} == {"reachable"} else UNHEALTHY


def _is_missing(printer: Printer, payload: NetworkPayload) -> bool:
    """Return whether no device answers at the address of a network printer."""
    if printer.transport != "network" or printer.status != "unreachable":
        return False
    hosts = payload.network_map.hosts if payload.network_map else ()
    return split_host_port(printer.address or "")[0] not in {host.address for host in hosts}
