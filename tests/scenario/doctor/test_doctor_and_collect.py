"""Runs `collect` and `doctor` as a user does: with Ctrl-C, as JSON, and with a bundle."""

import json
import signal
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.namespaces import entering
from tests.scenario.agent_process import environment, write_config

pytestmark = [pytest.mark.lab, pytest.mark.needs("veth")]

NETWORK = (
    "ip link add till0 type veth peer name wall0"
    " && ip addr add 192.168.77.2/24 dev till0 && ip link set till0 up && ip link set wall0 up"
    " && ip route add default via 192.168.77.1"
)


def in_a_venue(*words: str, namespaces: tuple[str, ...] = (), setup: str = "") -> list[str]:
    """Return a command line that runs the agent in a new network, in which no host answers.

    The shell runs the text ``setup`` once the network exists.
    """
    script = f'{NETWORK} {setup} && exec "$@"'
    agent = [sys.executable, "-m", "agent", *words]
    return [*entering(*namespaces), "sh", "-c", script, "sh", *agent]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = write_config(tmp_path, "http://127.0.0.1:9")
    path.write_text(path.read_text().replace("device_only = true", ""))
    return path


@pytest.fixture
def collect_process(config: Path) -> Iterator[subprocess.Popen[str]]:
    command = in_a_venue("collect", "network", "--ndjson", "--config", str(config))
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
    ) as process:
        yield process
        process.kill()


def test_ctrl_c_prints_the_facts_collected_so_far(collect_process: subprocess.Popen[str]) -> None:
    assert collect_process.stdout is not None
    first = json.loads(collect_process.stdout.readline())
    assert first["event"] == "progress"
    collect_process.send_signal(signal.SIGINT)
    output, errors = collect_process.communicate(timeout=120)
    payload = json.loads(output.splitlines()[-1])
    assert collect_process.returncode == 0, errors
    assert payload["version"] == 2
    assert payload["completeness"] == "partial"
    assert payload["networkMap"]["state"] == "cancelled"
    assert "Traceback" not in errors


def test_collect_with_html_still_prints_the_report(config: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    command = in_a_venue("collect", "application", "--html", str(page), "--config", str(config))
    result = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, env=environment()
    )
    assert result.returncode == 0, result.stderr
    assert "application snapshot" in result.stdout
    assert result.stderr.endswith(f"written to {page}\n")
    assert "<html" in page.read_text()


def test_doctor_prints_json_and_writes_a_bundle(config: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle.zip"
    (tmp_path / "api-key").chmod(0o600)
    command = in_a_venue("doctor", "--json", "--bundle", str(bundle), "--config", str(config))
    result = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, env=environment()
    )
    assert result.returncode == 1, result.stderr
    document = json.loads(result.stdout)
    failed = {c["name"] for c in document["checks"] if c["status"] == "fail"}
    assert failed >= {"connection"}
    assert document["ok"] is False
    with zipfile.ZipFile(bundle) as archive:
        members = {name: archive.read(name).decode() for name in archive.namelist()}
    assert json.loads(members["doctor.json"]) == document
    case_id = document["caseId"]
    assert members["doctor.txt"].startswith(f"case {case_id}\n")
    assert "connection: 127.0.0.1:9 refuses" in members["doctor.txt"]
    assert members["status.txt"].startswith("not running\n")
    for kind, version in (("network", 2), ("application", 1)):
        payload = json.loads(members[f"reports/{kind}.json"])
        assert payload["version"] == version
        assert "<html" in members[f"reports/{kind}.html"]
    assert f"case {case_id}\n→ give the file and the case id to your support" in result.stderr
    assert not {"\x1b", "\t"} & set(members["doctor.txt"] + members["status.txt"])


@pytest.mark.large
def test_doctor_with_no_collect_writes_a_bundle_without_reports(
    config: Path, tmp_path: Path
) -> None:
    bundle = tmp_path / "bundle.zip"
    words = ("doctor", "--bundle", str(bundle), "--no-collect", "--config", str(config))
    result = subprocess.run(
        in_a_venue(*words), capture_output=True, text=True, timeout=120, check=False,
        env=environment(),
    )  # fmt: skip
    assert result.returncode == 1
    with zipfile.ZipFile(bundle) as archive:
        assert not [name for name in archive.namelist() if name.startswith("reports/")]


@pytest.mark.needs("mount-namespace")
def test_doctor_times_out_on_a_hanging_resolver(config: Path, tmp_path: Path) -> None:
    (tmp_path / "resolv.conf").write_text("nameserver 192.168.77.99\noptions timeout:30\n")
    config.write_text(config.read_text().replace("http://127.0.0.1:9", "https://ops.venue.test"))
    silent_resolver = (
        f"&& mount --bind {tmp_path / 'resolv.conf'} /etc/resolv.conf"
        " && ip neigh replace 192.168.77.99 lladdr 02:00:00:00:00:99 dev till0"
    )
    words = ("doctor", "--config", str(config))
    command = in_a_venue(*words, namespaces=("--mount",), setup=silent_resolver)
    result = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, env=environment()
    )
    assert result.returncode == 1
    assert "name-resolution: no result after" in result.stdout


def test_doctor_prints_readable_text(config: Path) -> None:
    command = in_a_venue("doctor", "--config", str(config))
    result = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, env=environment()
    )
    assert result.returncode == 1
    assert "\x1b" not in result.stdout
    lines = result.stdout.splitlines()
    assert any(line.startswith("connection: 127.0.0.1:9 refuses") for line in lines)
    assert any(line.startswith("  → check service.base_url") for line in lines)
    assert "failed" in lines[-1]
    folder = str(config.parent)
    assert all(len(line) <= 80 for line in lines if folder not in line)
