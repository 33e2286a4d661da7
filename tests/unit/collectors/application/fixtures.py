"""Helpers for tests of the application collector: recorded files, and a run that records calls."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from collectors.application.source import Reading
from collectors.contract import ApplicationFacts, Facts, Field
from tests.paths import FIXTURES as ALL_FIXTURES

FIXTURES = ALL_FIXTURES / "application"


def fixture(name: str) -> bytes:
    """Return the content of a recorded file."""
    return (FIXTURES / name).read_bytes()


def by_key(reading: Reading | ApplicationFacts) -> dict[str, Field]:
    """Return the fields by key."""
    return {entry.key: entry for entry in reading.fields}


def values(entries: tuple[Field, ...]) -> dict[str, object]:
    """Return the values of the available fields, by key."""
    return {entry.key: entry.value for entry in entries if entry.status == "available"}


def write_files(root: Path, files: dict[str, str | bytes]) -> Path:
    """Write ``files`` below ``root``, which stands for `/`. Return ``root``."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return root


@dataclass
class RecordingRun:
    """A run that records its calls. It is cancelled after ``cancel_at`` checkpoints."""

    cancel_at: int | None = None
    steps: list[tuple[str, int, int | None]] = field(default_factory=list)
    checkpoints: list[Facts] = field(default_factory=list)

    def progress(self, step: str, done: int, total: int | None = None) -> None:
        self.steps.append((step, done, total))

    def checkpoint(self, facts: Facts) -> None:
        self.checkpoints.append(facts)

    @property
    def cancelled(self) -> bool:
        return self.cancel_at is not None and len(self.checkpoints) >= self.cancel_at

    def on_cancel(self, wake: Callable[[], None]) -> None:
        raise AssertionError("the snapshot polls `cancelled`, so it must not register a waker")
