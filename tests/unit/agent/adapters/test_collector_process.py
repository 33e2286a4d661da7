"""Tests of collector processes that crash, hang or send invalid output. Facts that a process sent
before its failure are kept.
"""

import asyncio
import gc
import json
import os
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import pytest

from agent.adapters import collector_process
from agent.adapters.collector_process import CollectedFacts, CollectorProcess, Timeouts
from agent.errors import CollectorError
from collectors.contract import ApplicationFacts, ApplicationJob, Job, NetworkJob, Progress
from tests.paths import ROOT

CHILD = ROOT / "tests/fakes/collectors/child.py"
JOB = ApplicationJob(max_duration_s=30)
HANGING = ("hang", "hang_later", "send_many_lines")
"""The behaviours of a child that does not end when it is cancelled."""


def job_with_deadline(seconds: float) -> Job:
    return ApplicationJob(max_duration_s=seconds)


def large_job(max_duration_s: float) -> Job:
    """Return a job that does not fit into the buffer of a pipe."""
    return NetworkJob(
        ports=(),
        max_hosts=1,
        max_services=1,
        max_duration_s=max_duration_s,
        exclude=("10.0.0.1",) * 50_000,
    )


def process(
    behaviour: str,
    file: Path | str = "",
    environment: Mapping[str, str] = os.environ,
    *,
    exit_s: float = 60.0,
) -> CollectorProcess:
    """Return a collector whose child has this behaviour, and gets ``file`` as an argument."""
    cancel_s = 0.1 if behaviour in HANGING else 60.0
    return CollectorProcess(
        lambda _kind: (sys.executable, "-S", "-E", str(CHILD), behaviour, str(file)),
        environment,
        Timeouts(grace_s=0.0, cancel_s=cancel_s, exit_s=exit_s),
    )


async def run(behaviour: str, job: Job = JOB, file: Path | str = "") -> CollectedFacts:
    return await process(behaviour, file).collect(job, lambda _: None)


def facts(collected: CollectedFacts) -> ApplicationFacts:
    assert isinstance(collected.facts, ApplicationFacts)
    return collected.facts


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


async def wait_until_ended(pid: int) -> None:
    """Wait until a killed process has ended."""
    async with asyncio.timeout(60):
        while is_alive(pid):  # noqa: ASYNC110 - the kernel ends it
            await asyncio.sleep(0.01)


async def wait_until_written(file: Path) -> None:
    async with asyncio.timeout(60):
        while not (file.exists() and file.read_text()):  # noqa: ASYNC110 - a process writes it
            await asyncio.sleep(0.01)


async def test_a_successful_child_returns_its_facts_and_progress() -> None:
    events: list[Progress] = []

    collected = await process("succeed").collect(JOB, events.append)

    assert collected.error is None
    assert events == [Progress("disks", 1, 2)]
    assert json.loads(facts(collected).limitations[0]) == json.loads(json.dumps(asdict(JOB)))


async def test_output_after_the_result_is_ignored(caplog: pytest.LogCaptureFixture) -> None:
    collected = await run("write_extra_lines")

    assert facts(collected).limitations == ()
    assert "a warning of some library" in caplog.text


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        ("crash", "ValueError: broken"),
        ("kill_itself", "it ended without a result"),
        ("send_invalid_line", "an event cannot be read: it is not JSON"),
    ],
)
async def test_facts_sent_before_a_failure_are_kept(behaviour: str, reason: str) -> None:
    collected = await run(behaviour)

    assert collected.error is not None
    assert collected.error.startswith(reason)
    assert facts(collected).limitations == ("so far",)
    (failure,) = facts(collected).failures
    assert (failure.step, failure.reason) == ("collector", collected.error)


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        ("crash_at_once", "it ended without a result"),
        ("crash_with_surrogate", r"no\?good"),
        ("send_unknown_event", "an event cannot be read"),
    ],
)
async def test_child_without_facts_raises_an_error(behaviour: str, reason: str) -> None:
    with pytest.raises(CollectorError, match=f"the collector sent no facts: {reason}"):
        await run(behaviour)


async def test_lone_surrogates_in_facts_are_replaced() -> None:
    collected = await run("send_half_surrogates")

    assert collected.error is None
    assert facts(collected).limitations == ("printer ?", "\\udcff stays")


async def run_to_the_deadline(behaviour: str, monkeypatch: pytest.MonkeyPatch) -> CollectedFacts:
    """Run a child whose deadline passes when it reports its first progress."""
    loop = asyncio.get_running_loop()
    now = loop.time

    def pass_the_deadline(_: Progress) -> None:
        monkeypatch.setattr(loop, "time", lambda: now() + JOB.max_duration_s)

    return await process(behaviour).collect(JOB, pass_the_deadline)


async def test_facts_of_the_last_checkpoint_are_kept_at_the_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    collected = await run_to_the_deadline("hang_later", monkeypatch)

    assert collected.error == "it was stopped at its deadline of 30 s"
    assert facts(collected).limitations == ("so far",)


async def test_a_deadline_without_a_checkpoint_raises_an_error() -> None:
    with pytest.raises(CollectorError, match="sent no facts: it was stopped at its deadline"):
        await run("hang", job_with_deadline(0.2))


async def test_a_large_job_for_a_child_that_does_not_read_ends_at_the_deadline() -> None:
    with pytest.raises(CollectorError, match="its deadline"):
        await run("hang", large_job(0.2))


async def run_and_cancel(behaviour: str) -> CollectedFacts:
    """Run a child and cancel it when it reports its first progress."""
    cancel = asyncio.Event()
    return await process(behaviour).collect(JOB, lambda _: cancel.set(), cancel)


async def test_a_child_that_reads_no_job_leaves_no_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with pytest.raises(CollectorError):
        await run("crash_at_once", large_job(60))
    gc.collect()
    assert "never retrieved" not in caplog.text


async def test_cancelled_child_returns_its_facts() -> None:
    collected = await run_and_cancel("wait_for_command")

    assert collected.error is None
    assert facts(collected).cancelled
    assert facts(collected).limitations == ("cancel",)


async def test_child_is_cancelled_at_its_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    collected = await run_to_the_deadline("wait_for_command", monkeypatch)

    assert facts(collected).cancelled
    assert collected.error == "it was stopped at its deadline of 30 s"


async def test_a_child_that_ignores_its_cancellation_is_killed() -> None:
    collected = await run_and_cancel("hang_later")

    assert collected.error == "it was cancelled, but did not end in time"
    assert facts(collected).limitations == ("so far",)


async def test_an_invalid_answer_of_a_child_keeps_earlier_facts() -> None:
    collected = await run_and_cancel("answer_command_with_invalid_line")

    assert str(collected.error).startswith("an event cannot be read: ")
    assert facts(collected).limitations == ("so far",)


async def test_an_endless_line_ends_the_collection() -> None:
    with pytest.raises(CollectorError, match="an event is longer than 16777216 bytes"):
        await run("write_endless_line")


async def test_an_oversized_line_of_a_child_is_ignored(caplog: pytest.LogCaptureFixture) -> None:
    events: list[Progress] = []

    collected = await process("send_long_checkpoint").collect(JOB, events.append)

    assert collected.error is None
    assert facts(collected).limitations == ("whole",)
    assert [step.step for step in events] == ["disks", "after"]
    assert "an event is longer than 16777216 bytes: ignored" in caplog.text


async def test_facts_sent_before_an_oversized_result_are_kept() -> None:
    events: list[Progress] = []

    collected = await process("send_long_result").collect(JOB, events.append)

    assert collected.error == "an event is longer than 16777216 bytes"
    assert facts(collected).limitations == ("so far",)
    assert [step.step for step in events] == ["disks", "after"]
    (failure,) = facts(collected).failures
    assert failure.reason == collected.error


@pytest.mark.medium
async def test_an_endless_stream_of_lines_ends_at_the_deadline() -> None:
    with pytest.raises(CollectorError, match="deadline"):
        await run("send_many_lines", job_with_deadline(0.3))


async def test_a_grandchild_is_killed_after_the_collection(tmp_path: Path) -> None:
    file = tmp_path / "pid"

    collected = await run("start_grandchild", file=file)

    assert collected.error is None
    await wait_until_ended(int(file.read_text()))


async def test_an_escaped_grandchild_does_not_delay_the_collection(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "pid"

    collected = await process("start_escaped_grandchild", file, exit_s=0.5).collect(
        JOB, lambda _: None
    )

    pid = int(file.read_text())
    os.kill(pid, signal.SIGKILL)
    assert collected.error is None
    assert "cannot be killed" in caplog.text


async def test_a_cancelled_collection_leaves_no_child(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    collection = asyncio.create_task(
        process("wait_for_stdin_end", file).collect(JOB, lambda _: None)
    )
    await wait_until_written(file)

    collection.cancel()
    with pytest.raises(asyncio.CancelledError):
        await collection

    await wait_until_ended(int(file.read_text()))


async def test_a_child_ends_when_its_stdin_closes(tmp_path: Path) -> None:
    """If the daemon is killed, the child's stdin closes, and the child must end by itself."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, str(CHILD), "wait_for_stdin_end", str(tmp_path / "pid"),
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(b"{}\n")
    assert await asyncio.wait_for(child.stdout.readline(), 60)

    child.stdin.close()

    assert await asyncio.wait_for(child.wait(), 60) == 0


async def test_the_child_inherits_no_secrets_and_no_search_paths_for_code() -> None:
    environment = {
        "PATH": "/planted",
        "PYTHONPATH": "/planted",
        "PYTHONHOME": "/planted",
        "LD_LIBRARY_PATH": "/planted",
        "LD_PRELOAD": "/planted",
        "DBUS_SYSTEM_BUS_ADDRESS": "unixexec:path=/planted",
        "LANG": "C.UTF-8",
        "VENUE_AGENT_API_KEY": "secret",
        "CREDENTIALS_DIRECTORY": "/run/credentials/secret",
        "NOTIFY_SOCKET": "/run/secret",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "HTTPS_PROXY": "http://name:secret@proxy.example:3128",
        "https_proxy": "http://proxy.example:3128",
        "no_proxy": "localhost,127.0.0.1",
    }

    collected = await process("send_environment", "", environment).collect(JOB, lambda _: None)

    output = facts(collected).limitations
    assert "secret" not in " ".join(output)
    assert "planted" not in " ".join(output)
    assert {
        "PATH=/usr/bin:/usr/sbin:/bin:/sbin",
        "LANG=C.UTF-8",
        "no_proxy=localhost,127.0.0.1",
    } <= set(output)
    assert "HTTPS_PROXY=http://proxy.example:3128" in output
    assert "https_proxy=http://proxy.example:3128" in output


async def test_collector_that_is_not_installed_raises_an_error() -> None:
    bare = CollectorProcess(lambda kind: (sys.executable, "-I", "-S", "-m", "collectors", kind))

    with pytest.raises(CollectorError, match=r"not installed for this Python.*PYTHONPATH"):
        await bare.collect(JOB, lambda _: None)


async def test_program_that_cannot_be_started_raises_an_error(tmp_path: Path) -> None:
    missing = CollectorProcess(lambda _: (str(tmp_path / "none"),))

    with pytest.raises(CollectorError, match=r"the collector cannot be started: .*No such file"):
        await missing.collect(JOB, lambda _: None)


def test_the_real_child_is_started_with_this_python() -> None:
    assert collector_process.default_command("network") == (
        sys.executable, "-I", "-m", "collectors", "network",
    )  # fmt: skip


@pytest.mark.skipif(sys.platform == "win32", reason="the test needs POSIX sessions and FIFOs")
async def test_a_collection_does_not_wait_for_leftover_grandchildren(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A grandchild in its own session keeps the child's stderr open after the child has ended."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    end = collector_process._end

    async def end_after_the_exit(child: Process, within_s: float) -> None:
        while child.returncode is None:  # noqa: ASYNC110 - the event loop must run
            await asyncio.sleep(0)
        await end(child, within_s)

    monkeypatch.setattr(collector_process, "_end", end_after_the_exit)
    grandchild = f"echo >{tmp_path}/started; exec cat {fifo} >{tmp_path}/output"
    script = f"setsid sh -c '{grandchild}' & until test -e {tmp_path}/started; do :; done"
    collector = CollectorProcess(
        lambda _kind: ("/bin/sh", "-c", script), timeouts=Timeouts(exit_s=0.1)
    )
    try:
        with pytest.raises(CollectorError, match="ended without a result"):
            async with asyncio.timeout(60):
                await collector.collect(JOB, lambda _: None)
    finally:
        with fifo.open("wb"):
            pass
