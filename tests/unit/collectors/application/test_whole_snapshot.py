"""The real collector process: its keys, limits, duration and memory."""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

from agent.wire.codec import validate
from agent.wire.payloads.application import (
    BrowserField,
    Peripheral,
    Snapshot,
    SnapshotField,
    SnapshotInterface,
)
from agent.wire.vocabulary import FieldStatus
from collectors.application import registry
from collectors.application.deadline import Deadline
from collectors.application.registry import sources_for
from collectors.application.source import Origin, Reading, Source
from collectors.contract import ApplicationJob
from tests.lab.namespaces import entering
from tests.paths import ROOT
from tests.prerequisites import missing

pytestmark = pytest.mark.medium

SNAPSHOT_KEYS = [
    key
    for source in sources_for("linux", ApplicationJob(5))
    for key in source.keys
    if not source.in_browser
]
DOCUMENTED_KEYS = re.findall(
    r"`((?:os|hardware|display|memory|cpu|disk|network|process|device|service|printqueue|peripherals"
    r"|kiosk)\.[^`]+)`",
    (ROOT / "docs/application-fields.md").read_text(),
)


def run_child(job: dict[str, Any], *namespaces: str) -> dict[str, Any]:
    """Run the collector in separate namespaces, with loopback as the only network.

    If this user cannot create namespaces, the collector runs without them. This is safe, because it
    contacts only ``service_url`` and ``kiosk_debug_url``, which are loopback addresses.
    """
    command = (
        sys.executable,
        "-m",
        "tests.unit.collectors.application.run_snapshot",
        json.dumps(job),
    )
    can_isolate = namespaces or missing("network-namespace") is None
    finished = subprocess.run(
        (*(entering(*namespaces) if can_isolate else ()), *command),
        cwd=ROOT,
        capture_output=True,
        timeout=600,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr.decode()[-3000:]
    snapshot: dict[str, Any] = json.loads(finished.stdout)
    return snapshot


@pytest.fixture(scope="module")
def child_run() -> dict[str, Any]:
    return run_child({"max_duration_s": 300, "watch_processes": ["python3", "no-such-program"]})


def facts_of(child_run: dict[str, Any]) -> dict[str, Any]:
    assert child_run["exit"] == 0
    last = child_run["events"][-1]
    assert last["event"] == "result"
    facts: dict[str, Any] = last["facts"]
    assert facts["fields"]
    return facts


def wire_field(field: dict[str, Any]) -> SnapshotField:
    given = {name: value for name, value in field.items() if value is not None}
    if isinstance(given.get("value"), list):
        given["value"] = tuple(given["value"])
    return SnapshotField(**given)


def test_a_snapshot_has_at_least_sixty_keys_and_needs_at_most_sixty_mebibytes(
    child_run: dict[str, Any],
) -> None:
    facts = facts_of(child_run)
    keys = [field["key"] for field in facts["fields"]]
    assert len(keys) == len(set(keys))
    assert len(keys) >= 60
    assert set(SNAPSHOT_KEYS) <= set(keys)
    assert child_run["peak_kib"] <= 60 * 1024


def test_each_field_has_a_value_or_a_reason(child_run: dict[str, Any]) -> None:
    facts = facts_of(child_run)
    owners = (*facts["interfaces"], *facts["peripherals"])
    all_fields = [*facts["fields"], *(field for owner in owners for field in owner["fields"])]
    for field in all_fields:
        assert field["status"] in get_args(FieldStatus)
        assert (field["value"] is not None) == (field["status"] == "available"), field
        assert (field["reason"] is None) == (field["status"] == "available"), field


def test_a_snapshot_fits_the_contract(child_run: dict[str, Any]) -> None:
    facts = facts_of(child_run)
    Snapshot(
        version=1,
        collected_at=facts["started_at"],
        duration_ms=facts["duration_ms"],
        fields=tuple(map(wire_field, facts["fields"])),
        interfaces=tuple(
            SnapshotInterface(id=e["id"], fields=tuple(map(wire_field, e["fields"])))
            for e in facts["interfaces"]
        ),
        peripherals=tuple(
            Peripheral(id=e["id"], kind=e["kind"], fields=tuple(map(wire_field, e["fields"])))
            for e in facts["peripherals"]
        ),
        limitations=tuple(facts["limitations"]),
        truncated=facts["truncated"],
    )
    for field in facts["browser_fields"]:
        validate({k: v for k, v in field.items() if v is not None}, BrowserField)
    assert len(facts["browser_fields"]) == 34


def test_a_snapshot_has_no_failures_and_sends_checkpoints(child_run: dict[str, Any]) -> None:
    assert facts_of(child_run)["failures"] == []
    kinds = [event["event"] for event in child_run["events"]]
    assert kinds.count("checkpoint") >= 2
    assert kinds[-1] == "result"


@pytest.fixture
def mount_point() -> Iterator[Path]:
    """Create a directory that every user may enter, because the collector does not run as root."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        yield Path(directory)


@pytest.mark.needs("dead-mount")
def test_a_hanging_mount_affects_only_its_own_facts(mount_point: Path) -> None:
    output = run_child({"max_duration_s": 300, "dead_mount": str(mount_point)}, "--mount")
    facts = facts_of(output)
    fields = {field["key"]: field for field in facts["fields"]}
    dead = f"disk.{mount_point}"
    assert fields[f"{dead}.fileSystem"]["value"] == "fuse"
    assert fields[f"{dead}.freeBytes"]["status"] == "collection-failed"
    assert fields[f"{dead}.freeBytes"]["reason"] == "the mount does not answer"
    assert [failure["step"] for failure in facts["failures"]] == ["disk"]
    assert fields["memory.totalBytes"]["status"] == "available"
    other_sizes = [f for key, f in fields.items() if key.endswith(".sizeBytes") and dead not in key]
    assert any(field["value"] for field in other_sizes)


@pytest.mark.needs("dead-mount")
def test_the_collection_ends_in_time_although_several_sources_hang(
    tmp_path: Path, mount_point: Path
) -> None:
    """The collection ends in time although a mount, the system bus and the kiosk never answer."""
    busctl = tmp_path / "busctl"
    busctl.write_text("#!/bin/sh\nexec sleep infinity\n")
    busctl.chmod(0o755)
    job = {
        "max_duration_s": 300,
        "dead_mount": str(mount_point),
        "silent_kiosk": True,
        "stand_in": str(busctl),
    }
    output = run_child(job, "--mount")
    facts = facts_of(output)
    fields = {field["key"]: field for field in (*facts["fields"], *facts["browser_fields"])}
    for key in (
        f"disk.{mount_point}.freeBytes",
        "service.printSpooler.state",
        "peripherals.bluetoothCount",
        "browser.userAgent",
    ):
        assert fields[key]["status"] == "collection-failed", key
    assert {f["step"] for f in facts["failures"]} >= {"disk", "services", "bluetooth", "kiosk"}
    assert fields["memory.totalBytes"]["status"] == "available"


def test_planted_secrets_are_not_in_the_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Secrets are put into environment variables, arguments of a program, and URLs."""
    monkeypatch.setenv("PLANTED", "planted-environment")
    monkeypatch.setenv("http_proxy", "http://planted-user:planted-password@127.0.0.1:3128")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    program = tmp_path / "till-program"
    shutil.copy("/bin/sh", program)
    arguments = (str(program), "-c", "read line; exit 0", "--password=planted-argument")
    with subprocess.Popen(arguments, stdin=subprocess.PIPE) as process:
        output = run_child(
            {
                "max_duration_s": 300,
                "watch_processes": ["till-program"],
                "kiosk_debug_url": "http://127.0.0.1:1/?token=planted-kiosk",
                "service_url": "http://127.0.0.1:1/planted-path?key=planted-key",
            }
        )
        process.communicate(b"\n")
    fields = {field["key"]: field for field in facts_of(output)["fields"]}
    assert fields["process.till-program.count"]["value"] == 1
    assert fields["network.proxy"]["value"] == "127.0.0.1:3128"
    assert fields["network.service.reachable"]["value"] is False
    assert "planted" not in json.dumps(output["events"])


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_every_platform_has_every_key_once(platform: str) -> None:
    sources = sources_for(platform, ApplicationJob(5))
    keys = [key for source in sources for key in source.keys if not source.in_browser]
    assert sorted(keys) == sorted(SNAPSHOT_KEYS)
    assert len({source.name for source in sources}) == len(sources)


def test_a_key_of_one_platform_is_unsupported_on_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    new = Source("new", Origin("test"), ("os.new",), lambda _: Reading())
    monkeypatch.setattr(registry, "linux_sources", lambda *_, **__: (new,))
    assert sources_for("linux", ApplicationJob(5))[0] is new
    for platform in ("darwin", "win32"):
        *_, placeholder = sources_for(platform, ApplicationJob(5))
        (field,) = placeholder(Deadline.after(5)).fields
        assert (field.key, field.status) == ("os.new", "unsupported")


def test_the_documented_keys_equal_the_keys_of_the_sources() -> None:
    assert {key for key in DOCUMENTED_KEYS if "<" not in key} == set(SNAPSHOT_KEYS)


def test_each_key_of_a_snapshot_is_documented(child_run: dict[str, Any]) -> None:
    forms = [re.sub("<.*?>", ".+", key.replace(".", r"\.")) for key in DOCUMENTED_KEYS]
    for field in facts_of(child_run)["fields"]:
        assert any(re.fullmatch(form, field["key"]) for form in forms), field["key"]
