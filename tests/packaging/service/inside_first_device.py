"""Runs in the container of `first_device`: sets up a service and a device as a user does.

The commands are typed into a shell with a history, and the console is used in a real browser.
Prints the seconds of each step, without the time in which a user reads and types.
"""

import asyncio
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.fakes.console.page import Page
from tests.fakes.console.people import fill
from tests.packaging.service.inside_service import PASSWORD, RESULTS, URL
from tests.scenario.pictures.browser import browser

EMAIL: Final = "ada@example.com"
ANSWERS: Final = (
    ("Name of your business: ", "Harbour Hospitality"),
    ("Your e-mail address: ", EMAIL),
    ("Your name: ", "Ada Berzina"),
    ("Password: ", PASSWORD),
    ("Again: ", PASSWORD),
    ("Name of the first location: ", "Old harbour"),
    ("Time zone of the location", "Europe/Riga"),
)
WITHIN_S: Final = 120
PROMPT: Final = "ready> "
SUDO: Final = '#!/bin/sh\nexec "$@"\n'
"""Stands in for sudo in the container, which has only root."""


class Shell:
    """An interactive shell on a terminal of its own."""

    def __init__(self, home: Path) -> None:
        self._pty, terminal = os.openpty()  # the controlling side and the shell's side
        self.history = home / "history"
        variables = {"PS1": PROMPT, "HISTFILE": str(self.history), "HOME": str(home)}
        self._process = subprocess.Popen(
            ("bash", "--norc", "-i"), stdin=terminal, stdout=terminal, stderr=terminal, cwd=home,
            start_new_session=True, env={**os.environ, "TERM": "dumb", **variables},
        )  # fmt: skip
        os.close(terminal)
        self.until(PROMPT)

    def until(self, text: str) -> str:
        """Return what the terminal shows up to and including ``text``."""
        output = ""
        while text not in output:
            if not select.select((self._pty,), (), (), WITHIN_S)[0]:
                raise AssertionError(f"{text!r} is not displayed: {output}")
            output += os.read(self._pty, 65536).decode(errors="replace")
        return output

    def type(self, line: str) -> None:
        os.write(self._pty, f"{line}\n".encode())

    def run(self, command: str, answers: tuple[tuple[str, str], ...] = ()) -> str:
        self.type(command)
        output = ""
        for question, answer in answers:
            output += self.until(question)
            self.type(answer)
        output += self.until(f"\n{PROMPT}")
        self.type("echo $?")
        code = self.until(f"\n{PROMPT}").split()[-2]  # the last word is the prompt
        if code != "0":
            raise AssertionError(f"{command} ended with {code}: {output}")
        return output

    def end(self) -> None:
        self.type("exit")
        self._process.wait()


@contextmanager
def step(name: str) -> Iterator[None]:
    began = time.monotonic()
    yield
    sys.stdout.write(f"{time.monotonic() - began:6.1f} s  {name}\n")
    sys.stdout.flush()


async def use_the_console(page: Page, shell: Shell) -> None:
    await page.prepare()
    with step("sign in at the console"):
        await page.open(URL)
        await fill(page, email=EMAIL, password=PASSWORD)
        await page.click("#password-sign-in")
        await page.until("document.getElementById('create-command')")
    with step("create the command for the device"):
        await page.click("#create-command")
        command = str(await page.until("document.getElementById('command')?.textContent"))
        key = str(await page.run("document.getElementById('new-secret').value"))
    with step(f"run it on the device: {command}"):
        output = shell.run(command, (("API key (not shown): ", key),))
    with step("wait until the console shows the device"):
        await page.until("document.querySelector('#arrival a')")
    with step("request its first report, and open it"):
        await page.click("#arrival a")
        await page.click("#request-network")
        await page.until("document.querySelector('.history a.line')")
        await page.click(".history a.line")
        await page.until(
            "location.hash.startsWith('#/report/') && document.querySelector('iframe')"
        )
    shell.end()
    if key in output + shell.history.read_text():
        raise AssertionError("the key is on the terminal or in the history of the shell")


def main() -> int:
    began = time.monotonic()
    sudo = Path("/usr/local/bin/sudo")
    sudo.write_text(SUDO)
    sudo.chmod(0o755)
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        shell = Shell(home)
        for name in ("venue-control", "venue-agent"):
            (home / f"{name}_amd64.deb").write_bytes((RESULTS / f"{name}.deb").read_bytes())
        with step("install the package of the service"):
            shell.run("apt install --yes ./venue-control_*.deb")
        with step("venue-control setup"):
            shell.run("venue-control setup", ANSWERS)
        with browser("chromium", home / "profile") as tab:
            asyncio.run(use_the_console(Page(tab, "wide", axe="", pictures=None), shell))
    sys.stdout.write(f"{time.monotonic() - began:6.1f} s  in all\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
