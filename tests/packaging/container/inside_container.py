"""The steps of `verify_container`. They run in the namespaces that it creates, as root and
as an ordinary user.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from agent import __version__
from tests.packaging.local_service import LOCATION, LocalService, until
from tests.packaging.service.commands_of_doc import documented_commands
from tests.packaging.verify_bare import run
from tests.paths import ROOT

USER_ID: Final = 4747
FIRST_SUBORDINATE: Final = 200000
SUBORDINATES: Final = 65536
"""Number of the user's subordinate ids, from `FIRST_SUBORDINATE` (subuid(5))."""
SERVICE_USER_ID: Final = 847
"""The id of the user that runs the service in the container."""
BASE: Final = "localhost/debian-base"
IMAGE: Final = "localhost/venue-control"
NAME: Final = "venue-control"
URL: Final = "http://127.0.0.1:8470"
STATE: Final = "/var/lib/venue-control"
START_WITHIN_S: Final = 300.0
KILLED: Final = 137
"""Exit code of a container that SIGKILL ended."""
CONFIG: Final = """\
[service]
base_url = "{url}"
location_id = "{location}"
api_key_file = "{home}/key"
[device]
legacy_install_id = "till"
state_dir = "{home}/state"
"""


class User:
    """An ordinary user with subordinate user ids, and its home directory."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.runtime = Path(f"/run/user/{USER_ID}")
        self.key = ""
        self.instance_id = ""
        self.commands = documented_commands()

    def create(self, etc: Path) -> None:
        """Create the user in this mount namespace, with the directories and device files that a
        login and udev would create.
        """
        etc.mkdir()
        subordinates = f"keeper:{FIRST_SUBORDINATE}:{SUBORDINATES}\n"
        lines = {
            "passwd": f"keeper:x:{USER_ID}:{USER_ID}::{self.home}:/bin/sh\n",
            "group": f"keeper:x:{USER_ID}:\n",
            "subuid": subordinates,
            "subgid": subordinates,
        }
        for name, line in lines.items():
            shutil.copy(Path("/etc") / name, etc / name)
            with (etc / name).open("a") as file:
                file.write(line)
            run("mount", "--bind", etc / name, Path("/etc") / name)
        run("mount", "-t", "tmpfs", "venue-control-test", "/run")
        self.runtime.mkdir(parents=True)
        self.runtime.chmod(0o700)
        run("mount", "-t", "tmpfs", "-o", "mode=755", "venue-control-test", "/mnt")
        for path, major, minor in (("/dev/net/tun", "10", "200"), ("/dev/fuse", "10", "229")):
            node = Path("/mnt") / Path(path).name
            run("mknod", "-m", "666", node, "c", major, minor)
            run("mount", "--bind", node, path)
        self.give_to_user(self.runtime)
        self.give_to_user(self.home)

    def give_to_user(self, path: str | Path) -> None:
        run("chown", "--recursive", f"{USER_ID}:{USER_ID}", path)

    def run(self, *words: str, code: int = 0, within_s: float = 600) -> str:
        """Run a program as this user, in the checkout. Return its output.

        Raises AssertionError if its exit code is not ``code``.
        """
        rights = ("setpriv", f"--reuid={USER_ID}", f"--regid={USER_ID}", "--init-groups")
        environment = {
            "HOME": str(self.home),
            "USER": "keeper",
            "XDG_RUNTIME_DIR": str(self.runtime),
            "TMPDIR": str(self.home),
            "SOURCE_DATE_EPOCH": os.environ.get("SOURCE_DATE_EPOCH", "0"),
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        }
        done = subprocess.run(
            (*rights, *words), cwd=self.home / "checkout", env=environment, text=True,
            stdin=subprocess.DEVNULL, capture_output=True, timeout=within_s, check=False,
        )  # fmt: skip
        assert done.returncode == code, (
            f"{' '.join(words)} ended with {done.returncode}, not {code}:\n"
            f"{done.stdout[-2000:]}{done.stderr[-2000:]}"
        )
        return done.stdout

    def podman(self, *words: str, code: int = 0) -> str:
        return self.run("podman", *words, code=code)

    def run_documented(self, block: str) -> None:
        """Run the commands of a block of docs/service-install.md, as this user."""
        for command in self.commands[block]:
            self.run("sh", "-c", command)

    def inside(self, script: str, code: int = 0) -> str:
        """Run a script in the container."""
        return self.podman("exec", NAME, "sh", "-c", script, code=code)

    def is_healthy(self) -> bool:
        """Return whether the image's health check passes."""
        try:
            self.podman("healthcheck", "run", NAME)
        except AssertionError:
            return False
        return True

    def service(self) -> LocalService:
        return LocalService(URL, self.key)

    def wait_until_healthy(self) -> None:
        until(self.is_healthy, START_WITHIN_S)


def build_the_image(user: User) -> None:
    user.podman("import", "--quiet", str(user.home / "base.tar"), BASE)
    user.run("make", "container-image", f"BASE={BASE}")
    images = user.podman("images", "--format", "{{.Repository}}:{{.Tag}}").split()
    assert f"{IMAGE}:{__version__}" in images, images


def stop_while_it_starts(user: User) -> None:
    """A SIGTERM ends the container even before the service listens."""
    user.podman("run", "--detach", "--name", "early", f"{IMAGE}:{__version__}")
    until(lambda: "venue-control" in user.podman("top", "early", "args"), START_WITHIN_S)
    user.podman("stop", "early")
    code = int(user.podman("inspect", "early", "--format", "{{.State.ExitCode}}"))
    assert code != KILLED, "SIGTERM did not end the service within 10 s"
    user.podman("rm", "early")


def start_as_documented(user: User) -> None:
    user.run_documented("container")
    user.wait_until_healthy()


def verify_that_the_service_has_no_rights(user: User) -> None:
    """The service runs as an ordinary user, inside and outside the container, and has no
    capabilities.
    """
    status = user.inside("cat /proc/1/status")
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(fields[name], 16) == 0, f"{name} {fields[name]}"
    assert fields["NoNewPrivs"] == "1"
    assert fields["Seccomp"] == "2"
    assert fields["Uid"].split() == [str(SERVICE_USER_ID)] * 4
    process = user.podman("inspect", NAME, "--format", "{{.State.Pid}}").strip()
    owner = Path(f"/proc/{process}").stat().st_uid
    assert FIRST_SUBORDINATE <= owner < FIRST_SUBORDINATE + SUBORDINATES, owner
    root_options = user.inside("grep ' / ' /proc/mounts").split()[3].split(",")
    assert "ro" in root_options, root_options
    user.inside(f"touch {STATE}/x && rm {STATE}/x")


def verify_that_the_health_check_fails_without_a_listening_service(user: User) -> None:
    """In a second container, the service listens on a port that the health check does not query."""
    words = ("--detach", "--name", "other", IMAGE, "serve", "--port", "8471")
    user.podman("run", *words)
    until(lambda: "8471" in user.podman("logs", "other"), START_WITHIN_S)
    user.podman("healthcheck", "run", "other", code=1)
    user.podman("rm", "--force", "--time=10", "other")


def enroll_and_report(user: User) -> None:
    """An agent of this checkout enrolls through the published port and submits a report."""
    create = ("venue-control", "keys", "create", "--write", "--location", LOCATION)
    user.key = user.podman("exec", NAME, *create, "--new-locations").split()[0]
    home = user.home.parent / "agent"
    home.mkdir()
    (home / "key").write_text(user.key)
    (home / "key").chmod(0o600)
    config = home / "agent.toml"
    config.write_text(CONFIG.format(url=URL, location=LOCATION, home=home))
    words = (sys.executable, "-m", "agent", "run", "--config", str(config))
    with (home / "log").open("wb") as log:
        agent = subprocess.Popen(words, stdout=log, stderr=log, cwd=ROOT)
        try:
            service = user.service()
            user.instance_id = service.enrolled_device(within_s=START_WITHIN_S)["instanceId"]
            request = service.request(user.instance_id, "application")
            report = until(lambda: service.report_of(user.instance_id, request), START_WITHIN_S)
            assert report is not None
            # The agent still holds its command stream while the container stops.
            stop_and_start(user)
        finally:
            agent.terminate()
            agent.wait(60)


def stop_and_start(user: User) -> None:
    user.podman("stop", NAME)  # podman sends SIGKILL after 10 s
    code = int(user.podman("inspect", NAME, "--format", "{{.State.ExitCode}}"))
    assert code == 0, f"the stopped container ended with {code}"
    user.podman("start", NAME)
    user.wait_until_healthy()
    assert [each["instanceId"] for each in user.service().devices()] == [user.instance_id]


def keep_the_volume(user: User) -> None:
    """A new container with the same volume has the same devices and keys, as after an upgrade."""
    user.run_documented("container-upgrade")
    user.wait_until_healthy()
    assert [each["instanceId"] for each in user.service().devices()] == [user.instance_id]


def back_up(user: User) -> None:
    user.run_documented("container-backup")
    copy = user.home / "checkout/venue-control.db"
    assert copy.read_bytes().startswith(b"SQLite format 3")


STEPS: Final[tuple[tuple[str, Callable[[User], None]], ...]] = (
    ("the image is built by an ordinary user, without a registry", build_the_image),
    ("the documented commands start the service; its health check passes", start_as_documented),
    ("no capabilities, no new privileges, an ordinary user, a read-only file system",
     verify_that_the_service_has_no_rights),
    ("the health check fails while the service does not listen",
     verify_that_the_health_check_fails_without_a_listening_service),
    ("an agent enrolls and reports; the container stops despite an open stream, and starts again",
     enroll_and_report),
    ("a new container on the same volume has the same devices", keep_the_volume),
    ("the documented commands back up the database", back_up),
    ("a stop during the start ends the container", stop_while_it_starts),
)  # fmt: skip
