"""Parses the body of an `onCommands` reply into commands.

A frame is a part of the body that is parsed on its own: an event or a line of a stream, or the
whole body of a reply to a poll. The contract does not define the body, so every plausible form of a
frame is accepted: one command, an array, an object with an array under ``commands``, ``requests``
or ``items``, null, or nothing. A frame can also consist of several lines, each in one of these
forms (NDJSON). Invalid entries are described in ``Frame.rejected``. Valid entries of the same frame
are accepted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from agent.wire.codec import decode, validate
from agent.wire.device_operations import Command
from agent.wire.validation import ValidationError

FRAME_MAX_BYTES: Final = 1_048_576
COMMANDS_MAX: Final = 256
LIST_KEYS: Final = ("commands", "requests", "items")
SKIPPED_EVENTS: Final = frozenset({"error", "done"})
"""Names of server-sent events without commands."""


@dataclass(frozen=True, slots=True)
class Frame:
    """The commands of one frame, and in ``rejected`` a line for each invalid entry.

    ``reconnect_s`` is the time over which devices have to spread their reconnections, in seconds.
    Only the parser of event streams sets it (`adapters.http_client`).
    """

    commands: tuple[Command, ...] = ()
    rejected: tuple[str, ...] = ()
    reconnect_s: float | None = None


def parse_frame(data: str | bytes) -> Frame:
    """Parse one frame: one JSON document, or one JSON document per line. Never raises."""
    content = data.encode("utf-8", "replace") if isinstance(data, str) else data
    if len(content) > FRAME_MAX_BYTES:
        return Frame(rejected=(f"a frame of {len(content)} bytes is too long",))
    text = content.strip()
    if not text:
        return Frame()
    try:
        return _frame_of(decode(text, object))
    except ValidationError:
        return _parse_lines(text)


def _parse_lines(content: bytes) -> Frame:
    frames = []
    entries = 0
    for line in content.split(b"\n"):
        if not line.strip():
            continue
        try:
            frames.append(_frame_of(decode(line, object)))
        except ValidationError as error:
            frames.append(Frame(rejected=(f"not JSON: {error}",)))
        entries += max(1, len(frames[-1].commands) + len(frames[-1].rejected))
        if entries > COMMANDS_MAX:
            frames.append(Frame(rejected=(f"more than {COMMANDS_MAX} entries in one frame",)))
            break
    return Frame(
        tuple(c for f in frames for c in f.commands), tuple(r for f in frames for r in f.rejected)
    )


def _frame_of(document: Any) -> Frame:
    commands, rejected_entries = [], []
    for index, entry in enumerate(_entries(document)):
        if index >= COMMANDS_MAX:
            rejected_entries.append(f"more than {COMMANDS_MAX} entries in one frame")
            break
        try:
            commands.append(validate(entry, Command))
        except ValidationError as error:
            rejected_entries.append(f"{error.where or 'entry'}: {error.reason}")
    return Frame(tuple(commands), tuple(rejected_entries))


def _entries(document: Any) -> Sequence[Any]:
    """Return the entries of a document in one of the forms that the module describes."""
    if isinstance(document, Mapping) and "requestId" not in document:
        key = next((key for key in LIST_KEYS if key in document), None)
        document = document[key] if key else (document or None)
    if document is None:
        return ()
    return document if isinstance(document, list) else (document,)
