"""Runs verbs on an isolated machine: with the real paths, as root and as an ordinary user.

The module runs as root inside namespaces of its own, where /etc, /home, /run and /var/lib are
directories in memory and the only network is loopback:

    unshare --net --mount --pid --fork --mount-proc python -m tests.scenario.verbs

It reads from standard input which cells of the table in docs/cli.md to run, as a JSON list. Each
cell is a list of three texts: its situation, user and verb. The module runs the verb of
each cell with each of its options, and prints a line of JSON for each run: situation, user, verb
with options, exit code, output and errors.
"""

import asyncio
import contextlib
import fcntl
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from tests.fakes.strict_service import API_KEY, StrictService
from tests.paths import ROOT
from tests.scenario.forked_process import start_forked, stop_server

CONFIG: Final = Path("/etc/venue-agent/config.toml")
KEY: Final = CONFIG.parent / "api-key"
STATE: Final = Path("/var/lib/venue-agent")
CREDENTIALS: Final = Path("/run/credentials/venue-agent")
UNIT_STATUS: Final = Path("/run/unit")
"""The file with the output of the fake systemctl for the agent's unit."""
SYSTEMCTL: Final = Path("/usr/bin/systemctl")
SERVICE_USER, ORDINARY_USER = 64001, 64002
HOMES: Final = {0: Path("/root"), SERVICE_USER: STATE, ORDINARY_USER: Path("/home/till")}
CELL_WITHIN_S: Final = 240.0
BY_HAND: Final = "started by hand"
USERS: Final = {"root": 0, "user": ORDINARY_USER}
SIOCSIFFLAGS, IFF_UP = 0x8914, 0x1

READ_ONLY_VERBS: Final = (
    "status", "status --json", "doctor", "doctor --json", "history", "history --json",
    "timeline", "timeline --json",
    "printers", "printers --json", "check kitchen", "check kitchen --json",
    "config check", "config check --json", "config show", "config show --json", "config schema",
    "config example", "collect network", "collect application --json", "service status",
    "upgrade check", "upgrade check --json",
)  # fmt: skip
"""Verbs that change nothing on the machine. Therefore the tests run them concurrently."""
CHANGING_VERBS: Final = (
    "printers forget kitchen",
    "service start",
    "service stop",
    "enroll",
    "enroll --json",
    "run",
)
VERBS_ONLY_AS_USER: Final = ("service install", "service uninstall")
"""Verbs that are not run as root, because then they would install or remove the service."""


@dataclass(frozen=True, slots=True)
class Cell:
    situation: str
    user: str
    verb: str
    code: int
    output: str
    errors: str


def main() -> None:
    """Run the cells that standard input names."""
    keys = {tuple(key) for key in json.load(sys.stdin)}
    make_the_machine()
    asyncio.run(_play(keys))
    stop_server()


async def _play(keys: set[tuple[str, ...]]) -> None:
    async with StrictService() as service:
        for name, situation in SITUATIONS.items():
            pairs = {key[1:] for key in keys if key[0] == name}
            if pairs:
                clear()
                async with situation(service):
                    write_cells(await run_cells(name, pairs))
        clear()
        async with running_service(service):
            set_unit("LoadState=not-found", "ActiveState=inactive")
            by_hand = [
                await run_cell(BY_HAND, "user", verb) for verb in ("status", "doctor --json")
            ]
            write_cells(by_hand)


def write_cells(cells: Iterable[Cell]) -> None:
    for cell in cells:
        sys.stdout.write(json.dumps(asdict(cell)) + "\n")
    sys.stdout.flush()


async def run_cells(situation: str, wanted: set[tuple[str, ...]]) -> list[Cell]:
    """Run cells of a situation. ``wanted`` has pairs of a user and a verb without options.

    Verbs with side effects run alone.
    """
    turns = asyncio.Semaphore(3)

    async def run_in_turn(user: str, verb: str) -> Cell:
        async with turns:
            return await run_cell(situation, user, verb)

    def cells_of(user: str, *verbs: str) -> list[tuple[str, str]]:
        return [(user, verb) for verb in verbs if (user, base_of(verb)) in wanted]

    read_only_cells = [pair for user in USERS for pair in cells_of(user, *READ_ONLY_VERBS)]
    changing_cells = [
        *cells_of("user", *VERBS_ONLY_AS_USER, *CHANGING_VERBS),
        *cells_of("root", *CHANGING_VERBS),
    ]
    results = await asyncio.gather(*(run_in_turn(*pair) for pair in read_only_cells))
    return [*results, *[await run_cell(situation, *pair) for pair in changing_cells]]


def base_of(verb: str) -> str:
    """Return the verb without its options, as the table names it."""
    return verb.partition(" --")[0]


async def run_cell(situation: str, user: str, verb: str) -> Cell:
    """Run a verb to its end. The verb `run` is stopped as soon as the daemon works."""
    with tempfile.TemporaryDirectory() as directory:
        output, errors = Path(directory, "output"), Path(directory, "errors")
        errors.touch()
        process = start_forked(
            "agent", *verb.split(),
            environment=environment(USERS[user]), output=output, errors=errors, user=USERS[user],
        )  # fmt: skip
        async with asyncio.timeout(CELL_WITHIN_S):
            if verb == "run":
                await _until(
                    lambda: process.returncode is not None or "state in " in errors.read_text()
                )
                process.terminate()
            code = await process.wait()
        return Cell(situation, user, verb, code, output.read_text(), errors.read_text())


def environment(uid: int, **variables: str) -> dict[str, str]:
    """Return the environment of a user's shell, without variables of root."""
    return {"PATH": os.environ["PATH"], "HOME": str(HOMES[uid]), "LANG": "C.UTF-8", **variables}


# ---------------------------------------------------------------------------- situations


@contextlib.asynccontextmanager
async def no_configuration(_: StrictService) -> AsyncIterator[None]:
    """The program is installed but not configured."""
    set_unit("LoadState=loaded", "UnitFileState=enabled", "ActiveState=inactive")
    yield


@contextlib.asynccontextmanager
async def unreadable_state(service: StrictService) -> AsyncIterator[None]:
    """All users can read the configuration. An ordinary user cannot read the damaged state."""
    configure(service, 0o644)
    STATE.mkdir(mode=0o700)
    for name in ("agent.db", "status.json", "device.json", "printers.json"):
        (STATE / name).write_text("\0 this is no such file" * 100)
    own(SERVICE_USER, STATE, *STATE.iterdir())
    set_unit("LoadState=loaded", "UnitFileState=enabled", "ActiveState=inactive")
    yield


@contextlib.asynccontextmanager
async def running_service(service: StrictService) -> AsyncIterator[None]:
    configure(service, 0o640)
    async with daemon(service):
        yield


@contextlib.asynccontextmanager
async def stopped_service(service: StrictService) -> AsyncIterator[None]:
    """The service has run, and was stopped cleanly."""
    configure(service, 0o640)
    async with daemon(service):
        pass
    yield


Situation = Callable[[StrictService], contextlib.AbstractAsyncContextManager[None]]
SITUATIONS: Final[dict[str, Situation]] = {
    "no configuration": no_configuration,
    "unreadable state": unreadable_state,
    "running service": running_service,
    "stopped service": stopped_service,
}


@contextlib.asynccontextmanager
async def daemon(service: StrictService) -> AsyncIterator[None]:
    """Run the agent as the service does: as the service's user, with the key as a credential."""
    STATE.mkdir(mode=0o700)
    CREDENTIALS.mkdir(parents=True, exist_ok=True)
    (CREDENTIALS / "api-key").write_text(API_KEY)
    own(SERVICE_USER, STATE, CREDENTIALS / "api-key")
    (CREDENTIALS / "api-key").chmod(0o400)
    before = service.heartbeats
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "agent", "run", "--config", str(CONFIG),
        stdin=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE, user=SERVICE_USER,
        group=SERVICE_USER, extra_groups=[], cwd=ROOT, umask=0o022,
        env=environment(SERVICE_USER, CREDENTIALS_DIRECTORY=str(CREDENTIALS)),
    )  # fmt: skip
    log = asyncio.create_task(_read(process))
    try:
        async with asyncio.timeout(120):
            await service.until(
                lambda: service.heartbeats > before or process.returncode is not None, 120
            )
            assert process.returncode is None, await log
            await _until(_receives_commands)
        set_unit(
            "LoadState=loaded", "UnitFileState=enabled", "ActiveState=active", "SubState=running",
            f"MainPID={process.pid}",
        )  # fmt: skip
        yield
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
        await log
        set_unit("LoadState=loaded", "UnitFileState=enabled", "ActiveState=inactive")


async def _read(process: asyncio.subprocess.Process) -> bytes:
    assert process.stderr is not None
    return await process.stderr.read()


def _receives_commands() -> bool:
    status = STATE / "status.json"
    return status.exists() and '"delivery": null' not in status.read_text()


async def _until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - a file is watched
        await asyncio.sleep(0.02)


def configure(service: StrictService, mode: int) -> None:
    """Write the machine's configuration in the same way as `service install`.

    ``mode`` is the mode of the configuration file.
    """
    CONFIG.parent.mkdir(mode=0o755)
    lines = (
        "[service]", f'base_url = "{service.base_url}"', 'location_id = "loc-1"',
        "[network]", "device_only = true",
        "[heartbeat]", "interval_seconds = 1",
    )  # fmt: skip
    CONFIG.write_text("\n".join(lines) + "\n")
    os.chown(CONFIG, 0, SERVICE_USER)
    CONFIG.chmod(mode)
    KEY.write_text(API_KEY + "\n")
    KEY.chmod(0o600)


def clear() -> None:
    for path in (CONFIG.parent, STATE, CREDENTIALS):
        shutil.rmtree(path, ignore_errors=True)


def own(uid: int, *paths: Path) -> None:
    for path in paths:
        os.chown(path, uid, uid)


def set_unit(*lines: str) -> None:
    """Set systemctl's output for the agent's unit."""
    UNIT_STATUS.write_text("\n".join((*lines, "NRestarts=0", "")))


# ---------------------------------------------------------------------------- the machine


def make_the_machine() -> None:
    """Mount writable directories in memory, and let every user run this interpreter."""
    run("mount", "--make-rprivate", "/")
    set_loopback_up()
    run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run")
    copy = Path("/run/etc")
    shutil.copytree("/etc", copy, symlinks=True, ignore=_sockets)
    run("mount", "--bind", str(copy), "/etc")
    for place in ("/home", "/var/lib"):
        run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", place)
    let_everybody_reach((Path(sys.base_prefix).resolve(), Path(sys.prefix), ROOT))
    for name, uid in (("venue-agent", SERVICE_USER), ("till", ORDINARY_USER)):
        _append("/etc/passwd", f"{name}:x:{uid}:{uid}::{HOMES[uid]}:/bin/sh\n")
        _append("/etc/group", f"{name}:x:{uid}:\n")
    HOMES[ORDINARY_USER].mkdir()
    own(ORDINARY_USER, HOMES[ORDINARY_USER])
    fake_systemd()


def set_loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        fcntl.ioctl(sock, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))


def fake_systemd() -> None:
    """Simulate a machine that systemd started. `set_unit` sets the answers of systemctl."""
    Path("/run/systemd/system").mkdir(parents=True)
    fake = Path("/run/systemctl")
    fake.write_text(f'#!/bin/sh\n[ "$1" = show ] && exec cat {UNIT_STATUS}\nexit 0\n')
    fake.chmod(0o755)
    run("mount", "--bind", str(fake), str(SYSTEMCTL))


def let_everybody_reach(paths: Iterable[Path]) -> None:
    """Let all users reach ``paths``, even below a closed directory such as root's home."""
    bind_mounts = {}
    for number, path in enumerate(paths):
        bind_mounts[path] = Path(f"/run/kept/{number}")
        bind_mounts[path].mkdir(parents=True)
        run("mount", "--bind", str(path), str(bind_mounts[path]))
    closed = {_closed_parent(path) for path in bind_mounts} - {None}
    for parent in closed:
        run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", str(parent))
    for path, place in bind_mounts.items():
        if any(parent in path.parents for parent in closed):
            path.mkdir(parents=True, exist_ok=True)
            run("mount", "--bind", str(place), str(path))


def _closed_parent(path: Path) -> Path | None:
    """Return the outermost parent directory that other users cannot enter."""
    return next((p for p in reversed(path.parents) if not p.stat().st_mode & 0o001), None)


def _sockets(directory: str, names: list[str]) -> list[str]:
    """Return the names that copytree must skip: all except files, directories and links."""
    return [
        n for n in names
        if not ((p := Path(directory, n)).is_file() or p.is_dir() or p.is_symlink())
    ]  # fmt: skip


def _append(path: str, text: str) -> None:
    with Path(path).open("a") as file:
        file.write(text)


def run(*words: str) -> None:
    """Run a command of the system. Raises CalledProcessError."""
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
