"""A source of facts: its name, the keys of its fields, and the function that reads it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Concatenate, Final, Generic, ParamSpec

from collectors.application.deadline import Deadline
from collectors.contract import (
    Field,
    FieldStatus,
    FieldValue,
    InterfaceFields,
    LearnedPrinter,
    PeripheralFields,
)
from collectors.shared.run_command import NotInstalled
from collectors.shared.text import clean_text

P = ParamSpec("P")

Fields = Iterable[Field]
"""Fields that are iterated once. Therefore a source may yield them, or return a tuple of them."""

FieldTuple = tuple[Field, ...]

LIST_MAX = 256
"""Maximum number of items in a list. Further items are left out."""

REASON_MAX = 500


@dataclass(frozen=True, slots=True)
class Origin:
    """Where facts come from. Its methods create the fields of these facts.

    ``name`` is the `Field.source` of the fields. ``missing`` is the reason of a missing fact if the
    caller gives none.
    """

    name: str
    missing: str = ""

    def available(self, key: str, value: FieldValue) -> Field:
        """Return a fact, with its strings cleaned and bounded."""
        return Field(key, self.name, "available", _bounded(value))

    def absent(self, key: str, status: FieldStatus, reason: str) -> Field:
        """Return the field of a missing fact, with the reason."""
        text = clean_text(reason, REASON_MAX) or "no reason was given"
        return Field(key, self.name, status, reason=text)

    def unsupported(self, key: str, reason: str) -> Field:
        return self.absent(key, "unsupported", reason)

    def not_applicable(self, key: str, reason: str) -> Field:
        return self.absent(key, "not-applicable", reason)

    def fact(
        self,
        key: str,
        value: FieldValue | None,
        reason: str | None = None,
        status: FieldStatus = "unsupported",
    ) -> Field:
        """Return a fact, or if ``value`` is None or "", an absent field with status and reason."""
        if value is None or value == "":
            return self.absent(key, status, self.missing if reason is None else reason)
        return self.available(key, value)

    def all_absent(self, keys: Iterable[str], status: FieldStatus, reason: str) -> FieldTuple:
        return tuple(self.absent(key, status, reason) for key in keys)


CONFIGURATION: Final = Origin("configuration")
SYSTEM: Final = Origin("system")


class Unreadable(Exception):
    """A source cannot be read on this machine.

    ``status`` is the status of the fields that are missing for this reason. It is never
    ``available``.
    """

    def __init__(self, status: FieldStatus, reason: str) -> None:
        super().__init__(reason)
        self.status: FieldStatus = status
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Reading:
    """The facts of one source. ``limitations`` are sentences about facts that were left out.

    ``learned`` are the identities of watched devices that answered. ``strangers`` are the
    identities of other devices that answered at the address of a watched device.
    """

    fields: FieldTuple = ()
    interfaces: tuple[InterfaceFields, ...] = ()
    peripherals: tuple[PeripheralFields, ...] = ()
    limitations: tuple[str, ...] = ()
    learned: tuple[LearnedPrinter, ...] = ()
    strangers: tuple[LearnedPrinter, ...] = ()

    @property
    def truncated(self) -> bool:
        return bool(self.limitations)


def as_reading(facts: Reading | Fields) -> Reading:
    return facts if isinstance(facts, Reading) else Reading(tuple(facts))


NO_DETAILS: Final = "listed without details"


def left_out(total: int, most: int, items: str, effect: str = "not listed") -> tuple[str, ...]:
    """Return a limitation if only ``most`` of ``total`` items were read, otherwise ()."""
    if total <= most:
        return ()
    return (f"{items} beyond the limit of {most}, {effect}: {total - most}",)


@dataclass(frozen=True, slots=True)
class Source(Generic[P]):
    """A source of facts.

    Args:
        origin: The origin of the fields that are missing.
        keys: The keys that are in every snapshot, even if the source fails.
        read: Yields or returns fields. It returns a `Reading` if it also returns interfaces,
            peripherals or limitations. It may return further keys. It may raise any exception: the
            exception becomes the reason of the missing fields. The registry of a platform binds all
            arguments except the deadline, and thereby creates a ``Source[[]]``.
        limit_s: The time limit for reading the source, in seconds.
        in_browser: Whether the fields belong to ``browser_fields`` of the report.
    """

    name: str
    origin: Origin
    keys: tuple[str, ...]
    read: Callable[Concatenate[Deadline, P], Reading | Fields]
    limit_s: float = 2.0
    in_browser: bool = False

    def __call__(self, deadline: Deadline, *args: P.args, **kwargs: P.kwargs) -> Reading:
        return as_reading(self.read(deadline, *args, **kwargs))

    def bind(self, *args: P.args, **kwargs: P.kwargs) -> "Source[[]]":
        def read(deadline: Deadline) -> Reading:
            return self(deadline, *args, **kwargs)

        return Source(
            self.name, self.origin, self.keys, read, self.limit_s, in_browser=self.in_browser
        )

    def unsupported(self, reason: str) -> "Source[[]]":
        """Return a source with the same keys for a platform that cannot provide them."""
        return unsupported_source(self.name, self.keys, reason)


def source(
    name: str, origin: Origin, *keys: str, limit_s: float = 2.0, in_browser: bool = False
) -> Callable[[Callable[Concatenate[Deadline, P], Reading | Fields]], Source[P]]:
    """Declare the decorated function as a source, with the keys that it returns."""

    def declare(read: Callable[Concatenate[Deadline, P], Reading | Fields]) -> Source[P]:
        return Source(name, origin, keys, read, limit_s, in_browser)

    return declare


def unsupported_source(name: str, keys: tuple[str, ...], reason: str) -> Source[[]]:
    absences = SYSTEM.all_absent(keys, "unsupported", reason)
    return Source(name, SYSTEM, keys, lambda _: absences)


def status_of(error: BaseException) -> tuple[FieldStatus, str]:
    """Return the status and the reason of an exception that a source raised."""
    if isinstance(error, Unreadable):
        return error.status, error.reason
    if isinstance(error, NotInstalled):
        return "unsupported", str(error)
    if isinstance(error, PermissionError):
        return "permission-denied", f"the system denied it: {_describe(error)}"
    return "collection-failed", _describe(error)


def _describe(error: BaseException) -> str:
    """Describe an error. For an unexpected type of exception, include the name of the type."""
    if isinstance(error, OSError) and error.strerror:
        # str(error) would contain the path, which may contain a user's name.
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
