"""`venue-agent printers`: lists the known printers of this machine, or forgets one."""

import argparse
import json
import sys
from dataclasses import asdict

from agent.adapters.storage.printer_memory import PrinterMemory
from agent.cli.options import add_config_option, add_json_option
from agent.cli.resolve_state import resolve_state
from agent.cli.terminal.screen import Screen
from agent.errors import AgentError, ConfigMissing, StateError
from agent.rules.learned_printers import Memory
from collectors.contract import LearnedPrinter


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config_option(parser)
    add_json_option(parser)
    parser.add_argument("action", nargs="?", choices=("list", "forget"), default="list")
    parser.add_argument("printer", nargs="?", help="id or queue of the printer to forget")


def run(options: argparse.Namespace) -> int:
    here = resolve_state(options.config)
    here.require_visible()
    file = PrinterMemory(here.state)
    memory, reason = file.peek()
    if reason is not None:
        raise StateError(reason)
    if memory == Memory() and isinstance(here.guessed_because, ConfigMissing):
        raise here.guessed_because
    if options.action == "forget":
        _forget(file, memory, options.printer)
    elif options.json:
        sys.stdout.write(json.dumps(asdict(memory), indent=2) + "\n")
    else:
        _show(Screen(), memory)
    return 0


def _forget(file: PrinterMemory, memory: Memory, wanted: str | None) -> None:
    """Forget a printer, so that the next report accepts the device at its address."""
    ids = [each.id for each in memory.printers]
    matches = [id_ for id_ in ids if wanted in (id_, id_.partition(":")[2])]
    if len(matches) != 1:
        known = ", ".join(ids) or "none"
        raise AgentError(f"name one printer to forget. Known printers: {known}")
    if not file.write(memory.without(matches[0])):
        raise StateError(f"{matches[0]} could not be forgotten")
    sys.stdout.write(
        f"{matches[0]} is forgotten: the next report accepts the device at its address\n"
    )


def _show(screen: Screen, memory: Memory) -> None:
    if not memory.printers:
        screen.line(("no report has found a printer yet", "none"))
        return
    screen.table(
        ("printer", "seen (UTC)", "at", "known by"),
        [
            (
                (each.id, "none"),
                (_when(each.seen_at), "none"),
                (each.address, "none"),
                (_mark(each), "quiet"),
            )
            for each in memory.printers
        ],
    )
    for waiting in memory.replacements:
        printer = waiting.printer
        screen.blank()
        screen.paragraph(
            f"{printer.id}: since {_when(waiting.since)} another device answers there"
            f" ({', '.join(filter(None, (printer.model, _mark(printer))))}). If this device has"
            f" replaced the printer, run `venue-agent printers forget {printer.id}`",
            "warn",
        )


def _mark(printer: LearnedPrinter) -> str:
    """Return the most reliable identifier of a printer."""
    marks = (printer.mac_address, printer.serial, printer.uuid)
    return next(filter(None, marks), "only its address")


def _when(timestamp: str) -> str:
    return timestamp[:16].replace("T", " ")
