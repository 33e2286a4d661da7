"""The open streams of each user, so that a change of permissions applies to open streams too."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from uuid import UUID

from controlplane.operation.caller import Caller

DELETED_USER_VERSION = -1
"""The permission version of a user who was deleted. Versions of existing users are not negative."""


class OpenStreams:
    """Tracks open streams, except streams of API keys without an owner.

    The credential of a stream is the id of its API key, session or OAuth grant. Use this class only
    from the event loop.
    """

    def __init__(self) -> None:
        self._credentials: dict[UUID, Counter[UUID]] = {}
        self._versions: dict[UUID, int] = {}

    @contextmanager
    def open(self, caller: Caller) -> Iterator[None]:
        if caller.owner_id is None:
            yield
            return
        owner = caller.owner_id
        credentials = self._credentials.setdefault(owner, Counter())
        credentials[caller.key_id] += 1
        # The older version is kept, so that `find_changed` also finds the older streams.
        self._versions[owner] = min(
            caller.permissions_version, self._versions.get(owner, caller.permissions_version)
        )
        try:
            yield
        finally:
            credentials[caller.key_id] -= 1
            if not credentials[caller.key_id]:
                del credentials[caller.key_id]
            if not credentials:
                del self._credentials[owner], self._versions[owner]

    def owners(self) -> Collection[UUID]:
        return self._credentials.keys()

    def find_changed(self, versions: Mapping[UUID, int]) -> set[UUID]:
        """Return the credentials of the open streams of users whose permissions changed.

        The version of each user is compared with the version in the previous call. If the user's
        streams were opened after that call, it is compared with the version when they were opened.

        Args:
            versions: the current permission versions of the `owners` that still exist.
        """
        credentials: set[UUID] = set()
        for owner, last_version in self._versions.items():
            version = versions.get(owner, DELETED_USER_VERSION)
            if version != last_version:
                self._versions[owner] = version
                credentials |= self._credentials[owner].keys()
        return credentials
