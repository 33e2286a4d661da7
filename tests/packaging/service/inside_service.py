"""Runs in the container of `verify_service`: tests the service's package under systemd.

Each step prints one line with its result. The first step that fails ends the run.
"""

import http.client
import json
import os
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.fakes.tls_front import make_authority, server_context
from tests.packaging.inside_systemd import files_of_the_system, print_ok, run, run_steps, timed
from tests.packaging.local_service import Json, LocalService, until
from tests.packaging.service.commands_of_doc import documented_commands
from tests.packaging.service.verify_service import EXPOSURE_MAX
from tests.scenario.agent_process import environment, write_config

RESULTS: Final = Path("/results")
UNIT: Final = "venue-control.service"
USER: Final = "venue-control"
URL: Final = "http://127.0.0.1:8470"
OPTIONS: Final = Path("/etc/venue-control/serve.conf")
STATE: Final = Path("/var/lib/venue-control")
BACKUPS: Final = Path("/var/backups")
ADMINISTRATOR_HOME: Final = Path("/root")
"""The directory in which the documented commands are run. Only root can access it."""
NAME: Final = "localhost"
"""The host name of the service in the documented commands."""
PASSWORD: Final = "correct horse battery"
UNPACKAGED_PROGRAM: Final = Path("/opt/venue-control")
"""The directory of the program in the test without the package."""
WATCHDOG_S: Final = 5
SHORT_WATCHDOG: Final = f"[Service]\nWatchdogSec={WATCHDOG_S}\nTimeoutAbortSec=2\n"
WITHIN_S: Final = 600
PROXIES: Final = "/etc/nginx/", "/var/lib/nginx/", "/etc/caddy/", "/var/lib/caddy/"
POSTGRESQL: Final = "/var/lib/postgresql", "/etc/postgresql", "/var/log/postgresql", "/run/"
"""`PROXIES` and `POSTGRESQL` are paths of other programs, whose files may remain after a purge."""


def unit_property(name: str) -> str:
    return run("systemctl", "show", UNIT, f"--property={name}", "--value").stdout.strip()


def control(*words: str, expect: int | None = 0) -> str:
    return run("venue-control", *words, expect=expect).stdout


def is_ready() -> bool:
    try:
        with urllib.request.urlopen(f"{URL}/readyz", timeout=5) as reply:
            return bool(reply.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def last_watchdog_message_s() -> float:
    """Return the time of the service's last watchdog message to systemd, in seconds of systemd's
    monotonic clock.
    """
    return int(unit_property("WatchdogTimestampMonotonic")) / 1e6


def new_cluster() -> None:
    """Reset PostgreSQL to its state right after its installation on Debian."""
    clusters = [line.split()[:2] for line in run("pg_lsclusters", "-h").stdout.splitlines()]
    for version, name in clusters:
        run("pg_dropcluster", "--stop", version, name)
    newest = max(Path("/usr/lib/postgresql").iterdir(), key=lambda path: float(path.name)).name
    run("pg_createcluster", newest, "main")
    run("systemctl", "daemon-reload")
    run("systemctl", "start", "postgresql")


def post(
    url: str, body: Json, origin: str, context: ssl.SSLContext, cookie: str = ""
) -> http.client.HTTPResponse:
    """Send a call as a browser does from a page of the service."""
    headers = {
        "content-type": "application/json", "origin": origin, "sec-fetch-site": "same-origin",
        "cookie": cookie,
    }  # fmt: skip
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=30, context=context) as reply:
        result: http.client.HTTPResponse = reply
        reply.read()
    return result


def sign_in(url: str, origin: str, context: ssl.SSLContext) -> str:
    """Sign in at ``url``. Return the session cookie, or "" if the proxy or the service does not
    answer yet.
    """
    body = {"email": "ada@example.com", "password": PASSWORD}
    try:
        reply = post(f"{url}/api/auth/sign-in/email", body, origin, context)
    except urllib.error.HTTPError as error:
        if error.code == 502:
            return ""
        raise
    except (urllib.error.URLError, OSError):
        return ""
    return str(reply.headers["set-cookie"]).partition(";")[0]


def workers() -> list[int]:
    """Return the process ids of the unit's workers, without the main process."""
    pids = run("pgrep", "--full", "spawn_main|multiprocessing-fork", expect=None).stdout.split()
    return [int(pid) for pid in pids]


class Verification:
    def __init__(self, home: Path) -> None:
        self.home = home
        self.initial_files = files_of_the_system()
        self.commands = documented_commands()
        self.service = LocalService(URL, "")
        self.instance_id = ""
        self.agent: subprocess.Popen[bytes] | None = None

    def run_documented_commands(self, name: str) -> None:
        """Run a block of docs/service-install.md unchanged."""
        script = "\n".join((f"NAME={NAME}", *self.commands[name]))
        done = run("env", f"--chdir={ADMINISTRATOR_HOME}", "sh", "-e", "-c", script)
        assert "could not change directory" not in done.stderr, done.stderr

    def exchange_a_report(self) -> None:
        """Request a report from the agent, and wait for the report."""
        request_id = self.service.request(self.instance_id, "application")
        until(lambda: self.service.report_of(self.instance_id, request_id), WITHIN_S)

    def reports(self) -> list[Json]:
        detail = self.service.call("deviceDetail", instanceId=self.instance_id)
        return list(detail["reports"])

    # ------------------------------------------------------------------ steps, in their order

    def install_the_package(self) -> None:
        seconds = timed(lambda: run("dpkg", "-i", str(RESULTS / "first.deb")))
        assert is_ready()
        assert unit_property("UnitFileState") == "enabled"
        assert unit_property("StatusText") == f"listening on {URL}", unit_property("StatusText")
        done = run("systemd-analyze", "verify", "--man=no", f"/usr/lib/systemd/system/{UNIT}")
        assert "venue-control" not in done.stderr, done.stderr
        rating = run("systemd-analyze", "security", "--no-pager", UNIT).stdout
        score = float(rating.rpartition(f"{UNIT}: ")[2].split()[0])
        assert score <= EXPOSURE_MAX, rating
        status = control("service", "status")
        assert "installed, starts at boot" in status
        print_ok(
            f"installed in {seconds:.1f} s: ready, exposure {score}; {status.splitlines()[1]!r}"
        )

    def refuse_without_rights(self) -> None:
        words = ("runuser", "-u", "nobody", "--", "venue-control")
        for action in ("install", "uninstall", "start", "stop"):
            done = run(*words, "service", action, expect=3)
            assert len(done.stderr.splitlines()) == 2, done.stderr
        assert run(*words, "cat", str(OPTIONS), expect=2).stderr
        assert "running" in run(*words, "service", "status").stdout
        print_ok(f"without rights: {done.stderr.splitlines()[0]!r}, exit 3")

    def make_a_key_as_root(self) -> None:
        key = control("keys", "create", "--write", "--name", "proof").strip()
        self.service = LocalService(URL, key)
        assert self.service.devices() == []
        owners = {path.owner() for path in STATE.rglob("*")}
        assert owners == {USER}, owners
        modes = {oct(path.stat().st_mode & 0o777) for path in (STATE, OPTIONS)}
        assert modes == {"0o700", "0o640"}, modes
        assert "proof" in control("keys", "list")
        print_ok(
            "the service owns the files that root's `keys create` wrote:"
            f" {sorted(p.name for p in STATE.iterdir())}"
        )

    def set_up_the_first_user(self) -> None:
        password = ADMINISTRATOR_HOME / "password.txt"
        password.write_text(f"{PASSWORD}\n")
        self.run_documented_commands("setup")
        password.unlink()
        assert "is set up already" in control("setup")
        assert {path.owner() for path in STATE.rglob("*")} == {USER}
        with pytest.raises(urllib.error.HTTPError, match="403"):
            sign_in(URL, f"https://{NAME}", ssl.create_default_context())
        print_ok("`setup` created the owner; without --origin the proxy's origin is refused")

    def sign_in_behind_nginx(self) -> None:
        folder = Path(f"/etc/letsencrypt/live/{NAME}")
        folder.mkdir(parents=True)
        authority = make_authority(folder)
        server_context(folder, authority, host=NAME)  # writes server.pem: key and certificate
        for name in ("fullchain.pem", "privkey.pem"):
            shutil.copy(folder / "server.pem", folder / name)
        self._sign_in_behind("nginx", lambda: authority.file)
        shutil.rmtree("/etc/letsencrypt")

    def sign_in_behind_caddy(self) -> None:
        # For the name `localhost`, Caddy gets no certificate from the internet but makes its own.
        root = Path("/var/lib/caddy/.local/share/caddy/pki/authorities/local/root.crt")
        self._sign_in_behind("caddy", lambda: root)

    def _sign_in_behind(self, proxy: str, authority: Callable[[], Path]) -> None:
        """Run the commands for a proxy, and sign in through it as a browser does."""
        before = OPTIONS.read_text()
        self.run_documented_commands(proxy)
        until(lambda: is_ready() and authority().exists(), WITHIN_S)
        context = ssl.create_default_context(cafile=str(authority()))
        origin = f"https://{NAME}"
        cookie = until(lambda: sign_in(origin, origin, context), WITHIN_S)
        assert cookie.startswith("__Secure-venue.session_token="), cookie
        reply = post(f"{origin}/console/api/summary", {}, origin, context, cookie)
        assert reply.status == 200
        run("systemctl", "stop", proxy)
        OPTIONS.write_text(before)
        run("systemctl", "restart", UNIT)
        print_ok(f"the commands for {proxy}: signed in through it at {origin}")

    def enroll_an_agent(self) -> None:
        agent_home = self.home / "agent"
        agent_home.mkdir()
        key = agent_home / "api-key"
        key.write_text(self.service.api_key + "\n")
        key.chmod(0o600)
        config = write_config(agent_home, URL)
        with (agent_home / "log").open("ab") as log:
            self.agent = subprocess.Popen(
                (sys.executable, "-m", "agent", "run", "--config", str(config)),
                stdout=log, stderr=log, env=environment(),
            )  # fmt: skip
        self.instance_id = str(self.service.enrolled_device()["instanceId"])
        self.exchange_a_report()
        print_ok("an agent has enrolled and answered a request")

    def use_the_separate_processes(self) -> None:
        """Send a large body and request figures. The service handles each in a separate process,
        which the sandbox of the unit must permit.
        """
        with pytest.raises(urllib.error.HTTPError, match="400") as refused:
            self.service.call("listDevices", cursor="x" * 100_000)
        refused.value.close()
        key = str(self.home / "agent/api-key")
        words = ("--location", "loc-none", "--base-url", URL, "--api-key-file", key)
        done = run("venue-control", "figures", *words, expect=1)
        assert "location_not_found" in done.stderr, done.stderr
        print_ok("separate processes handled a large body and a call for figures")

    def read_the_journal(self) -> None:
        with pytest.raises(urllib.error.HTTPError, match="401") as refused:
            LocalService(URL, "vck_wrong").devices()
        refused.value.close()
        words = ("journalctl", "-u", UNIT, "-o", "cat", "--no-pager")
        refusals = until(
            lambda: [line for line in run(*words).stdout.splitlines() if "listDevices 401" in line],
            WITHIN_S,
        )
        journal = run(*words).stdout
        assert f"listening on {URL}" in journal
        assert self.service.api_key not in journal
        example = refusals[-1][24:110]  # without the time, and shortened
        print_ok(f"the journal has no key, but refusals such as {example!r}")

    def survive_a_kill(self) -> None:
        os.kill(int(unit_property("MainPID")), signal.SIGKILL)
        seconds = timed(
            lambda: until(lambda: unit_property("NRestarts") == "1" and is_ready(), WITHIN_S)
        )
        self.exchange_a_report()
        print_ok(f"killed: ready after {seconds:.1f} s")

    def survive_a_hang(self) -> None:
        drop_in = Path(f"/run/systemd/system/{UNIT}.d/watchdog.conf")
        drop_in.parent.mkdir(parents=True)
        drop_in.write_text(SHORT_WATCHDOG)
        run("systemctl", "daemon-reload")
        run("systemctl", "restart", UNIT)
        pid, restarts = int(unit_property("MainPID")), int(unit_property("NRestarts"))
        first = last_watchdog_message_s()
        until(lambda: last_watchdog_message_s() > first + 2 * WATCHDOG_S, WITHIN_S)
        assert int(unit_property("MainPID")) == pid, "the watchdog ended a service that responds"
        os.kill(pid, signal.SIGSTOP)
        seconds = timed(
            lambda: until(
                lambda: int(unit_property("NRestarts")) > restarts and is_ready(), WITHIN_S
            )
        )
        shutil.rmtree(drop_in.parent)
        run("systemctl", "daemon-reload")
        self.exchange_a_report()
        print_ok(f"hung: the watchdog ended it, ready again after {seconds:.1f} s")

    def stop_gracefully(self) -> None:
        seconds = timed(lambda: control("service", "stop"))
        assert (unit_property("ActiveState"), unit_property("Result")) == ("inactive", "success")
        control("service", "stop")
        assert "stopped" in control("service", "status", expect=1)
        control("service", "start")
        control("service", "start")
        assert is_ready()
        self.exchange_a_report()
        print_ok(
            f"stopped in {seconds:.2f} s despite an open stream; started again, the agent came back"
        )

    def report_a_wrong_option(self) -> None:
        original = OPTIONS.read_text()
        OPTIONS.write_text(original + "--wrokers 2\n")
        run("systemctl", "stop", UNIT)
        done = run("venue-control", "service", "start", expect=1)
        assert "--wrokers" in done.stderr, done.stderr
        assert "--workers" in done.stderr, done.stderr
        OPTIONS.write_text(original)
        run("systemctl", "stop", UNIT)
        control("service", "start")
        message = done.stderr.splitlines()[0]
        print_ok(f"a wrong option: {message!r}")

    def back_up_and_restore(self) -> None:
        before = {row["reportId"] for row in self.reports()}
        self.run_documented_commands("backup")
        lost_key = control("keys", "create").strip()
        self.run_documented_commands("restore")
        assert {row["reportId"] for row in self.reports()} >= before
        with pytest.raises(urllib.error.HTTPError, match="401") as refused:
            LocalService(URL, lost_key).devices()
        refused.value.close()
        assert {path.owner() for path in STATE.rglob("*")} == {USER}
        assert (BACKUPS / "venue-control.db").owner() == "root"
        self.exchange_a_report()
        print_ok(f"backed up and restored: {len(before)} reports, the agent continues")

    def survive_an_upgrade(self) -> None:
        OPTIONS.write_text(OPTIONS.read_text() + "--keep-reports 365d\n")
        before = len(self.reports())
        run("dpkg", "-i", "--force-confold", str(RESULTS / "first.deb"))
        run("dpkg", "-i", "--force-confold", str(RESULTS / "next.deb"))
        assert is_ready()
        assert "365d" in OPTIONS.read_text()
        assert len(self.reports()) >= before
        self.exchange_a_report()
        print_ok(
            "the same package is installed again, then a newer one: options, device and"
            " reports are kept"
        )

    def set_up_postgresql(self) -> None:
        new_cluster()
        commands = self.commands["postgresql"]
        assert len(commands) == 5
        seconds = timed(lambda: self.run_documented_commands("postgresql"))
        assert is_ready()
        assert int(run("runuser", "-u", "postgres", "--", "psql", "-Atc",
                       "select count(*) from information_schema.tables"
                       " where table_name='devices'", "venue").stdout)  # fmt: skip
        print_ok(f"PostgreSQL is set up with {len(commands)} commands in {seconds:.1f} s")

    def move_to_postgresql(self) -> None:
        self.run_documented_commands("move")
        (device,) = self.service.devices()
        assert device["instanceId"] == self.instance_id
        self.exchange_a_report()
        key_list = control("keys", "list")
        assert "proof" in key_list, key_list
        print_ok(
            "moved from SQLite: the same device, key and reports; root can use `keys` on PostgreSQL"
        )

    def serve_with_workers(self) -> None:
        OPTIONS.write_text(OPTIONS.read_text() + "--workers 2\n")
        run("systemctl", "restart", UNIT)
        assert is_ready()
        until(lambda: len(workers()) == 2, WITHIN_S)
        first = workers()[0]
        os.kill(first, signal.SIGKILL)
        until(lambda: len(workers()) == 2 and first not in workers(), WITHIN_S)
        assert unit_property("NRestarts") == "0"
        os.kill(int(unit_property("MainPID")), signal.SIGKILL)
        until(lambda: unit_property("NRestarts") == "1" and is_ready(), WITHIN_S)
        until(lambda: len(workers()) == 2, WITHIN_S)
        self.exchange_a_report()
        seconds = timed(lambda: control("service", "stop"))
        assert workers() == []
        assert unit_property("Result") == "success"
        control("service", "start")
        print_ok(
            "two workers: a killed worker is replaced; after a kill of the main process both"
            f" come back; stopped in {seconds:.2f} s"
        )

    def back_up_and_restore_postgresql(self) -> None:
        before = {row["reportId"] for row in self.reports()}
        self.run_documented_commands("backup-postgresql")
        refused = run("venue-control", "backup", "/root/x.db", expect=2).stderr.splitlines()
        assert len(refused) == 2, refused
        self.run_documented_commands("restore-postgresql")
        assert {row["reportId"] for row in self.reports()} >= before
        self.exchange_a_report()
        print_ok(f"pg_dump and pg_restore: {len(before)} reports; `backup` prints {refused[0]!r}")

    def keep_state_when_uninstalled(self) -> None:
        control("service", "uninstall")
        assert (unit_property("ActiveState"), unit_property("UnitFileState")) == (
            "inactive",
            "disabled",
        )
        assert STATE.exists()
        control("service", "install")
        assert is_ready()
        self.exchange_a_report()
        print_ok("uninstalled and installed again: the same device")

    def purge_without_leftovers(self) -> None:
        assert self.agent is not None
        self.agent.terminate()
        self.agent.wait(WITHIN_S)
        run("runuser", "-u", "postgres", "--", "dropdb", "--force", "venue")
        run("systemctl", "stop", "postgresql")
        run("dpkg", "--purge", "venue-control")
        self._require_nothing_left(self.initial_files)
        print_ok("purged: no file, unit, user or group is left")

    def install_without_the_package(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            run("dpkg-deb", "-x", str(RESULTS / "first.deb"), directory)
            shutil.move(Path(directory) / "usr/lib/venue-control", UNPACKAGED_PROGRAM)
        os.environ["PATH"] = f"{UNPACKAGED_PROGRAM}:{os.environ['PATH']}"
        before = files_of_the_system()
        assert "not installed" in control("service", "status", expect=1)
        output = control("service", "install", "--dry-run", "--", "--keep-reports", "30d")
        assert f"ExecStart={UNPACKAGED_PROGRAM}/venue-control serve @{OPTIONS}" in output, output
        assert files_of_the_system() == before, "a dry run must write nothing"
        mask = Path(f"/etc/systemd/system/{UNIT}")
        mask.symlink_to("/dev/null")
        errors = run("venue-control", "service", "install", expect=1).stderr.splitlines()
        assert len(errors) == 2, errors
        mask.unlink()
        control("service", "install", "--", "--keep-reports", "30d")
        assert is_ready()
        assert OPTIONS.read_text().endswith("--keep-reports 30d\n")
        pid = unit_property("MainPID")
        assert "kept" in control("service", "install", "--", "--workers", "1")
        assert unit_property("MainPID") == pid, "a second install must not disturb the service"
        control("keys", "create")
        assert {path.owner() for path in STATE.rglob("*")} == {USER}
        control("service", "uninstall", "--purge")
        self._require_nothing_left(before)
        print_ok(f"from /opt: installed twice, uninstalled with --purge; masked: {errors[0]!r}")

    def _require_nothing_left(self, before: frozenset[str]) -> None:
        new = files_of_the_system() - before
        others = (*POSTGRESQL, *PROXIES, str(BACKUPS))
        leftovers = sorted(path for path in new if not path.startswith(others))
        assert not leftovers, leftovers[:20]
        run("getent", "passwd", USER, expect=2)
        run("getent", "group", USER, expect=2)
        assert unit_property("LoadState") == "not-found"


def main() -> int:
    is_whole = "--all" in sys.argv
    with tempfile.TemporaryDirectory() as directory:
        verification = Verification(Path(directory))
        steps: list[Callable[[], None]] = [
            verification.install_the_package,
            *([verification.refuse_without_rights] if is_whole else []),
            verification.make_a_key_as_root,
            verification.set_up_the_first_user,
            verification.sign_in_behind_nginx,
            verification.sign_in_behind_caddy,
            verification.enroll_an_agent,
            verification.use_the_separate_processes,
            verification.read_the_journal,
            verification.survive_a_kill,
            *([verification.survive_a_hang, verification.stop_gracefully] if is_whole else []),
            verification.report_a_wrong_option,
            verification.back_up_and_restore,
            *([verification.survive_an_upgrade] if is_whole else []),
            verification.set_up_postgresql,
            verification.move_to_postgresql,
            *(
                [verification.serve_with_workers, verification.back_up_and_restore_postgresql]
                if is_whole
                else []
            ),
            *([verification.keep_state_when_uninstalled] if is_whole else []),
            verification.purge_without_leftovers,
            *([verification.install_without_the_package] if is_whole else []),
        ]
        try:
            run_steps(steps, UNIT)
        finally:
            if verification.agent is not None and verification.agent.poll() is None:
                verification.agent.kill()
                verification.agent.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
