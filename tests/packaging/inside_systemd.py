"""Runs in the container of `verify_systemd`: tests the package under a real systemd.

Each step prints its results. The first step that fails ends the run.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from tests.packaging.local_service import LOCATION, Json, LocalService, local_service, until

RESULTS: Final = Path("/results")
UNIT: Final = "venue-agent.service"
OUR_USER: Final = "venue-agent"
KEY_UNITS: Final = ("venue-agent-key.path", "venue-agent-key.service")
UPGRADE_UNIT: Final = "venue-agent-upgrade.service"
MAKERS: Final = Path("/usr/lib/venue-agent/_internal/agent/presentation/hosts/makers.bin")
UPGRADE: Final = Path("/var/lib/venue-agent-upgrade/upgrade")
"""The record of an upgrade. It is deleted when the new version has been verified."""
SELECTED: Final = Path("/usr/lib/venue-agent.current")
"""A link to the directory of the selected version."""
UNPACKAGED_PROGRAM: Final = Path("/opt/venue-agent")
"""The directory of the program in the test without the package."""
# The packaged program has no docstrings and no source code. Nevertheless these commands must print
# the same as in the source tree.
AS_IN_THE_SOURCE: Final = (
    ("--version",), ("--help",), ("config", "example"), ("config", "schema"), ("doctor", "--help"),
    ("collect", "--help"), ("service", "install", "--help"),
)  # fmt: skip
KILLS: Final = 6
"""One more than the starts that systemd permits by default within ten seconds."""
CONFIG: Final = Path("/etc/venue-agent/config.toml")
STATE: Final = Path("/var/lib/venue-agent")
MORE_CONFIG: Final = "[heartbeat]\ninterval_seconds = 1\n[network]\nmax_duration_seconds = 5\n"
COLUMNS: Final = 80
SHORT_WATCHDOG: Final = "[Service]\nWatchdogSec=3\n"
WITHIN_S: Final = 600
# Records of the package manager and of the system, which a purge need not delete.
SYSTEM_RECORDS: Final = (
    "/var/lib/dpkg", "/var/log", "/var/cache", "/var/lib/systemd/deb-systemd-helper-",
    "/etc/group", "/etc/gshadow", "/etc/passwd", "/etc/shadow", "/etc/subuid", "/etc/subgid",
    "/var/lib/systemd/catalog", "/var/lib/systemd/coredump", "/etc/.pwd.lock",
    "/var/lib/apt", "/usr/share/man",
)  # fmt: skip


def run(*words: str, expect: int | None = 0) -> subprocess.CompletedProcess[str]:
    """Run a program. Raises AssertionError if its exit code is not ``expect``. If ``expect`` is
    None, any exit code is permitted.
    """
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)
    if expect is not None and done.returncode != expect:
        raise AssertionError(f"{words} ended with {done.returncode}: {done.stdout}{done.stderr}")
    return done


def unit_property(name: str) -> str:
    return run("systemctl", "show", UNIT, f"--property={name}", "--value").stdout.strip()


def agent(*words: str, expect: int | None = 0) -> str:
    return run("venue-agent", *words, expect=expect).stdout


def service_status(expect: int = 0) -> str:
    """Return the output of `service status`, and append it to a file next to the reports."""
    message = agent("service", "status", expect=expect)
    with (RESULTS / "service-status.txt").open("a") as file:
        file.write(f"{message}--\n")
    assert all(len(line) <= COLUMNS for line in message.splitlines()), message
    return message


def print_ok(text: str) -> None:
    sys.stdout.write(f"ok  {text}\n")
    sys.stdout.flush()


def timed(action: Callable[[], Any]) -> float:
    began = time.monotonic()
    action()
    return time.monotonic() - began


def verify_units(directory: str, *names: str) -> None:
    """Check that systemd accepts our units and their drop-ins."""
    units = [str(Path(directory) / name) for name in names or (UNIT, *KEY_UNITS)]
    done = run("systemd-analyze", "verify", "--man=no", *units)
    assert "venue-agent" not in done.stderr, done.stderr


class Verification:
    def __init__(self, service: LocalService, home: Path) -> None:
        self.service = service
        self.home = home
        self.initial_files = files_of_the_system()
        self.device: Json = {}

    @property
    def installation(self) -> tuple[str, ...]:
        """The arguments of the agent's first installation."""
        address = ("--base-url", self.service.base_url, "--location", LOCATION)
        return ("service", "install", *address, "--api-key-file", str(self.home / "key"))

    @property
    def instance_id(self) -> str:
        return str(self.device["instanceId"])

    def request_report(self, kind: str) -> Json:
        """Request a report and return it."""
        request_id = self.service.request(self.instance_id, kind)
        return until(lambda: self.service.report_of(self.instance_id, request_id), WITHIN_S)

    def wait_until_it_works(self) -> None:
        """Wait until the agent runs, and has sent the report for a new request."""
        until(
            lambda: unit_property("ActiveState") == "active" and unit_property("MainPID") != "0",
            WITHIN_S,
        )
        request_id = self.service.request(self.instance_id, "application")
        until(
            lambda: self.service.request_row(self.instance_id, request_id)["receivedAt"], WITHIN_S
        )
        until(lambda: self.service.report_of(self.instance_id, request_id), WITHIN_S)

    # ------------------------------------------------------------------ steps, in their order

    def verify_that_python_is_absent(self) -> None:
        interpreters = [shutil.which(name) for name in ("python", "python3", "python3.11")]
        assert interpreters == [None, None, None], interpreters
        print_ok("there is no Python on the path")

    def install_the_package(self) -> None:
        seconds = timed(lambda: run("dpkg", "-i", str(RESULTS / "first.deb")))
        assert unit_property("ActiveState") == "inactive", unit_property("ActiveState")
        assert unit_property("UnitFileState") == "enabled", unit_property("UnitFileState")
        assert "config.toml is missing" in " ".join(service_status(expect=1).split())
        verify_units("/usr/lib/systemd/system")
        verify_units("/usr/lib/systemd/system", UPGRADE_UNIT)
        print_ok(f"installed in {seconds:.1f} s: enabled, and not started without a configuration")

    def compare_outputs_with_the_source(self) -> None:
        """Check that the packaged program prints the same as the source tree."""
        for words in AS_IN_THE_SOURCE:
            assert agent(*words) == run(sys.executable, "-m", "agent", *words).stdout, words
        print_ok(f"{len(AS_IN_THE_SOURCE)} commands print what they print in the source tree")

    def refuse_without_rights(self) -> None:
        words = ("runuser", "-u", "nobody", "--", "venue-agent", "service")
        for action in ("install", "uninstall", "start", "stop"):
            done = run(*words, action, expect=3)
            assert len(done.stderr.splitlines()) == 2, done.stderr
            assert "needs root" in done.stderr, done.stderr
            assert f"`sudo venue-agent service {action}`" in done.stderr, done.stderr
        assert run(*words, "status", expect=1).stdout.startswith("service")
        print_ok(f"without rights: {done.stderr.strip()!r}, exit 3")

    def install_and_enroll(self) -> None:
        (self.home / "key").write_text(self.service.api_key + "\n")
        words = self.installation
        agent(*words)
        assert service_status().startswith("service      installed, starts at boot")
        CONFIG.write_text(CONFIG.read_text() + MORE_CONFIG)
        run("systemctl", "reload", UNIT)
        pid = unit_property("MainPID")
        assert "kept" in agent(*words), (
            "a second install must report that it keeps the configuration"
        )
        assert unit_property("MainPID") == pid, "a second install must not restart the agent"
        self.device = self.service.enrolled_device()
        modes = {str(p): oct(p.stat().st_mode & 0o777) for p in (CONFIG, CONFIG.parent / "api-key")}
        assert list(modes.values()) == ["0o640", "0o600"], modes
        until(lambda: "enrolled at" in unit_property("StatusText"), WITHIN_S)
        print_ok(
            f"enrolled; systemd shows {unit_property('StatusText')!r};"
            " a second install changes nothing"
        )

    def add_network_and_disk(self) -> None:
        """Add a network interface from which no other machine can be reached, and mount a separate
        disk at /home.
        """
        run("ip", "link", "add", "venue0", "type", "veth", "peer", "name", "venue1")
        run("ip", "address", "add", "10.99.0.2/29", "dev", "venue0")
        run("ip", "link", "set", "venue1", "up")
        run("ip", "link", "set", "venue0", "up", "multicast", "on")
        disk = Path("/mnt/disk")
        disk.mkdir()
        run("mount", "-t", "tmpfs", "-o", "size=48m", "disk", str(disk))
        for name in ("lower", "upper", "work"):
            (disk / name).mkdir()
        layers = f"lowerdir={disk}/lower,upperdir={disk}/upper,workdir={disk}/work"
        run("mount", "-t", "overlay", "-o", layers, "home", "/home")
        run("systemctl", "restart", UNIT)
        self.wait_until_it_works()

    def collect(self) -> None:
        for kind in ("application", "network"):
            report = self.request_report(kind)
            (RESULTS / f"inside-{kind}.json").write_text(json.dumps(report["payload"], indent=1))
            assert report["outcome"] in {"completed", "partial"}, report
            assert report["payload"] is not None
            limitations = report["payload"]["limitations"]
            assert not [line for line in limitations if "not confined" in line], limitations
            failures = report["payload"]["failures"]
            print_ok(f"{kind} report inside the sandbox: {report['outcome']}, failures {failures}")
        assert MAKERS.stat().st_size > 1_000_000, "the package must contain the list of makers"
        page = self.home / "page.html"
        agent("collect", "application", "--html", str(page))
        assert "<html" in page.read_text()

    def collect_outside(self) -> None:
        """Collect the same reports with `collect` outside of the unit, as root and as the agent's
        user. docs/sandbox.md compares these reports with the reports of the unit.
        """
        as_user = ("runuser", "-u", "venue-agent", "--", "env", "HOME=/nonexistent")
        for account, prefix in (("root", ()), ("user", as_user)):
            for kind in ("application", "network"):
                done = run(*prefix, "venue-agent", "collect", kind, "--json", expect=None)
                (RESULTS / f"{account}-{kind}.json").write_text(done.stdout or done.stderr)

    def survive_a_kill(self) -> None:
        pid = unit_property("MainPID")
        began = time.monotonic()
        os.kill(int(pid), signal.SIGKILL)
        request_id = self.service.request(self.instance_id, "application")
        row = self.service.request_row
        until(lambda: row(self.instance_id, request_id)["receivedAt"], WITHIN_S)
        seconds = time.monotonic() - began
        assert unit_property("MainPID") not in {pid, "0"}
        assert (unit_property("NRestarts"), unit_property("RestartUSec")) == ("1", "1s")
        until(lambda: self.service.report_of(self.instance_id, request_id), WITHIN_S)
        assert "killed by signal KILL" in service_status()
        print_ok(f"killed: restarted, and acknowledged a new request, after {seconds:.2f} s")

    def survive_many_kills(self) -> None:
        """Kill the agent more often than systemd's default limit of restarts permits. Our unit has
        no limit.
        """
        assert unit_property("StartLimitIntervalUSec") == "0"
        for _ in range(KILLS):
            pid = until(lambda: int(unit_property("MainPID")), WITHIN_S)
            os.kill(pid, signal.SIGKILL)
            until(lambda: unit_property("MainPID") != str(pid), WITHIN_S)  # noqa: B023
        self.wait_until_it_works()
        has_backoff = unit_property("RestartSteps") not in {"", "0"}
        kind = (
            "with growing delays" if has_backoff else "after 1 s: this systemd has no RestartSteps"
        )
        print_ok(f"killed {KILLS} times and restarted each time, {kind}")

    def report_a_wrong_configuration(self) -> None:
        """Start with an unknown configuration key. The agent must end with exit code 2, and systemd
        must not restart it.
        """
        original = CONFIG.read_text()
        CONFIG.write_text(original + "[nonsense]\n")
        output = run("venue-agent", "service", "stop").stdout
        output += run("venue-agent", "service", "start", expect=1).stderr
        assert "nonsense" in output, output
        assert unit_property("ActiveState") == "failed"
        assert unit_property("NRestarts") == "0"
        output = service_status(expect=1)
        assert "a wrong configuration" in output, output
        assert "find out why" in output, output
        CONFIG.write_text(original)
        agent("service", "start")
        self.wait_until_it_works()
        print_ok("a wrong configuration: not restarted, and the status reports it")

    def survive_a_hang(self) -> None:
        """Block the event loop: the agent's certificate file is a pipe to which nothing is written,
        so that reading it never ends.
        """
        drop_in = Path(f"/run/systemd/system/{UNIT}.d/watchdog.conf")
        drop_in.parent.mkdir(parents=True)
        drop_in.write_text(SHORT_WATCHDOG)
        run("systemctl", "daemon-reload")
        run("systemctl", "restart", UNIT)
        self.wait_until_it_works()
        pid, restarts = int(unit_property("MainPID")), int(unit_property("NRestarts"))
        original, pipe = CONFIG.read_text(), CONFIG.with_name("pipe.pem")
        os.mkfifo(pipe)
        # The agent reads the file of certificates only for https.
        section = f'[service]\nca_file = "{pipe}"\n'
        CONFIG.write_text(original.replace("[service]\n", section).replace("http:", "https:"))
        began = time.monotonic()
        os.kill(pid, signal.SIGHUP)
        until(lambda: not Path(f"/proc/{pid}").exists(), WITHIN_S)
        CONFIG.write_text(original)
        pipe.unlink()
        ended_s = time.monotonic() - began
        until(lambda: int(unit_property("NRestarts")) > restarts, WITHIN_S)
        self.wait_until_it_works()
        back_s = time.monotonic() - began
        assert "the event loop hung" in service_status(), service_status()
        log = run("journalctl", "-u", UNIT, "-o", "cat", "--no-pager").stdout
        assert "Fatal Python error: Aborted" in log, log[-2000:]
        drop_in.unlink()
        drop_in.parent.rmdir()
        run("systemctl", "daemon-reload")
        self.check_last_exit()
        print_ok(
            f"hung: the watchdog ended it after {ended_s:.1f} s, working again after {back_s:.1f} s"
        )

    def check_last_exit(self) -> None:
        fields = {
            f["key"]: f for f in self.request_report("application")["payload"]["snapshot"]["fields"]
        }
        last = fields["agent.lastExit"]
        assert "hung" in str(last.get("value")), last
        print_ok(f"the next report states why the agent ended: {last['value']!r}")

    def stop_in_time(self) -> None:
        self.service.request(self.instance_id, "network")
        until(lambda: "collecting" in unit_property("StatusText"), WITHIN_S)
        seconds = timed(lambda: agent("service", "stop"))
        assert (unit_property("ActiveState"), unit_property("Result")) == ("inactive", "success")
        assert "stopped cleanly" in service_status(expect=1)
        agent("service", "stop")
        agent("service", "start")
        agent("service", "start")
        self.wait_until_it_works()
        print_ok(f"stopped in {seconds:.2f} s in the middle of a collection; started again")

    def read_a_rewritten_key(self) -> None:
        """Write the same key to the key file again. systemd must restart the agent, because the
        agent gets the key only at its start.
        """
        pid = unit_property("MainPID")
        shutil.copy(self.home / "key", CONFIG.parent / "api-key")
        until(lambda: unit_property("MainPID") not in {pid, "0"}, WITHIN_S)
        self.wait_until_it_works()
        print_ok("a rewritten key file: systemd restarted the agent")

    def enroll_anew_by_hand(self) -> None:
        """Do what `status` advises for a revoked device: stop, enroll as root, start."""
        agent("service", "stop")
        os.environ["VENUE_AGENT_API_KEY"] = self.service.api_key
        agent("enroll", "--force")
        agent("service", "start")
        self.device = self.service.enrolled_device()
        self.wait_until_it_works()
        print_ok("enrolled again by root: the agent uses the new binding")

    def survive_an_upgrade(self) -> None:
        run("dpkg", "-i", str(RESULTS / "next.deb"))
        self.wait_until_it_works()
        self.require_the_same_device()
        until(lambda: not UPGRADE.exists(), WITHIN_S)
        assert SELECTED.readlink().name == "venue-agent"
        print_ok("upgraded: the same device and binding")

    def roll_back_a_failed_upgrade(self) -> None:
        """Install a version that does not start."""
        drop_in = Path("/run/systemd/system/venue-agent-upgrade.service.d/test.conf")
        drop_in.parent.mkdir(parents=True)
        drop_in.write_text("[Service]\nEnvironment=WITHIN_S=2\n")
        run("dpkg", "-i", str(RESULTS / "broken.deb"))
        until(lambda: "state=failed" in UPGRADE.read_text(), WITHIN_S)
        self.wait_until_it_works()
        self.require_the_same_device()
        assert SELECTED.readlink().name == "venue-agent.previous"
        sentence = re.search(r"version 100\.\S+ did not start; 99\.\S+ runs again since \d\d:\d\d",
                             " ".join(service_status().split()))  # fmt: skip
        assert sentence, service_status()
        assert sentence[0] in " ".join(agent("doctor", expect=None).split())
        check = json.loads(agent("upgrade", "check", "--json"))
        assert check["upgrade"]["state"] == "failed", check
        assert check["package_manager"] == "apt", check
        drop_in.unlink()
        drop_in.parent.rmdir()
        run("systemctl", "daemon-reload")
        print_ok(f"rolled back: {sentence[0]!r}")

    def keep_state_when_uninstalled(self) -> None:
        assert "kept" in agent("service", "uninstall")
        agent("service", "uninstall")
        assert unit_property("ActiveState") == "inactive"
        assert unit_property("UnitFileState") == "disabled"
        assert CONFIG.exists()
        agent("service", "install")
        self.wait_until_it_works()
        self.require_the_same_device()
        print_ok("uninstalled and installed: the same device and binding")

    def require_the_same_device(self) -> None:
        devices = self.service.devices()
        assert len(devices) == 1, devices
        names = ("instanceId", "bindingId")
        assert [devices[0][n] for n in names] == [self.device[n] for n in names], devices

    def purge_without_leftovers(self) -> None:
        run("dpkg", "--purge", "venue-agent")
        leftovers = files_of_the_system() - self.initial_files
        assert not leftovers, sorted(leftovers)[:20]
        run("getent", "passwd", OUR_USER, expect=2)
        run("getent", "group", OUR_USER, expect=2)
        assert unit_property("LoadState") == "not-found"
        print_ok("purged: no file, unit, user or group is left")

    def install_without_the_package(self) -> None:
        """Copy the program to /opt: `service install` must create the unit and the user itself."""
        with tempfile.TemporaryDirectory() as directory:
            run("dpkg-deb", "-x", str(RESULTS / "first.deb"), directory)
            shutil.move(Path(directory) / "usr/lib/venue-agent", UNPACKAGED_PROGRAM)
        os.environ["PATH"] = f"{UNPACKAGED_PROGRAM}:{os.environ['PATH']}"
        before, known_ids = files_of_the_system(), {d["instanceId"] for d in self.service.devices()}
        assert "not installed" in service_status(expect=1)
        agent(*self.installation)
        verify_units("/etc/systemd/system")
        self.device = until(
            lambda: next(
                (d for d in self.service.devices() if d["instanceId"] not in known_ids), None
            ),
            WITHIN_S,
        )
        self.wait_until_it_works()
        service_status()
        output = agent("service", "uninstall", "--purge")
        assert f"the user {OUR_USER}" in output, output
        leftovers = files_of_the_system() - before
        assert not leftovers, sorted(leftovers)[:20]
        run("getent", "passwd", OUR_USER, expect=2)
        run("getent", "group", OUR_USER, expect=2)
        assert unit_property("LoadState") == "not-found"
        assert "not installed" in service_status(expect=1)
        print_ok(
            "from /opt: installed, worked, uninstalled with --purge: no file, unit, user or group"
        )


def files_of_the_system() -> frozenset[str]:
    """Return all paths in the directories where a package might leave files, except
    `SYSTEM_RECORDS`.
    """
    words = ("find", "/etc", "/usr", "/var", "/opt", "/srv", "/run/systemd/system", "/tmp",
             "-xdev", "-not", "-path", "/tmp/*", "-not", "-path", "/var/tmp/*")  # fmt: skip
    paths = run(*words, expect=None).stdout.splitlines()
    return frozenset(path for path in paths if not path.startswith(SYSTEM_RECORDS))


def run_steps(steps: list[Callable[[], None]], unit: str = UNIT) -> None:
    """Run the steps in order, and print the duration and the processor time of each step.

    If a step fails, the end of the journal of ``unit`` is printed.
    """
    for step in steps:
        began_s = processor_s()
        try:
            wall_s = timed(step)
        except Exception:
            log = run("journalctl", "-u", unit, "-n", "60", "-o", "short-monotonic", expect=None)
            sys.stderr.write(log.stdout)
            raise
        used_s = processor_s() - began_s
        sys.stdout.write(f"    {step.__name__}: {wall_s:.1f} s, processor time {used_s:.1f} s\n")
        sys.stdout.flush()


def processor_s() -> float:
    """Return the processor time of all processes of the container, and of their ended children."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # the process has just ended
            fields = stat.read_text().rpartition(")")[2].split()
            ticks += sum(int(field) for field in fields[11:15])  # proc(5): utime to cstime
    return ticks / os.sysconf("SC_CLK_TCK")


def main() -> int:
    with tempfile.TemporaryDirectory() as directory, local_service(Path(directory)) as service:
        verification = Verification(service, Path(directory))
        steps = [
            verification.verify_that_python_is_absent,
            verification.install_the_package,
            verification.compare_outputs_with_the_source,
            verification.refuse_without_rights,
            verification.install_and_enroll,
            verification.add_network_and_disk,
            verification.collect,
            *([verification.collect_outside] if "--facts" in sys.argv else []),
            verification.survive_a_kill,
            verification.survive_many_kills,
            verification.report_a_wrong_configuration,
            verification.survive_a_hang,
            verification.stop_in_time,
            verification.read_a_rewritten_key,
            verification.enroll_anew_by_hand,
            verification.survive_an_upgrade,
            verification.roll_back_a_failed_upgrade,
            verification.keep_state_when_uninstalled,
            verification.purge_without_leftovers,
            verification.install_without_the_package,
        ]
        run_steps(steps)
    return 0


if __name__ == "__main__":
    sys.exit(main())
