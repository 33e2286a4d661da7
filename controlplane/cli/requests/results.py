"""What came of it: a line for each device with its report's headline, and the reports as files."""

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agent.presentation.headline import headline_of
from agent.presentation.severity import Severity
from agent.presentation.terminal.blocks import STYLES
from agent.wire.codec import encode_indented
from agent.wire.operator_operations import ReportDetail, ReportDetailRequest
from controlplane.cli.devices.filters import place_of
from controlplane.cli.requests.waiting import Asked
from controlplane.cli.tables import (
    console,
    ids_of,
    is_piped,
    print_note,
    print_rows,
    print_rows_with_sentences,
    status_text,
    text_of,
)
from controlplane.client.errors import CommandError
from controlplane.client.operations import OperationsClient

_UNSAFE: Final = re.compile(r"[^\w.-]+", re.ASCII)
NAME_MAX: Final = 60
WIDE: Final = 120
"""Columns from which on a headline fits beside the rest."""


@dataclass(frozen=True, slots=True)
class Result:
    asked: Asked
    report: ReportDetail | None
    headline: str
    tone: Severity

    @property
    def is_good(self) -> bool:
        return self.asked.status in {"completed", "partial"} and not self.asked.trouble


def result_of(client: OperationsClient, asked: Asked) -> Result:
    """Read the newest report of a request, if it has one, and what it says in a sentence."""
    if asked.trouble:
        return Result(asked, None, asked.trouble, "bad")
    if not asked.report_ids:
        said = "It was not taken in time." if asked.status == "expired" else ""
        return Result(asked, None, said, "muted")
    report_id = asked.report_ids[0]
    try:
        report = client.report(ReportDetailRequest(report_id=report_id))
    except CommandError as error:
        return Result(asked, None, f"its report cannot be read: {error}", "warn")
    if report.payload is None:
        return Result(asked, report, f"No report: {report.failure_reason or 'it failed'}.", "bad")
    headline = headline_of(report.payload)
    return Result(asked, report, headline.verdict, headline.severity)


def print_results(results: list[Result]) -> None:
    """Print a row for each; a headline has a line of its own where there is no room beside."""
    ids = ids_of(each.report.id for each in results if each.report)
    rows = [
        (
            text_of(each.asked.device.legacy_install_id),
            text_of(place_of(each.asked.device)),
            status_text(each.asked.status or "–"),
            ids[each.report.id] if each.report else "–",
        )
        for each in results
    ]
    sentences = [text_of(each.headline, STYLES[each.tone]) for each in results]
    headings = ("device", "location", "outcome", "report")
    if is_piped() or console().width >= WIDE:
        beside = [(*row, sentence) for row, sentence in zip(rows, sentences, strict=True)]
        print_rows((*headings, "headline"), beside, "No device was asked.")
    elif results:
        print_rows_with_sentences(headings, rows, sentences)
    if results:
        print_note(_counted(results))


def _counted(results: list[Result]) -> str:
    """Return ``12 devices: 10 completed, 2 expired``."""
    counts = Counter(each.asked.status or "not asked" for each in results).most_common()
    noun = "device" if len(results) == 1 else "devices"
    return f"{len(results)} {noun}: {', '.join(f'{count} {word}' for word, count in counts)}"


def save(result: Result, directory: Path) -> None:
    """Write the record as JSON, and its page where it has a payload. Raises CommandError."""
    if result.report is None:
        return
    from agent.presentation.page.html import report_page  # templates only where saved

    report, device = result.report, result.asked.device
    name = _UNSAFE.sub("_", device.legacy_install_id)[:NAME_MAX].strip("._") or "device"
    stem = f"{name}-{str(device.instance_id)[:8]}-{report.kind}"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        record = encode_indented(report) + "\n"
        (directory / f"{stem}.json").write_text(record, encoding="utf-8")
        if report.payload is not None:
            page = report_page(report.payload)
            (directory / f"{stem}.html").write_text(page, encoding="utf-8")
    except OSError as error:
        raise CommandError(f"cannot write to {directory}: {error.strerror}") from error
