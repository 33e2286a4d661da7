"""A source of facts: what it is called, which keys it owns, and how it is read."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Concatenate, Generic, ParamSpec

from collectors.application.deadline import Deadline
from collectors.contract import Field, FieldStatus, FieldValue, InterfaceFields, PeripheralFields
from collectors.shared.run_command import NotInstalled
from collectors.shared.text import clean_text

P = ParamSpec("P")

LIST_MAX = 256
"""Items kept of any list from outside."""

REASON_MAX = 500


class Unreadable(Exception):
    """A source cannot be read here; ``status`` says in which of the four ways."""

    def __init__(self, status: FieldStatus, reason: str) -> None:
        super().__init__(reason)
        self.status: FieldStatus = status
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Reading:
    """What one source told; ``limitations`` say what was cut from it."""

    fields: tuple[Field, ...] = ()
    interfaces: tuple[InterfaceFields, ...] = ()
    peripherals: tuple[PeripheralFields, ...] = ()
    limitations: tuple[str, ...] = ()

    @property
    def truncated(self) -> bool:
        return bool(self.limitations)


@dataclass(frozen=True, slots=True)
class Source(Generic[P]):
    """``keys`` stand in the snapshot whatever happens; ``read`` may add more of the same group.

    ``origin`` is the source named in the fields of a reading that never came. ``read`` may raise
    anything: the runner turns it into fields that say why. What it takes beside its deadline is
    bound to it in the platform's registry, which leaves a ``Source[[]]``.
    """

    name: str
    origin: str
    keys: tuple[str, ...]
    read: Callable[Concatenate[Deadline, P], Reading]
    deadline_s: float = 2.0
    in_browser: bool = False

    def __call__(self, deadline: Deadline, *args: P.args, **kwargs: P.kwargs) -> Reading:
        return self.read(deadline, *args, **kwargs)

    def bind(self, *args: P.args, **kwargs: P.kwargs) -> "Source[[]]":
        def read(deadline: Deadline) -> Reading:
            return self.read(deadline, *args, **kwargs)

        return Source(
            self.name, self.origin, self.keys, read, self.deadline_s, in_browser=self.in_browser
        )

    def unsupported(self, reason: str) -> "Source[[]]":
        """For a platform that has no way to tell: its keys stand in the snapshot all the same."""
        return unsupported_source(self.name, self.keys, reason)


def source(
    name: str, origin: str, *keys: str, deadline_s: float = 2.0, in_browser: bool = False
) -> Callable[[Callable[Concatenate[Deadline, P], Reading]], Source[P]]:
    """Declare the function below it as a source, with the keys that it fills."""

    def declare(read: Callable[Concatenate[Deadline, P], Reading]) -> Source[P]:
        return Source(name, origin, keys, read, deadline_s, in_browser)

    return declare


def unsupported_source(name: str, keys: tuple[str, ...], reason: str) -> Source[[]]:
    absences = Reading(all_absent(keys, "system", "unsupported", reason))
    return Source(name, "system", keys, lambda _: absences)


def available(key: str, source: str, value: FieldValue) -> Field:
    """A fact, with its strings cleaned and bounded."""
    return Field(key, source, "available", _bounded(value))


def absent(key: str, source: str, status: FieldStatus, reason: str) -> Field:
    """A fact that is missing, and why."""
    said = clean_text(reason, REASON_MAX) or "no reason was given"
    return Field(key, source, status, reason=said)


def unsupported(key: str, source: str, reason: str) -> Field:
    return absent(key, source, "unsupported", reason)


def not_applicable(key: str, source: str, reason: str) -> Field:
    return absent(key, source, "not-applicable", reason)


def failed(key: str, source: str, reason: str) -> Field:
    return absent(key, source, "collection-failed", reason)


def either(
    key: str,
    source: str,
    value: FieldValue | None,
    reason: str,
    status: FieldStatus = "unsupported",
) -> Field:
    """``value`` as a fact, or, when there is none (None or ""), ``status`` with ``reason``."""
    if value is None or value == "":
        return absent(key, source, status, reason)
    return available(key, source, value)


def all_absent(
    keys: Iterable[str], source: str, status: FieldStatus, reason: str
) -> tuple[Field, ...]:
    return tuple(absent(key, source, status, reason) for key in keys)


def status_of(error: BaseException) -> tuple[FieldStatus, str]:
    """Class an exception of a source, and say it in words."""
    if isinstance(error, Unreadable):
        return error.status, error.reason
    if isinstance(error, NotInstalled):
        return "unsupported", str(error)
    if isinstance(error, PermissionError):
        return "permission-denied", f"the system denied it: {_said(error)}"
    return "collection-failed", _said(error)


def _said(error: BaseException) -> str:
    """What happened, in the words of whoever noticed; a bug is named by its type too."""
    if isinstance(error, OSError) and error.strerror:
        # The full text names the path it was about, and a path may name a person.
        return error.strerror
    if isinstance(error, OSError | ValueError) and str(error):
        return str(error)
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _bounded(value: FieldValue) -> FieldValue:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, tuple):
        return tuple(clean_text(item) for item in value[:LIST_MAX])
    return value
