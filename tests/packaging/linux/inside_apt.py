"""Runs in the container of `verify_apt`: installs, upgrades and purges the agent with apt.

Each step prints its results. The first step that fails ends the run.
"""

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tests.packaging.inside_systemd import (
    print_ok,
    run,
    run_steps,
    unit_property,
)
from tests.packaging.linux.documents import documented
from tests.packaging.linux.inside_machine import (
    InstalledPackages,
    repository_server,
    serve_site,
    shell,
)
from tests.packaging.local_service import local_service

RECORDS_OF_APT: Final = "/var/backups/apt.extended_states"
REFUSALS: Final = (
    ("another-key", "NO_PUBKEY"),
    ("changed-index", "BADSIG"),
    ("changed-list", "Hash Sum mismatch"),
    ("expired", "is expired"),
)
"""States of the repository, and what apt prints about each."""


def installed_version() -> str:
    return run("dpkg-query", "-Wf", "${Version}", "venue-agent", expect=None).stdout


class Verification(InstalledPackages):
    # ------------------------------------------------------------------ steps, in their order

    def refuse_an_unknown_key(self) -> None:
        """Install venue-agent.sources, which contains our public key. apt must refuse a repository
        that another key signed.
        """
        serve_site("first")
        fetch, install = self.blocks["apt"].strip().splitlines()
        shell(fetch)
        serve_site("another-key")
        assert "NO_PUBKEY" in shell(install, expect=100)
        assert installed_version() == ""
        Path("/etc/apt/sources.list.d/venue-agent.sources").unlink()
        print_ok("a repository that is signed with another key: refused")

    def install(self) -> None:
        serve_site("first")
        assert documented("README.md")["apt"] == self.blocks["apt"]
        shell(self.blocks["apt"])
        self.first_version = installed_version()
        assert unit_property("ActiveState") == "inactive"
        assert unit_property("UnitFileState") == "enabled"
        print_ok(f"the two commands of README.md installed version {self.first_version}")

    def refuse_changes(self) -> None:
        """Offer a newer version in repositories that are not authentic or not recent."""
        for site, message in REFUSALS:
            serve_site(site)
            run("apt-get", "clean")
            output = shell("apt-get update", expect=None)
            assert message in output, output
            run("apt-get", "--yes", "install", "venue-agent", expect=None)
            assert installed_version() == self.first_version, site
            print_ok(f"{site}: {message!r}, version {self.first_version} stays")
        serve_site("changed-package")
        run("apt-get", "update")
        output = shell("apt-get --yes install venue-agent", expect=100)
        assert "Hash Sum mismatch" in output or "unexpected size" in output, output
        assert installed_version() == self.first_version
        self.wait_until_it_works()
        print_ok(f"changed-package: refused, version {self.first_version} stays and is healthy")

    def upgrade_unattended(self) -> None:
        serve_site("newer")
        # Without the documented file, unattended-upgrade installs nothing from this repository.
        run("apt-get", "update")
        run("unattended-upgrade")
        assert installed_version() == self.first_version
        shell(self.blocks["unattended"])
        pid = unit_property("MainPID")
        # The timers of the system start these two units every day.
        for unit in ("apt-daily.service", "apt-daily-upgrade.service"):
            run("systemctl", "start", unit)
        assert installed_version() != self.first_version, Path(
            "/var/log/unattended-upgrades/unattended-upgrades.log"
        ).read_text()
        assert unit_property("MainPID") != pid
        self.wait_until_it_works()
        assert [each["instanceId"] for each in self.service.devices()] == [self.instance_id]
        print_ok(f"unattended-upgrades installed version {installed_version()}: the same device")

    def ignore_an_older_index(self) -> None:
        """Offer the first index again, with its valid signature, as a replay attack would."""
        serve_site("first")
        run("apt-get", "update")
        versions = run("apt-cache", "madison", "venue-agent").stdout
        assert installed_version() in versions, versions
        print_ok("the first index again, which is authentic but older: ignored")

    def purge_without_leftovers(self) -> None:
        serve_site("newer")
        shell(self.blocks["apt-purge"])
        self.require_nothing_left(RECORDS_OF_APT)
        assert unit_property("LoadState") == "not-found"
        print_ok("purged: no file, unit, user or group is left")


def main() -> int:
    with (
        tempfile.TemporaryDirectory() as directory,
        local_service(Path(directory)) as service,
        repository_server(),
    ):
        verification = Verification(service, Path(directory))
        steps: list[Callable[[], None]] = [
            verification.refuse_an_unknown_key,
            verification.install,
            verification.configure,
            verification.refuse_changes,
            verification.upgrade_unattended,
            verification.ignore_an_older_index,
            verification.purge_without_leftovers,
        ]
        run_steps(steps)
    return 0


if __name__ == "__main__":
    sys.exit(main())
