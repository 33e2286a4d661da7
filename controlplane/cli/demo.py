"""``venue-control demo``: the whole loop on one machine, with real processes and real reports.

A venue is played (``controlplane.demo``); this service on loopback, an agent enrolled at it, one
request for each kind of report, and the reports as the service hands them out.
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
from agent.wire.operator_operations import (
    CreateRequestReply,
    CreateRequestRequest,
    Device,
    ReportDetail,
    ReportDetailRequest,
)
from agent.wire.vocabulary import Kind
from controlplane.cli.requests.waiting import wait
from controlplane.cli.tables import console
from controlplane.client.connection import connect
from controlplane.client.errors import CommandError
from controlplane.client.operations import OperationsClient
from controlplane.demo.loop import MACHINE, start_agent, start_service
from controlplane.demo.place import claimed
from controlplane.demo.processes import Processes
from controlplane.demo.stage import set_up

REPORT_POLL_S = 0.2
FINDINGS_MAX = 3
"""Shown of a report here; the pages have all."""
KINDS: tuple[Kind, ...] = ("network", "application")


def run(options: argparse.Namespace) -> int:
    """Exit 0 when both reports came back completed or partial."""
    if getattr(sys, "frozen", False):
        raise CommandError(
            "the demo is not in this package: it needs the agent beside the service",
            "It is in the wheel and in a checkout: `make demo`.",
        )
    home = options.dir.absolute()
    with claimed(home) as lock, Processes(home, lock) as processes:
        try:
            stage = set_up(processes, is_real=options.lan)
        except OSError as error:
            raise CommandError(f"the venue cannot be played: {error.strerror}") from error
        _say(stage.said)
        base_url, link = start_service(processes, stage)
        with connect(base_url, str(home / "api-key"), {}) as client:
            device = start_agent(processes, stage, client, base_url)
            _say(f"The service is on {base_url}, the agent enrolled there as {MACHINE}.")
            reports = reports_of(client, device)
        for report in reports:
            keep(report, home)
            _show(report)
        for kind in KINDS:
            _say_whole(f"Page: {_short(home / f'{kind}.html')}")
        if options.keep:
            _say("The console, signed in by this link, once. Ctrl-C ends it.")
            _say_whole(link)
            _wait_for_ctrl_c()
        else:
            _say("Service and agent end now; ARGS=--keep (--keep) leaves them and the console.")
    return 0 if {report.outcome for report in reports} <= {"completed", "partial"} else 1


def reports_of(client: OperationsClient, device: Device) -> list[ReportDetail]:
    """Ask for both reports as an operator would, at once; return them."""
    began = time.monotonic()
    asked = [
        client.create_request(CreateRequestRequest(instance_id=device.instance_id, kind=kind))
        for kind in KINDS
    ]
    reports = [_report(client, device, each) for each in asked]
    _say(f"Both reports were asked for and came after {time.monotonic() - began:.1f} s.")
    return reports


def _report(client: OperationsClient, device: Device, asked: CreateRequestReply) -> ReportDetail:
    request, report_ids = wait(client, device.instance_id, asked, poll_s=REPORT_POLL_S)
    if not report_ids:
        raise CommandError(f"no {request.kind} report came back: the request is {request.status}")
    return client.report(ReportDetailRequest(report_id=report_ids[-1]))


def keep(report: ReportDetail, home: Path) -> None:
    (home / f"{report.kind}.json").write_text(encode_indented(report) + "\n", encoding="utf-8")
    if report.payload is not None:
        (home / f"{report.kind}.html").write_text(report_page(report.payload), encoding="utf-8")


def _show(report: ReportDetail) -> None:
    """Show what was measured, how it ended, and the worst of what was found."""
    payload = report.payload
    if payload is None:
        _say(f"The {report.kind} report {report.outcome}: {report.failure_reason}")
        return
    headline = headline_of(payload)
    facts = {fact.label: fact.value for fact in headline.facts}
    measured = [facts[label] for label in ("Took", "Found", "Facts") if label in facts]
    heading = Text.assemble((headline.title, "bold"), ": ", ", ".join(measured))
    console().print(heading)
    _say_indented(styled(headline.outcome, headline.outcome_severity))
    if not headline.findings:
        _say_indented(styled(headline.verdict, headline.severity))
    for finding in headline.findings[:FINDINGS_MAX]:
        sentence = Text.assemble(
            styled(finding.label, finding.severity), f": {finding.sentences[0]}"
        )
        _say_indented(sentence)
    shown = min(FINDINGS_MAX, len(headline.findings))
    if more := sum(each.count for each in headline.findings) - shown:
        _say_indented(words(f"and {more} more, on its page", "dim"))


def _say_indented(text: Text) -> None:
    console().print(Padding(text, (0, 0, 0, 2), expand=False))


def _short(path: Path) -> str:
    """Return a path as one would type it here."""
    return os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path)


def _wait_for_ctrl_c() -> None:
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            time.sleep(3600)


def _say(text: str) -> None:
    console().print(Text(text))


def _say_whole(line: str) -> None:
    """Say what is copied as it is, however narrow the terminal."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
