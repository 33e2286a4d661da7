"""Which database a verb works on, and as whom.

``--database``, else ``$VENUE_CONTROL_DATABASE``. Without either, root and the service's user mean
the database of the service that is installed on this machine, and the others a file of their own.
"""

import contextlib
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from controlplane.service.account import as_the_service, uid_of_the_service
from controlplane.service.places import OPTIONS
from controlplane.storage.location import ENVIRONMENT, default_database


@dataclass(frozen=True, slots=True)
class ChosenDatabase:
    """``is_the_services``: root works on it as the service's user."""

    url: str
    is_the_services: bool = False

    @contextlib.contextmanager
    def as_its_owner(self) -> Iterator[None]:
        with as_the_service() if self.is_the_services else contextlib.nullcontext():
            yield


def chosen_database(named: str | None) -> ChosenDatabase:
    url = named or os.environ.get(ENVIRONMENT)
    if url:
        return ChosenDatabase(url)
    if sys.platform != "win32" and OPTIONS.exists():
        uid = uid_of_the_service()
        if uid is not None and os.geteuid() in {0, uid}:
            url = _database_of_the_service() or default_database({}, is_root=True)
            return ChosenDatabase(url, is_the_services=os.geteuid() == 0)
    return ChosenDatabase(default_database(os.environ))


def _database_of_the_service() -> str | None:
    from controlplane.cli.main import build_parser

    found = build_parser().parse_args(["serve", f"@{OPTIONS}"]).database
    return None if found is None else str(found)
