"""Commands of root on the service's database run as the service's user.

That user owns the database and its directory, and could have replaced files by links. As that user,
root cannot be led to other files, the service can read the created files, and PostgreSQL identifies
the user by its name.
"""

import contextlib
import os
import sys
from collections.abc import Iterator

from controlplane.service.paths import USER


def uid_of_the_service() -> int | None:
    """Return the id of the service's user, None if the service is not installed."""
    if sys.platform == "win32":
        return None
    import pwd

    try:
        return pwd.getpwnam(USER).pw_uid
    except KeyError:
        return None


@contextlib.contextmanager
def as_the_service() -> Iterator[None]:
    """Run the body of the context as the service's user. Only root can use it."""
    if sys.platform == "win32":
        raise OSError("Windows has no such users")
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
