"""`venue-agent demo`: the whole loop on one machine, with real processes and real reports.

A reference service on loopback, this agent enrolled at it, one request for each kind of report,
and the reports as the service hands them out. Only this machine is looked at unless `--lan` asks
for its private networks as well.
"""

import argparse
import contextlib
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.text import Text

from agent.adapters.storage.state import StateDirectory
from agent.adapters.storage.status_file import BindingStatus, StatusFile
from agent.errors import AgentError
from agent.presentation.page.html import report_page
from agent.presentation.terminal.report import report_view
from agent.wire.codec import validate
from agent.wire.payloads.by_kind import PAYLOADS

LOCATION: Final = "demo-venue"
KINDS: Final = ("network", "application")
SERVICE_NEEDS: Final = ("controlplane", "starlette", "uvicorn", "sqlalchemy")
ISOLATED: Final = ("-I", "-m")
"""Neither the current directory nor PYTHONPATH says what is run."""
START_WITHIN_S: Final = 30.0
REPORT_WITHIN_S: Final = 120.0
LOOK_EVERY_S: Final = 0.05


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--lan", action="store_true", help="look at this machine's private networks as well"
    )
    parser.add_argument(
        "--dir", type=Path, default=Path(".demo"), help="where everything is kept (default .demo)"
    )
    parser.add_argument("--keep", action="store_true", help="keep the service until Ctrl-C")


def run(options: argparse.Namespace) -> int:
    """Exit 0 when both reports came back completed or partial."""
    _require_the_service()
    console = Console(highlight=False)
    home = options.dir.absolute()
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True, mode=0o700)
    _say(console, _scope_in_words(lan=options.lan))
    with _service(home) as base_url:
        _say(console, f"service on {base_url}, its console on {base_url}/")
        key = _make_key(home)
        _write_config(home, base_url, lan=options.lan)
        with _process([*_agent(), "run", "--config", str(home / "config.toml")], home, "agent"):
            binding = _wait_for_enrollment(home)
            _say(console, f"agent enrolled as {binding.instance_id} at {binding.location_id}")
            control = _Control(base_url, key)
            outcomes = [_show_report(console, control, binding, kind, home) for kind in KINDS]
            _say(console, f"reports, pages, logs and state are in {home}")
            if options.keep or (sys.stdin.isatty() and sys.stdout.isatty()):
                _say(console, f"console: {base_url}/  API key: {home / 'api-key'}")
                _wait_for_the_person(console)
            else:
                _say(console, "service and agent end now; --keep leaves them and the console")
    return 0 if all(outcome in {"completed", "partial"} for outcome in outcomes) else 1


def _require_the_service() -> None:
    """Raise AgentError where the reference service is not installed, before anything is written."""
    if any(importlib.util.find_spec(name) is None for name in SERVICE_NEEDS):
        raise AgentError(
            "the demo needs the reference service: pip install 'venue-agent[controlplane]'"
        )


def _scope_in_words(*, lan: bool) -> str:
    if lan:
        return "this demo looks at this machine and at its private networks (--lan)"
    return (
        "this demo looks at this machine only: its interfaces and its loopback address;"
        " `venue-agent demo --lan` includes the private networks"
    )


@contextlib.contextmanager
def _service(home: Path) -> Iterator[str]:
    """Run the reference service on a free port of loopback; yield its base address."""
    command = [*_controlplane(), "serve", "--port", "0", "--database", _database(home)]
    with _process(command, home, "service") as process:
        deadline = time.monotonic() + START_WITHIN_S
        while time.monotonic() < deadline and process.poll() is None:
            output = (home / "service.out").read_text()
            if "\n" in output and "listening on " in output:
                yield output.partition("listening on ")[2].splitlines()[0]
                return
            time.sleep(LOOK_EVERY_S)
        raise AgentError(f"the service did not start: see {home / 'service.log'}")


@contextlib.contextmanager
def _process(command: list[str], home: Path, name: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process with its output in ``home``; stop it cleanly at the end."""
    with (home / f"{name}.out").open("wb") as out, (home / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=out, stderr=log, start_new_session=True)
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(timeout=15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _make_key(home: Path) -> str:
    command = [*_controlplane(), "keys", "create", "--write", "--location", LOCATION]
    output = _output_of([*command, "--database", _database(home)])
    key = output.split()[0]
    path = home / "api-key"
    path.touch(mode=0o600)
    path.write_text(key + "\n")
    return key


def _write_config(home: Path, base_url: str, *, lan: bool) -> None:
    quote = json.dumps  # a JSON string is a TOML basic string
    (home / "config.toml").write_text(
        f"[service]\nbase_url = {quote(base_url)}\nlocation_id = {quote(LOCATION)}\n"
        f"api_key_file = {quote(str(home / 'api-key'))}\n\n"
        f"[device]\nstate_dir = {quote(str(home / 'state'))}\n\n"
        f"[network]\ndevice_only = {quote(not lan)}\n"
    )


def _wait_for_enrollment(home: Path) -> BindingStatus:
    file = StatusFile(StateDirectory(home / "state"))
    deadline = time.monotonic() + START_WITHIN_S
    while time.monotonic() < deadline:
        status = file.read()
        if status is not None and status.binding is not None and status.last_heartbeat_at:
            return status.binding
        time.sleep(LOOK_EVERY_S)
    raise AgentError(f"the agent did not enroll: see {home / 'agent.log'}")


class _Control:
    """Asks for reports as an operator would: through the public facade, by `venue-control`."""

    def __init__(self, base_url: str, key: str) -> None:
        self._environment = {
            **os.environ,
            "VENUE_CONTROL_URL": base_url,
            "VENUE_CONTROL_API_KEY": key,
        }

    def report_id(self, instance_id: str, kind: str) -> str:
        """Request a report and return its id once it is there."""
        command = [*_controlplane(), "request", instance_id, kind, "--wait"]
        lines = _output_of(command, self._environment).splitlines()
        found = [line.split()[1] for line in lines if line.startswith("report ")]
        if not found:
            raise AgentError(f"no {kind} report came back: {lines[-1] if lines else 'no answer'}")
        return found[-1]

    def report(self, report_id: str) -> str:
        """Return a report's detail as JSON (remoteControl/reportDetail)."""
        return _output_of([*_controlplane(), "report", report_id, "--json"], self._environment)


def _show_report(
    console: Console, control: _Control, binding: BindingStatus, kind: str, home: Path
) -> str:
    _say(console, f"requesting the {kind} report ...")
    began = time.monotonic()
    detail_text = control.report(control.report_id(binding.instance_id, kind))
    (home / f"{kind}.json").write_text(detail_text)
    detail = json.loads(detail_text)
    _say(console, f"{kind} report {detail['outcome']} after {time.monotonic() - began:.1f} s")
    if detail["payload"] is not None:
        payload = validate(detail["payload"], PAYLOADS[detail["kind"]])
        (home / f"{kind}.html").write_text(report_page(payload), encoding="utf-8")
        console.print(report_view(payload))
        console.print()
    return str(detail["outcome"])


def _wait_for_the_person(console: Console) -> None:
    _say(console, "the service and the agent keep running: Ctrl-C ends them")
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            time.sleep(3600)


def _output_of(command: list[str], environment: dict[str, str] | None = None) -> str:
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=REPORT_WITHIN_S,
            check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise AgentError(f"no answer in {REPORT_WITHIN_S:.0f} s: {' '.join(command)}") from None
    if done.returncode:
        words = done.stderr.strip().splitlines()
        raise AgentError(words[-1] if words else f"exit code {done.returncode}: {command}")
    return done.stdout


def _agent() -> list[str]:
    return [sys.executable, *ISOLATED, "agent"]


def _controlplane() -> list[str]:
    return [sys.executable, *ISOLATED, "controlplane"]


def _database(home: Path) -> str:
    return f"sqlite:///{home / 'service.db'}"


def _say(console: Console, text: str) -> None:
    console.print(Text.assemble(("demo  ", "bold"), text))
