"""The pictures of the documents, from real runs: a played venue, a real service, a real agent.

    python -m tests.scenario.screenshots [FOLDER] [--light]

Everything happens in namespaces of its own; nothing is sent to a real network. Each picture is
what the command wrote to an 80-column terminal.
"""

import argparse
import contextlib
import fcntl
import io
import json
import os
import pty
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.terminal_theme import SVG_EXPORT_THEME, TerminalTheme
from rich.text import Text

from tests.lab.tap.plan import LanHost, LanPlan, LanService, save_plan
from tests.paths import ROOT

COLUMNS: Final = 80
IMAGES: Final = ROOT / "docs" / "images"
START_WITHIN_S: Final = 60.0
FONTS: Final = "'DejaVu Sans Mono', Menlo, Consolas, 'Liberation Mono', monospace"

LIGHT: Final = TerminalTheme(
    (255, 255, 255),
    (40, 40, 40),
    [(0, 0, 0), (190, 0, 0), (0, 120, 0), (140, 90, 0), (0, 60, 190), (140, 0, 140),
     (0, 120, 130), (200, 200, 200)],
    [(110, 110, 110), (210, 0, 0), (0, 140, 0), (160, 110, 0), (0, 80, 220), (170, 0, 170),
     (0, 140, 150), (255, 255, 255)],
)  # fmt: skip

SVG: Final = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: FONTS; font-size: {char_height}px; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" /></clipPath>{lines}</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}<g class="{unique_id}-matrix">{matrix}</g></g></svg>
""".replace("FONTS", FONTS)  # the library's own form fetches a font from the net


# ------------------------------------------------------------------------------ the venue


def venue() -> LanPlan:
    """A small venue: a router, three printers, a payment terminal, a screen, a camera."""

    def host(
        number: int, mac: str, name: str, ports: tuple[int, ...], *services: LanService
    ) -> LanHost:
        return LanHost(
            f"192.168.77.{number}", mac, ports, hostname=name,
            services=services, latency_ms=1.5,
        )  # fmt: skip

    return LanPlan(
        subnet="192.168.77.0/24",
        agent_address="192.168.77.20",
        gateway="192.168.77.1",
        hosts=(
            host(1, "02:10:00:00:00:01", "", (53, 80, 443)),
            host(
                50, "02:10:00:00:00:50", "kitchen", (80, 631, 9100),
                LanService("Kitchen", "_pdl-datastream._tcp.local.", 9100, ("ty=TM-T88VI",)),
            ),
            host(
                51, "02:10:00:00:00:51", "bar", (80, 9100),
                LanService("Bar", "_pdl-datastream._tcp.local.", 9100, ("ty=TSP143",)),
            ),
            host(
                60, "02:10:00:00:00:60", "office", (80, 443, 515, 631, 9100),
                LanService("Office MFC", "_ipp._tcp.local.", 631, ("ty=MFC-L2750DW",)),
            ),
            host(70, "02:10:00:00:00:70", "", (22, 443)),
            host(
                80, "02:10:00:00:00:80", "menu-board", (8008, 8043),
                LanService("Menu board", "_googlecast._tcp.local.", 8009, ("md=Chromecast",)),
            ),
            host(90, "02:10:00:00:00:90", "", (80, 554)),
        ),
    )  # fmt: skip


PRINTERS: Final = """
[[printers]]
id = "kitchen"
name = "Kitchen"
address = "192.168.77.50:9100"
[[printers]]
id = "bar"
name = "Bar"
address = "192.168.77.52:9100"
"""


# ------------------------------------------------------------------------------ running things


@dataclass(frozen=True)
class Till:
    """A machine of the venue: its files, and the key of the service."""

    home: Path
    base_url: str
    key: str

    @property
    def config(self) -> Path:
        return self.home / "config.toml"

    def agent(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "agent", *words, "--config", str(self.config)]

    def control(self, *words: str) -> str:
        environment = {
            **os.environ,
            "VENUE_CONTROL_URL": self.base_url,
            "VENUE_CONTROL_API_KEY": self.key,
        }
        return _output([sys.executable, "-m", "controlplane", *words], environment)

    def as_installed(self, text: str) -> str:
        """Show the paths of an installed agent in place of this run's temporary ones."""
        text = text.replace(str(self.home / "state"), "/var/lib/venue-agent")
        return text.replace(str(self.home), "/etc/venue-agent")

    def status(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads((self.home / "state/status.json").read_text())
        except (OSError, ValueError):
            return {}
        return found


def _output(command: Sequence[str], environment: dict[str, str] | None = None) -> str:
    return subprocess.run(
        command, env=environment, check=True, capture_output=True, text=True, timeout=120
    ).stdout


@contextlib.contextmanager
def process(command: Sequence[str], home: Path, name: str) -> Iterator[Path]:
    """Run a process while the body runs; yield the file it writes to."""
    path = home / f"{name}.log"
    with path.open("wb") as output:
        child = subprocess.Popen(command, stdout=output, stderr=output)
        try:
            yield path
        finally:
            child.terminate()
            child.wait(timeout=20)


def wait_for(condition: Any, what: str) -> Any:
    deadline = time.monotonic() + START_WITHIN_S
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(0.05)
    raise SystemExit(f"{what} did not happen")


@contextlib.contextmanager
def till(home: Path) -> Iterator[Till]:
    """A service and an enrolled agent that has answered two requests."""
    database = f"sqlite:///{home / 'service.db'}"
    control = [sys.executable, "-m", "controlplane"]
    with process(
        [*control, "serve", "--port", "0", "--database", database], home, "service"
    ) as log:
        wait_for(lambda: "listening on " in log.read_text(), "the service's start")
        base_url = log.read_text().partition("listening on ")[2].split()[0]
        create = ["keys", "create", "--write", "--location", "loc-0001", "--database", database]
        key = _output([*control, *create]).split()[0]
        here = Till(home, base_url, key)
        (home / "api-key").write_text(key + "\n")
        (home / "api-key").chmod(0o600)
        here.config.write_text(
            f'[service]\nbase_url = "{base_url}"\nlocation_id = "loc-0001"\n'
            f'api_key_file = "{home / "api-key"}"\n[device]\nstate_dir = "{home / "state"}"\n'
            f'[network]\nsubnets = ["192.168.77.0/24"]\nmax_duration_seconds = 20\n{PRINTERS}'
        )
        with process(here.agent("run"), home, "agent"):
            wait_for(lambda: here.status().get("delivery"), "the enrollment")
            instance = here.status()["binding"]["instance_id"]
            for kind in ("application", "network"):
                here.control("request", instance, kind, "--wait")
            yield here


# ------------------------------------------------------------------------------ pictures


def on_a_terminal(command: Sequence[str]) -> str:
    """Run a command on a terminal of 80 columns; return what it wrote to stdout, ANSI and all."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 200, COLUMNS, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(COLUMNS)}
    environment.pop("NO_COLOR", None)
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=follower, stderr=subprocess.STDOUT
        if "config" in command else subprocess.DEVNULL, env=environment,
    ) as child:  # fmt: skip
        os.close(follower)
        parts = []
        with contextlib.suppress(OSError):  # EIO: the other end is closed
            while part := os.read(leader, 65536):
                parts.append(part)
        child.wait(timeout=120)
    os.close(leader)
    return b"".join(parts).decode().replace("\r\n", "\n")


def picture(text: str, title: str, theme: TerminalTheme) -> str:
    console = Console(
        width=COLUMNS, record=True, file=io.StringIO(), force_terminal=True, legacy_windows=False
    )
    console.print(Text.from_ansi(text.rstrip("\n")), soft_wrap=False)
    return console.export_svg(title=title, theme=theme, code_format=SVG, unique_id="t")


def take(here: Till, folder: Path, theme: TerminalTheme) -> None:
    """Run each command and write its picture."""
    broken = here.home / "broken.toml"
    broken.write_text(
        here.config.read_text()
        .replace("location_id", "locaton_id")
        .replace("[network]", '[commands]\ndelivery = "strem"\n[network]')
    )
    shots = {
        "status": here.agent("status"),
        "history": here.agent("history"),
        "doctor": here.agent("doctor"),
        "collect-network": here.agent("collect", "network"),
        "config-show": here.agent("config", "show"),
        "config-check": [*here.agent("config", "check")[:-1], str(broken)],
        "help": [sys.executable, "-m", "agent", "--help"],
    }
    for name, command in shots.items():
        shown = " ".join(w for w in command[3:] if not w.startswith(("/", "--config")))
        text = here.as_installed(on_a_terminal(command))
        (folder / f"{name}.svg").write_text(picture(text, f"venue-agent {shown}", theme))


def take_broken(here: Till, folder: Path, theme: TerminalTheme) -> None:
    """The same machine after the service went away."""
    for name, words in {"doctor-broken": ("doctor",), "status-broken": ("status",)}.items():
        text = here.as_installed(on_a_terminal(here.agent(*words)))
        (folder / f"{name}.svg").write_text(picture(text, f"venue-agent {words[0]}", theme))


def inside(folder: Path, theme: TerminalTheme) -> None:
    with tempfile.TemporaryDirectory(prefix="venue-pictures-") as name:
        home = Path(name)
        with till(home) as here:
            take(here, folder, theme)
            here.config.write_text(
                here.config.read_text().replace(here.base_url, "http://127.0.0.1:9")
            )
            os.kill(here.status()["pid"], signal.SIGHUP)
            wait_for(lambda: here.status().get("problems"), "the trouble")
            take_broken(here, folder, theme)


def main() -> int:
    parser = argparse.ArgumentParser(description="take the pictures of the documents")
    parser.add_argument("folder", nargs="?", type=Path, default=IMAGES)
    parser.add_argument("--light", action="store_true", help="a light terminal")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        inside(options.folder, LIGHT if options.light else SVG_EXPORT_THEME)
        return 0
    options.folder.mkdir(parents=True, exist_ok=True)
    as_root = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    spaces = ["--net", "--mount", "--pid", "--fork", "--mount-proc"]
    with tempfile.TemporaryDirectory(prefix="venue-plan-") as name:
        plan = Path(name) / "plan.json"
        save_plan(venue(), plan)
        again = [sys.executable, "-m", "tests.scenario.screenshots", *sys.argv[1:], "--inside"]
        played = [sys.executable, "-m", "tests.lab.tap.lan", str(plan), *again]
        return subprocess.run(["unshare", *as_root, *spaces, *played], check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main())
