"""``venue-control report``: a report as tables, as JSON or as a page."""

import argparse
import sys
from pathlib import Path

from agent.wire.codec import encode_indented
from agent.wire.operator_operations import ReportDetail, ReportDetailRequest
from controlplane.cli.connection import client_of, id_of
from controlplane.cli.errors import CommandError


def show(options: argparse.Namespace) -> int:
    body = ReportDetailRequest(report_id=id_of(options.id, "report"))
    with client_of(options) as client:
        report = client.report(body)
    if options.json:
        sys.stdout.write(encode_indented(report) + "\n")
    elif options.html is not None:
        _write_page(report, Path(options.html))
    else:
        _show(report)
    return 0


def _write_page(report: ReportDetail, path: Path) -> None:
    if report.payload is None:
        raise _no_payload(report)
    from agent.presentation.page.html import report_page  # templates only where shown

    try:
        path.write_text(report_page(report.payload), encoding="utf-8")
    except OSError as error:
        raise CommandError(f"cannot write {path}: {error.strerror}") from error
    sys.stdout.write(f"wrote {path}\n")


def _show(report: ReportDetail) -> None:
    if report.payload is None:
        raise _no_payload(report)
    from agent.presentation.terminal.report import report_view  # rich only where shown
    from controlplane.cli.tables import console

    console().print(report_view(report.payload))


def _no_payload(report: ReportDetail) -> CommandError:
    reason = f": {report.failure_reason}" if report.failure_reason else ""
    return CommandError(f"the report {report.id} has no content, it {report.outcome}{reason}")
