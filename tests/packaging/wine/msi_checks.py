"""Checks of the MSI package with Wine's Windows Installer.

Wine returns other error codes than Windows, does not run rollback actions, and does not restore
files. docs/install.md lists what these checks therefore cannot test.
"""

import contextlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from agent import __version__
from tests.packaging.local_service import LOCATION, LocalService, until
from tests.packaging.wine.windows_checks import (
    ANSWERED,
    EVENT_KEY,
    KEY_FILE,
    PROGRAMS,
    SERVICE_KEY,
    WITHIN_S,
    PackageChecks,
    Step,
    print_ok,
)
from tests.packaging.wine.wine import CACHE, Wine, windows
from tests.paths import ROOT

ONEDIR: Final = CACHE / "onedir/venue-agent"
SETUP_LOG: Final = r"C:\windows\logs\venue-agent-setup.log"
ENTRIES_KEY: Final = r"HKLM\Software\Microsoft\Windows\CurrentVersion\Uninstall"
HELP_URL: Final = "https://agent.example/help"
ADDED: Final = "_internal/added.txt"
REMOVED: Final = "_internal/tzdata/zones"
"""A file that the newer version adds, and a file that it no longer contains."""
CLASSES_KEY: Final = r"HKLM\Software\Classes\Installer"
DATA_KEY: Final = r"HKLM\Software\Microsoft\Windows\CurrentVersion\Installer\UserData"


def build_msi(onedir: Path, version: str, output: Path, sign_options: str = "") -> Path:
    """Build a package, and return its path."""
    script = ROOT / "packaging/windows/build_msi.py"
    environment = {**os.environ, "HELP_URL": HELP_URL, "SIGN_OPTIONS": sign_options}
    words = (sys.executable, str(script), str(onedir), version, str(output))
    done = subprocess.run(words, env=environment, check=True, capture_output=True, text=True)
    return Path(done.stdout.splitlines()[-1])


def next_version(version: str) -> str:
    """Return a version whose third number is higher by one."""
    *first, last = re.findall(r"\d+", version)[:3]
    return ".".join((*first, str(int(last) + 1)))


class MsiChecks(PackageChecks):
    """Checks of the MSI package. If ``is_short`` is set, they only install the package with a
    configuration, and uninstall it.
    """

    def __init__(
        self, wine: Wine, service: LocalService, keep: Path | None, work: Path, *, is_short: bool
    ) -> None:
        super().__init__(wine, service, keep, work)
        self.work = work
        self.is_short = is_short
        self.folder = wine.path(rf"{PROGRAMS}\venue-agent")
        self.log = wine.path(SETUP_LOG)
        self.sign_options = ""
        # `build` and `upgrade_while_it_runs` replace these two paths by those of the packages.
        self.msi = work
        self.newer_msi = work
        self.initial_registry: list[str] = []

    @property
    def steps(self) -> tuple[Step, ...]:
        if self.is_short:
            return (self.build, self.install_and_report, self.uninstall, self.purge_kept_state)
        return (
            self.make_a_certificate, self.build, self.verify_the_signature,
            self.build_the_same_bytes, self.install_files_only, self.refuse_a_single_property,
            self.name_the_reason_of_a_failure, self.undo_a_first_installation,
            self.install_and_report, self.hide_the_key_file, self.repair,
            self.upgrade_while_it_runs, self.refuse_an_older_version, self.uninstall,
            self.install_again, self.uninstall_and_purge, self.fail_with_a_broken_version,
        )  # fmt: skip

    def msiexec(self, *words: str, fails: bool = False) -> None:
        """Run Windows Installer without a user interface."""
        done = self.wine.run("msiexec", *words, "/qn", expect=None)
        log = self.log.read_text() if self.log.exists() else "there is no log"
        assert bool(done.returncode) == fails, f"{words}: {done.returncode}\n{log}"

    def install(self, msi: Path, *properties: str, fails: bool = False) -> None:
        self.msiexec("/i", windows(msi), *properties, fails=fails)

    @property
    def properties(self) -> tuple[str, ...]:
        address = f"BASE_URL={self.service.base_url}"
        return (address, f"LOCATION_ID={LOCATION}", f"API_KEY_FILE={KEY_FILE}")

    def build(self) -> None:
        self.initial_registry = self.registry()
        shutil.rmtree(self.work, ignore_errors=True)
        self.msi = build_msi(ONEDIR, __version__, self.work / "first", self.sign_options)
        print_ok(f"{self.msi.name}: {self.msi.stat().st_size / 2**20:.1f} MiB")

    def make_a_certificate(self) -> None:
        certificates = self.work.with_suffix(".certificates")
        certificates.mkdir(exist_ok=True)
        files = [certificates / name for name in ("key.pem", "certificate.pem")]
        subprocess.run(
            ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
             "-subj", "/CN=Test publisher", "-addext", "extendedKeyUsage=codeSigning",
             "-keyout", str(files[0]), "-out", str(files[1])),
            check=True, capture_output=True,
        )  # fmt: skip
        self.certificate = files[1]
        self.sign_options = f"-key {files[0]} -certs {files[1]}"

    def verify_the_signature(self) -> None:
        extracted = self.work / "extracted"
        extract = ("msiextract", "--directory", str(extracted), str(self.msi))
        subprocess.run(extract, check=True, capture_output=True)
        (program,) = extracted.rglob("venue-agent.exe")
        for file in (self.msi, program):
            words = ("osslsigncode", "verify", "-CAfile", str(self.certificate), "-in", str(file))
            output = subprocess.run(words, check=True, capture_output=True, text=True).stdout
            assert "Signature verification: ok" in output, output
        print_ok("package and program are signed")

    def build_the_same_bytes(self) -> None:
        first, second = (build_msi(ONEDIR, __version__, self.work / each) for each in "ab")
        assert first.read_bytes() == second.read_bytes()
        print_ok("without a signature, two builds give the same bytes")

    def registry(self) -> list[str]:
        """Return the registry keys of installed programs. Each contains a GUID."""
        keys = (ENTRIES_KEY, CLASSES_KEY, DATA_KEY)
        lines = "\n".join(
            self.wine.run("reg", "query", key, "/s", expect=None).stdout for key in keys
        )
        return re.findall(r"^HKEY.*(?:[0-9A-F]{32}|\{[0-9A-F-]{36}\}).*$", lines, re.MULTILINE)

    def service_key_exists(self) -> bool:
        return self.wine.run("reg", "query", SERVICE_KEY, expect=None).returncode == 0

    def install_files_only(self) -> None:
        self.install(self.msi)
        assert (self.folder / "venue-agent.exe").exists()
        assert self.registry() != self.initial_registry
        assert not self.service_key_exists()
        assert not self.home.exists()
        entry = self.wine.run("reg", "query", ENTRIES_KEY, "/s").stdout
        for name, value in {
            "DisplayName": "Venue agent", "DisplayVersion": __version__, "HelpLink": HELP_URL,
            "Publisher": "The venue-agent authors", "NoModify": "0x1",
        }.items():  # fmt: skip
            assert re.search(rf"^ *{name} +REG_\w+ +{re.escape(value)}$", entry, re.MULTILINE), name
        self.msiexec("/x", windows(self.msi))
        self.require_nothing_installed()
        print_ok("without properties, only files are installed")

    def refuse_a_single_property(self) -> None:
        self.install(self.msi, *self.properties[:1], fails=True)
        self.require_nothing_installed()
        print_ok("an installation with only one of the three properties is refused")

    def name_the_reason_of_a_failure(self) -> None:
        self.install(self.msi, *self.properties[:2], r"API_KEY_FILE=C:\none.txt", fails=True)
        reason = self.log.read_text()
        assert r"the API key cannot be read from C:\none.txt" in reason, reason
        assert reason.endswith("install: exit code 2\n"), reason
        assert not self.folder.exists()
        print_ok(f"a failure is explained: {reason.splitlines()[0]!r}")

    def undo_a_first_installation(self) -> None:
        """Run the command of the rollback action, because Wine does not run this action."""
        self.install(self.msi)
        self.write_key()
        words = ("--base-url", self.service.base_url, "--location", LOCATION)
        self.agent("service", "install", *words, "--api-key-file", KEY_FILE)
        self.agent("windows-setup", "undo", "--purge")
        assert not self.service_key_exists()
        assert not self.home.exists()
        assert self.log.read_text().endswith("undo: exit code 0\n")
        self.msiexec("/x", windows(self.msi))
        self.require_nothing_installed()
        # The device may have enrolled. `--purge` deleted its identity, so the next installation
        # enrolls a new device.
        print_ok("the rollback action removes the service and its configuration")

    def write_key(self) -> None:
        self.wine.path(KEY_FILE).write_text(self.service.api_key + "\n")

    def install_and_enroll_anew(self, *words: str) -> None:
        """Install the package with properties, and wait for a device that was not known before."""
        self.write_key()
        known_ids = {device["instanceId"] for device in self.service.devices()}
        self.install(self.msi, *self.properties, *words)
        self.device = until(
            lambda: next(
                (each for each in self.service.devices() if each["instanceId"] not in known_ids),
                None,
            ),
            WITHIN_S,
        )

    def install_and_report(self) -> None:
        self.install_and_enroll_anew("/l*v", r"C:\install.log")
        assert (self.folder / "venue-agent.exe").exists()
        assert self.request_report("application")["outcome"] in ANSWERED
        print_ok("installed with properties: enrolled, and the first report has arrived")

    def hide_the_key_file(self) -> None:
        content = self.wine.path(r"C:\install.log").read_bytes().decode("latin-1")
        assert self.service.api_key not in content
        # Wine logs hidden properties. Windows would not.
        lines = [line for line in content.splitlines() if KEY_FILE in line]
        assert lines == [f"Property(S): API_KEY_FILE = {KEY_FILE}"], lines
        print_ok("the log contains no key")

    def repair(self) -> None:
        pid = self.pid()
        missing = self.folder / "_internal/base_library.zip"
        missing.unlink()
        self.install(self.msi, "REINSTALL=ALL", "REINSTALLMODE=amus")
        assert missing.exists()
        assert self.pid() != pid
        assert self.request_report("application")["outcome"] in ANSWERED
        print_ok("repaired: a deleted file is back, and the same device answers")

    def make_changed_program(self, name: str, change: Callable[[Path], None]) -> Path:
        target = self.work / name / "venue-agent"
        shutil.copytree(ONEDIR, target)
        change(target)
        return target

    def upgrade_while_it_runs(self) -> None:
        def change(program: Path) -> None:
            (program / ADDED).write_text("added")
            (program / REMOVED).unlink()

        version = next_version(__version__)
        program = self.make_changed_program("newer", change)
        self.newer_msi = build_msi(program, version, self.work / "second")
        pid = self.pid()
        self.install(self.newer_msi)
        assert self.pid() != pid
        assert (self.folder / ADDED).exists()
        assert not (self.folder / REMOVED).exists()
        entries = self.wine.run("reg", "query", ENTRIES_KEY, "/s").stdout
        assert re.findall(r"DisplayVersion +REG_SZ +(\S+)", entries) == [version], entries
        assert self.request_report("application")["outcome"] in ANSWERED
        print_ok("upgraded while the agent ran: the same device answers")

    def refuse_an_older_version(self) -> None:
        pid = self.pid()
        self.install(self.msi, fails=True)
        assert self.pid() == pid
        self.msi = self.newer_msi
        print_ok("an older version is refused, and the agent is not interrupted")

    def uninstall(self) -> None:
        self.msiexec("/x", windows(self.msi))
        self.require_nothing_installed()
        assert (self.home / "identity.pem").exists()
        print_ok("uninstalled: state is kept; no file, entry, service or process is left")

    def install_again(self) -> None:
        self.install(self.msi, *self.properties)
        assert self.request_report("application")["outcome"] in ANSWERED
        print_ok("installed again: the same device answers")

    def uninstall_and_purge(self) -> None:
        self.msiexec("/x", windows(self.msi), "PURGE=1")
        self.require_nothing_installed()
        assert not self.home.exists(), sorted(self.home.rglob("*"))
        print_ok("uninstalled with PURGE=1: the state is deleted, too")

    def purge_kept_state(self) -> None:
        shutil.rmtree(self.home)

    def fail_with_a_broken_version(self) -> None:
        """Try to install a version whose program does not start. The installation must fail. Wine
        does not restore the previous version.
        """

        def change(program: Path) -> None:
            (program / "_internal/base_library.zip").unlink()

        self.install_and_enroll_anew()
        version = next_version(next_version(__version__))
        broken = build_msi(
            self.make_changed_program("broken", change), version, self.work / "third"
        )
        self.install(broken, fails=True)
        entries = self.wine.run("reg", "query", ENTRIES_KEY, "/s", expect=None).stdout
        assert version not in entries, entries
        assert (self.home / "identity.pem").exists()
        # Wine does not undo the registration of the failed version's components. The next
        # installation takes over this registration.
        self.initial_registry = self.registry()
        self.install(self.msi, *self.properties)
        assert self.request_report("application")["outcome"] in ANSWERED
        print_ok("a version that does not start is not installed, and the state stays")
        self.uninstall_and_purge()

    def require_nothing_installed(self) -> None:
        assert not self.folder.exists(), sorted(self.folder.rglob("*"))
        for key in (SERVICE_KEY, EVENT_KEY):
            self.wine.run("reg", "query", key, expect=1)
        assert set(self.registry()) <= set(self.initial_registry), self.registry()
        # Uninstalling deletes the log. If the installation failed, the log is kept.
        with contextlib.suppress(FileNotFoundError):
            text = self.log.read_text()
            assert text.endswith("exit code 2\n"), text
        assert not self.processes(), self.processes()
