"""What the container of `prove_systemd` runs: the life of the package under a real systemd.

Each step prints one line with what it saw; the first that fails ends the proof.
"""

import json
import os
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
CONFIG: Final = Path("/etc/venue-agent/config.toml")
STATE: Final = Path("/var/lib/venue-agent")
MORE_CONFIG: Final = "[heartbeat]\ninterval_seconds = 1\n[network]\nmax_duration_seconds = 5\n"
SHORT_WATCHDOG: Final = "[Service]\nWatchdogSec=2\n"
# The package manager's and the system's own records, which a purge does not concern.
OWN_RECORDS: Final = (
    "/var/lib/dpkg", "/var/log", "/var/cache", "/var/lib/systemd/deb-systemd-helper-",
    "/etc/group", "/etc/gshadow", "/etc/passwd", "/etc/shadow", "/etc/subuid", "/etc/subgid",
    "/var/lib/systemd/catalog", "/var/lib/systemd/coredump", "/etc/.pwd.lock",
    "/var/lib/apt", "/usr/share/man",
)  # fmt: skip


def run(*words: str, expect: int | None = 0) -> subprocess.CompletedProcess[str]:
    """Run a program; by default it must succeed."""
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=90)
    if expect is not None and done.returncode != expect:
        raise AssertionError(f"{words} ended with {done.returncode}: {done.stdout}{done.stderr}")
    return done


def shown(name: str) -> str:
    return run("systemctl", "show", UNIT, f"--property={name}", "--value").stdout.strip()


def agent(*words: str, expect: int | None = 0) -> str:
    return run("venue-agent", *words, expect=expect).stdout


def say(text: str) -> None:
    sys.stdout.write(f"ok  {text}\n")
    sys.stdout.flush()


def timed(action: Callable[[], Any]) -> float:
    began = time.monotonic()
    action()
    return time.monotonic() - began


class Proof:
    def __init__(self, service: LocalService, home: Path) -> None:
        self.service = service
        self.home = home
        self.before = files_of_the_system()
        self.device: Json = {}

    @property
    def instance_id(self) -> str:
        return str(self.device["instanceId"])

    def ask(self, kind: str) -> Json:
        """Request a report and return it."""
        request_id = self.service.request(self.instance_id, kind)
        return until(lambda: self.service.report_of(self.instance_id, request_id), 60)

    def wait_for_life(self) -> None:
        """Return when the service runs and has acknowledged a new request."""
        until(lambda: shown("ActiveState") == "active" and shown("MainPID") != "0", 20)
        request_id = self.service.request(self.instance_id, "application")
        until(lambda: self.service.request_row(self.instance_id, request_id)["receivedAt"], 20)
        until(lambda: self.service.report_of(self.instance_id, request_id), 60)

    # ------------------------------------------------------------------ steps, in their order

    def no_python(self) -> None:
        found = [shutil.which(name) for name in ("python", "python3", "python3.11")]
        assert found == [None, None, None], found
        say("there is no Python on the path")

    def install_the_package(self) -> None:
        seconds = timed(lambda: run("dpkg", "-i", str(RESULTS / "first.deb")))
        assert shown("ActiveState") == "inactive", shown("ActiveState")
        assert shown("UnitFileState") == "enabled", shown("UnitFileState")
        assert "stopped" in agent("service", "status", expect=1)
        verified = run("systemd-analyze", "verify", "--man=no", f"/usr/lib/systemd/system/{UNIT}")
        assert "venue-agent" not in verified.stderr, verified.stderr
        say(f"installed in {seconds:.1f} s: enabled, and not started without a configuration")

    def refuse_without_rights(self) -> None:
        words = ("runuser", "-u", "nobody", "--", "venue-agent", "service")
        for action in ("install", "uninstall", "start", "stop"):
            done = run(*words, action, expect=1)
            assert len(done.stderr.splitlines()) == 1, done.stderr
            assert "needs root" in done.stderr, done.stderr
        assert run(*words, "status", expect=1).stdout.startswith("service")
        say(f"without rights: {done.stderr.strip()!r}, exit 1")

    def begin(self) -> None:
        key = self.home / "key"
        key.write_text(self.service.api_key + "\n")
        words = ("service", "install", "--base-url", self.service.base_url)
        words = (*words, "--location", LOCATION, "--api-key-file", str(key))
        agent(*words)
        assert agent("service", "status").startswith("service     installed, starts at boot")
        CONFIG.write_text(CONFIG.read_text() + MORE_CONFIG)
        run("systemctl", "reload", UNIT)
        pid = shown("MainPID")
        assert "kept" in agent(*words), "a second install says that it keeps the configuration"
        assert shown("MainPID") == pid, "a second install must not disturb the service"
        self.device = self.service.enrolled_device()
        modes = {str(p): oct(p.stat().st_mode & 0o777) for p in (CONFIG, CONFIG.parent / "api-key")}
        assert list(modes.values()) == ["0o640", "0o600"], modes
        until(lambda: "enrolled at" in shown("StatusText"), 10)
        say(
            f"enrolled; the manager shows {shown('StatusText')!r}; a second install changes nothing"
        )

    def plug_in(self) -> None:
        """Give the machine a network that leads nowhere, and a disk of its own for /home."""
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
        self.wait_for_life()

    def collect(self) -> None:
        for kind in ("application", "network"):
            report = self.ask(kind)
            (RESULTS / f"inside-{kind}.json").write_text(json.dumps(report["payload"], indent=1))
            assert report["outcome"] in {"completed", "partial"}, report
            assert report["payload"] is not None
            failures = report["payload"]["failures"]
            say(f"{kind} report inside the sandbox: {report['outcome']}, failures {failures}")
        page = self.home / "page.html"
        agent("collect", "application", "--html", str(page))
        assert "<html" in page.read_text()

    def collect_outside(self) -> None:
        """Collect the same by hand, as root and as the service's user, for docs/sandbox.md."""
        as_user = ("runuser", "-u", "venue-agent", "--", "env", "HOME=/nonexistent")
        for who, prefix in (("root", ()), ("user", as_user)):
            for kind in ("application", "network"):
                done = run(*prefix, "venue-agent", "collect", kind, "--json", expect=None)
                (RESULTS / f"{who}-{kind}.json").write_text(done.stdout or done.stderr)

    def survive_a_kill(self) -> None:
        pid = shown("MainPID")
        began = time.monotonic()
        os.kill(int(pid), signal.SIGKILL)
        request_id = self.service.request(self.instance_id, "application")
        row = self.service.request_row
        until(lambda: row(self.instance_id, request_id)["receivedAt"], 20)
        seconds = time.monotonic() - began
        assert shown("MainPID") not in {pid, "0"}
        assert seconds < 3, f"{seconds:.2f} s"
        until(lambda: self.service.report_of(self.instance_id, request_id), 60)
        assert "killed by signal KILL" in agent("service", "status")
        say(f"killed: back, and a new request acknowledged, after {seconds:.2f} s")

    def be_ended_by_the_watchdog(self) -> None:
        """Hang the loop in a read that never ends: the configuration becomes a pipe."""
        drop_in = Path(f"/run/systemd/system/{UNIT}.d/watchdog.conf")
        drop_in.parent.mkdir(parents=True)
        drop_in.write_text(SHORT_WATCHDOG)
        run("systemctl", "daemon-reload")
        run("systemctl", "restart", UNIT)
        self.wait_for_life()
        pid, restarts = int(shown("MainPID")), int(shown("NRestarts"))
        kept = CONFIG.rename(CONFIG.with_name("kept.toml"))
        os.mkfifo(CONFIG)
        began = time.monotonic()
        os.kill(pid, signal.SIGHUP)
        until(lambda: not Path(f"/proc/{pid}").exists(), 20)
        kept.replace(CONFIG)
        ended = time.monotonic() - began
        until(lambda: int(shown("NRestarts")) > restarts, 20)
        self.wait_for_life()
        back = time.monotonic() - began
        assert "the event loop hung" in agent("service", "status"), agent("service", "status")
        log = run("journalctl", "-u", UNIT, "-o", "cat", "--no-pager").stdout
        assert "Fatal Python error: Aborted" in log, log[-2000:]
        drop_in.unlink()
        drop_in.parent.rmdir()
        run("systemctl", "daemon-reload")
        self.next_report_names_it()
        say(f"hung: the watchdog ended it after {ended:.1f} s, working again after {back:.1f} s")

    def next_report_names_it(self) -> None:
        fields = {f["key"]: f for f in self.ask("application")["payload"]["snapshot"]["fields"]}
        last = fields.get("agent.lastExit")
        if last is None:
            sys.stdout.write("--  the report has no field agent.lastExit yet\n")
            return
        assert "hung" in str(last.get("value")), last
        say(f"the next report names it: {last['value']!r}")

    def stop_in_time(self) -> None:
        self.service.request(self.instance_id, "network")
        until(lambda: "collecting" in shown("StatusText"), 20)
        seconds = timed(lambda: agent("service", "stop"))
        assert seconds < 10, f"{seconds:.1f} s"
        assert shown("ActiveState") == "inactive"
        assert "stopped cleanly" in agent("service", "status", expect=1)
        agent("service", "stop")
        agent("service", "start")
        agent("service", "start")
        self.wait_for_life()
        say(f"stopped in {seconds:.2f} s in the middle of a collection; started again")

    def take_a_new_key(self) -> None:
        """Write the key file anew. It is the same key: to the service another is another device."""
        pid = shown("MainPID")
        shutil.copy(self.home / "key", CONFIG.parent / "api-key")
        until(lambda: shown("MainPID") not in {pid, "0"}, 20)
        self.wait_for_life()
        say("a key file that is written anew is taken up by itself")

    def enroll_anew_by_hand(self) -> None:
        """What `status` advises after a revocation: stop, enroll as root, start."""
        agent("service", "stop")
        os.environ["VENUE_AGENT_API_KEY"] = self.service.api_key
        agent("enroll", "--force")
        agent("service", "start")
        self.device = self.service.enrolled_device()
        self.wait_for_life()
        say("enrolled anew by root's hand: the service goes on with it")

    def survive_an_upgrade(self) -> None:
        run("dpkg", "-i", str(RESULTS / "next.deb"))
        self.wait_for_life()
        self.is_the_same_device()
        say("upgraded: the same device and binding")

    def keep_state_when_uninstalled(self) -> None:
        assert "kept" in agent("service", "uninstall")
        agent("service", "uninstall")
        assert shown("ActiveState") == "inactive"
        assert shown("UnitFileState") == "disabled"
        assert CONFIG.exists()
        agent("service", "install")
        self.wait_for_life()
        self.is_the_same_device()
        say("uninstalled and installed: the same device and binding")

    def is_the_same_device(self) -> None:
        devices = self.service.devices()
        assert len(devices) == 1, devices
        names = ("instanceId", "bindingId")
        assert [devices[0][n] for n in names] == [self.device[n] for n in names], devices

    def leave_nothing(self) -> None:
        run("dpkg", "--purge", "venue-agent")
        left = files_of_the_system() - self.before
        assert not left, sorted(left)[:20]
        run("getent", "passwd", "venue-agent", expect=2)
        run("getent", "group", "venue-agent", expect=2)
        assert shown("LoadState") == "not-found"
        say("purged: no file, unit, user or group is left")


def files_of_the_system() -> frozenset[str]:
    """Return every path that a package might leave something at."""
    words = ("find", "/etc", "/usr", "/var", "/opt", "/srv", "/run/systemd/system", "/tmp",
             "-xdev", "-not", "-path", "/tmp/*", "-not", "-path", "/var/tmp/*")  # fmt: skip
    paths = run(*words, expect=None).stdout.splitlines()
    return frozenset(path for path in paths if not path.startswith(OWN_RECORDS))


def main() -> int:
    with tempfile.TemporaryDirectory() as directory, local_service(Path(directory)) as service:
        proof = Proof(service, Path(directory))
        steps = [
            proof.no_python,
            proof.install_the_package,
            proof.refuse_without_rights,
            proof.begin,
            proof.plug_in,
            proof.collect,
            *([proof.collect_outside] if "--facts" in sys.argv else []),
            proof.survive_a_kill,
            proof.be_ended_by_the_watchdog,
            proof.stop_in_time,
            proof.take_a_new_key,
            proof.enroll_anew_by_hand,
            proof.survive_an_upgrade,
            proof.keep_state_when_uninstalled,
            proof.leave_nothing,
        ]
        try:
            for step in steps:
                step()
        except (AssertionError, TimeoutError):
            log = run("journalctl", "-u", UNIT, "-n", "60", "-o", "short-monotonic", expect=None)
            sys.stderr.write(log.stdout)
            raise
    return 0


if __name__ == "__main__":
    sys.exit(main())
