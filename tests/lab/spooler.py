"""Sets up a real cupsd that has all its files in its own directory."""

import os
import subprocess
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

READY_S = 120.0
_POLL_S = 0.02
PROGRAMS = Path("/usr/lib/cups")
_CUPSD_CONF = """Listen {socket}
{listen}
Browsing Off
WebInterface No
<Location />
Order allow,deny
Allow all
</Location>
<Policy default>
<Limit All>
Order deny,allow
Allow all
</Limit>
</Policy>
"""
_CUPS_FILES = """User lp
Group lp
SystemGroup root
FileDevice Yes
ServerBin {directory}/bin
ServerRoot {directory}/root
CacheDir {directory}/cache
StateDir {directory}/state
RequestRoot {directory}/spool
TempDir {directory}/tmp
ErrorLog {directory}/log/error
AccessLog {directory}/log/access
PageLog {directory}/log/page
"""
_PPD = """*PPD-Adobe: "4.3"
*FormatVersion: "4.3"
*FileVersion: "1"
*LanguageVersion: English
*LanguageEncoding: ISOLatin1
*PCFileName: "LAB.PPD"
*Manufacturer: "Lab"
*Product: "(Lab)"
*ModelName: "{name}"
*ShortNickName: "Lab"
*NickName: "{name}"
*PSVersion: "(3010.000) 0"
*cupsFilter: "application/vnd.cups-raw 0 -"
*OpenUI *PageSize/Size: PickOne
*OrderDependency: 10 AnySetup *PageSize
*DefaultPageSize: A4
*PageSize A4/A4: ""
*CloseUI: *PageSize
*OpenUI *PageRegion/Region: PickOne
*OrderDependency: 10 AnySetup *PageRegion
*DefaultPageRegion: A4
*PageRegion A4/A4: ""
*CloseUI: *PageRegion
*DefaultImageableArea: A4
*ImageableArea A4/A4: "0 0 595 842"
*DefaultPaperDimension: A4
*PaperDimension A4/A4: "595 842"
"""


@dataclass(frozen=True, slots=True)
class Spooler:
    """A cupsd with its files in ``directory``, which user lp must be able to enter."""

    directory: Path

    @property
    def socket(self) -> Path:
        return self.directory / "cups.sock"

    def set_up(self, *, listen: str = "", backends: Iterable[str] = ()) -> tuple[str, ...]:
        """Write the files of cupsd, and return the command line that starts it.

        ``listen`` is an address and port on which cupsd listens in addition to its socket.
        ``backends`` are names of backends of manufacturers' drivers. They are created as stubs that
        never run, because CUPS refuses a queue whose backend is missing.
        """
        for path in ("cache", "spool", "state", "root/ppd", "tmp", "log", "bin/backend"):
            (self.directory / path).mkdir(parents=True)
        for directory in (PROGRAMS, PROGRAMS / "backend"):
            for program in directory.iterdir():
                link = self.directory / "bin" / program.relative_to(PROGRAMS)
                if program.name != "backend":
                    link.symlink_to(program)
        for name in backends:
            stub = self.directory / "bin/backend" / name
            if not stub.is_symlink():
                stub.write_text("#!/bin/sh\nexit 1\n")
                stub.chmod(0o755)
        listen_lines = f"Listen {listen}\nServerAlias *" if listen else ""
        (self.directory / "cupsd.conf").write_text(
            _CUPSD_CONF.format(socket=self.socket, listen=listen_lines)
        )
        (self.directory / "cups-files.conf").write_text(
            _CUPS_FILES.format(directory=self.directory)
        )
        subprocess.run(["chown", "-R", "lp:lp", str(self.directory)], check=True)
        files = f"{self.directory}/cupsd.conf", "-s", f"{self.directory}/cups-files.conf"
        return ("cupsd", "-f", "-c", *files)

    def wait(self) -> None:
        """Wait until cupsd listens on its socket. Raises TimeoutError."""
        deadline_s = time.monotonic() + READY_S
        while not self.socket.exists():
            if time.monotonic() > deadline_s:
                raise TimeoutError(f"cupsd was not ready within {READY_S} s")
            time.sleep(_POLL_S)

    def create_driver(self, name: str) -> Path:
        """Create a PPD file for the model ``name``, and return its path."""
        path = self.directory / "tmp" / f"{len(name)}-{abs(hash(name))}.ppd"
        path.write_text(_PPD.format(name=name))
        return path

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment in which CUPS commands use this spooler."""
        return {**os.environ, "CUPS_SERVER": str(self.socket)}


def queue_command(name: str, uri: str, *options: str) -> tuple[str, ...]:
    """Return the command that creates or changes a queue."""
    return ("lpadmin", "-p", name, "-v", uri, *options, "-E")
