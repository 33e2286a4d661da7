"""A container with a real systemd whose disk survives power cuts.

The container and this process are in the same network namespace, so that both reach the same fake
service. The namespace must have only loopback.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeVar

from tests.packaging.verify_systemd import LANDLOCK
from tests.paths import ROOT

PYTHON: Final = str(ROOT / ".venv/bin/python")
WITHIN_S: Final = 240.0
VERSION_FILE: Final = "test-version"
"""A file beside the program. The file contains the version of the package. All packages from
`make_package` have the same program, so the program cannot report this version."""
POLL_EVERY_S: Final = 0.05
Result = TypeVar("Result")


class Machine:
    """The container. ``root`` is its disk, ``results`` is its directory /results, ``boots`` counts
    its boots.
    """

    def __init__(self, root: Path, results: Path) -> None:
        self.root = root
        self.results = results
        self._nspawn: subprocess.Popen[bytes] | None = None
        self._leader = 0
        self.boots = 0

    def boot(self) -> None:
        """Boot, and return when the system is running."""
        words = (
            "systemd-nspawn", "-q", "-D", str(self.root), "--register=no", "--keep-unit",
            f"--machine=venue-agent-upgrade-{os.getpid()}", "--console=read-only",
            f"--bind={self.results}:/results", f"--bind-ro={ROOT}:{ROOT}",
            f"--bind-ro={sys.base_prefix}:{sys.base_prefix}",
            f"--system-call-filter={' '.join(LANDLOCK)}", "--boot", "systemd.log_color=0",
        )  # fmt: skip
        with (self.results / "boot.log").open("ab") as log:
            self._nspawn = subprocess.Popen(words, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        self._leader = until(self._find_leader)
        until(lambda: self.run("systemctl", "is-system-running", expect=None) in UP)
        self.boots += 1

    def cut_power(self) -> None:
        """Kill every process of the container at once."""
        os.kill(self._leader, signal.SIGKILL)
        assert self._nspawn is not None
        self._nspawn.wait(60)

    def _find_leader(self) -> int | None:
        """Return the process id of the container's systemd, or None if it has not started yet."""
        assert self._nspawn is not None
        assert self._nspawn.poll() is None, "the container has ended: see boot.log"
        pid = self._nspawn.pid
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            with contextlib.suppress(OSError):
                if Path(f"/proc/{child}/comm").read_text().strip() == "systemd":
                    return int(child)
        return None

    def command(self, *words: str) -> tuple[str, ...]:
        """Return the command line that runs ``words`` in the container."""
        enter = ("nsenter", "-t", str(self._leader), "-m", "-u", "-i", "-p", "-C", "--root")
        return (*enter, f"--wd=/proc/{self._leader}/root{ROOT}", "--", *words)

    def run(self, *words: str, expect: int | None = 0) -> str:
        """Run a program in the container. Return its output, stripped.

        If ``expect`` is None, any exit code is permitted, and the output includes standard error.
        """
        done = subprocess.run(
            self.command(*words), capture_output=True, text=True, check=False, timeout=WITHIN_S,
            env=ENVIRONMENT,
        )  # fmt: skip
        if expect is not None and done.returncode != expect:
            output = done.stdout + done.stderr
            raise AssertionError(f"{words} ended with {done.returncode}: {output}")
        return (done.stdout + (done.stderr if expect is None else "")).strip()

    def unit_property(self, name: str, unit: str = "venue-agent.service") -> str:
        return self.run("systemctl", "show", unit, f"--property={name}", "--value")

    def path(self, path: str) -> Path:
        """Return the path of a file on the container's disk, as seen from outside the container."""
        return self.root / path.removeprefix("/")


UP: Final = {"running", "degraded"}
"""States of a booted system (`systemctl is-system-running`)."""
ENVIRONMENT: Final = {
    "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "HOME": "/root",
    "DEBIAN_FRONTEND": "noninteractive", "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "80",
}  # fmt: skip


@contextlib.contextmanager
def machine(root: Path, results: Path) -> Iterator[Machine]:
    """Boot a machine, and end it after the body."""
    machine_ = Machine(root, results)
    machine_.boot()
    try:
        yield machine_
    finally:
        machine_.cut_power()


def until(poll: Callable[[], Result | None], within_s: float = WITHIN_S) -> Result:
    """Call ``poll`` until its result is true, and return it. Raises TimeoutError."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        result = poll()
        if result:
            return result
        time.sleep(POLL_EVERY_S)
    raise TimeoutError(f"no result within {within_s:g} s")


def make_package(first: Path, version: str, target: Path, change: str | None = None) -> None:
    """Make a package of ``version`` with the program of the package ``first``.

    Args:
        change: a shell script that replaces the program. It may run the program, which is renamed
            to `venue-agent.real`.
    """
    tree = target.with_suffix(".tree")
    shutil.rmtree(tree, ignore_errors=True)
    subprocess.run(("dpkg-deb", "-R", str(first), str(tree)), check=True)
    control = tree / "DEBIAN/control"
    lines = [
        f"Version: {version}" if line.startswith("Version:") else line
        for line in control.read_text().splitlines()
    ]
    control.write_text("\n".join(lines) + "\n")
    (tree / "usr/lib/venue-agent" / VERSION_FILE).write_text(version)
    if change is not None:
        program = tree / "usr/lib/venue-agent/venue-agent"
        program.rename(program.with_name("venue-agent.real"))
        program.write_text(change)
        program.chmod(0o755)
    subprocess.run(
        ("dpkg-deb", "--root-owner-group", "-Znone", "-b", str(tree), str(target)),
        check=True,
        stdout=subprocess.DEVNULL,
    )
    shutil.rmtree(tree)
