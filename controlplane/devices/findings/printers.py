"""The printers that were broken for the longest time in the last thirty days."""

from collections import defaultdict
from dataclasses import dataclass
from datetime import timedelta
from heapq import nsmallest
from typing import Final

from sqlalchemy import DateTime, case, select, type_coerce

from controlplane.accounts.names import names_of
from controlplane.devices.findings import records
from controlplane.devices.findings.rules import DEVICE
from controlplane.devices.findings.storing import RECENT
from controlplane.devices.findings.sums import Sums, sums_of
from controlplane.devices.overview.records import PrinterStateName
from controlplane.devices.overview.report_contents import PrinterState
from controlplane.operation.context import RequestContext
from controlplane.storage.report_tables import DevicePrinter, JudgedReport, PrinterProblem
from controlplane.storage.tables import Device

PERIOD: Final = timedelta(days=30)


@dataclass(slots=True)
class _Printer:
    """How long and how often a printer was broken."""

    name: str = ""
    seconds: float = 0.0
    count: int = 0

    def add(self, name: str, duration: timedelta) -> None:
        self.name = name
        self.seconds += duration.total_seconds()
        self.count += 1


def worst_printers(
    context: RequestContext, body: records.WorstPrintersRequest
) -> records.WorstPrintersReply:
    """Return the printers that were broken longest.

    If a device has no recent network report, the time after its newest one does not count.
    """
    sums = sums_of(context, body)
    printers = _broken_printers(sums)
    size = body.size or records.PRINTERS_DEFAULT
    worst = nsmallest(size, ((-each.seconds, key) for key, each in printers.items()))
    unknown = sums.count(DEVICE) - sums.count("network")
    return records.WorstPrintersReply(
        printers=_records(sums, [(*key, printers[key]) for _, key in worst]),
        unknown_count=unknown,
    )


def _broken_printers(sums: Sums) -> dict[tuple[int, str], _Printer]:
    """Return how long each printer was broken, by row key of the device and id of the printer."""
    context = sums.context
    start = context.now - PERIOD
    matching = sums.device_keys()
    printers: defaultdict[tuple[int, str], _Printer] = defaultdict(_Printer)
    begin_in_period = case((PrinterProblem.since > start, PrinterProblem.since), else_=start)
    ended = select(
        PrinterProblem.device,
        PrinterProblem.printer_id,
        PrinterProblem.name,
        # These columns are read without `UtcDateTime`, whose conversion takes as long as the query.
        type_coerce(begin_in_period, DateTime),
        type_coerce(PrinterProblem.until, DateTime),
    ).where(context.visible(PrinterProblem), PrinterProblem.until >= start)
    if sums.filters.location is not None:
        # Because of `+ 0`, SQLite reads the problems first, and then the devices.
        ended = ended.where((PrinterProblem.device + 0).in_(sums.positions))
    for device, printer_id, name, begin, end in context.session.execute(ended):
        if str(device) in matching:
            printers[device, printer_id].add(name, end - begin)
    current = (
        select(
            DevicePrinter.device,
            DevicePrinter.printer_id,
            DevicePrinter.name,
            DevicePrinter.since,
            JudgedReport.arrived_at,
        )
        .join(
            JudgedReport,
            (JudgedReport.device == DevicePrinter.device) & (JudgedReport.kind == "network"),
        )
        .where(
            DevicePrinter.organization_id == context.organization_id,
            DevicePrinter.state == PrinterState.BROKEN,
        )
    )
    for device, printer_id, name, since, arrived_at in context.session.execute(current):
        until = context.now if arrived_at >= context.now - RECENT else arrived_at
        if until > start and str(device) in matching:
            printers[device, printer_id].add(name, until - max(since, start))
    return printers


def _records(
    sums: Sums, printers: list[tuple[int, str, _Printer]]
) -> tuple[records.WorstPrinter, ...]:
    context = sums.context
    positions = {position for position, _, _ in printers}
    query = select(Device).where(Device.position.in_(positions))
    devices = {each.position: each for each in context.session.scalars(query)}
    names = names_of(
        context.session, ((each.organization_id, each.location_id) for each in devices.values())
    )
    states = _read_states(context, positions)
    results = []
    for position, printer_id, printer in printers:
        device = devices[position]
        results.append(
            records.WorstPrinter(
                id=printer_id,
                name=printer.name,
                state=states.get((position, printer_id)),
                broken_seconds=round(printer.seconds),
                broken_count=printer.count,
                instance_id=device.instance_id,
                device_name=device.legacy_install_id,
                location_id=device.location_id,
                location_name=names.location(device.organization_id, device.location_id),
                link=f"/#/device/{device.instance_id}",
            )
        )
    return tuple(results)


def _read_states(
    context: RequestContext, positions: set[int]
) -> dict[tuple[int, str], PrinterStateName]:
    names: dict[int, PrinterStateName] = {
        PrinterState.BROKEN: "broken",
        PrinterState.WARNING: "warning",
        PrinterState.UNKNOWN: "unknown",
        PrinterState.HEALTHY: "healthy",
    }
    query = (
        select(DevicePrinter.device, DevicePrinter.printer_id, DevicePrinter.state)
        .join(
            JudgedReport,
            (JudgedReport.device == DevicePrinter.device) & (JudgedReport.kind == "network"),
        )
        .where(
            DevicePrinter.device.in_(positions),
            JudgedReport.arrived_at >= context.now - RECENT,
        )
    )
    return {(row[0], row[1]): names[row[2]] for row in context.session.execute(query)}
