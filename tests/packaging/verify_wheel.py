"""Builds the wheel, installs it, and verifies its content and its programs.

The installation uses the package index. The installed agent runs without a network. The programs
run in a directory from which they cannot import the sources.

Usage: python -m tests.packaging.verify_wheel [--pipx]
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from tests.lab.namespaces import LOOPBACK
from tests.paths import ROOT

PACKAGES: Final = ("agent", "collectors", "controlplane")
PIP: Final = ("-m", "pip", "--quiet", "--disable-pip-version-check")
CONSTRAINTS: Final = ROOT / "constraints.txt"
COMMANDS_TO_COMPARE: Final = (
    ("--version",),
    ("--help",),
    ("config", "example"),
    ("config", "schema"),
    ("doctor", "--help"),
    ("collect", "--help"),
    ("service", "install", "--help"),
)
WITHIN_S: Final = 600
WITHOUT_NETWORK: Final = ("unshare", "--net", *LOOPBACK)


def run(*words: str | Path, cwd: Path | None = None, expect: int = 0, **more: str) -> str:
    """Run a program. Raises SystemExit if its exit code is not ``expect``.

    Returns standard output, or standard error if a failure is expected.
    """
    done = subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, check=False, cwd=cwd,
        env={**environment(), **more}, timeout=WITHIN_S,
    )  # fmt: skip
    if done.returncode != expect:
        raise SystemExit(f"{words} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout if expect == 0 else done.stderr


def environment() -> dict[str, str]:
    """Return the environment of this process, without variables that would make Python or the agent
    use the sources.
    """
    removed_prefixes = ("PYTHON", "VIRTUAL_ENV", "VENUE_", "PIPX_")
    return {k: v for k, v in os.environ.items() if not k.startswith(removed_prefixes)}


def print_ok(text: str) -> None:
    sys.stdout.write(f"ok  {text}\n")
    sys.stdout.flush()


# ---------------------------------------------------------------------- build and installation


def build(place: Path) -> Path:
    """Build the wheel of this source tree with the installed build backend. Return its path."""
    options = ("--no-deps", "--no-build-isolation", "--wheel-dir", place)
    run(sys.executable, *PIP, "wheel", *options, ROOT)
    (wheel,) = place.glob("*.whl")
    return wheel


def install_by_pip(wheel: Path, place: Path) -> Path:
    """Install the wheel into a new virtual environment. Return the directory of its programs."""
    # The new environment gets no pip of its own, and modules are compiled only when they are
    # imported. This saves half of the time.
    run(sys.executable, "-m", "venv", "--without-pip", place / "venv")
    programs = place / "venv/bin"
    into = ("--python", programs / "python")
    run(sys.executable, *PIP, *into, "install", "--no-compile", "-c", CONSTRAINTS, wheel)
    return programs


def install_by_pipx(wheel: Path, place: Path) -> Path:
    """Install the wheel as a user of pipx does. Return the directory of its programs."""
    run(sys.executable, "-m", "venv", place / "pipx")
    run(place / "pipx/bin/python", *PIP, "install", "pipx")
    homes = {f"PIPX_{name}": str(place / name.lower()) for name in ("HOME", "BIN_DIR", "MAN_DIR")}
    run(place / "pipx/bin/pipx", "install", "--pip-args", f"-c {CONSTRAINTS}", wheel, **homes)
    return place / "bin_dir"


# ---------------------------------------------------------------------------- checks


def check_files(wheel: Path) -> None:
    """Check that the wheel has exactly the files of our packages, including data files."""
    own_files = {
        str(path.relative_to(ROOT))
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    if packed != own_files:
        raise SystemExit(
            f"missing: {sorted(own_files - packed)}; unexpected: {sorted(packed - own_files)}"
        )
    data = [name for name in packed if not name.endswith(".py")]
    print_ok(
        f"{wheel.name} has the {len(packed)} files of {', '.join(PACKAGES)}"
        f" ({len(data)} of them are data)"
    )


def check_same_output_as_the_source(programs: Path, place: Path) -> None:
    for words in COMMANDS_TO_COMPARE:
        message = run(*WITHOUT_NETWORK, programs / "venue-agent", *words, cwd=place)
        expected = run(sys.executable, "-m", "agent", *words, cwd=ROOT)
        if message != expected:
            raise SystemExit(
                f"venue-agent {' '.join(words)} prints a different message:\n{message}"
            )
    print_ok(f"{len(COMMANDS_TO_COMPARE)} commands print what they print in the source tree")


def check_reports(programs: Path, place: Path) -> None:
    """Check that both kinds of report are collected as JSON and as a page, with only loopback."""
    page = place / "page.html"
    for kind in ("application", "network"):
        command = (*WITHOUT_NETWORK, programs / "venue-agent", "collect", kind)
        payload = json.loads(run(*command, "--json", cwd=place))
        if payload["failures"]:
            raise SystemExit(f"{kind}: {payload['failures']}")
        run(*command, "--html", page, cwd=place)
        if "<style" not in page.read_text():
            raise SystemExit("the page has lost its style sheet")
    print_ok("both reports were collected without a failure, and written as pages")


def check_missing_libraries(programs: Path, place: Path) -> None:
    """Check that commands of the service fail with a short message if its libraries are missing."""
    empty = place / "empty"
    empty.mkdir()
    for verb in ("demo", "serve"):
        output = run(programs / "venue-control", verb, cwd=empty, expect=1)
        if "venue-agent[controlplane]" not in output or len(output.splitlines()) > 2:
            raise SystemExit(f"{verb}: {output}")
    if list(empty.iterdir()):
        raise SystemExit(f"the demo left {list(empty.iterdir())}")
    run(programs / "venue-control", "devices", "--help", cwd=empty)
    print_ok("if the libraries of the service are missing, demo and serve print what to install")


@contextlib.contextmanager
def timed(action: str) -> Iterator[None]:
    began = time.monotonic()
    yield
    print_ok(f"{action} in {time.monotonic() - began:.1f} s")


def main() -> int:
    parser = argparse.ArgumentParser(description="Verify the wheel.")
    parser.add_argument("--pipx", action="store_true", help="install it with pipx, not with pip")
    options = parser.parse_args()
    if os.geteuid() != 0:
        raise SystemExit("a network namespace needs root: run it with sudo")
    install: Callable[[Path, Path], Path] = install_by_pipx if options.pipx else install_by_pip
    with tempfile.TemporaryDirectory(prefix="venue-wheel-") as directory:
        place = Path(directory)
        with timed("built"):
            wheel = build(place)
        check_files(wheel)
        with timed(f"installed by {'pipx' if options.pipx else 'pip'}, without any extra"):
            programs = install(wheel, place)
        check_same_output_as_the_source(programs, place)
        check_reports(programs, place)
        check_missing_libraries(programs, place)
    return 0


if __name__ == "__main__":
    sys.exit(main())
