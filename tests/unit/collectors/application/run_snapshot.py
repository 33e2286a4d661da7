"""Runs the real collector process and prints the result.

Run this module in its own namespaces, with a job in JSON as its argument. It prints one JSON object
with the events of `python -m collectors application`, its exit code and its peak memory.

The job can have these keys in addition to those of the collector:

- ``dead_mount``: a directory, at which a file system that never answers is mounted.
- ``full_disk``: a directory, at which a full file system is mounted.
- ``stand_in``: a program, which is mounted over the system program of the same name.
- ``silent_kiosk``: if true, ``kiosk_debug_url`` is the address of a server that never answers.
"""

import ctypes
import json
import os
import resource
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from collectors.programs import find_program


def main() -> int:
    job = json.loads(sys.argv[1])
    dead_mount = job.pop("dead_mount", "")
    if dead_mount:
        mount_dead(dead_mount)
    full_disk = job.pop("full_disk", "")
    if full_disk:
        mount_full(Path(full_disk))
    stand_in = job.pop("stand_in", "")
    if stand_in:
        mount_stand_in(Path(stand_in))
    silent = socket.create_server(("127.0.0.1", 0))
    if job.pop("silent_kiosk", False):
        job["kiosk_debug_url"] = f"http://127.0.0.1:{silent.getsockname()[1]}"
    with subprocess.Popen(
        (sys.executable, "-m", "collectors", "application"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(json.dumps(job).encode() + b"\n")
        child.stdin.flush()
        events = [json.loads(line) for line in child.stdout]
        child.wait(60)
    silent.close()
    peak_kib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    outcome = {"events": events, "peak_kib": peak_kib, "exit": child.returncode}
    sys.stdout.write(json.dumps(outcome))
    return 0


def mount_stand_in(program: Path) -> None:
    """Mount ``program`` over the system program of the same name, in this mount namespace. If there
    is no such program, mount the directory of ``program`` over /usr/sbin.
    """
    system_program = find_program(program.name)
    if system_program is None:
        mount(str(program.parent), "/usr/sbin", b"none", _MS_BIND)
    else:
        mount(str(program), system_program, b"none", _MS_BIND)


def mount_dead(path: str) -> None:
    """Mount a FUSE file system without a server at ``path`` (mount(2), fuse(4)).

    The kernel waits for the first answer of the server, which never comes. Therefore statvfs
    blocks, as it does on a network mount whose server is down.
    """
    device = os.open("/dev/fuse", os.O_RDWR)
    os.set_inheritable(device, False)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
    mount("dead", path, b"fuse", 0, options)


def mount_full(path: Path) -> None:
    """Mount an overlay at ``path`` whose upper layer is a file system of 4 MiB, and fill it.

    The collector does not count a tmpfs as a disk of the machine. It counts an overlay, because
    live systems run on one.
    """
    mount("upper", str(path), b"tmpfs", 0, b"size=4m")
    layers = [path / name for name in ("lower", "upper", "work")]
    for layer in layers:
        layer.mkdir()
    with (layers[1] / "log").open("wb", buffering=0) as log, suppress(OSError):
        while log.write(bytes(65536)):
            pass
    options = ",".join(
        f"{name}={layer}"
        for name, layer in zip(("lowerdir", "upperdir", "workdir"), layers, strict=True)
    )
    mount("overlay", str(path), b"overlay", 0, options.encode())


_MS_BIND = 4096


def mount(source: str, target: str, kind: bytes, flags: int, options: bytes = b"") -> None:
    """Call mount(2). Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(os.fsencode(source), os.fsencode(target), kind, flags, options) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


if __name__ == "__main__":
    raise SystemExit(main())
