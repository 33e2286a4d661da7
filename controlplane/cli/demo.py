"""``venue-control demo``: a service, an agent and their reports on one machine.

The processes and reports are real. The venue is simulated (``controlplane.demo``), unless ``--lan``
is given. The service listens on loopback, the agent enrolls with it, and each kind of report is
requested once.
"""

import argparse
import contextlib
import os
import sys
import time
from pathlib import Path

from rich.padding import Padding
from rich.text import Text

from agent.presentation.headline import headline_of
from agent.presentation.page.html import report_page
from agent.presentation.terminal.blocks import styled, words
from agent.wire.codec import encode_indented
from agent.wire.operator_operations import Device, ReportDetail, ReportDetailRequest
from agent.wire.vocabulary import Kind
from controlplane.cli.requests.batch import RequestBatch
from controlplane.cli.screen.tables import console
from controlplane.client.connection import connect
from controlplane.client.errors import CommandError
from controlplane.client.operations import OperationsClient
from controlplane.demo.directory import claim_directory
from controlplane.demo.environment import set_up_environment
from controlplane.demo.processes import Processes
from controlplane.demo.programs import MACHINE, start_agent, start_service

REPORT_POLL_S = 0.2
FINDINGS_MAX = 3
"""Maximum number of findings of a report on the terminal. Its HTML page has all findings."""
KINDS: tuple[Kind, ...] = ("network", "application")


def run(options: argparse.Namespace) -> int:
    """Run the demo. Returns 0 if both reports are completed or partial, otherwise 1."""
    if getattr(sys, "frozen", False):
        raise CommandError(
            "this package has no demo, because it does not include the agent",
            "Use the wheel, or `make demo` in a checkout.",
        )
    directory = options.dir.absolute()
    with claim_directory(directory) as lock, Processes(directory, lock) as processes:
        try:
            environment = set_up_environment(processes, is_real=options.lan)
        except OSError as error:
            raise CommandError(f"cannot simulate the venue: {error.strerror}") from error
        _print(environment.description)
        base_url, link = start_service(processes, environment)
        with connect(base_url, str(directory / "api-key"), {}) as client:
            device = start_agent(processes, environment, client, base_url)
            _print(f"The service is at {base_url}. The agent has enrolled as {MACHINE}.")
            reports = request_reports(client, device)
        for report in reports:
            save_report(report, directory)
            _show(report)
        for report in reports:
            if report.payload is not None:
                print(f"Page: {_relative(directory / f'{report.kind}.html')}", flush=True)
        if options.keep:
            _print("Open the console with this link, which works once. Ctrl-C ends the demo.")
            print(link, flush=True)
            _wait_for_ctrl_c()
        else:
            _print(
                "The service and the agent end now. To keep them running, use --keep (with make:"
                " ARGS=--keep)."
            )
    return 0 if {report.outcome for report in reports} <= {"completed", "partial"} else 1


def request_reports(client: OperationsClient, device: Device) -> list[ReportDetail]:
    """Request both reports at the same time, as an operator does, and return them."""
    start_s = time.monotonic()
    batches = [RequestBatch(client, kind, raises=True, poll_s=REPORT_POLL_S) for kind in KINDS]
    for batch in batches:
        batch.create([device])
    reports = [_wait_for_report(client, batch) for batch in batches]
    _print(f"Both reports were requested and arrived after {time.monotonic() - start_s:.1f} s.")
    return reports


def _wait_for_report(client: OperationsClient, batch: RequestBatch) -> ReportDetail:
    batch.wait()
    (request,) = batch.requests
    if not request.report_ids:
        raise CommandError(f"a request has no report: its status is {request.status}")
    return client.report(ReportDetailRequest(report_id=request.report_ids[0]))


def save_report(report: ReportDetail, directory: Path) -> None:
    (directory / f"{report.kind}.json").write_text(encode_indented(report) + "\n", encoding="utf-8")
    if report.payload is not None:
        (directory / f"{report.kind}.html").write_text(
            report_page(report.payload), encoding="utf-8"
        )


def _show(report: ReportDetail) -> None:
    """Print the duration and the counts of a report, its outcome and its most severe findings."""
    payload = report.payload
    if payload is None:
        reason = report.failure_reason or "it has no content"
        _print(f"The {report.kind} report {report.outcome}: {reason}")
        return
    headline = headline_of(payload)
    values = {row.label: row.value for row in headline.rows}
    measured_values = [
        values[label] for label in ("Duration", "Contents", "Facts") if label in values
    ]
    heading = Text.assemble((headline.title, "bold"), ": ", ", ".join(measured_values))
    console().print(heading)
    _print_indented(styled(headline.outcome, headline.outcome_severity))
    if not headline.findings:
        _print_indented(styled(headline.verdict, headline.severity))
    for finding in headline.findings[:FINDINGS_MAX]:
        sentence = Text.assemble(
            styled(finding.label, finding.severity), f": {finding.sentences[0]}"
        )
        _print_indented(sentence)
    listed_count = min(FINDINGS_MAX, len(headline.findings))
    if more := sum(finding.count for finding in headline.findings) - listed_count:
        _print_indented(words(f"and {more} more on its page", "dim"))


def _print_indented(text: Text) -> None:
    console().print(Padding(text, (0, 0, 0, 2), expand=False))


def _relative(path: Path) -> str:
    """Return the path relative to the current directory if the path is in this directory."""
    return os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path)


def _wait_for_ctrl_c() -> None:
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            time.sleep(3600)


def _print(text: str) -> None:
    console().print(Text(text))
