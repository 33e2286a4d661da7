"""The results of requests: a row for each device with its headline, and the reports as files."""

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agent.presentation.headline import headline_of
from agent.presentation.humanize import counted
from agent.presentation.severity import STYLES, Severity
from agent.wire.codec import encode_indented
from agent.wire.operator_operations import ReportDetail, ReportDetailRequest
from controlplane.cli.devices.filters import location_of
from controlplane.cli.requests.batch import DeviceRequest
from controlplane.cli.screen.cells import NONE, Styled, status
from controlplane.cli.screen.output import print_note, print_records
from controlplane.cli.screen.tables import SHORT_ID
from controlplane.client.errors import CommandError
from controlplane.client.operations import OperationsClient

_UNSAFE: Final = re.compile(r"[^\w.-]+", re.ASCII)
NAME_MAX: Final = 60
"""Maximum number of characters of a device's name in the name of a file."""


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a request.

    ``headline`` is the verdict of the report, or the reason why there is no verdict. It is empty if
    the request has no report yet.
    """

    request: DeviceRequest
    report: ReportDetail | None
    headline: str
    severity: Severity

    @property
    def is_good(self) -> bool:
        return self.request.status in {"completed", "partial"} and not self.request.trouble


def result_of(client: OperationsClient, request: DeviceRequest) -> Result:
    """Read the newest report of a request, if there is one, and its headline."""
    if request.trouble:
        return Result(request, None, request.trouble, "bad")
    if not request.report_ids:
        headline = (
            "The request expired before a report arrived." if request.status == "expired" else ""
        )
        return Result(request, None, headline, "muted")
    report_id = request.report_ids[0]
    try:
        report = client.report(ReportDetailRequest(report_id=report_id))
    except CommandError as error:
        return Result(request, None, f"cannot read the report: {error}", "warn")
    if report.payload is None and report.outcome == "failed":
        return Result(request, report, f"No report: {report.failure_reason or 'it failed'}.", "bad")
    if report.payload is None:
        return Result(request, report, "The report has no content that can be shown.", "muted")
    summary = headline_of(report.payload)
    return Result(request, report, summary.verdict, summary.severity)


def print_results(results: list[Result]) -> None:
    """Print a row for each device. On a narrow terminal, the headline is on the next line."""
    print_records(
        results,
        {
            "device": lambda result: result.request.device.legacy_install_id,
            "location": lambda result: location_of(result.request.device),
            "outcome": lambda result: status(result.request.status or NONE),
            "report": lambda result: result.report.id if result.report else None,
            "headline": lambda result: Styled(result.headline, STYLES[result.severity]),
        },
        "No report was requested.",
        has_sentences=True,
    )
    if results:
        print_note(_summary(results))


def _summary(results: list[Result]) -> str:
    """Return ``12 devices: 10 completed, 2 expired``."""
    counts = Counter(result.request.outcome for result in results).most_common()
    outcomes = ", ".join(f"{count} {outcome}" for outcome, count in counts)
    return f"{counted(len(results), 'device')}: {outcomes}"


def save(result: Result, directory: Path) -> None:
    """Write the report as JSON, and as an HTML page if it has a payload. Raises CommandError."""
    if result.report is None:
        return
    from agent.presentation.page.html import report_page  # slow to import

    report, device = result.report, result.request.device
    name = _UNSAFE.sub("_", device.legacy_install_id)[:NAME_MAX].strip("._") or "device"
    stem = f"{name}-{str(device.instance_id)[:SHORT_ID]}-{report.kind}"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        record = encode_indented(report) + "\n"
        (directory / f"{stem}.json").write_text(record, encoding="utf-8")
        if report.payload is not None:
            page = report_page(report.payload)
            (directory / f"{stem}.html").write_text(page, encoding="utf-8")
    except OSError as error:
        raise CommandError(f"cannot write to {directory}: {error.strerror}") from error
