"""A PostgreSQL server of the benchmark's own: on a socket in a directory that goes with it."""

import contextlib
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
SETTINGS = {"listen_addresses": "", "max_connections": "100", "shared_buffers": "256MB"}


@contextlib.contextmanager
def postgresql() -> Iterator[str]:
    """Give the URL of an empty database. Raises RuntimeError where PostgreSQL is not installed."""
    if not PROGRAMS:
        raise RuntimeError("PostgreSQL is not installed: apt-get install postgresql")
    programs = PROGRAMS[-1]
    owner = pwd.getpwnam("postgres") if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
    # The path of a socket is bounded to some hundred characters (unix(7)): not below the checkout.
    place = Path(tempfile.mkdtemp(prefix="venue-postgresql-"))
    try:
        os.chown(place, owner.pw_uid, owner.pw_gid)
        data = place / "data"
        _run(owner, programs / "initdb", "-D", data, "-U", "venue", "-A", "trust", "-E", "UTF8")
        given = [f"-c{name}={value}" for name, value in SETTINGS.items()]
        server = subprocess.Popen(
            (programs / "postgres", "-D", data, "-k", place, *given),
            **_as(owner),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            _run(owner, programs / "pg_isready", "-h", place, "-t", "10", attempts=100)
            _run(owner, programs / "createdb", "-h", place, "-U", "venue", "venue")
            yield f"postgresql+psycopg://venue@/venue?host={place}"
        finally:
            server.terminate()
            server.wait(30)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _as(owner: pwd.struct_passwd) -> dict[str, object]:
    if os.geteuid() != 0:
        return {}
    return {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": [], "cwd": "/"}


def _run(owner: pwd.struct_passwd, *words: str | Path, attempts: int = 1) -> None:
    for attempt in range(1, attempts + 1):
        done = subprocess.run(
            words, **_as(owner), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
        )
        if done.returncode == 0:
            return
        if attempt < attempts:
            # The server tells nobody that it is ready: it is asked again.
            with contextlib.suppress(subprocess.TimeoutExpired):
                subprocess.run(("sleep", "0.1"), timeout=1, check=False)
    raise RuntimeError(f"{words[0]} failed: {done.stdout.decode(errors='replace')[-500:]}")
