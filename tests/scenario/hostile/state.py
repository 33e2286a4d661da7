"""Runs each verb with each state file replaced by each kind of hostile object.

A cell is a verb, a file, and the plant: the object in the file's place. Each cell runs in its own
process. `test_hostile_state` runs this module. If the test runs as root, it starts the module in a
network namespace without an interface, with a Python that the service's user can also read:

    unshare --net python -m tests.scenario.hostile.state HOME CALLER STEP [VERBS]

CALLER is the user who runs the verbs: `root`, or `owner`, the owner of the state directory. STEP is
the argument of `cells`. VERBS are separated by commas. The module prints a JSON line for each
failed cell, and at the end the number of cells.
"""

import contextlib
import functools
import gc
import importlib
import json
import os
import select
import shutil
import signal
import stat
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from unittest import mock

from agent.adapters.collector_process import CollectorProcess, parse_event
from agent.adapters.identity import IdentityFile
from agent.adapters.service_manager.contract import ServicePaths, ServiceState
from agent.adapters.storage.database import Database
from agent.adapters.storage.device_record import DeviceRecord, DeviceRecordFile
from agent.adapters.storage.state import StateDirectory
from agent.cli import collect, service
from agent.cli import main as command_line
from agent.config.file import load
from agent.config.model import Config, LocalConfig
from tests.paths import ROOT

SERVICE, STRANGER = 4711 if os.geteuid() == 0 else os.geteuid(), 4712
"""Ids of two users without an account: the owner of the state directory, and a different user.
Without root, SERVICE is the current user."""
SECRET: Final = "what-nobody-may-see"
DEADLINE_S: Final = 120.0

FILES: Final = (
    "identity.pem", "device.json", "agent.db", "agent.db-wal", "agent.db-shm", "agent.db-journal",
    "status.json", "agent.lock", "last-exit", "quarantine",
    "quarantine/20260101T000000.000000-rejected-1.json", ".status.json.abc",
    "printers.json",
)  # fmt: skip
DATABASE_FILES: Final = {name for name in FILES if name.startswith("agent.db")}

READS: Final = {
    "status": {"status.json", "agent.lock"},
    "history": DATABASE_FILES,
    "doctor": {name for name in FILES if "/" not in name and not name.startswith(".")},
    "printers": {"printers.json"},
    "enroll": {"agent.lock", "device.json", "identity.pem"},
    "run": {"agent.lock", "device.json", "last-exit", *DATABASE_FILES},
    "collect": {"device.json"},
    "service": {"last-exit"},
}
"""The files that each verb reads. If one of them is replaced by a hostile object, the output of the
verb must name the path of this file."""

VERBS: Final = {
    "status": ("status",),
    "history": ("history",),
    "printers": ("printers",),
    "doctor": ("doctor", "--bundle", "bundle.zip", "--no-collect"),
    "enroll": ("enroll",),
    "run": ("run",),
    "collect": ("collect", "application", "--json"),
    "check": ("config", "check"),
    "show": ("config", "show"),
    "service": ("service", "status"),
}


IMPORTED_LATE: Final = (
    "agent.cli.config", "agent.cli.doctor", "agent.cli.enroll", "agent.cli.history",
    "agent.cli.printers", "agent.cli.run", "agent.cli.status", "agent.doctor.bundle",
    "agent.config.problems", "agent.config.review", "agent.presentation.progress",
    "agent.reporting", "anyio.streams.tls", "anyio.to_thread",
    "cryptography.hazmat.primitives.asymmetric.ed25519", "importlib.metadata",
    "cryptography.hazmat.primitives.serialization", "asyncio.base_events", "encodings.utf_8_sig",
    "httpcore2", "pydantic.dataclasses", "truststore",
)  # fmt: skip
"""Modules that the verbs import at run time. They are imported once before the forks, because
importing them in each fork would take long."""


@dataclass(frozen=True)
class Directories:
    """The directories of the cells.

    ``state`` is the state directory, and ``owner`` the id of its user. ``outside`` has files that
    the verbs must neither change nor disclose.
    """

    home: Path
    owner: int

    @property
    def state(self) -> Path:
        return self.home / "state"

    @property
    def outside(self) -> Path:
        return self.home / "outside"

    @property
    def config(self) -> Path:
        return self.home / "config.toml"


def link_to_file(path: Path, directories: Directories) -> None:
    path.symlink_to(directories.outside / "file")


def link_to_directory(path: Path, directories: Directories) -> None:
    path.symlink_to(directories.outside / "directory")


def fifo(path: Path, directories: Directories) -> None:
    os.mkfifo(path)


def directory(path: Path, directories: Directories) -> None:
    path.mkdir()
    (path / "inside").write_text("kept")


def foreign(path: Path, directories: Directories) -> None:
    path.write_text("{}")
    os.chown(path, STRANGER, STRANGER)


def owned_by_root(path: Path, directories: Directories) -> None:
    path.write_text("{}")
    path.chmod(0o600)
    os.chown(path, 0, 0)


def hard_link(path: Path, directories: Directories) -> None:
    os.link(directories.outside / "file", path)


UNPRIVILEGED_PLANTERS: Final = (link_to_file, link_to_directory, fifo, directory, hard_link)
PLANTERS: Final = (
    (*UNPRIVILEGED_PLANTERS, foreign, owned_by_root) if os.geteuid() == 0 else UNPRIVILEGED_PLANTERS
)
Planter = Callable[[Path, Directories], None]


def quick_collector(home: Path, kind: str) -> tuple[str, ...]:
    """Return the command of a collector that sends stored events. It starts faster than Python."""
    return ("/bin/sh", "-c", 'read -r job; exec cat "$0"', str(home / kind))


def build(directories: Directories) -> None:
    """Create a new state directory, and the files outside of it."""
    for name in ("state", "outside"):
        shutil.rmtree(directories.home / name, ignore_errors=True)
    shutil.copytree(directories.home / "template", directories.state)
    for path in (directories.state, *directories.state.rglob("*")):
        os.chown(path, directories.owner, directories.owner)
    (directories.outside / "directory").mkdir(parents=True)
    for path in (directories.outside / "file", directories.outside / "directory/file"):
        path.write_text(SECRET)
        path.chmod(0o600)


def make_template(path: Path) -> None:
    """Create the state directory of a device that was never enrolled."""
    state = StateDirectory(path)
    state.prepare()
    IdentityFile(state).load_or_create()
    DeviceRecordFile(state).save(DeviceRecord(legacy_install_id="install-1"))
    Database(state).close()
    state.quarantine("rejected-2.json", b"{}")


def plant(name: str, planter: Planter, directories: Directories) -> None:
    path = directories.state / name
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    planter(path, directories)
    if planter in {fifo, directory}:
        for planted_path in (path, *(path.rglob("*") if path.is_dir() else ())):
            os.chown(planted_path, directories.owner, directories.owner)


def contents_of(directory: Path) -> dict[str, tuple[object, ...]]:
    """Return the mode, owner, time of change and content of all files, to compare them later."""
    contents: dict[str, tuple[object, ...]] = {}
    for path in sorted((directory, *directory.rglob("*"))):
        status = path.lstat()
        content = path.read_bytes() if stat.S_ISREG(status.st_mode) else b""
        contents[str(path)] = (status.st_mode, status.st_uid, status.st_mtime_ns, content)
    return contents


def play(
    words: tuple[str, ...], directories: Directories, *, as_owner: bool
) -> tuple[int | None, str]:
    """Run a verb in a fork; return its exit code (None if it did not end) and its output."""
    log = directories.home / "output"
    log.write_bytes(b"")
    pid = os.fork()
    if pid == 0:
        _run_verb(words, directories, log, as_owner=as_owner)
    ends_at, is_ending = time.monotonic() + DEADLINE_S, False
    watch = os.pidfd_open(pid)
    try:
        while time.monotonic() < ends_at:
            select.select([watch], [], [], 0.02)
            ended, code = os.waitpid(pid, os.WNOHANG)
            if ended:
                return os.waitstatus_to_exitcode(code), log.read_text(errors="replace")
            if words == ("run",) and not is_ending and _is_running(directories, log):
                os.kill(pid, signal.SIGTERM)
                is_ending = True
    finally:
        os.close(watch)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None, log.read_text(errors="replace")


def _is_running(directories: Directories, log: Path) -> bool:
    """Return whether the daemon runs according to its status file or its output."""
    if "the status file cannot be written" in log.read_text():
        return True
    status = directories.state / "status.json"
    with contextlib.suppress(OSError):
        return stat.S_ISREG(status.lstat().st_mode) and b'"running"' in status.read_bytes()
    return False


def _run_verb(
    words: tuple[str, ...], directories: Directories, log: Path, *, as_owner: bool
) -> None:
    code = 99  # the agent itself never exits with 98 or 99
    try:
        descriptor = os.open(log, os.O_WRONLY | os.O_APPEND)
        for number in (1, 2):
            os.dup2(descriptor, number)
        sys.stdout = os.fdopen(1, "w", buffering=1)
        sys.stderr = os.fdopen(2, "w", buffering=1)
        os.chdir(directories.home / "desk")
        if as_owner and os.geteuid() == 0:
            os.setgroups([])
            os.setgid(directories.owner)
            os.setuid(directories.owner)
        command = functools.partial(quick_collector, directories.home)
        start_quick_process = functools.partial(CollectorProcess, command)
        mock.patch.object(collect, "CollectorProcess", start_quick_process).start()
        mock.patch.object(
            service, "detect_service_manager", return_value=Manager(directories)
        ).start()
        options = () if words[0] == "service" else ("--config", str(directories.config))
        code = command_line.main([*words, *options])
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 98
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


@dataclass(frozen=True)
class Manager:
    """A fake service manager that reports the service as installed."""

    directories: Directories

    @property
    def paths(self) -> ServicePaths:
        return ServicePaths(
            self.directories.config,
            self.directories.home / "api-key",
            self.directories.state,
            has_key_path_in_config=True,
        )

    def state(self) -> ServiceState:
        return ServiceState(is_installed=True)


def problems_of(
    verb: str, name: str, planter: Planter, directories: Directories, *, as_owner: bool
) -> Iterator[str]:
    """Run a cell; yield a description of each problem."""
    build(directories)
    plant(name, planter, directories)
    bundle = directories.home / "desk/bundle.zip"
    bundle.unlink(missing_ok=True)
    before = contents_of(directories.outside)
    code, message = play(VERBS[verb], directories, as_owner=as_owner)
    if code is None:
        yield "it hung"
    elif code not in {0, 1, 2}:
        yield f"exit code {code}"
    for word in ("Traceback", "unexpected", "the check raised"):
        if word in message:
            yield f"its output contains {word!r}"
    # A directory in place of the directory `quarantine` is no problem that a verb must report.
    is_harmless = (name, planter) == ("quarantine", directory)
    if (
        not is_harmless
        and name in READS.get(verb, ())
        and f"/state/{name} " not in message.replace("\n  ", " ")
    ):
        yield "its output does not name the file"
    if contents_of(directories.outside) != before:
        yield "it changed files outside the state directory"
    if SECRET in message:
        yield "it disclosed a file outside the state directory"
    yield from (f"in the bundle: {member}" for member in _members_with_the_secret(bundle))
    yield from _unreadable_files(directories, name)


def _members_with_the_secret(bundle: Path) -> Iterator[str]:
    if bundle.exists():
        with zipfile.ZipFile(bundle) as archive:
            yield from (n for n in archive.namelist() if SECRET.encode() in archive.read(n))


def _unreadable_files(directories: Directories, planted: str) -> Iterator[str]:
    for path in directories.state.rglob("*"):
        is_planted = str(path.relative_to(directories.state)) == planted
        if not is_planted and path.lstat().st_uid != directories.owner:
            yield f"left {path.name}, which the service cannot read"


def cells(verbs: Iterable[str], step: int) -> Iterator[tuple[str, str, Planter]]:
    """Yield verb, file and plant of every ``step``-th cell.

    If ``step`` is not 1, a verb occurs with each file that it reads, but only with every third of
    the other files. If ``step`` is the number of plants, these cells still contain each file and
    each plant.
    """
    for row, verb in enumerate(VERBS):
        if verb not in verbs:
            continue
        for column, name in enumerate(FILES):
            if step != 1 and name not in READS.get(verb, ()) and (row + column) % 3:
                continue
            for number, planter in enumerate(PLANTERS):
                if (row + column + number) % step == 0:
                    yield verb, name, planter


def main() -> None:
    home, caller, step = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    verbs = sys.argv[4].split(",") if len(sys.argv) > 4 else list(VERBS)
    as_owner = caller == "owner"
    directories = Directories(home, SERVICE)
    _prepare(directories, as_owner=as_owner)
    cell_count = 0
    _import_what_verbs_need(directories)
    for verb, name, planter in cells(verbs, step):
        problems = list(problems_of(verb, name, planter, directories, as_owner=as_owner))
        cell_count += 1
        if problems:
            cell = {"verb": verb, "file": name, "plant": planter.__name__, "wrong": problems}
            cell["output"] = (directories.home / "output").read_text(errors="replace")[-600:]
            print(json.dumps(cell), flush=True)
    print(json.dumps({"played": cell_count}), flush=True)


def _import_what_verbs_need(directories: Directories) -> None:
    """Import modules, and build the models of files and events once, for all forks."""
    for module in IMPORTED_LATE:
        importlib.import_module(module)
    for model in (Config, LocalConfig):
        load(model, directories.config)
    DeviceRecordFile(StateDirectory(directories.home / "template")).load()
    for line in (directories.home / "network").read_bytes().splitlines():
        parse_event(line)
    gc.freeze()  # garbage collection in a fork would copy the memory pages of all these objects


def _prepare(directories: Directories, *, as_owner: bool) -> None:
    desk = directories.home / "desk"  # the current directory of the verbs
    desk.mkdir()
    make_template(directories.home / "template")
    for kind in ("network", "application"):
        command = (sys.executable, "-m", "tests.fakes.collectors.quick", kind)
        with (directories.home / kind).open("wb") as events:
            subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=events, check=True)
    key = directories.home / "api-key"
    key.write_text("vck_test-key\n")
    key.chmod(0o600)
    if as_owner:
        for path in (desk, key):
            os.chown(path, directories.owner, directories.owner)
    directories.config.write_text(
        '[service]\nbase_url = "http://127.0.0.1:9"\nlocation_id = "loc-1"\n'
        f'api_key_file = "{key}"\n[device]\nstate_dir = "{directories.state}"\n'
        "[network]\ndevice_only = true\n"
    )


if __name__ == "__main__":
    main()
