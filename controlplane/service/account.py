"""Root's verbs on the service's database go on as the service's user.

That user owns the database and its directory, and may have put anything there: as that user a link
leads nowhere that it may not go anyway, what is made there the service can read, and PostgreSQL
knows it by its name.
"""

import contextlib
import os
import sys
from collections.abc import Iterator

from controlplane.service.places import USER


def uid_of_the_service() -> int | None:
    """Return it; None where the service is not installed."""
    if sys.platform == "win32":
        return None
    import pwd

    try:
        return pwd.getpwnam(USER).pw_uid
    except KeyError:
        return None


@contextlib.contextmanager
def as_the_service() -> Iterator[None]:
    """Be the service's user for as long as the context lasts; it is for root alone."""
    if sys.platform == "win32":
        raise OSError("there are no such users here")
    import pwd

    account, groups = pwd.getpwnam(USER), os.getgroups()
    os.initgroups(USER, account.pw_gid)
    os.setegid(account.pw_gid)
    os.seteuid(account.pw_uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(groups)
