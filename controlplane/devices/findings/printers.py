"""The printers that were broken for the longest time in the last thirty days."""

from collections.abc import Iterator
from datetime import timedelta
from itertools import islice
from typing import Final, NamedTuple

from sqlalchemy import case, extract, func, literal, select, union_all

from controlplane.accounts.names import names_of
from controlplane.devices.findings import records
from controlplane.devices.findings.rules import DEVICE
from controlplane.devices.findings.storing import RECENT
from controlplane.devices.findings.sums import ROWS_AT_ONCE, Sums, sums_of
from controlplane.devices.overview.report_contents import PrinterState
from controlplane.operation.context import RequestContext
from controlplane.operation.records import record_of
from controlplane.storage.report_tables import DevicePrinter, JudgedReport, PrinterProblem
from controlplane.storage.tables import Device, UtcDateTime

PERIOD: Final = timedelta(days=30)
_HAS_NEWEST_REPORT: Final = (JudgedReport.device == DevicePrinter.device) & (
    JudgedReport.kind == "network"
)
"""Joins each printer with the newest network report of its device, which lists the printer."""


class _Printer(NamedTuple):
    """How long and how often a printer was broken. ``device`` is a row key."""

    device: int
    id: str
    seconds: float
    problem_count: int


def worst_printers(
    context: RequestContext, body: records.WorstPrintersRequest
) -> records.WorstPrintersReply:
    """Return the printers that were broken longest.

    If a device has no recent network report, the time after its newest one does not count.
    """
    sums = sums_of(context, body)
    matching = sums.device_keys()
    printers = (each for each in _broken_printers(sums) if str(each.device) in matching)
    worst = list(islice(printers, body.size or records.PRINTERS_DEFAULT))
    unknown = sums.count(DEVICE) - sums.count("network")
    return records.WorstPrintersReply(printers=_records(context, worst), unknown_count=unknown)


def _broken_printers(sums: Sums) -> Iterator[_Printer]:
    """Yield the printers of the organization that were broken in `PERIOD`, the longest first.

    If the filters select a location, the result is complete only for the printers of this location.
    """
    context = sums.context
    start = literal(context.now - PERIOD, UtcDateTime)
    ended = select(
        PrinterProblem.device, PrinterProblem.printer_id, PrinterProblem.since, PrinterProblem.until
    ).where(context.visible(PrinterProblem), PrinterProblem.until > start)
    if sums.filters.location is not None:
        # Because of `+ 0`, SQLite reads the problems first, and then the devices.
        ended = ended.where((PrinterProblem.device + 0).in_(sums.positions))
    is_recent = JudgedReport.arrived_at >= context.now - RECENT
    until = case((is_recent, literal(context.now, UtcDateTime)), else_=JudgedReport.arrived_at)
    current = (
        select(DevicePrinter.device, DevicePrinter.printer_id, DevicePrinter.since, until)
        .join(JudgedReport, _HAS_NEWEST_REPORT)
        .where(
            DevicePrinter.organization_id == context.organization_id,
            DevicePrinter.state == PrinterState.BROKEN,
            until > start,
        )
    )
    periods = union_all(ended, current).subquery()
    device, printer_id, since, end = periods.c
    begin = case((since > start, since), else_=start)
    seconds = func.sum(extract("epoch", end) - extract("epoch", begin))
    query = (
        select(device, printer_id, seconds, func.count())
        .group_by(device, printer_id)
        .order_by(seconds.desc(), device, printer_id)
        .execution_options(yield_per=ROWS_AT_ONCE)
    )
    with context.session.execute(query) as rows:
        for row in rows:
            yield _Printer(*row)


def _records(context: RequestContext, printers: list[_Printer]) -> tuple[records.WorstPrinter, ...]:
    positions = {each.device for each in printers}
    query = select(Device).where(Device.position.in_(positions))
    devices = {each.position: each for each in context.session.scalars(query)}
    locations = names_of(
        context.session, ((each.organization_id, each.location_id) for each in devices.values())
    )
    names_and_states = _read_names_and_states(context, positions)
    results = []
    for printer in printers:
        device = devices[printer.device]
        name, state = names_and_states[printer.device, printer.id]
        results.append(
            record_of(
                records.WorstPrinter,
                device,
                id=printer.id,
                name=name,
                state=state,
                broken_seconds=round(printer.seconds),
                broken_count=printer.problem_count,
                device_name=device.legacy_install_id,
                location_name=locations.location(device.organization_id, device.location_id),
                link=f"/#/device/{device.instance_id}",
            )
        )
    return tuple(results)


def _read_names_and_states(
    context: RequestContext, positions: set[int]
) -> dict[tuple[int, str], tuple[str, str | None]]:
    """Return the newest name and the present state of each printer that these devices have had.

    The state is None if the newest report does not list the printer, or is not recent.
    """
    problem, printer = PrinterProblem, DevicePrinter
    ended = select(problem.device, problem.printer_id, problem.name)
    rows = context.session.execute(
        ended.where(problem.device.in_(positions)).order_by(problem.until)
    )
    results: dict[tuple[int, str], tuple[str, str | None]] = {
        (device, printer_id): (name, None) for device, printer_id, name in rows
    }
    is_recent = JudgedReport.arrived_at >= context.now - RECENT
    newest = select(printer.device, printer.printer_id, printer.name, printer.state, is_recent)
    query = newest.join(JudgedReport, _HAS_NEWEST_REPORT).where(printer.device.in_(positions))
    for device, printer_id, name, state, has_state in context.session.execute(query):
        state_name = PrinterState(state).name.lower() if has_state else None
        results[device, printer_id] = (name, state_name)
    return results
