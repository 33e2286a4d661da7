"""Follows the commands of a document on an isolated machine, as root.

    unshare --net --mount --pid --fork --mount-proc --kill-child \\
        python -m tests.scenario.documents README.md --days 5

Each block of the language ``sh`` is typed into a new terminal. All terminals are in one directory,
which looks like a checkout. The commands run one at a time. `venue-control serve` stays in the
foreground, so it is the last command of its block. Each block, also of Python, gets the variables
that earlier blocks have set and whose names begin with ``VENUE_``. A block of TOML that begins with
the path of a file is written to this file. The network is loopback, and `make` only prints what it
would run. `sandbox load` generates the number of days that ``--days`` sets. The module prints a
JSON list of `Step`.
"""

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from tests.paths import ROOT
from tests.scenario.verbs.isolated_machine import make_the_machine

BLOCK: Final = re.compile(r"^```(sh|python|toml|json)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FOREGROUND_COMMAND: Final = re.compile(r"venue-control serve\b")
READY: Final = "listening on"
WITHIN_S: Final = 300
LIMIT_DAYS: Final = """venue-control() {
    [ "$1 $2" = "sandbox load" ] && set -- "$@" --days DAYS
    command venue-control "$@"
}
"""
"""A shell function in place of `venue-control`. It adds ``--days`` to `sandbox load`."""


@dataclass(frozen=True, slots=True)
class Step:
    command: str
    code: int
    output: str
    errors: str


@dataclass(slots=True)
class Follower:
    """A user who follows a document. ``folder`` is the directory of all terminals."""

    folder: Path
    days: int
    environment: dict[str, str] = field(default_factory=dict)
    servers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def prepare(self) -> None:
        for path in ROOT.iterdir():
            if path.name not in {".demo", ".git"}:
                (self.folder / path.name).symlink_to(path)
        home = self.folder / "home"
        home.mkdir()
        self.environment = {
            "PATH": f"{self.folder / '.venv/bin'}:{os.environ['PATH']}",
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "MAKEFLAGS": "--dry-run",
        }

    def follow(self, text: str) -> Iterator[Step]:
        for language, block in BLOCK.findall(text):
            if language == "sh":
                yield from self._type(block)
            elif language == "python":
                yield self._run(block, [sys.executable, "-c", block])
            elif language == "toml":
                path, _, content = block.removeprefix("# ").partition("\n")
                Path(path).parent.mkdir(exist_ok=True)
                Path(path).write_text(content)

    def _type(self, block: str) -> Iterator[Step]:
        """Run the commands as if they were typed into one terminal. Keep its variables that begin
        with ``VENUE_`` for the blocks that follow.
        """
        variables = self.folder / "variables"
        variables.write_text("")
        for command in commands_of(block):
            if FOREGROUND_COMMAND.match(command):
                yield self._serve(command)
                return
            # Each command runs in a new shell, with the variables of the previous command's shell.
            functions = LIMIT_DAYS.replace("DAYS", str(self.days))
            keep = f"code=$?\nexport -p > {variables}\nexit $code"
            script = f"{functions}. {variables}\nset -a\n{command}\n{keep}"
            yield self._run(command, ["bash", "-c", script])
        listing = subprocess.run(
            ["bash", "-c", f". {variables}; env -0"], capture_output=True, text=True, check=True,
            env=self.environment,
        )  # fmt: skip
        pairs = (
            assignment.partition("=") for assignment in listing.stdout.split("\0") if assignment
        )
        self.environment |= {name: value for name, _, value in pairs if name.startswith("VENUE_")}

    def _run(self, command: str, words: list[str]) -> Step:
        result = subprocess.run(
            words, cwd=self.folder, env=self.environment, capture_output=True, text=True,
            stdin=subprocess.DEVNULL, timeout=WITHIN_S, check=False,
        )  # fmt: skip
        return Step(command, result.returncode, result.stdout, result.stderr)

    def _serve(self, command: str) -> Step:
        """Start a server, and return when it is ready."""
        log = self.folder / "serve.log"
        with log.open("wb") as file:
            process = subprocess.Popen(
                ["bash", "-c", f"exec {command}"], cwd=self.folder, env=self.environment,
                stdout=file, stderr=file, stdin=subprocess.DEVNULL,
            )  # fmt: skip
        self.servers.append(process)
        deadline = time.monotonic() + WITHIN_S
        while READY not in log.read_text() and process.poll() is None:
            if time.monotonic() > deadline:
                break
            time.sleep(0.05)
        return Step(command, process.poll() or 0, log.read_text(), "")

    def stop(self) -> None:
        for process in self.servers:
            process.terminate()
            process.wait(WITHIN_S)


def commands_of(block: str) -> Iterator[str]:
    """Yield the commands of a block. A command can have several lines."""
    command = ""
    for line in block.splitlines():
        command += f"{line}\n"
        if not _is_complete(command):
            continue
        if shlex.split(command, comments=True):
            yield command.strip()
        command = ""


def _is_complete(command: str) -> bool:
    """Return whether the shell can parse the command without further lines."""
    if command.endswith("\\\n"):
        return False
    return (
        subprocess.run(["bash", "-nc", command], capture_output=True, check=False).returncode == 0
    )


def main() -> None:
    document, _, days = sys.argv[1:]
    make_the_machine()
    with tempfile.TemporaryDirectory() as folder:
        follower = Follower(Path(folder), days=int(days))
        follower.prepare()
        try:
            steps = list(follower.follow((ROOT / document).read_text(encoding="utf-8")))
        finally:
            follower.stop()
    print(json.dumps([asdict(step) for step in steps]))


if __name__ == "__main__":
    main()
