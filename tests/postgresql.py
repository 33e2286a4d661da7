"""A PostgreSQL server of one's own: on a socket, in a directory that goes with it.

`python -m tests.postgresql COMMAND…` runs a command with the server's URL in VENUE_TEST_DATABASE.
"""

import contextlib
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
SETTINGS = {"listen_addresses": "''", "max_connections": "100", "shared_buffers": "256MB"}


@contextlib.contextmanager
def postgresql() -> Iterator[str]:
    """Give the URL of an empty database. Raises LookupError where PostgreSQL is not installed."""
    if not PROGRAMS:
        raise LookupError("no /usr/lib/postgresql/*/bin")
    programs = PROGRAMS[-1]
    # It refuses to be run by root. Without the package's user getpwnam raises a LookupError.
    owner = pwd.getpwnam("postgres") if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
    # The path of a socket is bounded to some hundred characters (unix(7)): not below the checkout.
    place = Path(tempfile.mkdtemp(prefix="venue-postgresql-"))
    try:
        os.chown(place, owner.pw_uid, owner.pw_gid)
        data = place / "data"
        _run(owner, programs / "initdb", "-D", data, "-U", "venue", "-A", "trust", "-E", "UTF8")
        given = [f"-c{name}={value}" for name, value in SETTINGS.items()]
        # pg_ctl, unlike the server itself, ends when the server is ready.
        control = (programs / "pg_ctl", "-D", data, "-w", "-l", place / "log")
        _run(owner, *control, "-o", f"-k {place} {' '.join(given)}", "start")
        try:
            _run(owner, programs / "createdb", "-h", place, "-U", "venue", "venue")
            yield f"postgresql+psycopg://venue@/venue?host={place}"
        finally:
            _run(owner, *control, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _as(owner: pwd.struct_passwd) -> dict[str, Any]:
    if os.geteuid() != 0:
        return {}
    return {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": [], "cwd": "/"}


def _run(owner: pwd.struct_passwd, *words: str | Path) -> None:
    done = subprocess.run(
        words, **_as(owner), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"{words[0]} failed: {done.stdout.decode(errors='replace')[-500:]}")


def main(command: list[str]) -> int:
    with postgresql() as url:
        environment = os.environ | {"VENUE_TEST_DATABASE": url}
        return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
