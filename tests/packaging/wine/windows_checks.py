"""Checks of the agent on Windows: run from its source, and as the packaged service.

Each step prints one line with its result. The first step that fails ends the run.
"""

import contextlib
import json
import re
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from agent import __version__
from tests.packaging.local_service import LOCATION, Json, LocalService, until
from tests.packaging.wine.wine import Wine

HOME: Final = r"C:\ProgramData\venue-agent"
PROGRAMS: Final = r"C:\Program Files"
EXECUTABLE: Final = rf"{PROGRAMS}\venue-agent\venue-agent.exe"
KEY_FILE: Final = r"C:\key.txt"
SERVICE_KEY: Final = r"HKLM\System\CurrentControlSet\Services\venue-agent"
EVENT_KEY: Final = r"HKLM\System\CurrentControlSet\Services\EventLog\Application\venue-agent"
WITHIN_S: Final = 900.0
"""Time-out of every wait. On a loaded machine, a Windows program needs half a minute to start."""
# The deadlines are long, because a report that reaches its deadline makes the agent unhealthy.
MORE_CONFIG: Final = """\
[heartbeat]
interval_seconds = 1
[network]
device_only = true
max_duration_seconds = 120
[application]
max_duration_seconds = 60
"""
# A report may be partial, because Wine has no PowerShell, performance counters or IPv6 neighbours.
ANSWERED: Final = frozenset({"completed", "partial"})
Step = Callable[[], None]


def print_ok(text: str) -> None:
    sys.stdout.write(f"ok  {text}\n")
    sys.stdout.flush()


def timed(action: Callable[[], Any]) -> float:
    began = time.monotonic()
    action()
    return time.monotonic() - began


class Checks:
    """The base class of `SourceChecks` and `PackageChecks`. If the directory ``keep`` is given,
    the payloads of the reports are written to it.
    """

    def __init__(self, wine: Wine, service: LocalService, keep: Path | None) -> None:
        self.wine = wine
        self.service = service
        self.keep = keep
        self.home = wine.path(HOME)
        self.device: Json = {}
        """The tested device, as the service lists it."""

    @property
    def steps(self) -> tuple[Step, ...]:
        raise NotImplementedError

    def agent(self, *words: str, expect: int | None = 0) -> subprocess.CompletedProcess[str]:
        raise NotImplementedError

    def run(self) -> None:
        """Run each step. If one fails, print the agent's log."""
        try:
            for step in self.steps:
                step()
        except (AssertionError, TimeoutError):
            log = self.home / "agent.log"
            sys.stderr.write(log.read_text() if log.exists() else "there is no log\n")
            raise

    def request_report(self, kind: str) -> Json:
        """Request a report and return it."""
        request_id = self.service.request(str(self.device["instanceId"]), kind)
        return self.wait_for_report(request_id)

    def wait_for_report(self, request_id: str) -> Json:
        instance_id = str(self.device["instanceId"])
        return until(lambda: self.service.report_of(instance_id, request_id), WITHIN_S)

    def collect_both_kinds(self, origin: str) -> None:
        for kind in ("application", "network"):
            report = self.request_report(kind)
            assert report["outcome"] in ANSWERED, report
            payload = report["payload"]
            if self.keep:
                file = self.keep / f"windows-{origin}-{kind}.json"
                file.write_text(json.dumps(payload, indent=1))
            assert payload["environment"]["osPlatform"] == "win32", payload["environment"]
            print_ok(
                f"{kind} report from {origin}: {report['outcome']}, failures {payload['failures']}"
            )

    def status(self) -> Json:
        document: Json = json.loads(self.agent("status", "--json", expect=None).stdout)
        return document

    def require_the_same_device(self) -> None:
        devices = self.service.devices()
        assert len(devices) == 1, devices
        names = ("instanceId", "bindingId")
        assert [devices[0][n] for n in names] == [self.device[n] for n in names], devices


class SourceChecks(Checks):
    """The agent in a Windows CPython, from this source tree.

    The short form leaves out the daemon and the network report. `PackageChecks` tests both with the
    packaged service.
    """

    def __init__(
        self, wine: Wine, service: LocalService, keep: Path | None, *, is_short: bool
    ) -> None:
        super().__init__(wine, service, keep)
        self.is_short = is_short

    @property
    def steps(self) -> tuple[Step, ...]:
        first = (
            self.print_the_version, self.import_everything, self.replace_a_file_that_is_read,
            self.check_the_configuration,
        )  # fmt: skip
        if self.is_short:
            return (*first, self.collect_application, self.delete_files)
        return (*first, self.run_the_daemon, self.collect_by_hand, self.delete_files)

    def agent(self, *words: str, expect: int | None = 0) -> subprocess.CompletedProcess[str]:
        return self.wine.python("-m", "agent", *words, expect=expect)

    def print_the_version(self) -> None:
        version = self.agent("--version").stdout.strip()
        assert version == f"venue-agent {__version__}", version
        print_ok(version)

    def import_everything(self) -> None:
        done = self.wine.python("-W", "error", "-m", "tests.packaging.wine.inside_wine", "imports")
        platform, number = done.stdout.split()
        assert platform == "win32", platform
        print_ok(f"all {number} modules of the agent and the collectors import on {platform}")

    def replace_a_file_that_is_read(self) -> None:
        done = self.wine.python("-m", "tests.packaging.wine.inside_wine", "replace-while-read")
        assert done.stdout == "replaced\n", done.stdout
        print_ok("a file is replaced while a reader has it open")

    def check_the_configuration(self) -> None:
        output = self.agent("status", expect=2).stdout
        assert output.startswith("not running"), output
        assert HOME in output, output
        self.home.mkdir()
        config = self.home / "config.toml"
        config.write_text('[service]\nbase_url = "nonsense"\nlocation_id = "x"\nwrong = 1\n')
        problems = self.agent("config", "check", expect=2).stderr.splitlines()
        assert len(problems) == 2, problems
        assert rf"{HOME}\config.toml:4:1: unknown key 'wrong'" in problems[1], problems
        config.write_text(
            f'[service]\nbase_url = "{self.service.base_url}"\nlocation_id = "{LOCATION}"\n'
            f"api_key_file = '{HOME}\\api-key'\n{MORE_CONFIG}"
        )
        (self.home / "api-key").write_text(self.service.api_key + "\r\n")
        assert self.agent("config", "check").stdout == f"{HOME}\\config.toml: ok\n"
        print_ok(f"config check: {problems[1].removeprefix('venue-agent: ')!r}, then ok")

    def run_the_daemon(self) -> None:
        with self.daemon():
            self.device = self.service.enrolled_device(WITHIN_S)
            print_ok(f"enrolled as {self.device['instanceId']}, platform {self.device['platform']}")
            self.collect_both_kinds("the source")
            until(lambda: self.status()["verdict"] == "healthy", WITHIN_S)
            error = self.agent("run", expect=1).stderr
            assert "already uses" in error, error
            rows = json.loads(self.agent("history", "--json").stdout)
            assert [row["state"] for row in rows] == ["submitted", "submitted"], rows
            print_ok(f"status: healthy; a second agent: {error.strip()!r}")
        until(lambda: self.status()["verdict"] == "not running", WITHIN_S)
        with self.daemon():
            assert self.request_report("application")["outcome"] in ANSWERED
            self.require_the_same_device()
        print_ok("killed and started: the same device answers")

    @contextlib.contextmanager
    def daemon(self) -> Iterator[None]:
        """Run the agent. It is killed afterwards, because Wine cannot send it Ctrl-C."""
        process = self.wine.start("-m", "agent", "run")
        with process:
            try:
                yield
            finally:
                process.kill()

    def collect_application(self) -> None:
        self.collect("application")
        print_ok("collect application: JSON and a page")

    def collect_by_hand(self) -> None:
        for kind in ("application", "network"):
            self.collect(kind)
            self.agent("collect", kind)
        print_ok("collect: both kinds as tables, JSON and a page")

    def collect(self, kind: str) -> None:
        words = ("collect", kind, "--json", "--html", rf"C:\{kind}.html")
        payload = json.loads(self.agent(*words).stdout)
        assert payload["environment"]["osPlatform"] == "win32", payload
        assert "<html" in self.wine.path(rf"C:\{kind}.html").read_text()

    def delete_files(self) -> None:
        for file in self.home.iterdir():
            file.unlink()
        self.home.rmdir()


class PackageChecks(Checks):
    """The zip's executable as a service of the Windows service manager."""

    def __init__(self, wine: Wine, service: LocalService, keep: Path | None, package: Path) -> None:
        super().__init__(wine, service, keep)
        self.package = package

    @property
    def steps(self) -> tuple[Step, ...]:
        return (
            self.unpack, self.report_that_it_is_not_installed, self.install_without_a_configuration,
            self.refuse_a_wrong_configuration, self.install_and_enroll,
            lambda: self.collect_both_kinds("the service"), self.stop_during_a_collection,
            self.replace_the_package,
            self.keep_state_when_uninstalled, self.purge_without_leftovers,
        )  # fmt: skip

    def agent(self, *words: str, expect: int | None = 0) -> subprocess.CompletedProcess[str]:
        return self.wine.run(EXECUTABLE, *words, expect=expect)

    def unpack(self) -> None:
        with zipfile.ZipFile(self.package) as packed:
            names = [name.lower() for name in packed.namelist()]
            assert not [name for name in names if "bcryptprimitives" in name], (
                "the package contains a stub"
            )
            packed.extractall(self.wine.path(PROGRAMS))
        version = self.agent("--version").stdout.strip()
        assert version == f"venue-agent {__version__}", version
        print_ok(f"unpacked to {PROGRAMS}: {len(names)} files, {version}")

    def report_that_it_is_not_installed(self) -> None:
        assert "not installed" in self.agent("service", "status", expect=1).stdout
        message = self.agent("service", "start", expect=1).stderr
        assert message.count("\n") == 1, message
        assert "service install" in message, message
        self.agent("service", "stop")
        print_ok(f"before it is installed: {message.strip()!r}")

    def install_without_a_configuration(self) -> None:
        output = self.agent("service", "install").stdout
        assert "not started: " in output, output
        assert "config.toml does not exist" in output, output
        status = self.agent("service", "status", expect=1).stdout
        assert "installed, starts at boot" in status, status
        assert "stopped" in status, status
        line = self.wine.run("reg", "query", SERVICE_KEY, "/v", "ImagePath").stdout
        assert f'"{EXECUTABLE}" windows-service' in line, line
        self.wine.run("reg", "query", EVENT_KEY, "/v", "EventMessageFile")
        print_ok("installed: starts at boot, and is not started without a configuration")

    def refuse_a_wrong_configuration(self) -> None:
        config = self.home / "config.toml"
        config.write_text("[service]\nwrong = 1\n")
        error = self.agent("service", "start", expect=1).stderr
        assert "ended at once with exit code 2" in error, error
        assert "unknown key 'wrong'" in (self.home / "agent.log").read_text()
        status = self.agent("service", "status", expect=1).stdout
        assert "last exit code 2" in status, status
        config.unlink()
        print_ok(f"with a wrong configuration: {error.strip()!r}")

    def install_and_enroll(self) -> None:
        self.wine.path(KEY_FILE).write_text(self.service.api_key + "\n")
        words = ("service", "install", "--base-url", self.service.base_url)
        words = (*words, "--location", LOCATION, "--api-key-file", KEY_FILE)
        seconds = timed(lambda: self.agent(*words))
        config = self.home / "config.toml"
        config.write_text(config.read_text() + MORE_CONFIG)
        self.agent("service", "stop")
        self.agent("service", "start")
        self.device = self.service.enrolled_device(WITHIN_S)
        pid = self.pid()
        assert "kept" in self.agent(*words).stdout, "a second install must keep the configuration"
        assert self.pid() == pid, "a second install must not restart the agent"
        until(lambda: self.status()["verdict"] == "healthy", WITHIN_S)
        assert self.status()["pid"] == pid, self.status()
        print_ok(
            f"installed and started in {seconds:.1f} s; enrolled; a second install changes nothing"
        )

    def pid(self) -> int:
        """Return the process id that the service manager reports for the service."""
        current_status = json.loads(self.agent("service", "status", "--json").stdout)
        return int(current_status["pid"])

    def stop_during_a_collection(self) -> None:
        request_id = self.service.request(str(self.device["instanceId"]), "application")
        until(lambda: "collecting" in self.written_status()["activity"], WITHIN_S)
        assert self.processes()
        # The time needs no check: `service stop` itself fails after 30 s (CHANGE_TIMEOUT_S).
        seconds = timed(lambda: self.agent("service", "stop"))
        assert '"stopped"' in (self.home / "agent.log").read_text().splitlines()[-1]
        assert self.written_status()["phase"] == "stopped", self.written_status()
        current_status = self.agent("service", "status", expect=1).stdout
        assert re.search(r"^ *now +stopped$", current_status, re.MULTILINE), current_status
        assert not self.processes(), self.processes()
        self.agent("service", "stop")
        self.agent("service", "start")
        self.agent("service", "start")
        assert self.wait_for_report(request_id)["outcome"] in ANSWERED
        print_ok(
            f"stopped in {seconds:.2f} s in the middle of a collection; answered after the start"
        )

    def written_status(self) -> Json:
        document: Json = json.loads((self.home / "status.json").read_bytes())
        return document

    def processes(self) -> list[int]:
        """Return the process ids that the processes of the package have on this machine."""
        program = EXECUTABLE.encode()
        results = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and program in (entry / "cmdline").read_bytes():
                    results.append(int(entry.name))
        return results

    def replace_the_package(self) -> None:
        self.agent("service", "stop")
        folder = self.wine.path(PROGRAMS) / "venue-agent"
        # Windows refuses to rename the directory of a running program. The move succeeds only if no
        # process of the package runs.
        old = rf"{PROGRAMS}\old"
        self.wine.run("cmd", "/c", "move", rf"{PROGRAMS}\venue-agent", old)
        assert not folder.exists()
        with zipfile.ZipFile(self.package) as packed:
            packed.extractall(self.wine.path(PROGRAMS))
        self.agent("service", "install")
        assert self.request_report("application")["outcome"] in ANSWERED
        self.require_the_same_device()
        print_ok("stopped, replaced, installed: the same device answers")

    def keep_state_when_uninstalled(self) -> None:
        assert "kept" in self.agent("service", "uninstall").stdout
        self.agent("service", "uninstall")
        assert "not installed" in self.agent("service", "status", expect=1).stdout
        assert (self.home / "identity.pem").exists()
        self.agent("service", "install")
        assert self.request_report("application")["outcome"] in ANSWERED
        self.require_the_same_device()
        print_ok("uninstalled twice and installed: the same device answers")

    def purge_without_leftovers(self) -> None:
        self.agent("service", "uninstall", "--purge")
        self.agent("service", "uninstall", "--purge")
        assert not self.home.exists(), sorted(self.home.rglob("*"))
        for key in (SERVICE_KEY, EVENT_KEY):
            self.wine.run("reg", "query", key, expect=1)
        assert not self.processes(), self.processes()
        print_ok("purged: no file, service, event source or process is left")
