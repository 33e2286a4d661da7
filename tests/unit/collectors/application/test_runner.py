"""If a source hangs or crashes, only its own fields are missing. The run ends at its deadline."""

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from collectors.application.collector import take_snapshot
from collectors.application.deadline import Deadline
from collectors.application.source import Origin, Reading, Source, Unreadable
from tests.unit.collectors.application.fixtures import RecordingRun, by_key


def single_field(name: str, key: str) -> Source:
    return Source(
        name, Origin("test"), (key,), lambda _: Reading((Origin("test").available(key, name),))
    )


def failing_source(name: str, key: str, error: Exception) -> Source:
    def read(_: Deadline) -> Reading:
        raise error

    return Source(name, Origin("test"), (key,), read)


@pytest.fixture
def hanging_source() -> Iterator[Callable[..., Source]]:
    """Create sources that block until the end of the test, or for at most a minute."""
    is_over = threading.Event()

    def make(name: str, key: str, deadline_s: float = 0.2) -> Source:
        def read(_: Deadline) -> Reading:
            is_over.wait(60)
            return Reading((Origin("test").available(key, "too late"),))

        return Source(name, Origin("test"), (key,), read, deadline_s)

    yield make
    is_over.set()


def test_a_hanging_source_affects_only_its_own_fields(
    hanging_source: Callable[..., Source],
) -> None:
    facts = take_snapshot(
        [hanging_source("stuck", "a.stuck"), single_field("fine", "a.fine")], 5, RecordingRun()
    )
    fields = by_key(facts)
    assert fields["a.stuck"].status == "collection-failed"
    assert "time" in (fields["a.stuck"].reason or "")
    assert fields["a.fine"].value == "fine"
    assert [failure.step for failure in facts.failures] == ["stuck"]


@pytest.mark.medium
def test_the_time_limit_of_the_job_applies_to_every_source(
    hanging_source: Callable[..., Source],
) -> None:
    facts = take_snapshot(
        [hanging_source(f"s{n}", f"k.{n}", 3600) for n in range(20)], 0.8, RecordingRun()
    )
    assert len(facts.fields) == 20
    assert len(facts.failures) == 20


@pytest.mark.parametrize(
    ("error", "status", "is_failure"),
    [
        (ZeroDivisionError("x"), "collection-failed", True),
        (RecursionError(), "collection-failed", True),
        (PermissionError(13, "Permission denied", "/home/anna/x"), "permission-denied", False),
        (FileNotFoundError(2, "No such file", "/home/anna/x"), "collection-failed", True),
        (Unreadable("unsupported", "no such thing here"), "unsupported", False),
        (Unreadable("not-applicable", "none is fitted"), "not-applicable", False),
    ],
)
def test_error_is_classified_with_a_reason(error: Exception, status: str, is_failure: bool) -> None:
    facts = take_snapshot(
        [failing_source("bad", "a.bad", error), single_field("ok", "a.ok")], 5, RecordingRun()
    )
    field = by_key(facts)["a.bad"]
    assert field.status == status
    assert field.value is None
    assert field.reason
    assert "anna" not in field.reason
    assert bool(facts.failures) is is_failure
    assert by_key(facts)["a.ok"].status == "available"


def test_a_key_that_a_source_does_not_return_is_in_the_snapshot_as_failed() -> None:
    source = Source("half", Origin("test"), ("a.one", "a.two"), single_field("half", "a.one").read)
    fields = by_key(take_snapshot([source], 5, RecordingRun()))
    assert fields["a.two"].status == "collection-failed"


def test_each_checkpoint_has_every_key(hanging_source: Callable[..., Source]) -> None:
    run = RecordingRun()
    sources = [single_field("a", "k.a"), hanging_source("b", "k.b"), single_field("c", "k.c")]
    take_snapshot(sources, 5, run)
    assert 2 <= len(run.checkpoints) <= 3
    for facts in run.checkpoints:
        assert [field.key for field in facts.fields] == ["k.a", "k.b", "k.c"]
    assert run.steps[-1] == ("sources", 3, 3)


def test_a_cancelled_run_returns_its_facts_so_far(hanging_source: Callable[..., Source]) -> None:
    facts = take_snapshot(
        [single_field("a", "k.a"), hanging_source("b", "k.b", 3600)],
        3600,
        RecordingRun(cancel_at=1),
    )
    assert facts.cancelled
    assert not facts.failures
    assert by_key(facts)["k.a"].value == "a"
    assert by_key(facts)["k.b"].status == "collection-failed"


def test_the_duration_is_measured() -> None:
    before_s = time.monotonic()
    facts = take_snapshot([single_field("a", "k.a")], 5, RecordingRun())
    assert 0 <= facts.duration_ms <= (time.monotonic() - before_s) * 1000 + 1
