"""``venue-control printers``: the printers of all devices, broken ones first."""

import argparse
from collections import Counter
from typing import Final

from agent.presentation.humanize import counted
from agent.presentation.terminal.blocks import STYLES
from controlplane.cli.connection import client_of
from controlplane.cli.devices import fleet
from controlplane.cli.devices.filters import Filters, location_of
from controlplane.cli.screen.cells import age, status, utc_text
from controlplane.cli.screen.output import CsvColumns, print_json_or_csv
from controlplane.client.errors import CommandError
from controlplane.client.refusals import NotFoundError
from controlplane.devices.overview.records import PrinterRecord

CSV: Final[CsvColumns[PrinterRecord]] = {
    "name": lambda printer: printer.name,
    "state": lambda printer: printer.state,
    "since": lambda printer: utc_text(printer.since),
    "address": lambda printer: printer.address,
    "reason": lambda printer: printer.detail,
    "device": lambda printer: printer.device.legacy_install_id,
    "instanceId": lambda printer: printer.device.instance_id,
    "health": lambda printer: printer.health,
    "locationId": lambda printer: printer.device.location_id,
    "locationName": lambda printer: printer.device.location_name,
}


def list_all(options: argparse.Namespace) -> None:
    with client_of(options) as client:
        try:
            printers = fleet.printers(client, options.printer_state, options.search)
        except NotFoundError as error:
            raise CommandError("this service has no list of printers") from error
    options.search = ""  # the service has applied the search
    filters = Filters(options)
    printers = [printer for printer in printers if filters.matches(printer.device)]
    if not print_json_or_csv(options, printers, CSV):
        _print(printers)


def _print(printers: list[PrinterRecord]) -> None:
    from controlplane.cli.screen import tables  # rich is slow to import

    tables.print_rows_and_sentences(
        ("printer", "state", "since", "device", "location", "reason"),
        [
            (
                printer.name,
                status(printer.state),
                age(printer.since),
                printer.device.legacy_install_id,
                location_of(printer.device),
            )
            for printer in printers
        ],
        [tables.text_of(printer.detail, STYLES["muted"]) for printer in printers],
        "No printers match.",
    )
    if printers:
        counts = Counter(printer.state for printer in printers)
        states = ", ".join(f"{count} {state}" for state, count in counts.items())
        tables.print_note(f"{counted(len(printers), 'printer')}: {states}")
