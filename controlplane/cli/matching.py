"""Selects the only record that matches a name, an id, or the first characters of an id."""

from collections.abc import Mapping
from typing import TypeVar
from uuid import UUID

from controlplane.client.errors import CommandError

IDS_MAX = 5
"""Maximum number of ids that an error message names."""
Record = TypeVar("Record")


def only_match(
    text: str,
    matches: Mapping[UUID, Record],
    noun: str,
    hint: str,
    error: type[CommandError] = CommandError,
) -> Record:
    """Return the only record in ``matches``, the records that match ``text``.

    Raises ``error`` if there is none or more than one, or if ``text`` is empty.
    """
    if not (text and matches):
        raise error(f"no {noun} matches {text!r}", hint)
    if len(matches) > 1:
        ids = ", ".join(map(str, list(matches)[:IDS_MAX]))
        raise error(f"{text!r} matches {len(matches)} {noun}s: {ids}", "Use more characters.")
    return next(iter(matches.values()))
