"""``venue-control demo``: the whole loop on one machine, with real processes and real reports.

This service on loopback, an agent enrolled at it, one request for each kind of report, and the
reports as the service hands them out. Only this machine is looked at unless ``--lan`` asks for its
private networks as well.
"""

import argparse
import contextlib
import json
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from rich.text import Text

from agent.presentation.page.html import report_page
from agent.presentation.terminal.report import report_view
from agent.wire.codec import encode_indented
from agent.wire.operator_operations import CreateRequestRequest, Device, ReportDetailRequest
from agent.wire.vocabulary import Kind
from controlplane.accounts.key_store import DEFAULT_ORGANIZATION, create_key
from controlplane.cli.errors import CommandError
from controlplane.cli.keys import in_database
from controlplane.cli.requests import wait
from controlplane.cli.tables import console
from controlplane.client.operations import OperationsClient, connect
from controlplane.clock import system_clock

LOCATION = "demo-venue"
KINDS: tuple[Kind, ...] = ("network", "application")
PYTHON = (sys.executable, "-I", "-m")
"""Isolated: neither the current directory nor PYTHONPATH says what is run."""
START_WITHIN_S = 30.0
REPORT_WITHIN_S = 90
POLL_S = 0.1
STOP_WITHIN_S = 15

Found = TypeVar("Found")


def run(options: argparse.Namespace) -> int:
    """Exit 0 when both reports came back completed or partial."""
    home = options.dir.absolute()
    shutil.rmtree(home, ignore_errors=True)
    try:
        home.mkdir(parents=True, mode=0o700)
    except OSError as error:
        raise CommandError(f"cannot make {home}: {error.strerror}") from error
    _say(_scope_in_words(lan=options.lan))
    with _service(home) as base_url:
        _say(f"service on {base_url}, its console on {base_url}/")
        _make_key(home)
        _write_config(home, base_url, lan=options.lan)
        with _agent(home, base_url) as (client, device):
            _say(f"agent enrolled as {device.instance_id} at {device.location_id}")
            outcomes = {_show_report(client, device, kind, home) for kind in KINDS}
            _say(f"reports, pages, logs and state are in {home}")
            if options.keep or (sys.stdin.isatty() and sys.stdout.isatty()):
                _say(f"console: {base_url}/  API key: {home / 'api-key'}")
                _wait_for_ctrl_c()
            else:
                _say("service and agent end now; --keep leaves them and the console")
    return 0 if outcomes <= {"completed", "partial"} else 1


def _scope_in_words(*, lan: bool) -> str:
    if lan:
        return "this demo looks at this machine and at its private networks (--lan)"
    return (
        "this demo looks at this machine only: its interfaces and its loopback address;"
        " `venue-control demo --lan` includes the private networks"
    )


@contextlib.contextmanager
def _service(home: Path) -> Iterator[str]:
    """Run the service on a free port of loopback; yield its base address."""
    words = ("controlplane", "serve", "--port", "0", "--request-ttl", str(REPORT_WITHIN_S))
    output = home / "service.out"
    with _process((*words, "--database", _database(home)), home, "service") as process:
        address = _until(
            lambda: re.search(r"listening on (\S+)\n", output.read_text()),
            process,
            f"the service did not start: see {home / 'service.log'}",
        )
        yield address[1]


@contextlib.contextmanager
def _agent(home: Path, base_url: str) -> Iterator[tuple[OperationsClient, Device]]:
    """Run the agent; yield what speaks to the service as an operator, and the agent's device."""
    words = ("agent", "run", "--config", str(home / "config.toml"))
    with (
        _process(words, home, "agent") as process,
        connect(base_url, str(home / "api-key"), {}) as client,
    ):
        device = _until(
            lambda: next((d for d in client.devices()[0] if d.last_seen_at > d.created_at), None),
            process,
            f"the agent did not enroll: see {home / 'agent.log'}",
        )
        yield client, device


@contextlib.contextmanager
def _process(words: Sequence[str], home: Path, name: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a module with its output in ``home``; stop it cleanly at the end."""
    with (home / f"{name}.out").open("wb") as out, (home / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            (*PYTHON, *words), stdout=out, stderr=log, start_new_session=True
        )
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(STOP_WITHIN_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _until(
    look: Callable[[], Found | None], process: subprocess.Popen[bytes], failure: str
) -> Found:
    """Return what ``look`` finds while ``process`` runs. Raises CommandError with ``failure``."""
    deadline = time.monotonic() + START_WITHIN_S
    while time.monotonic() < deadline and process.poll() is None:
        if (found := look()) is not None:
            return found
        time.sleep(POLL_S)
    raise CommandError(failure)


def _make_key(home: Path) -> None:
    _, key = in_database(
        _database(home),
        lambda session: create_key(
            session,
            name="demo",
            can_write=True,
            locations=[LOCATION],
            organization_id=DEFAULT_ORGANIZATION,
            now=system_clock(),
        ),
    )
    path = home / "api-key"
    path.touch(mode=0o600)
    path.write_text(key + "\n")


def _write_config(home: Path, base_url: str, *, lan: bool) -> None:
    quote = json.dumps  # a JSON string is a TOML basic string
    (home / "config.toml").write_text(
        f"[service]\nbase_url = {quote(base_url)}\nlocation_id = {quote(LOCATION)}\n"
        f"api_key_file = {quote(str(home / 'api-key'))}\n\n"
        f"[device]\nstate_dir = {quote(str(home / 'state'))}\n\n"
        f"[network]\ndevice_only = {quote(not lan)}\n"
    )


def _show_report(client: OperationsClient, device: Device, kind: Kind, home: Path) -> str:
    """Ask for a report as an operator would, keep and show it; return its outcome."""
    _say(f"requesting the {kind} report ...")
    began = time.monotonic()
    body = CreateRequestRequest(instance_id=device.instance_id, kind=kind)
    request, report_ids = wait(client, device.instance_id, client.create_request(body))
    if not report_ids:
        raise CommandError(f"no {kind} report came back: the request is {request.status}")
    report = client.report(ReportDetailRequest(report_id=report_ids[-1]))
    (home / f"{kind}.json").write_text(encode_indented(report) + "\n", encoding="utf-8")
    _say(f"{kind} report {report.outcome} after {time.monotonic() - began:.1f} s")
    if report.payload is not None:
        (home / f"{kind}.html").write_text(report_page(report.payload), encoding="utf-8")
        console().print(report_view(report.payload))
        console().print()
    return report.outcome


def _wait_for_ctrl_c() -> None:
    _say("the service and the agent keep running: Ctrl-C ends them")
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            time.sleep(3600)


def _database(home: Path) -> str:
    return f"sqlite:///{home / 'service.db'}"


def _say(text: str) -> None:
    console().print(Text.assemble(("demo  ", "bold"), text))
