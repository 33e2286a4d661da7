"""Runs the README's two commands on a machine that has only Python, make and git.

The first run creates the root directory of a minimal Debian with debootstrap, and a directory of
wheels, in build/bare. The commands run in containers with this root directory and without a
network: as an ordinary user, and as a user on a machine that forbids namespaces; with --all also as
the user root. By default each container runs a short form: `make demo` and the tests that are
marked `needs`. The first container also runs `make quick`. With --all or --only, `make demo` and
`make test` run in full. `CI` is set in the containers, so a test fails if it lacks a prerequisite
that `SITUATIONS` does not list. ``--release`` selects a Debian release with a different Python:
trixie has 3.13, forky has 3.14.

Needs root, debootstrap and systemd-nspawn.
Usage: python -m tests.packaging.verify_bare [--all | --only NAME] [--busy N] [--release NAME]
           [--keep DIR]
"""

import argparse
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.paths import ROOT
from tests.prerequisites import IN_CI, WITHOUT

CACHE: Final = ROOT / "build/bare"
REQUIREMENTS: Final = ROOT / "requirements/development.txt"
RELEASE: Final = "bookworm"
SCRIPTS: Final = Path("/usr/share/debootstrap/scripts")
PACKAGES: Final = ("python3", "python3-venv", "make", "git")
USER_ID: Final = 1000
HOME: Final = "/home/somebody"
FULL: Final = "make demo; make test"
# The files with tests that are marked `needs`. pytest then imports only these files.
FILES: Final = "$(grep -rl --include='test_*.py' pytest.mark.needs tests | tr '\\n' ' ')"
NEEDS: Final = f'make test WORKERS=$(nproc) ARGS="-m needs {FILES}"'
SHORT: Final = f"make demo; {NEEDS}"
WITHIN_S: Final = 5400
SUMMARY: Final = re.compile(r"^(\d+ (?:passed|failed|skipped).*) in [\d.]+s.*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class BareDebian:
    """A Debian release with its root directory and the wheels for its Python."""

    release: str = RELEASE

    @property
    def root(self) -> Path:
        return CACHE / self.release / "root"

    @property
    def wheels(self) -> Path:
        return CACHE / self.release / "wheels"


@dataclass(frozen=True, slots=True)
class Situation:
    """A kind of user on a kind of machine, in which the commands are run.

    Attributes:
        without: prerequisites that the machine lacks, named as in tests/prerequisites.py.
        options: options of systemd-nspawn(1).
        short_form: shell commands of the short form.
        is_optional: whether the situation is run only with --all or --only.
    """

    name: str
    user_id: int
    without: tuple[str, ...]
    options: tuple[str, ...] = ()
    short_form: str = SHORT
    is_optional: bool = False


NOT_INSTALLED: Final = (
    "veth", "tap", "peers", "snmpd", "postgresql", "browser", "systemd-analyze", "systemctl",
    "mcp-conformance", "curl", "ssh-keygen",
)  # fmt: skip
NOT_IN_A_CONTAINER: Final = ("clock-state", "dead-mount", "landlock")
LACKING_FOR_USERS: Final = ("other-user", "shared-python")
LACKING_FOR_ROOT: Final = ("ordinary-user", "shared-python")
NO_NAMESPACES: Final = ("network-namespace", "mount-namespace", "user-namespace")
# System calls that the filters of common container engines also refuse.
FORBIDDEN: Final = "--system-call-filter=~unshare ~setns"
SITUATIONS: Final = (
    Situation(
        "user",
        USER_ID,
        (*NOT_INSTALLED, *NOT_IN_A_CONTAINER, *LACKING_FOR_USERS),
        short_form=f"make quick; {SHORT}",
    ),
    Situation(
        "user without namespaces",
        USER_ID,
        (*NOT_INSTALLED, *NOT_IN_A_CONTAINER, *NO_NAMESPACES, "all-namespaces", *LACKING_FOR_USERS),
        (FORBIDDEN,),
    ),
    Situation(
        "root", 0, (*NOT_INSTALLED, *NOT_IN_A_CONTAINER, *LACKING_FOR_ROOT), is_optional=True
    ),
    Situation(
        "root of an ordinary container",
        0,
        (
            *NOT_INSTALLED,
            *NOT_IN_A_CONTAINER,
            *NO_NAMESPACES,
            "all-namespaces",
            *LACKING_FOR_ROOT,
        ),
        (FORBIDDEN, "--drop-capability=CAP_SYS_ADMIN,CAP_NET_ADMIN,CAP_SYS_PTRACE"),
        is_optional=True,
    ),
)


# ---------------------------------------------------------------------------- preparation


def prepare(bare: BareDebian) -> None:
    """Create the root directory and the wheels, unless they exist."""
    with cached(bare.root, f"{bare.release} {PACKAGES}") as directory:
        if directory is not None:
            make_root(bare.release, directory)
    with cached(bare.wheels, REQUIREMENTS.read_text()) as directory:
        if directory is not None:
            download(python_of(bare.root), directory)


@contextlib.contextmanager
def cached(directory: Path, recipe: str) -> Iterator[Path | None]:
    """Yield a new directory to fill, or None if it was already filled by the same recipe."""
    marker = directory.with_suffix(".recipe")
    if marker.exists() and marker.read_text() == recipe and directory.exists():
        yield None
        return
    marker.unlink(missing_ok=True)
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    yield directory
    marker.write_text(recipe)


def make_root(release: str, directory: Path) -> None:
    """Create a root directory with only `PACKAGES` and Debian's essential packages.

    Add an ordinary user.
    """
    include = f"--include={','.join(PACKAGES)}"
    # debootstrap has no script for a release that is newer than itself. Use its script for sid.
    script = () if (SCRIPTS / release).exists() else (SCRIPTS / "sid",)
    words = (include, release, directory, mirror(), *script)
    # The mounts of debootstrap disappear with its mount namespace, even if it is killed.
    run("unshare", "--mount", "debootstrap", "--variant=minbase", *words)
    for unneeded in ("var/cache/apt/archives", "var/lib/apt/lists"):
        shutil.rmtree(directory / unneeded)
    # debootstrap does not write this file; Debian's installer does.
    (directory / "etc/hosts").write_text("127.0.0.1 localhost\n::1 localhost\n")
    user = ("useradd", "--create-home", "--home-dir", HOME, "--uid", str(USER_ID), "somebody")
    run("chroot", directory, *user)


def mirror() -> str:
    """Return the mirror in this machine's apt configuration, or Debian's default mirror."""
    words = ("indextargets", "--format", "$(REPO_URI)", f"Release: {RELEASE}", "Component: main")
    done = subprocess.run(("apt-get", *words), capture_output=True, text=True, check=False)
    return (*done.stdout.split(), "http://deb.debian.org/debian")[0]


def python_of(root: Path) -> str:
    """Return the version of a root's Python, for example ``3.11``."""
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run(
        ("chroot", root, "python3", "-c", code), capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def download(version: str, directory: Path) -> None:
    """Download wheels for a version of Python, and check their hashes. Raises SystemExit if a
    wheel is missing.
    """
    options = ("--only-binary=:all:", "--python-version", version, "--dest", directory)
    pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "download")
    run(*pip, *options, "--require-hashes", "--requirement", REQUIREMENTS)


# ---------------------------------------------------------------------------- verification


def copy_of_the_tree(place: Path) -> Path:
    """Create a git repository in ``place`` with the current content of all files that git tracks or
    would add. Return its path.
    """
    git = ("git", "-c", f"safe.directory={ROOT}", "-C", ROOT)
    list_files = (*git, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    output = subprocess.run(list_files, capture_output=True, text=True, check=True).stdout
    tree = place / "tree"
    for name in filter(None, output.split("\0")):
        if (ROOT / name).exists():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tree / name, follow_symlinks=False)
    git_in_tree = (
        "git", "-C", tree, "-c", "user.name=somebody", "-c", "user.email=somebody@localhost",
    )  # fmt: skip
    run(*git_in_tree, "init", "--quiet")
    run(*git_in_tree, "add", "--all")
    run(*git_in_tree, "commit", "--quiet", "--message", "the tree")
    return tree


def verify(
    bare: BareDebian, situation: Situation, tree: Path, log: Path, *, is_short: bool
) -> bool:
    """Run the commands in a container and print the result. Return whether they succeeded."""
    if tree.stat().st_uid != situation.user_id:
        # A virtual environment contains its absolute path, which differs between root and the user.
        shutil.rmtree(tree / ".venv", ignore_errors=True)
    run("chown", "--recursive", f"{situation.user_id}:{situation.user_id}", tree)
    # The tree is in the home directory of the user who runs the commands. Commands that root runs
    # refuse a directory of an ordinary user, who could replace the files in it.
    place = f"{HOME if situation.user_id else '/root'}/venue-agent"
    environment = {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": "/wheels",
        IN_CI: "1",
        WITHOUT: " ".join(situation.without),
    }
    commands = situation.short_form if is_short else FULL
    account = "somebody" if situation.user_id else "root"
    words = (
        "systemd-nspawn", "--quiet", f"--directory={bare.root}", "--volatile=overlay",
        "--register=no", "--keep-unit", f"--machine=venue-agent-bare-{os.getpid()}",
        "--private-network", "--console=pipe", f"--bind={tree}:{place}",
        f"--bind-ro={bare.wheels}:/wheels", f"--chdir={place}",
        f"--user={account}",
        *(f"--setenv={name}={value}" for name, value in environment.items()),
        *situation.options, "sh", "-c", f"set -e; {commands}",
    )  # fmt: skip
    began = time.monotonic()
    with (
        log.open("wb") as output,
        subprocess.Popen(
            words, stdout=output, stderr=output, stdin=subprocess.DEVNULL
        ) as container,
    ):
        try:
            code = container.wait(WITHIN_S)
        except subprocess.TimeoutExpired:
            # On SIGTERM systemd-nspawn stops the container. After SIGKILL the container would
            # continue to run.
            container.terminate()
            code = container.wait() or 124  # 124 as timeout(1) returns
    return report(situation, code, log.read_text(errors="replace"), time.monotonic() - began)


@contextlib.contextmanager
def busy_loops(count: int) -> Iterator[None]:
    """Run ``count`` processes that each keep one processor busy."""
    started = [subprocess.Popen((sys.executable, "-c", "while True: pass")) for _ in range(count)]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


def report(situation: Situation, code: int, output: str, took_s: float) -> bool:
    """Print the skipped tests with their reasons, or the failure. Return whether the run passed."""
    summaries = SUMMARY.findall(output)
    is_good = code == 0 and summaries != []
    skipped = [line for line in output.splitlines() if line.startswith("SKIPPED")]
    sys.stdout.write("\n".join(skipped) + "\n" if is_good else output[-8000:])
    summary = "; ".join(summaries) or "no summary of the tests"
    verdict = "ok " if is_good else f"exit {code} "
    sys.stdout.write(f"{verdict} {situation.name}: {summary} ({took_s:.0f} s)\n")
    sys.stdout.flush()
    return is_good


def run(*words: str | Path) -> None:
    """Run a program. Raises SystemExit if it fails."""
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0:
        output = done.stdout.decode(errors="replace")[-4000:]
        raise SystemExit(f"{words[0]} ended with {done.returncode}:\n{output}")


def main() -> int:
    names = [situation.name for situation in SITUATIONS]
    parser = argparse.ArgumentParser(description="Run demo and tests on a bare machine.")
    parser.add_argument("--all", action="store_true", help=f"all situations: {'; '.join(names)}")
    parser.add_argument("--only", choices=names, help="only this situation")
    parser.add_argument(
        "--busy", type=int, default=0, help="number of busy loops to run at the same time"
    )
    parser.add_argument("--release", default=RELEASE, help="release of Debian")
    parser.add_argument("--keep", type=Path, help="directory for the output of the commands")
    options = parser.parse_args()
    if os.geteuid() != 0:
        raise SystemExit("a container needs root: run it with sudo")
    began = time.monotonic()
    bare = BareDebian(options.release)
    prepare(bare)
    situations = [each for each in SITUATIONS if options.all or not each.is_optional]
    if options.only:
        situations = [each for each in SITUATIONS if each.name == options.only]
    with tempfile.TemporaryDirectory(prefix="run-", dir=CACHE) as directory:
        place = Path(directory)
        output_directory: Path = options.keep or place
        output_directory.mkdir(parents=True, exist_ok=True)
        tree = copy_of_the_tree(place)
        logs = [
            output_directory / f"{bare.release}-{situation.name.replace(' ', '-')}.txt"
            for situation in situations
        ]
        is_short = not (options.all or options.only)
        with busy_loops(options.busy):
            results = [
                verify(bare, each, tree, log, is_short=is_short)
                for each, log in zip(situations, logs, strict=True)
            ]
    took_s = round(time.monotonic() - began, 1)
    sys.stdout.write(
        json.dumps({"good": sum(results), "of": len(results), "seconds": took_s}) + "\n"
    )
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
