"""Tests the confinement of a collector: what it prevents after an exploit, and what it permits."""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from collectors import landlock, seccomp
from collectors.unprivileged import is_mapped, ordinary_account
from tests.fakes.collectors.command import ROOT

pytestmark = pytest.mark.needs("landlock")

# A program that tries what an attacker would try after taking over the collector. It imports the
# same modules as the real child process, confines itself, and tries each action. At the end it
# prints a JSON object, in which "done" lists the actions that the confinement did not prevent. The
# actions outside of `attempt` must remain permitted: to connect to a port, to start and end a
# child, and to limit itself.
_COMPROMISED_COLLECTOR = """
import ctypes, errno, json, os, resource, signal, socket, subprocess, sys
from collectors.__main__ import collector_of, job_from_json
from collectors.sandbox import confine_this_process

parameters = json.loads(sys.argv[1])
for kind in ("application", "network"):
    collector_of(job_from_json(kind, b""))
threads = len(os.listdir("/proc/self/task"))
confinement = confine_this_process()
done = []

def attempt(name, action):
    try:
        action()
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EXDEV, errno.EROFS):
            done.append(f"{name}: {error}")
    except subprocess.SubprocessError:
        pass
    else:
        done.append(name)

for path in parameters["secrets"]:
    attempt(f"read {path}", lambda: open(path, "rb").close())
    attempt(f"read {path} by the root of this process",
            lambda: open(f"/proc/self/root{path}", "rb").close())
    attempt(f"read {path} by the root of the parent",
            lambda: open(f"/proc/{os.getppid()}/root{path}", "rb").close())
    attempt(f"read {path} by another program", lambda: subprocess.run(
        ["/bin/cat", path], check=True, stdin=subprocess.DEVNULL, capture_output=True))
    attempt(f"write {path}", lambda: open(path, "r+b").close())
    attempt(f"cut {path}", lambda: os.truncate(path, 0))
    attempt(f"remove {path}", lambda: os.unlink(path))
    attempt(f"rename {path}", lambda: os.rename(path, path + ".moved"))
    attempt(f"link {path}", lambda: os.link(path, path + ".linked"))
for path in parameters["folders"]:
    attempt(f"list {path}", lambda: os.listdir(path))
for path in parameters["writable"]:
    new = f"{path}/taken-over-{os.getpid()}"
    attempt(f"make {new}", lambda: open(new, "wb").close())
    attempt(f"make the directory {new}", lambda: os.mkdir(new))
    attempt(f"make the link {new}", lambda: os.symlink("/", new))
    attempt(f"make the FIFO {new}", lambda: os.mkfifo(new))
    attempt(f"make the socket {new}", lambda: socket.socket(socket.AF_UNIX).bind(new))
attempt("write to the kernel", lambda: open("/proc/self/comm", "wb").close())
attempt("run a planted program", lambda: subprocess.run([parameters["program"]], check=True))
for name in ("environ", "mem", "maps", "cwd/."):
    attempt(f"read {name} of the parent",
            lambda: open(f"/proc/{os.getppid()}/{name}", "rb").close())
if parameters["abi"] >= 4:
    attempt("listen", lambda: socket.socket().bind(("127.0.0.1", 0)))
if parameters["abi"] >= 6:
    attempt("signal the parent", lambda: os.kill(os.getppid(), signal.SIGCONT))
libc = ctypes.CDLL(None, use_errno=True)

def call(number, *arguments):
    result = libc.syscall(ctypes.c_long(number), *map(ctypes.c_long, arguments))
    if result == 0 and number == parameters["clone"]:
        os._exit(0)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

for path in parameters["own"]:
    attempt(f"make {path} run with its owner's rights", lambda: os.chmod(path, 0o4755))
    attempt(f"make {path} writable for all users", lambda: call(parameters["fchmodat"], -100,
        ctypes.cast(path.encode(), ctypes.c_void_p).value, 0o666))
    attempt(f"extend the access list of {path}", lambda: os.setxattr(path, "user.x", b""))
attempt("change the mode of an open file", lambda: os.fchmod(1, 0o666))
attempt("enter a user namespace", lambda: call(parameters["unshare"], 0x10000000))
attempt("start a user namespace", lambda: call(parameters["clone"], 0x10000000 | 17, 0, 0, 0, 0))
for name, number in (("io_uring_setup", 425), ("io_uring_enter", 426), ("io_uring_register", 427)):
    attempt(name, lambda: call(number, 1, 0, 0, 0))
if parameters["socket"]:
    attempt("connect to a socket of root",
            lambda: socket.socket(socket.AF_UNIX).connect(parameters["socket"]))
socket.create_connection(("127.0.0.1", parameters["port"])).close()
own = subprocess.Popen(["/bin/sleep", "60"])
attempt("limit another process", lambda: resource.prlimit(own.pid, resource.RLIMIT_CPU, (1, 1)))
own.kill()
can_end_children = own.wait() == -signal.SIGKILL
for pid in (0, os.getpid()):
    resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))
status = open("/proc/self/status").read()
print(json.dumps({
    "done": done, "threads": threads, "confinement": confinement.state,
    "can_end_children": can_end_children,
    "capabilities": status.partition("CapEff:")[2].split()[0],
    "no_new_privs": status.partition("NoNewPrivs:")[2].split()[0],
    "filtered": status.partition("Seccomp:")[2].split()[0],
    "users": [*os.getresuid(), *os.getresgid(), *os.getgroups()],
}))
"""


@pytest.fixture
def home_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=Path.home(), prefix=".venue-agent-test-") as path:
        yield Path(path)


def test_compromised_collector_can_read_no_secret_and_write_nowhere(
    tmp_path: Path, home_folder: Path
) -> None:
    secret_files = []
    for folder in (tmp_path / "state", tmp_path, home_folder):
        folder.mkdir(exist_ok=True)
        for name in ("identity.pem", "agent.db", "config.toml", "api-key"):
            (folder / name).write_text("secret")
            secret_files.append(folder / name)
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    own_program = tmp_path / "own"
    own_program.write_text("#!/bin/sh\n")
    packages = Path(landlock.__file__).parent
    calls = seccomp.ARCHITECTURES[os.uname().machine]
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        _private_socket() as socket_path,
    ):
        parameters = {
            "secrets": [str(path) for path in secret_files],
            "folders": [
                str(tmp_path), str(home_folder), "/home", "/root", "/etc", "/var/lib", "/run",
            ],
            "writable": [
                str(tmp_path), str(home_folder), "/tmp", "/var/tmp", "/dev/shm", "/run", "/", ".",
                "/etc", "/usr/bin", str(packages), sys.prefix,
            ],
            "program": str(program),
            "port": listener.getsockname()[1],
            "own": [str(own_program)],
            "socket": socket_path,
            "clone": calls.clone, "unshare": calls.unshare, "fchmodat": calls.refused["fchmodat"],
            "abi": landlock.abi_version(),
        }  # fmt: skip
        report = _run(_COMPROMISED_COLLECTOR, json.dumps(parameters), cwd=tmp_path)
    assert report["confinement"] == "confined"
    assert report["threads"] == 1, "an already running thread would not be confined"
    assert report["done"] == []
    assert report["can_end_children"], "a process must be able to end its own children"
    assert (report["capabilities"], report["no_new_privs"]) == ("0" * 16, "1")
    assert report["filtered"] == "2", "2 is the mode of a filter (proc(5))"
    if _is_root():
        assert 0 not in report["users"]
    assert own_program.stat().st_mode & 0o7777 == 0o644
    assert all(path.read_text() == "secret" for path in secret_files)


@pytest.mark.needs("other-user")
def test_a_confined_root_process_cannot_read_etc_shadow() -> None:
    program = (
        "from collectors.sandbox import confine_this_process as c; import json\n"
        "open('/etc/shadow').close(); c(); ok = open('/etc/passwd').close() is None\n"
        "try: open('/etc/shadow').close(); ok = False\n"
        "except PermissionError: pass\n"
        "print(json.dumps({'ok': ok}))"
    )
    assert _run(program) == {"ok": True}


# ------------------------------------------------------------------ no facts are lost

_COLLECT = """
import os, sys
from dataclasses import replace
from collectors import __main__ as child
from collectors.contract import Confinement
from tests.lab.loopback import bring_up_loopback
bring_up_loopback()
if sys.argv.pop(1) == "free":
    child.confine_this_process = lambda: Confinement("refused", "by the test")
os._exit(child.main())
"""


@pytest.fixture
def watched_program(tmp_path: Path) -> Iterator[str]:
    """Run a program during the test. Yield its name, which no other process has."""
    program = tmp_path / "watched-till"
    program.symlink_to(shutil.which("sleep") or "")
    with subprocess.Popen((program, "infinity")) as process:
        yield program.name
        process.kill()


@pytest.mark.lab
@pytest.mark.needs("network-namespace")
@pytest.mark.parametrize("kind", ["application", "network"])
def test_confined_collector_reports_the_same_facts_as_an_unconfined_one(
    kind: str, watched_program: str
) -> None:
    job = {"max_duration_s": 120, "ports": [80], "max_hosts": 16, "max_services": 16}
    if kind == "application":
        job = {
            "max_duration_s": 120,
            "watch_processes": [watched_program],
            "service_url": "https://localhost:1",
        }
    free, confined = (_collect(kind, mode, job) for mode in ("free", "confined"))
    assert free.pop("confinement") == {"state": "refused", "reason": "by the test"}
    assert confined.pop("confinement") == {"state": "confined", "reason": None}
    for facts in (free, confined):
        assert facts.pop("started_at")
    if kind == "application":
        assert _statuses(confined) == _statuses(free)
        assert [confined[key] for key in _COMPARED_KEYS] == [free[key] for key in _COMPARED_KEYS]
    else:
        assert confined == free


_COMPARED_KEYS = ("failures", "limitations", "truncated", "cancelled")


def _statuses(facts: dict[str, Any]) -> dict[str, tuple[str, str | None]]:
    owners = (*facts["interfaces"], *facts["peripherals"])
    fields = [*facts["fields"], *facts["browser_fields"]]
    # Other tests mount file systems in the directory for temporary files at the same time.
    temporary = f"disk.{tempfile.gettempdir()}/"
    states = {
        field["key"]: (field["status"], field["reason"])
        for field in fields
        if not field["key"].startswith(temporary)
    }
    for owner in owners:
        states |= {f"{owner['id']} {f['key']}": (f["status"], f["reason"]) for f in owner["fields"]}
    assert len(states) > 60
    return states


def _collect(kind: str, mode: str, job: dict[str, Any]) -> dict[str, Any]:
    as_root = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    command = ["unshare", *as_root, "--net", sys.executable, "-c", _COLLECT, mode, kind]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(json.dumps(job).encode() + b"\n")
        child.stdin.flush()
        events = [json.loads(line) for line in child.stdout]
    assert child.returncode == 0
    facts: dict[str, Any] = events[-1]["facts"]
    checkpoints = [e["facts"]["confinement"] for e in events if e["event"] == "checkpoint"]
    assert all(checkpoint == facts["confinement"] for checkpoint in checkpoints)
    return facts


def _is_root() -> bool:
    """Return whether this process is root, and not an ordinary user in a user namespace."""
    uid_map = Path("/proc/self/uid_map").read_text("ascii")
    return os.geteuid() == 0 and is_mapped(ordinary_account().uid, uid_map)


@contextlib.contextmanager
def _private_socket() -> Iterator[str | None]:
    """Yield the path of a socket that only root may use, or None if this process is not root."""
    if not _is_root():
        yield None
        return
    with (
        tempfile.TemporaryDirectory() as directory,
        socket.socket(socket.AF_UNIX) as listener,
    ):
        Path(directory).chmod(0o755)
        path = Path(directory) / "socket"
        listener.bind(str(path))
        path.chmod(0o600)
        listener.listen()
        yield str(path)


def _run(program: str, *words: str, cwd: Path | None = None) -> dict[str, Any]:
    result = subprocess.run(
        [sys.executable, "-I", "-c", program, *words],
        cwd=cwd, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    report: dict[str, Any] = json.loads(result.stdout)
    return report
