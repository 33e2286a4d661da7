"""``venue-control printers``: the printers of all devices, broken ones first."""

import argparse
from collections import Counter
from typing import Final

from agent.presentation.humanize import counted
from agent.presentation.severity import STYLES
from controlplane.cli.connection import client_of
from controlplane.cli.devices import fleet
from controlplane.cli.devices.filters import Filters, location_of
from controlplane.cli.screen.cells import Columns, Styled, age, status, utc_text
from controlplane.cli.screen.output import (
    CsvColumns,
    print_json_or_csv,
    print_note,
    print_records,
)
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
COLUMNS: Final[Columns[PrinterRecord]] = {
    "printer": lambda printer: printer.name,
    "state": lambda printer: status(printer.state),
    "since": lambda printer: age(printer.since),
    "device": lambda printer: printer.device.legacy_install_id,
    "location": lambda printer: location_of(printer.device),
    "reason": lambda printer: Styled(printer.detail, STYLES["muted"]),
}


def list_all(options: argparse.Namespace) -> None:
    with client_of(options) as client:
        printers = fleet.printers(client, options.printer_state, options.search)
    options.search = ""  # the service has applied the search
    filters = Filters(options)
    printers = [printer for printer in printers if filters.matches(printer.device)]
    if print_json_or_csv(options, printers, CSV):
        return
    print_records(printers, COLUMNS, "No printers match.", has_sentences=True)
    if printers:
        counts = Counter(printer.state for printer in printers)
        states = ", ".join(f"{count} {state}" for state, count in counts.items())
        print_note(f"{counted(len(printers), 'printer')}: {states}")
