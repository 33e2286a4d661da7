"""Installs the arm64 package in an emulated Debian, and runs it against a service of this machine.

The emulated Debian is a temporary copy of the root directory that `packaging/arm64/roots.py`
creates. The copy has no Python. Agent and service share a network namespace, whose only network is
loopback. The service and all of this module run on this machine's own architecture.

qemu-user passes neither seccomp(2) nor Landlock's system calls to the kernel. So this test shows
that the agent works without them and reports that they are missing. `verify_confinement` tests them
on an arm64 kernel.

Needs root, debootstrap, systemd-nspawn, qemu-user-static and the package of `make deb-arm64`.
Usage: python -m tests.packaging.arm64.verify_arm64
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

from tests.packaging.local_service import LOCATION, LocalService, local_service, until
from tests.paths import ROOT

PACKAGES: Final = ROOT / "dist/arm64"
ROOTS: Final = ROOT / "packaging/arm64/roots.py"
MODULE: Final = "tests.packaging.arm64.verify_arm64"
WITHIN_S: Final = 900.0
CONFIG: Final = """\
[service]
base_url = "{url}"
location_id = "{location}"
api_key_file = "/etc/venue-agent/api-key"
[device]
legacy_install_id = "till"
[application]
max_duration_seconds = 120
[network]
max_duration_seconds = 120
"""
# A shell in the emulated root directory. It reads commands. After each command it stores the output
# and the exit code in /results, and prints a line.
SHELL: Final = (
    'while IFS= read -r line; do sh -c "$line" </dev/null >/results/out 2>&1;'
    ' echo "$?" >/results/code.new; mv /results/code.new /results/code; echo done; done'
)

PURGED_PATHS: Final = (
    "/usr/lib/venue-agent", "/usr/bin/venue-agent", "/etc/venue-agent", "/var/lib/venue-agent",
)  # fmt: skip


class Machine:
    """The running emulated Debian. It runs one command at a time."""

    def __init__(self, process: subprocess.Popen[str], results: Path) -> None:
        self._process = process
        self._results = results

    def run(self, command: str, code: int = 0) -> str:
        """Run a shell command. Return its output, standard error included.

        Raises AssertionError if its exit code is not ``code``.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()
        if self._process.stdout.readline() != "done\n":
            raise AssertionError(f"the emulated Debian ended during: {command}")
        output = (self._results / "out").read_text(errors="replace")
        exit_code = int((self._results / "code").read_text())
        assert exit_code == code, f"{command} ended with {exit_code}, not {code}:\n{output[-3000:]}"
        return output

    def json(self, command: str, code: int = 0) -> dict[str, Any]:
        """Run a command whose standard output is a JSON object."""
        document: dict[str, Any] = json.loads(self.run(f"{command} 2>/results/err", code))
        return document


@contextmanager
def machine(results: Path) -> Iterator[Machine]:
    words = (
        sys.executable, str(ROOTS), "bare", f"--bind={results}:/results",
        f"--bind-ro={package()}:/venue-agent.deb", "--", "sh", "-c", SHELL,
    )  # fmt: skip
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield Machine(process, results)
        finally:
            process.terminate()


def package() -> Path:
    files = sorted(PACKAGES.glob("venue-agent_*_arm64.deb"))
    if len(files) != 1:
        raise SystemExit(f"{PACKAGES} must contain exactly one package: run `make deb-arm64`")
    return files[0]


def verify(debian: Machine, service: LocalService) -> Iterator[str]:
    """Run the steps. Yield a line after each."""
    assert debian.run("uname -m").strip() == "aarch64"
    assert "python" not in debian.run("ls /usr/bin")
    debian.run("dpkg -i /venue-agent.deb")
    version = debian.run("venue-agent --version").split()[1]
    assert f"_{version}_" in package().name
    debian.run("getent passwd venue-agent && ls /usr/lib/systemd/system/venue-agent.service")
    yield f"venue-agent {version} is installed, without Python"

    config = CONFIG.format(url=service.base_url, location=LOCATION)
    write(debian, "/etc/venue-agent/config.toml", config)
    write(debian, "/etc/venue-agent/api-key", service.api_key)
    debian.run("chmod 400 /etc/venue-agent/api-key")
    debian.run("install -d -m 700 -o venue-agent -g venue-agent /var/lib/venue-agent")
    output = debian.run("venue-agent config check")
    yield f"config check: {output.strip().splitlines()[-1]}"

    record = debian.json("venue-agent enroll --json")
    device = service.enrolled_device()["instanceId"]
    assert record["instanceId"] == device
    yield "enrolled, with a key pair of its own"

    debian.run("venue-agent run >/results/log 2>&1 & echo $! >/run/agent.pid")
    for kind in ("application", "network"):
        request = service.request(device, kind)
        report = until(partial(service.report_of, device, request), WITHIN_S)
        text = json.dumps(report)
        assert report["outcome"] != "failed", text[:500]
        assert "aarch64" in text, text[:500]
        assert "the collector was not confined" in text, "the report lacks the limitation"
        yield f"{kind} report arrived: {report['outcome']}; it states the missing confinement"
    status = debian.json("venue-agent status --json")
    assert status["verdict"] == "healthy", status
    owner = debian.run("stat -c %U /proc/$(cat /run/agent.pid)").strip()
    assert owner == "venue-agent", owner
    yield f"status: healthy; the daemon runs as {owner}"

    checks = {each["name"]: each for each in _doctor(debian)["checks"]}
    assert checks["daemon"]["status"] == "ok", checks["daemon"]
    assert checks["confinement"]["status"] != "ok", checks["confinement"]
    failures = [
        f"{each['name']}: {each['detail']}" for each in checks.values() if each["status"] == "fail"
    ]
    yield f"doctor: {len(checks)} checks, failed: {'; '.join(failures) or 'none'}"

    is_running = "kill -0 $(cat /run/agent.pid) 2>/dev/null"
    debian.run(f"kill $(cat /run/agent.pid) && while {is_running}; do sleep 0.2; done")
    debian.run("dpkg --purge venue-agent")
    paths = " ".join(PURGED_PATHS)
    leftovers = debian.run(f"ls -d {paths} 2>/dev/null; getent passwd venue-agent; true")
    assert leftovers == "", leftovers
    yield "stopped on SIGTERM; nothing is left after purge"


def _doctor(debian: Machine) -> dict[str, Any]:
    return debian.json("{ venue-agent doctor --json || test $? = 1; }")


def write(debian: Machine, path: str, text: str) -> None:
    escaped = text.replace("\n", "\\n")
    debian.run(f"printf '%b' '{escaped}' > {path}")


def inside() -> int:
    """Run the steps in the network namespace. Return the exit code."""
    with tempfile.TemporaryDirectory(prefix="venue-arm64-") as name:
        results = Path(name) / "results"
        results.mkdir()
        with local_service(Path(name)) as service, machine(results) as debian:
            began = time.monotonic()
            try:
                for line in verify(debian, service):
                    sys.stdout.write(f"ok {line} ({time.monotonic() - began:.0f} s)\n")
                    sys.stdout.flush()
            except (AssertionError, TimeoutError) as error:
                sys.stdout.write(f"FAILED {error}\n")
                log = results / "log"
                sys.stdout.write(log.read_text()[-3000:] if log.exists() else "")
                return 1
    return 0


def main() -> int:
    if os.geteuid() != 0:
        raise SystemExit("this test needs root: run it with sudo")
    package()  # exits if it is missing
    if sys.argv[1:] == ["--inside"]:
        return inside()
    loopback = ("unshare", "--net", "--", sys.executable, "-I", str(ROOT / "tests/lab/loopback.py"))
    done = subprocess.run((*loopback, sys.executable, "-m", MODULE, "--inside"), check=False)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
