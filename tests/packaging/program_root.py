"""Builds a root directory that contains only the dependencies of the packaged programs.

It has the C library, zlib, /dev, /proc, /sys and a few files in /etc. It has no Python, no shell
and no time zones. The caller must run in its own mount namespace: the mounts end with it.
"""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

DEVICES: Final = ("null", "zero", "full", "random", "urandom")
FILES: Final = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
    "etc/group": "root:x:0:\nnogroup:x:65534:\n",
    "etc/hosts": "127.0.0.1 localhost\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    "etc/os-release": 'ID=debian\nVERSION_ID="12"\nPRETTY_NAME="Debian GNU/Linux 12"\n',
    "etc/machine-id": "0123456789abcdef0123456789abcdef\n",
}
ENVIRONMENT: Final = {
    "PATH": "/usr/bin", "HOME": "/root", "LANG": "C.UTF-8", "COLUMNS": "200", "NO_COLOR": "1",
}  # fmt: skip


def make_root(root: Path, programs: dict[str, Path], authorities: bytes) -> None:
    """Build the root on a new tmpfs.

    Args:
        programs: The directory of each program, mounted read-only where its package installs it.
        authorities: The certificates of the authorities that the programs trust, in PEM.

    Raises:
        RuntimeError: A command failed, or the new root contains a Python.
    """
    _run("mount", "--make-rprivate", "/")
    _run("mount", "-t", "tmpfs", "-o", "size=500m", "venue-programs", str(root))
    for library in _libraries():
        target = root / library.relative_to("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, target)
    _require_no_python(root)
    for name, text in FILES.items():
        _write(root / name, text.encode())
    _write(root / "etc/ssl/certs/ca-certificates.crt", authorities)
    for name in ("root", "run", "tmp", "var/lib", "dev/shm", "proc", "sys", "usr/bin"):
        (root / name).mkdir(parents=True, exist_ok=True)
    for name in DEVICES:
        (root / "dev" / name).touch()
        _run("mount", "--bind", f"/dev/{name}", str(root / "dev" / name))
    _run("mount", "-t", "proc", "proc", str(root / "proc"))
    _run("mount", "-t", "sysfs", "-o", "ro", "sysfs", str(root / "sys"))
    for name, onedir in programs.items():
        _bind_read_only(onedir, root / "usr/lib" / name)
        (root / "usr/bin" / name).symlink_to(f"../lib/{name}/{name}")


def share(root: Path, directory: Path) -> None:
    """Bind-mount a directory of this machine at the same path inside the root."""
    target = root / directory.relative_to("/")
    target.mkdir(parents=True)
    _run("mount", "--bind", str(directory), str(target))


def command_in(root: Path, directory: Path, *words: str) -> tuple[str, ...]:
    """Return the command line that runs a program inside the root. ``directory`` is its working
    directory.
    """
    return ("unshare", f"--root={root}", f"--wd=/{directory.relative_to(root)}", *words)


def _libraries() -> list[Path]:
    """Return the libraries that exist on every machine on which the programs can be installed: the
    libraries of libc6, because the programs' packages depend on it, and of zlib1g, because dpkg
    depends on it.
    """
    lines = _run("dpkg-query", "--listfiles", "libc6", "zlib1g").splitlines()
    libraries = [Path(line) for line in lines if ".so" in line and "/gconv/" not in line]
    return [path for path in libraries if path.is_file()]


def _bind_read_only(source: Path, target: Path) -> None:
    target.mkdir(parents=True)
    _run("mount", "--bind", str(source), str(target))
    _run("mount", "-o", "remount,bind,ro", str(target))


def _require_no_python(root: Path) -> None:
    paths = [path for path in root.rglob("*") if "python" in path.name.lower()]
    if paths:
        raise RuntimeError(f"there is a Python in the root: {paths[0]}")


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _run(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=os.environ)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()}")
    return done.stdout
