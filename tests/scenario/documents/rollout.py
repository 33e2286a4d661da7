"""Runs the commands of docs/rollout.md as a reader types them.

It must run in its own network namespace:

    python -m tests.scenario.documents.rollout

Prints a JSON list with the command, exit code, output and errors of each step.
"""

import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from agent import __version__
from tests.paths import ROOT
from tests.scenario.agent_process import running_agent, write_config

URL: Final = "http://127.0.0.1:8470"
VENUES: Final = tuple(f"loc-{number:04}" for number in range(1, 41))
_BLOCK: Final = re.compile(r"^```(?:console|sh)\n(.*?)^```", re.MULTILINE | re.DOTALL)
Step = dict[str, Any]


def commands_of(document: str) -> list[str]:
    """Return the commands after ``$`` in a document. A command can have several lines."""
    text = (ROOT / "docs" / f"{document}.md").read_text(encoding="utf-8")
    commands: list[str] = []
    for block in _BLOCK.findall(text):
        is_open = False
        for line in block.splitlines():
            if line.startswith("$ "):
                commands.append(line[2:])
            elif is_open:
                commands[-1] += f"\n{line}"
            # A quotation that is still open also continues on the next line.
            is_open = bool(commands) and (line.endswith("\\") or commands[-1].count("'") % 2 == 1)
    return commands


class Terminal:
    """The terminal of a reader: its folder and variables, and the steps so far."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.steps: list[Step] = []
        self.variables = {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "VENUE_CONTROL_DATABASE": str(home / "service.db"),
        }

    def run(self, command: str) -> Step:
        result = subprocess.run(
            ("sh", "-c", command), cwd=self.home, env=self.variables, capture_output=True,
            text=True, stdin=subprocess.DEVNULL, timeout=600, check=False,
        )  # fmt: skip
        step = {
            "command": command, "code": result.returncode, "output": result.stdout,
            "errors": result.stderr,
        }  # fmt: skip
        self.steps.append(step)
        return step

    @contextmanager
    def running(self, command: str) -> Iterator[None]:
        """Run a command that does not end, such as the service, until the body ends."""
        process = subprocess.Popen(
            ("sh", "-c", f"exec {command}"), cwd=self.home, env=self.variables,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            self.steps.append({"command": command, "code": None, "output": line, "errors": ""})
            yield
        finally:
            process.terminate()
            process.communicate()


async def follow_rollout(terminal: Terminal) -> None:
    create, _ansible, export, *monitoring = commands_of("rollout")
    (terminal.home / "venues.txt").write_text("\n".join(VENUES))
    terminal.run(create)
    terminal.run(_command_in_text("keys create --write --location"))
    terminal.run(_command_in_text("keys revoke"))
    key = terminal.run("venue-control keys create --write")["output"].strip()
    assert export.startswith("export VENUE_CONTROL_URL=https://ops.example.com")
    terminal.variables |= {"VENUE_CONTROL_URL": URL, "VENUE_CONTROL_API_KEY": key}
    with terminal.running("venue-control serve"):
        home = terminal.home / "till"
        home.mkdir()
        (home / "api-key").write_text((terminal.home / "keys/loc-0001-01.key").read_text())
        (home / "api-key").chmod(0o600)
        config = write_config(home, URL)
        config.write_text(config.read_text().replace("loc-1", "loc-0001"))
        async with running_agent(config) as agent:
            await agent.until_logged("enrolled")
            for command in monitoring:
                # The document upgrades a fleet to a version that does not exist yet.
                await asyncio.to_thread(terminal.run, command.replace("0.2.0", __version__))
            await asyncio.to_thread(_compare_and_revoke, terminal)


def _compare_and_revoke(terminal: Terminal) -> None:
    devices = json.loads(terminal.run("venue-control devices --json")["output"])
    device = devices[0]["instanceId"]
    # The command `changes` needs two reports.
    terminal.run(f"venue-control request {device} application --wait")
    terminal.run(_command_in_text("changes DEVICE").replace("DEVICE", device))
    terminal.run(_command_in_text("revoke DEVICE").replace("DEVICE", device))
    terminal.run(
        _command_in_text("keys revoke NAME").replace("NAME", '"rollout 2026-11 loc-0001-01"')
    )


def _command_in_text(words: str) -> str:
    """Return the command that begins with ``words`` and is in backquotes in docs/rollout.md.

    The result begins with ``venue-control``, even if the document leaves this word out.
    """
    text = " ".join((ROOT / "docs/rollout.md").read_text(encoding="utf-8").split())
    match = re.search(rf"`((?:venue-control )?{re.escape(words)}[^`]*)`", text)
    assert match is not None, words
    command = match[1]
    return command if command.startswith("venue-control ") else f"venue-control {command}"


def main() -> int:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        terminal = Terminal(Path(directory))
        asyncio.run(follow_rollout(terminal))
    sys.stdout.write(json.dumps(terminal.steps))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
