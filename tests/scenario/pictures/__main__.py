"""Takes the pictures that the documents contain.

Most pictures show the demo's venue, with a real service and a real agent. The pictures of the
console's sales figures and audit log show separate services with generated data.

    python -m tests.scenario.pictures [--to FOLDER] [--every FOLDER]

Everything runs in a network namespace of its own, and nothing is sent to a real network. With
``--every``, the pictures for the review before a release are taken as well: each one dark and
light, terminals with 80 and 50 columns, pages with a width of 1440 and 360 pixels (the pages of
reports also with 1000).
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agent.presentation.page.html import report_page
from agent.wire.codec import encode_indented
from agent.wire.payloads.application import ApplicationPayload
from controlplane.cli.demo import request_reports, save_report
from controlplane.client.connection import connect
from controlplane.demo.environment import reason_against_lan, set_up_environment
from controlplane.demo.processes import Processes
from controlplane.demo.programs import start_agent, start_service
from tests.paths import ROOT
from tests.prerequisites import browser as find_browser
from tests.scenario.pictures.browser import Browser, browser
from tests.scenario.pictures.figures import figures_console
from tests.scenario.pictures.people import audit_console
from tests.scenario.pictures.recorded import recorded_till
from tests.scenario.pictures.terminal import THEMES, picture, run_on_terminal

IMAGES: Final = ROOT / "docs/images"
WIDE, NARROW, PHONE = 1440, 1000, 360
WITHIN_S: Final = 60.0


@dataclass(frozen=True)
class Till:
    """The machine of the venue: its files, and the environment of its commands."""

    home: Path
    base_url: str
    environment: Mapping[str, str]

    @property
    def config(self) -> Path:
        return self.home / "config.toml"

    def agent(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "agent", *words, "--config", str(self.config)]

    def as_installed(self, text: str) -> str:
        """Replace this run's temporary paths with the paths of an installed agent."""
        text = text.replace(str(self.home / "state"), "/var/lib/venue-agent")
        return text.replace(str(self.home), "/etc/venue-agent")

    def status(self) -> str:
        try:
            return (self.home / "state/status.json").read_text()
        except OSError:
            return ""


@dataclass(frozen=True)
class Shots:
    """The folders of the pictures: ``to`` for the pictures of the documents, each in one size, and
    ``every`` for pictures in all sizes.

    If ``every`` is None, only the pictures of the documents are taken.
    """

    to: Path
    every: Path | None

    def forms(self, *sizes: int) -> Iterator[tuple[Path, str, int]]:
        """Yield folder, theme and size of each picture. Pictures of documents use sizes[0].

        A size is a width: the columns of a terminal, or the pixels of a page.
        """
        for theme in THEMES:
            yield self.to, theme, sizes[0]
            for size in sizes if self.every else ():
                assert self.every is not None
                yield self.every / str(size), theme, size


def file_of(folder: Path, name: str, theme: str, suffix: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{name}{'' if theme == 'dark' else f'-{theme}'}.{suffix}"


def take_terminal(
    till: Till,
    shots: Shots,
    name: str,
    command: Sequence[str],
    lines_max: int = 0,
    *,
    title: str = "",
) -> None:
    """Take pictures of a command's output.

    The pictures of the documents are cut after ``lines_max`` lines, unless ``lines_max`` is 0.
    """
    words = command[3:]  # without `python -m agent`
    title = title or " ".join(w for w in words if not w.startswith(("/", "--config")))
    with_errors = "check" in words  # `config check` prints its messages to stderr
    pictures: dict[int, str] = {}
    for folder, theme, columns in shots.forms(80, 50):
        if columns not in pictures:
            output = run_on_terminal(command, columns, till.environment, with_errors=with_errors)
            pictures[columns] = till.as_installed(output)
        visible_lines = lines_max if folder == shots.to else 0
        svg = picture(
            pictures[columns], f"venue-agent {title}", columns, THEMES[theme], visible_lines
        )
        file_of(folder, name, theme, "svg").write_text(svg)


def take_commands(till: Till, shots: Shots) -> None:
    wrong_config = till.home / "wrong.toml"
    wrong_config.write_text(
        till.config.read_text()
        .replace("location_id", "locaton_id")
        .replace("[network]", '[commands]\ndelivery = "strem"\n[network]')
    )
    take_terminal(till, shots, "status", till.agent("status"))
    take_terminal(till, shots, "history", till.agent("history"))
    take_terminal(till, shots, "collect-network", till.agent("collect", "network"), 48)
    command = [sys.executable, "-m", "tests.scenario.pictures.recorded"]
    words = [*command, str(till.home / "till.json")]
    take_terminal(till, shots, "collect-application", words, 48, title="collect application")
    take_terminal(
        till, shots, "config-check", [*till.agent("config", "check")[:-1], str(wrong_config)]
    )


def take_trouble(till: Till, shots: Shots) -> None:
    """Take pictures of `doctor` and `status` after the service was stopped."""
    deadline = time.monotonic() + WITHIN_S
    while '"problems": []' in till.status() or not till.status():
        if time.monotonic() > deadline:
            raise SystemExit("the status never showed a problem")
        time.sleep(0.1)
    take_terminal(till, shots, "doctor-broken", till.agent("doctor"))
    take_terminal(till, shots, "status-broken", till.agent("status"))


def take_pages(till: Till, shots: Shots, tab: Browser, link: str) -> None:
    for folder, theme, width in shots.forms(NARROW, WIDE, PHONE):
        is_document = folder == shots.to
        for kind in ("network", "application"):
            tab.set_view(width, 900, theme)
            tab.open((till.home / f"{kind}.html").as_uri())
            if is_document:
                tab.set_view(width, _height_of(tab), theme)
            tab.shoot(file_of(folder, f"page-{kind}", theme, "png"), whole=not is_document)
    tab.set_view(WIDE, 900, "light")
    tab.open(link, "document.querySelector('#home a.name')")
    report = _fragment_of_report(tab)
    for folder, theme, width in shots.forms(WIDE, PHONE):
        tab.set_view(width, 900, theme)
        for name, fragment, ready in (
            ("console", "#/", "document.querySelector('#home a.name')"),
            ("console-report", report, "document.querySelector('iframe:not([aria-busy])')"),
        ):
            tab.call("Runtime.evaluate", expression=f"location.hash = '{fragment}'")
            tab.wait(ready)
            time.sleep(0.5)  # no event reports that the browser has painted
            tab.shoot(file_of(folder, name, theme, "png"))


def take_audit(home: Path, shots: Shots, tab: Browser) -> None:
    with audit_console(home / "people.db", tab):
        for folder, theme, width in shots.forms(WIDE, PHONE):
            tab.set_view(width, 740, theme)
            tab.shoot(file_of(folder, "console-audit", theme, "png"))


def take_figures(home: Path, shots: Shots, tab: Browser) -> None:
    """Take pictures of a location's figures of a week, from a service with a generated merchant."""
    with figures_console(home / "figures.db", tab):
        for folder, theme, width in shots.forms(WIDE, PHONE):
            tab.set_view(width, 1000, theme)
            # The pictures of the documents end below the list of items. The rest of the page, the
            # section "Best hours" and further currencies, is only in the pictures of ``--every``.
            last_element = ".pair" if folder == shots.to else "#venue"
            bottom = f"document.querySelector('{last_element}').getBoundingClientRect().bottom"
            tab.set_view(width, int(tab.value(bottom)), theme)
            time.sleep(0.5)  # no event reports that the browser has painted
            tab.shoot(file_of(folder, "console-figures", theme, "png"))


def _height_of(tab: Browser) -> int:
    """Return the height of the page to the end of the map. Without a map, it is a fixed height."""
    section = "document.querySelector('.map')?.closest('section')"
    bottom = f"{section}?.getBoundingClientRect().bottom ?? 1200"
    return int(tab.value(bottom)) + 24


def _fragment_of_report(tab: Browser) -> str:
    """Return the fragment of the console's URL that shows the newest network report."""
    rows = "[...document.querySelectorAll('#home a[href^=\"#/report/\"]')]"
    report = f"{rows}.find((a) => a.textContent.includes('· network ·'))"
    tab.wait(report)
    return str(tab.value(f"{report}.getAttribute('href')"))


def write_recorded_till(payload: ApplicationPayload, home: Path) -> None:
    till = recorded_till(payload)
    (home / "till.json").write_text(encode_indented(till), encoding="utf-8")
    (home / "application.html").write_text(report_page(till), encoding="utf-8")


def take_all(shots: Shots, home: Path) -> None:
    program = find_browser()
    with Processes(home) as processes:
        venue = set_up_environment(processes, is_real=False)
        base_url, link = start_service(processes, venue)
        with connect(base_url, str(home / "api-key"), {}) as client:
            device = start_agent(processes, venue, client, base_url)
            for report in request_reports(client, device):
                save_report(report, home)
                if isinstance(report.payload, ApplicationPayload):
                    write_recorded_till(report.payload, home)
        till = Till(home, base_url, {**os.environ, **venue.variables})
        with browser(program, home / "profile") as tab:
            take_pages(till, shots, tab, link)
            take_figures(home, shots, tab)
            take_audit(home, shots, tab)
        take_commands(till, shots)
        processes.end("service")
        take_trouble(till, shots)


def main() -> int:
    parser = argparse.ArgumentParser(description="take the pictures of the documents")
    parser.add_argument("--to", type=Path, default=IMAGES, metavar="FOLDER")
    parser.add_argument("--every", type=Path, metavar="FOLDER")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.inside:
        return run_in_pid_namespace([*sys.argv[1:], "--inside"])
    if reason := reason_against_lan():
        raise SystemExit(f"no LAN can be simulated here: {reason}")
    every = options.every and options.every.absolute()
    with tempfile.TemporaryDirectory(prefix="venue-", ignore_cleanup_errors=True) as name:
        take_all(Shots(options.to.absolute(), every), Path(name))
    return 0


def run_in_pid_namespace(words: Sequence[str]) -> int:
    """Run this module again in a PID namespace.

    There it cannot see processes of the machine, such as another agent.
    """
    as_root = [] if os.geteuid() == 0 else ["--map-root-user"]
    namespaces = ["--mount", "--pid", "--fork", "--mount-proc"]
    command = [sys.executable, "-m", "tests.scenario.pictures", *words]
    return subprocess.run(["unshare", *as_root, *namespaces, *command], check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main())
