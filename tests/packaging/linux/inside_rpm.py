"""Runs in the container of `verify_rpm`: installs, upgrades and removes venue-agent and
venue-control with dnf.

Each step prints its results. The first step that fails ends the run.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tests.packaging.inside_systemd import (
    CONFIG,
    RESULTS,
    SELECTED,
    STATE,
    UPGRADE,
    UPGRADE_UNIT,
    WITHIN_S,
    agent,
    print_ok,
    run,
    run_steps,
    unit_property,
    verify_units,
)
from tests.packaging.linux.documents import documented
from tests.packaging.linux.inside_machine import (
    InstalledPackages,
    repository_server,
    serve_site,
    shell,
)
from tests.packaging.linux.rpms import BROKEN, NEXT
from tests.packaging.local_service import LocalService, local_service, until

DNF_UPGRADE: Final = ("dnf", "--refresh", "--assumeyes", "upgrade", "venue-agent")
RECORDS_OF_DNF: Final = ("/var/lib/rpm", "/var/lib/dnf", "/etc/pki")
DIRECTORIES: Final = ("/etc/yum.repos.d", "/usr/share/licenses")
"""Directories that every distribution with RPM has, but not Debian."""
REFUSALS: Final = (
    ("another-key", "repomd.xml GPG signature verification error"),
    ("changed-index", "repomd.xml GPG signature verification error"),
    ("another-index", "repomd.xml GPG signature verification error"),
    ("changed-package", "checksum doesn't match"),
    ("unsigned-package", "is not signed"),
)
"""States of the repository, and what dnf prints about each."""


NEW, KEPT = "venue-agent", "venue-agent.previous"
"""Names of directories in /usr/lib. dnf replaces the files in NEW. Before that, %pre copies the
previous version to KEPT. That version runs during the upgrade, and again if the new one fails.
"""
SYSUSERS: Final = Path("/etc/sysusers.d/venue-agent.conf")
"""A file that %post reads. If it is a pipe, %post waits, and can be killed meanwhile."""


def installed_version(program: str = "venue-agent") -> str:
    return run("rpm", "-q", "--queryformat", "%{VERSION}", program, expect=None).stdout


def service_property(name: str) -> str:
    words = ("systemctl", "show", "venue-control.service", f"--property={name}", "--value")
    return run(*words).stdout.strip()


def running_directory() -> str:
    """Return the name of the directory from which the agent runs; "" if it does not run."""
    try:
        return Path(f"/proc/{unit_property('MainPID')}/exe").readlink().parent.name
    except OSError:
        return ""


def has_selected_the_kept_version() -> bool:
    return SELECTED.is_symlink() and SELECTED.readlink().name == KEPT


def is_in_post() -> bool:
    """Return whether %post runs: it then waits for the pipe `SYSUSERS`."""
    try:
        os.close(os.open(SYSUSERS, os.O_WRONLY | os.O_NONBLOCK))
    except OSError:
        return False  # no process reads the pipe
    return True


class Verification(InstalledPackages):
    def __init__(self, service: LocalService, home: Path) -> None:
        # This package provides what our packages require (`rpms.build_system`).
        (system,) = sorted((RESULTS / "packages").glob("system-*.rpm"))[-1:]
        run("rpm", "--force-debian", "--install", str(system))
        for directory in DIRECTORIES:
            Path(directory).mkdir(parents=True, exist_ok=True)
        # Distributions with RPM lack this command of Debian, which starts and stops services.
        Path("/usr/bin/deb-systemd-invoke").unlink()
        super().__init__(service, home)
        # The documented command completes an interrupted upgrade. Debian's rpm installs packages
        # only with the option --force-debian.
        repeat = documented("docs/upgrades.md")["rpm-repeat"].replace(
            "rpm ", "rpm --force-debian ", 1
        )
        self.repeat_command = f"cd {RESULTS}/packages/next\n{repeat}"

    def wait_until_accepted(self) -> None:
        """Wait until the upgrade unit has verified the installed version, and the agent works."""
        until(lambda: not UPGRADE.exists(), WITHIN_S)
        self.wait_until_it_works()
        assert (SELECTED.readlink().name, running_directory()) == (NEW, NEW)
        assert [each["instanceId"] for each in self.service.devices()] == [self.instance_id]

    # ------------------------------------------------------------------ steps, in their order

    def install(self) -> None:
        serve_site("first")
        output = shell(self.blocks["dnf"])
        assert "venue-agent service install" in output, output
        self.first_version = installed_version()
        assert unit_property("ActiveState") == "inactive"
        assert unit_property("UnitFileState") == "enabled"
        verify_units("/usr/lib/systemd/system")
        print_ok(
            f"the two commands of install.md installed version {self.first_version}: not started"
        )

    def refuse_changes(self) -> None:
        """Offer a newer version in repositories that are not authentic."""
        pid = unit_property("MainPID")
        for site, message in REFUSALS:
            serve_site(site)
            done = run(*DNF_UPGRADE, expect=None)
            output = done.stdout + done.stderr
            assert message in output, output
            assert (installed_version(), unit_property("MainPID")) == (self.first_version, pid), (
                site
            )
            print_ok(f"{site}: {message!r}, version {self.first_version} stays")

    def upgrade(self) -> None:
        serve_site("newer")
        pid = unit_property("MainPID")
        config = CONFIG.read_text()
        run(*DNF_UPGRADE)
        assert installed_version() != self.first_version
        assert unit_property("MainPID") != pid
        assert CONFIG.read_text() == config
        self.wait_until_accepted()
        print_ok(f"upgraded to {installed_version()}: running again, the same device")

    def downgrade(self) -> None:
        run("dnf", "--assumeyes", "downgrade", "venue-agent")
        assert installed_version() == self.first_version
        self.wait_until_accepted()
        print_ok(f"dnf downgrade: version {self.first_version} again, healthy")

    def interrupt(self) -> None:
        """Kill dnf and its scripts during the upgrade: once in %pre, and once in %post. Each time,
        complete the upgrade with the documented command.
        """
        serve_site("newer")
        SYSUSERS.parent.mkdir(exist_ok=True)
        for script, is_reached, runs_from in (
            ("%pre", has_selected_the_kept_version, {NEW, KEPT}),  # NEW still has the old files
            ("%post", is_in_post, {KEPT}),
        ):
            if script == "%post":
                os.mkfifo(SYSUSERS)
            dnf = subprocess.Popen(
                DNF_UPGRADE, start_new_session=True,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            until(is_reached, WITHIN_S, every_s=0.005)
            os.killpg(dnf.pid, signal.SIGKILL)
            dnf.wait()
            if script == "%post":
                SYSUSERS.unlink()
            until(lambda: running_directory() in runs_from, WITHIN_S)  # noqa: B023
            shell(self.repeat_command)
            assert installed_version() == NEXT
            self.wait_until_accepted()
            print_ok(f"killed in {script}: the old version runs, one command completes the upgrade")
            if script != "%post":
                run("dnf", "--assumeyes", "downgrade", "venue-agent")
                self.wait_until_accepted()

    def roll_back(self) -> None:
        """Install a version that does not start, and go back to a working one."""
        drop_in = Path(f"/run/systemd/system/{UPGRADE_UNIT}.d/test.conf")
        drop_in.parent.mkdir(parents=True)
        drop_in.write_text("[Service]\nEnvironment=WITHIN_S=2\n")
        serve_site("broken")
        run(*DNF_UPGRADE)
        until(lambda: "state=failed" in UPGRADE.read_text(), WITHIN_S)
        until(
            lambda: unit_property("ActiveState") == "active" and running_directory() == KEPT,
            WITHIN_S,
        )
        assert installed_version() == BROKEN
        output = " ".join(agent("service", "status", expect=None).split())
        sentence = re.search(rf"version {BROKEN} did not start; \S+ runs again since", output)
        assert sentence, output
        drop_in.unlink()
        drop_in.parent.rmdir()
        run("dnf", "--assumeyes", "downgrade", f"venue-agent-{self.first_version}")
        assert installed_version() == self.first_version
        self.wait_until_accepted()
        print_ok(f"rolled back: {sentence[0]!r}; then version {self.first_version} was installed")

    def keep_a_stopped_agent_stopped(self) -> None:
        agent("service", "uninstall")
        serve_site("newer")
        run(*DNF_UPGRADE)
        assert unit_property("ActiveState") == "inactive"
        assert unit_property("UnitFileState") == "disabled"
        print_ok("upgraded while disabled: stays disabled and stopped")

    def install_the_service(self) -> None:
        serve_site("first")
        run("dnf", "--refresh", "--assumeyes", "install", "venue-control")
        assert service_property("ActiveState") == "active"
        run("venue-control", "service", "status")
        pid = service_property("MainPID")
        serve_site("newer")
        run("dnf", "--refresh", "--assumeyes", "upgrade", "venue-control")
        assert service_property("ActiveState") == "active"
        assert service_property("MainPID") != pid
        run("dnf", "--assumeyes", "remove", "venue-control")
        assert service_property("LoadState") == "not-found"
        assert Path("/var/lib/venue-control/venue-control.db").exists()
        run("rm", "-rf", "/etc/venue-control", "/var/lib/venue-control")
        run("userdel", "venue-control")
        print_ok("venue-control: installed, started, upgraded, removed; its database stays")

    def remove(self) -> None:
        agent("service", "install")
        self.wait_until_it_works()
        remove, *rest = self.blocks["dnf-remove"].splitlines()
        shell(remove)
        assert unit_property("LoadState") == "not-found"
        assert CONFIG.exists()
        assert (STATE / "identity.pem").exists()
        shell("\n".join(rest))
        self.require_nothing_left(RECORDS_OF_DNF)
        print_ok("removed: configuration and state stay, until the documented commands delete them")


def main() -> int:
    with (
        tempfile.TemporaryDirectory() as directory,
        local_service(Path(directory)) as service,
        repository_server(),
    ):
        verification = Verification(service, Path(directory))
        steps: list[Callable[[], None]] = [
            verification.install,
            verification.configure,
            verification.refuse_changes,
            verification.upgrade,
            verification.downgrade,
            verification.interrupt,
            verification.roll_back,
            verification.keep_a_stopped_agent_stopped,
            verification.install_the_service,
            verification.remove,
        ]
        run_steps(steps)
    return 0


if __name__ == "__main__":
    sys.exit(main())
