"""Lets a command that root runs act as the service's user while it uses the service's database.

The service's user owns the database and its directory. An attacker who controls the service could
therefore replace files with links to files that only root may access. A command that runs as this
user cannot follow such links. The service can read the files that the command creates. PostgreSQL,
which identifies the service by its user name, accepts the command's connection.
"""

import contextlib
import os
import sys
from collections.abc import Iterator

from controlplane.service.paths import USER


def service_user_id() -> int | None:
    """Return the id of the service's user, or None if this user does not exist."""
    if sys.platform == "win32":
        return None
    import pwd

    try:
        return pwd.getpwnam(USER).pw_uid
    except KeyError:
        return None


@contextlib.contextmanager
def run_as_service_user() -> Iterator[None]:
    """Run the body of the ``with`` statement as the service's user. Requires root."""
    if sys.platform == "win32":
        raise OSError("on Windows, commands cannot run as the service's user")
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
