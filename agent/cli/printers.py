"""`venue-agent printers`: shows this machine's printers and what the agent remembers of them."""

import argparse
import asyncio
import shlex
import sys
from dataclasses import asdict

from agent.adapters.storage.printer_memory import PrinterMemory
from agent.cli.collect import check_printers
from agent.cli.resolve_state import ResolvedState, resolve_state
from agent.cli.terminal.options import add_config_and_json_options
from agent.cli.terminal.printer_view import show_printers
from agent.cli.terminal.screen import Screen, print_json, time_to_the_minute
from agent.errors import AgentError, ConfigError, ConfigMissing, StateError
from agent.rules.learned_printers import RememberedPrinters
from agent.wire.codec import to_plain
from agent.wire.payloads.network import NetworkPayload
from collectors.contract import LearnedPrinter


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config_and_json_options(parser)
    parser.add_argument(
        "action",
        nargs="?",
        choices=("list", "forget"),
        default="list",
        help="list (default): show the printers; forget: accept the device that replaced a printer",
    )
    parser.add_argument(
        "printer",
        nargs="?",
        metavar="PRINTER",
        help="with forget: id or queue of the printer that was replaced",
    )


def run(options: argparse.Namespace) -> int:
    if options.action == "list" and options.printer:
        advice = f"`venue-agent check {shlex.quote(options.printer)}` shows one printer"
        raise ConfigError((f"`printers list` shows all printers; {advice}",))
    resolved = resolve_state(options.config)
    if options.action == "forget":
        file, memory = _read_memory(resolved)
        if memory == RememberedPrinters() and isinstance(resolved.guessed_because, ConfigMissing):
            raise resolved.guessed_because
        _forget(file, memory, options.printer)
    elif options.json:
        _, memory = _read_memory(resolved)
        payload = _check(resolved)
        states = None if payload is None else list(map(to_plain, payload.printers or ()))
        document = {**asdict(memory), "states": states}
        print_json(document)
    else:
        screen = Screen()
        if payload := _check(resolved):
            show_printers(screen, payload)
            screen.blank()
        _show(screen, _read_memory(resolved)[1])
    return 0


def _check(resolved: ResolvedState) -> NetworkPayload | None:
    """Contact the printers. Return None if the configuration cannot be read.

    Without the configuration, it is unknown which devices must not be contacted.
    """
    if resolved.config is None:
        return None
    payload, _ = asyncio.run(check_printers(resolved.config, resolved.state))
    return payload


def _read_memory(resolved: ResolvedState) -> tuple[PrinterMemory, RememberedPrinters]:
    """Return the file in which the agent remembers printers, and its content.

    Raises NotVisible, StateError.
    """
    resolved.require_visible()
    file = PrinterMemory(resolved.state)
    memory, reason = file.peek()
    if reason is not None:
        raise StateError(reason)
    return file, memory


def _forget(file: PrinterMemory, memory: RememberedPrinters, printer_id: str | None) -> None:
    """Forget a printer, so that the next report accepts the device at its address.

    ``printer_id`` is the printer's id, or the part after its first colon, such as the queue's name.
    """
    ids = [printer.id for printer in memory.printers]
    matches = [id_ for id_ in ids if printer_id and printer_id in (id_, id_.partition(":")[2])]
    if len(matches) != 1:
        known_ids = ", ".join(ids) or "none"
        raise AgentError(f"name one printer to forget. Known printers: {known_ids}")
    if not file.write(memory.without(matches[0])):
        raise StateError(f"{matches[0]} could not be forgotten")
    sys.stdout.write(
        f"{matches[0]} is forgotten: the next report accepts the device at its address\n"
    )


def _show(screen: Screen, memory: RememberedPrinters) -> None:
    if not memory.printers:
        screen.line(("no printer is remembered from earlier reports", "quiet"))
        return
    screen.line(("remembered from earlier reports", "strong"))
    screen.table(
        ("printer", "seen (UTC)", "address", "known by"),
        [
            (p.id, time_to_the_minute(p.seen_at), p.address, (_identifier(p), "quiet"))
            for p in memory.printers
        ],
    )
    for replacement in memory.replacements:
        printer = replacement.printer
        device = ", ".join(filter(None, (printer.model, _identifier(printer))))
        since = time_to_the_minute(replacement.since)
        screen.blank()
        screen.paragraph(
            f"{printer.id}: since {since} another device answers at its address ({device})."
            " If this device is its replacement, run"
            f" `venue-agent printers forget {shlex.quote(printer.id)}`",
            "warn",
        )


def _identifier(printer: LearnedPrinter) -> str:
    """Return the most reliable identifier of a printer."""
    identifiers = (printer.mac_address, printer.serial, printer.uuid)
    return next(filter(None, identifiers), "only its address")
