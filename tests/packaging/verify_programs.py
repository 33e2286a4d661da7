"""Runs every command and option of both packaged programs, in a root directory without Python.

Needs root, PostgreSQL, and the programs that `make onedir service-onedir` builds. The programs run
in separate namespaces: their only network is loopback, and their files are deleted with the
namespaces. `program_cases` contains the runs and their expected results. The verification also
fails if a command or an option of the programs' parsers has no case.

Usage: python -m tests.packaging.verify_programs [--onedir DIR] [--service-onedir DIR] [STORY ...]
"""

import argparse
import asyncio
import contextlib
import http.server
import os
import re
import resource
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

from tests.fakes.tls_front import make_authority, server_context, tls_front
from tests.lab.namespaces import entering_all
from tests.packaging.program_cases import (
    AGENT,
    CONTROL,
    HOOKS_PORT,
    STORIES,
    TLS_PORT,
    VENUE_PORT,
    Call,
    Case,
    Delivery,
    Stop,
    Story,
    missing,
    words_of,
)
from tests.packaging.program_root import ENVIRONMENT, command_in, make_root, share
from tests.paths import ROOT
from tests.postgresql import postgresql

ONEDIRS: Final = {
    AGENT: ROOT / "build/onedir/venue-agent",
    CONTROL: ROOT / "build/service-onedir/venue-control",
}
CRASHES: Final = re.compile(
    r"Traceback \(most recent call last\)|ModuleNotFoundError|ImportError|No module named"
    r"|unexpected \w+Error|Failed to execute script"
)
"""Text that a packaged program must never print, whatever its exit code is."""
WITHIN_S: Final = 600
POLL_S: Final = 0.05
OUTPUT_CHARACTERS: Final = 2000


class Failure(Exception):
    """The result of a step differs from the expected result."""


class Hooks:
    """A receiver of webhooks on loopback. It records the paths that were called."""

    def __init__(self) -> None:
        self._called: set[str] = set()
        self._changed = threading.Condition()

    def add(self, path: str) -> None:
        with self._changed:
            self._called.add(path)
            self._changed.notify_all()

    def wait_for(self, path: str) -> None:
        """Wait until the path has been called. Raises Failure if it is not called in time."""
        with self._changed:
            if not self._changed.wait_for(lambda: path in self._called, WITHIN_S):
                raise Failure(f"the webhook {path} was not called")

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        hooks = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                self.send_response(204)
                self.end_headers()
                hooks.add(self.path)

            def log_message(self, *arguments: object) -> None:
                """Print nothing. Only failures are printed."""

        with http.server.ThreadingHTTPServer(("127.0.0.1", HOOKS_PORT), Handler) as server:
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            try:
                yield
            finally:
                server.shutdown()
                thread.join()


@dataclass
class Running:
    """A program that runs until it is stopped."""

    case: Case
    process: subprocess.Popen[str]
    log: IO[str]

    def output(self) -> str:
        return Path(self.log.name).read_text(errors="replace")

    def wait_for_start(self) -> None:
        """Wait for the expected output. Raises Failure if the program ends or does not print it."""
        deadline = time.monotonic() + WITHIN_S
        while not re.search(self.case.output, self.output()):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise Failure(f"{self._title} did not start:\n{self.output()[-OUTPUT_CHARACTERS:]}")
            time.sleep(POLL_S)

    def stop(self) -> None:
        """Stop the program if it still runs. Raises Failure if it does not end, if its exit code is
        not the expected one, or if it printed a traceback.
        """
        if self.process.poll() is None:
            self.process.terminate()
        try:
            code = self.process.wait(WITHIN_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise Failure(f"{self._title} did not end after SIGTERM") from None
        finally:
            self.log.close()
        require(self._title, code, self.case.exit_code, self.output())

    @property
    def _title(self) -> str:
        return f"{self.case.program} {self.case.words}"


def _has_content(path: Path) -> bool:
    """Return whether a file or a directory exists and is not empty."""
    if path.is_dir():
        return any(path.iterdir())
    return path.exists() and path.stat().st_size > 0


def require(title: str, code: int, expected: int, output: str) -> None:
    crash = CRASHES.search(output)
    if code == expected and crash is None:
        return
    problem = f"exit code {code}, not {expected}" if code != expected else f"prints {crash[0]!r}"  # type: ignore[index]
    raise Failure(f"{title}: {problem}\n{output[-OUTPUT_CHARACTERS:]}")


@dataclass
class Player:
    """Runs one story in the root directory ``root``. ``values`` has the values of placeholders."""

    story: Story
    root: Path
    hooks: Hooks
    values: dict[str, str]
    running: list[Running] = field(default_factory=list)

    def play(self) -> list[str]:
        """Run the steps of the story. Return a description of each failure."""
        self.home.mkdir()
        for name, text in self.story.files.items():
            self._write(name, text)
        failures = []
        try:
            for step in self.story.steps:
                if failures and isinstance(step, Delivery):
                    continue  # the step that triggers the webhook may have failed
                try:
                    self._do(step)
                except Failure as failure:
                    failures.append(f"{self.story.name}: {failure}")
                except (KeyError, FileNotFoundError) as error:
                    failures.append(
                        f"{self.story.name}: {step} needs a value or a file that no earlier case"
                        f" created: {error}"
                    )
        finally:
            while self.running:
                try:
                    self.running.pop().stop()
                except Failure as failure:
                    failures.append(f"{self.story.name}: {failure}")
        return failures

    @property
    def home(self) -> Path:
        return self.root / self.story.name

    def _write(self, name: str, text: str) -> None:
        file = self.home / name
        file.write_text(text)
        file.chmod(0o600)

    def _do(self, step: Case | Call | Delivery | Stop) -> None:
        match step:
            case Case(stays=True):
                self._start(step)
            case Case():
                self._run(step)
            case Call():
                self._call(step)
            case Delivery():
                self.hooks.wait_for(step.path)
            case Stop() if self.running:
                self.running.pop().stop()

    def _words(self, case: Case) -> tuple[str, ...]:
        program = f"/usr/bin/{case.program}"
        return command_in(self.root, self.home, program, *words_of(case, self.values))

    def _start(self, case: Case) -> None:
        log = (self.home / f"log-{len(list(self.home.glob('log-*')))}").open("w")
        process = subprocess.Popen(
            self._words(case), stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=ENVIRONMENT,
            text=True,
        )  # fmt: skip
        running = Running(case, process, log)
        self.running.append(running)
        running.wait_for_start()

    def _run(self, case: Case) -> None:
        title = f"{case.program} {case.words}"
        try:
            done = subprocess.run(
                self._words(case), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                check=False, timeout=WITHIN_S, env=ENVIRONMENT,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise Failure(f"{title} did not end within {WITHIN_S} s") from None
        output = done.stdout + done.stderr
        require(title, done.returncode, case.exit_code, output)
        pattern = re.sub(r"\{([a-z]\w*)\}", lambda name: self.values[name[1]], case.output)
        match = re.search(pattern, output)
        if match is None:
            raise Failure(f"{title}: no match of {pattern!r}\n{output[-OUTPUT_CHARACTERS:]}")
        self.values.update(match.groupdict())
        if case.into:
            self._write(case.into, done.stdout)
        if case.writes and not _has_content(self.home / case.writes):
            raise Failure(f"{title}: nothing is in {case.writes}")

    def _call(self, call: Call) -> None:
        headers = {"Content-Type": "application/json", "Accept": "*/*"}
        if call.key_file:
            headers["Authorization"] = f"Bearer {(self.home / call.key_file).read_text().strip()}"
        request = urllib.request.Request(call.url, call.body.encode() or None, headers)
        try:
            with urllib.request.urlopen(request, timeout=WITHIN_S) as response:
                status, text = response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            status, text = error.code, error.read().decode()
        except OSError as error:
            raise Failure(f"{call.url}: {error}") from None
        if status != call.status or not re.search(call.output, text):
            raise Failure(f"{call.url}: {status}, {text[:OUTPUT_CHARACTERS]}")


@contextlib.contextmanager
def tls(place: Path) -> Iterator[bytes]:
    """Make the service of the story `venue` available over TLS. Yields the certificate of the test
    authority in PEM.
    """
    authority = make_authority(place)
    context = server_context(place, authority, host="localhost")
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    front = tls_front(VENUE_PORT, context, port=TLS_PORT)
    asyncio.run_coroutine_threadsafe(front.__aenter__(), loop).result()
    try:
        yield authority.file.read_bytes()
    finally:
        asyncio.run_coroutine_threadsafe(front.__aexit__(None, None, None), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def verify(onedirs: dict[str, Path], stories: tuple[Story, ...], place: Path) -> list[str]:
    """Run the stories concurrently, in the namespaces of this process. Return the failures."""
    root, hooks = place / "root", Hooks()
    root.mkdir()
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(postgresql())
        authorities = stack.enter_context(tls(place))
        stack.enter_context(hooks.listening())
        make_root(root, onedirs, authorities)
        share(root, Path(url.partition("?host=")[2]))
        players = [Player(story, root, hooks, {"postgresql": url}) for story in stories]
        with ThreadPoolExecutor(len(players)) as threads:
            return [line for result in threads.map(Player.play, players) for line in result]


def main() -> int:
    parser = argparse.ArgumentParser(description="Verify both packaged programs.")
    parser.add_argument("--onedir", type=Path, default=ONEDIRS[AGENT])
    parser.add_argument("--service-onedir", type=Path, default=ONEDIRS[CONTROL])
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("stories", nargs="*", metavar="STORY", help="run only these stories")
    options = parser.parse_args()
    if options.inside is None:
        return enter(sys.argv[1:])
    onedirs = {AGENT: options.onedir.absolute(), CONTROL: options.service_onedir.absolute()}
    stories = tuple(s for s in STORIES if not options.stories or s.name in options.stories)
    began = time.monotonic()
    failures = missing() + verify(onedirs, stories, options.inside)
    for line in failures:
        sys.stdout.write(f"FAILED {line}\n")
    runs = sum(isinstance(step, Case) for story in stories for step in story.steps)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    sys.stdout.write(
        f"{runs} runs of the packaged programs, {len(failures)} failures, in"
        f" {time.monotonic() - began:.0f} s"
        f" (processor time {used.ru_utime + used.ru_stime:.0f} s)\n"
    )
    return 1 if failures else 0


def enter(arguments: list[str]) -> int:
    """Run this script again in separate namespaces, with a temporary directory."""
    if os.geteuid() != 0:
        raise SystemExit("the namespaces and PostgreSQL need root: run it with sudo")
    for onedir in ONEDIRS.values():
        if not arguments and not onedir.exists():
            raise SystemExit(f"there is no {onedir}: run `make onedir service-onedir`")
    with tempfile.TemporaryDirectory(prefix="venue-programs-") as place:
        words = (sys.executable, "-m", "tests.packaging.verify_programs", *arguments)
        return subprocess.run(
            (*entering_all(), *words, "--inside", place), check=False, cwd=ROOT
        ).returncode


if __name__ == "__main__":
    sys.exit(main())
